"""`DiscordInteractionsAdapter`: an application that gets its commands and presses by a webhook."""

from __future__ import annotations

from pathlib import Path

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.webhooks import WebhookPort
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.integrations.discord.interactions_platform import (
    DiscordInteractionSettings,
    DiscordInteractionsPlatform,
)
from gateway_sessions.ports import Clock


class DiscordInteractionsAdapter(WebhookAdapter):
    """An adapter for one application without a connection to Discord's gateway."""

    def __init__(
        self,
        settings: DiscordInteractionSettings,
        *,
        name: str = "",
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Name the address of the webhook as Interactions Endpoint URL of the application."""
        clock = clock or SystemClock()
        super().__init__(
            DiscordInteractionsPlatform(settings, account=name, clock=clock),
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            clock=clock,
        )
