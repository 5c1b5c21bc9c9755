"""`DiscordInteractionsAdapter`: an application that gets its commands and presses by a webhook."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.webhooks import WebhookPort
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.adapters.webhooks.api_calls import ApiCall
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.discord.api import FILE_HOSTS, MOST_BYTES
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
        self._hosts: frozenset[str | None] = FILE_HOSTS | {urlsplit(settings.api_url).hostname}
        super().__init__(
            DiscordInteractionsPlatform(settings, account=name, clock=clock),
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            clock=clock,
        )

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of a file that was given to a command; `InvalidInputError` if it is larger."""
        if urlsplit(attachment.url).hostname not in self._hosts:
            problem = f"{attachment.name or 'the attachment'} is no file of Discord"
            raise InvalidInputError(problem)
        check_size(attachment, most)
        call = ApiCall(url=attachment.url, method="GET", name="file", shows=False)
        async with self._open_client():
            return await self._client.download(call, most=most)
