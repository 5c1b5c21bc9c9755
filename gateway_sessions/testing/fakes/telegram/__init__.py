"""A Bot API server that behaves like Telegram, with its people, rules and faults.

- ``chats``: Chats, people and messages of a fake Telegram, and the updates that its bot is owed.
- ``entities``: What Telegram makes of a text: its HTML, parsed as strictly as the Bot API does, and what it
  finds.
- ``methods``: The methods of the Bot API that a fake Telegram knows, with the rules for their parameters.
- ``refusals``: Refusals in the words of Telegram's Bot API.
- ``server``: `FakeTelegram`: a Bot API server on loopback, with people who write to its bot.
"""

from gateway_sessions.testing.fakes.telegram.server import FakeTelegram, TelegramLimits

__all__ = ["FakeTelegram", "TelegramLimits"]
