"""WhatsApp, through the WhatsApp Business Platform that Meta hosts, without a client library.

- ``adapter``: `WhatsApp`: the adapter for one number of the WhatsApp Business Platform, hosted by Meta (Cloud
  API).
- ``failures``: What WhatsApp's error codes mean for a call, and what an operator can do about them.
- ``from_settings``: The adapter for WhatsApp that a configuration asks for.
- ``objects``: The objects of WhatsApp's webhooks, as far as they are read; what else Meta sends is passed
  over.
- ``rules``: `WhatsAppRules`: one number of the WhatsApp Business Platform, for the webhook engine.
- ``sending``: The calls of the Graph API that show a message to people.
- ``webhooks``: Reading of WhatsApp's webhooks: messages, choices, reports on what was sent, and all the rest.
"""

from gateway_sessions.integrations.whatsapp.adapter import WhatsApp
from gateway_sessions.integrations.whatsapp.rules import WhatsAppRules, WhatsAppSettings

__all__ = ["WhatsApp", "WhatsAppRules", "WhatsAppSettings"]
