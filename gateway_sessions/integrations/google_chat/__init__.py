"""Google Chat: events come to a webhook, and messages are created under names of their own.

- ``adapter``: `GoogleChatAdapter`: one app in Google Chat, whose messages are shown once however often they
  are sent.
- ``events``: Reading of Google Chat's events: which message one brings, and what came with it.
- ``from_settings``: The adapter for Google Chat that a configuration asks for.
- ``objects``: The objects of Google Chat, as far as they are read; what else Google sends is passed over.
- ``platform``: `GoogleChatPlatform`: what the bytes of one app in Google Chat mean, for the engine, without
  I/O.
"""

from gateway_sessions.integrations.google_chat.adapter import GoogleChatAdapter
from gateway_sessions.integrations.google_chat.platform import GoogleChatSettings

__all__ = ["GoogleChatAdapter", "GoogleChatSettings"]
