"""The adapter for Telegram that a configuration asks for, with the client of this package."""

from __future__ import annotations

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.telegram.adapter import TelegramAdapter
from gateway_sessions.integrations.telegram.client import API_URL, TelegramBot
from gateway_sessions.integrations.telegram.updates import GroupTalk


def telegram_from_settings(settings: AdapterSettings) -> TelegramAdapter:
    """Make the adapter of one bot from `token`, and maybe `groups`, `api_url` and `unreadable`."""
    token = settings.required_text("token")
    api_url = settings.text("api_url", API_URL) or API_URL
    groups = settings.choice("groups", GroupTalk, GroupTalk.ADDRESSED)
    unreadable = settings.folder("unreadable")
    bot: TelegramBot | None = None
    try:
        bot = TelegramBot(token, api_url=api_url) if token else None
    except InvalidInputError as error:
        settings.refuse("token", str(error))
    settings.check()
    assert bot is not None  # noqa: S101 -- without one, the check has raised
    settings.on_close(bot.aclose)
    return TelegramAdapter(bot, name=settings.name, groups=groups, unreadable=unreadable)
