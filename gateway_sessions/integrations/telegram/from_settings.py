"""The adapter for Telegram that a configuration asks for, with the client of this package."""

from __future__ import annotations

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.configured import AdapterSettings
from gateway_sessions.integrations.telegram.adapter import TelegramAdapter
from gateway_sessions.integrations.telegram.client import API_URL, TelegramBot
from gateway_sessions.integrations.telegram.webhook import TelegramWebhook


def telegram_from_settings(settings: AdapterSettings) -> TelegramAdapter:
    """Make the adapter of one bot from `token`; with a `webhook_url`, Telegram calls it."""
    token = settings.required_text("token")
    api_url = settings.text("api_url", API_URL) or API_URL
    groups = settings.group_rules()
    unreadable = settings.folder("unreadable")
    webhook_url, secret, path = settings.text("webhook_url"), settings.text("secret"), settings.text("path")
    for key, value in (("secret", secret), ("path", path)):
        if value is not None and webhook_url is None:
            settings.refuse(key, "is for webhook_url: without one, the bot asks Telegram itself")
    bot: TelegramBot | None = None
    try:
        bot = TelegramBot(token, api_url=api_url) if token else None
    except InvalidInputError as error:
        settings.refuse("token", str(error))
    settings.check()
    assert bot is not None  # noqa: S101 -- without one, the check has raised
    settings.on_close(bot.aclose)
    if webhook_url is not None:
        return TelegramWebhook(
            bot,
            webhook_url,
            secret=secret,
            path=path,
            name=settings.name,
            groups=groups,
            unreadable=unreadable,
        )
    return TelegramAdapter(bot, name=settings.name, groups=groups, unreadable=unreadable)
