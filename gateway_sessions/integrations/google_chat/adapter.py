"""`GoogleChatAdapter`: one app in Google Chat, whose messages are shown once however often they are sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gateway_sessions.adapters.webhooks import ApiCall, DeliveryStatus, WebhookPort
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.google_chat.events import CONTENT
from gateway_sessions.integrations.google_chat.platform import GoogleChatPlatform, GoogleChatSettings
from gateway_sessions.ports import Clock

MOST_ATTACHMENT_BYTES: Final = 20 << 20
"""The most bytes of a file that are fetched unless more is asked for: it is held in memory."""


class GoogleChatAdapter(WebhookAdapter):
    """An adapter for one app in Google Chat."""

    def __init__(
        self,
        settings: GoogleChatSettings,
        *,
        name: str = "",
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        on_status: Callable[[DeliveryStatus], Awaitable[None]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """All but the settings is explained at `WebhookAdapter`."""
        self._settings = settings
        super().__init__(
            GoogleChatPlatform(settings, account=name),
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            on_status=on_status,
            clock=clock,
        )

    async def fetch(self, attachment: Attachment, *, most: int = MOST_ATTACHMENT_BYTES) -> bytes:
        """Return the content of a file that somebody sent; `InvalidInputError` if it is larger or gone."""
        resource = attachment.url.removeprefix(CONTENT)
        if not attachment.url.startswith(CONTENT) or not resource:
            problem = f"{attachment.name or 'the attachment'} is not kept by Google Chat"
            raise InvalidInputError(problem)
        url = f"{self._settings.api_url}/v1/media/{quote(resource, safe='')}?alt=media"
        return await self.download(ApiCall(url=url, method="GET", name="media", shows=False), most=most)
