"""An application of Discord, called by a webhook, that repeats what it is told; `main` has its arguments."""

from __future__ import annotations

from gateway_sessions.integrations.discord.interactions_adapter import DiscordInteractionsAdapter
from gateway_sessions.integrations.discord.interactions_platform import DiscordInteractionSettings
from tests.crash.platforms.bots.repeating_bot import repeat_all


async def main(home: str, port: str, url: str, application: str, public_key: str, token: str = "") -> None:
    """Listen at a port; with the token of a bot, answers can be messages in the channel as well."""
    settings = DiscordInteractionSettings(
        application_id=application, public_key=public_key, bot_token=token, command="ask", api_url=url
    )
    await repeat_all(home, DiscordInteractionsAdapter(settings, port=int(port)))
