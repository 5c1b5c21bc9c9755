"""A WhatsApp Business Platform on loopback: it calls a webhook, and has the Graph API of one number.

- ``server``: `FakeWhatsApp`: the Graph API of one number, with people who write to it.
"""

from gateway_sessions.testing.fakes.whatsapp.server import (
    ACCESS_TOKEN,
    APP_SECRET,
    PHONE_NUMBER_ID,
    FakeWhatsApp,
    graph_error,
)

__all__ = ["ACCESS_TOKEN", "APP_SECRET", "PHONE_NUMBER_ID", "FakeWhatsApp", "graph_error"]
