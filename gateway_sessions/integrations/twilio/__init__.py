"""Twilio, for SMS, MMS and WhatsApp: messages come to a webhook, and replies are sent by calls.

- ``adapter``: `TwilioAdapter`: one sender at Twilio, for SMS, MMS and WhatsApp.
- ``from_settings``: The adapter for Twilio that a configuration asks for.
- ``platform``: `TwilioPlatform`: what the bytes of one sender at Twilio mean, for the engine of webhooks,
  without I/O.
- ``reading``: Reading of Twilio's requests: their signature, the message that one brings, and the fate of
  sent ones.
"""

from gateway_sessions.integrations.twilio.adapter import TwilioAdapter
from gateway_sessions.integrations.twilio.platform import TwilioSettings

__all__ = ["TwilioAdapter", "TwilioSettings"]
