"""The adapter for Discord that a configuration asks for: a connected bot, or interactions at a webhook."""

from __future__ import annotations

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.integrations.configured import AdapterSettings


def discord_from_settings(settings: AdapterSettings) -> Adapter:
    """Make the adapter of a bot from `token`, or of an application from `application_id` and `public_key`."""
    public_key = settings.text("public_key")
    if public_key is not None:
        return _with_webhook(settings, public_key)
    from gateway_sessions.integrations.discord_py.from_settings import (  # noqa: PLC0415 -- imports discord.py
        discord_bot_from_settings,
    )

    return discord_bot_from_settings(settings)


def _with_webhook(settings: AdapterSettings, public_key: str) -> Adapter:
    from gateway_sessions.integrations.discord.interactions_adapter import (  # noqa: PLC0415 -- needs an extra
        DiscordInteractionsAdapter,
    )
    from gateway_sessions.integrations.discord.interactions_platform import (  # noqa: PLC0415
        API_URL,
        DiscordInteractionSettings,
    )

    application = DiscordInteractionSettings(
        application_id=settings.required_text("application_id"),
        public_key=public_key,
        bot_token=settings.text("token") or "",
        command=settings.text("command") or "",
        api_url=settings.text("api_url") or API_URL,
    )
    path, unreadable = settings.text("path"), settings.folder("unreadable")
    settings.check()
    return DiscordInteractionsAdapter(application, name=settings.name, path=path, unreadable=unreadable)
