"""A WhatsApp Business Platform on loopback: it calls a webhook, and has the Graph API of one number.

- ``server``: `FakeWhatsApp`: the Graph API of one number, with people who write to it.
"""

from gateway_sessions.testing.fakes.whatsapp.server import FakeWhatsApp, graph_error

__all__ = ["FakeWhatsApp", "graph_error"]
