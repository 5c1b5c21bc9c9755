"""Telegram, by a client of ours or through a library that a bot is made with.

- ``adapter``: `TelegramAdapter`: one bot, whose updates are confirmed when they are safe, and not before.
- ``bot_api``: The port to Telegram's Bot API: what a client library has to do for the adapter, and how
  calls fail.
- ``client``: `TelegramBot`: a client of the Bot API for programs that have no library for Telegram.
- ``from_settings``: The adapter for Telegram that a configuration asks for, with the client of this package.
- ``objects``: The objects of the Bot API, as far as they are read; what else Telegram sends is passed over.
- ``sending``: The calls of the Bot API that show a message to people.
- ``updates``: Reading of Telegram's updates: which message one brings, for whom it is, and what came with
  it.
- ``webhook``: `TelegramWebhook`: one bot to which Telegram posts its updates, instead of being polled.
"""

from gateway_sessions.adapters.group_talk import GroupTalk
from gateway_sessions.integrations.telegram.adapter import TelegramAdapter
from gateway_sessions.integrations.telegram.bot_api import BotApi, BotApiError, NotSentError, Upload
from gateway_sessions.integrations.telegram.webhook import TelegramWebhook

__all__ = [
    "BotApi",
    "BotApiError",
    "GroupTalk",
    "NotSentError",
    "TelegramAdapter",
    "TelegramWebhook",
    "Upload",
]
