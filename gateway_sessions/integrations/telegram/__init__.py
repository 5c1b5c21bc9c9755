"""Telegram, by a client of ours or through a library that a bot is made with."""

from gateway_sessions.integrations.telegram.adapter import TelegramAdapter
from gateway_sessions.integrations.telegram.bot_api import BotApi, BotApiError, NotSentError, Upload
from gateway_sessions.integrations.telegram.updates import GroupTalk

__all__ = ["BotApi", "BotApiError", "GroupTalk", "NotSentError", "TelegramAdapter", "Upload"]
