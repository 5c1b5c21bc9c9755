"""`TwilioAdapter`: one sender at Twilio, for SMS, MMS and WhatsApp."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway_sessions.adapters.webhooks import ApiCall, DeliveryStatus, WebhookPort
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.twilio.platform import TwilioPlatform, TwilioSettings
from gateway_sessions.ports import Clock

MOST_MEDIA_BYTES: Final = 20 << 20
"""The most bytes of a file that are fetched unless more is asked for: it is held in memory."""
MEDIA_HOSTS: Final = (".twilio.com", ".twiliocdn.com", ".amazonaws.com")
"""The ends of the hosts to which Twilio leads for the content of a file; they get no secret."""


class TwilioAdapter(WebhookAdapter):
    """An adapter for one sender at Twilio."""

    def __init__(
        self,
        settings: TwilioSettings,
        *,
        name: str = "",
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        on_status: Callable[[DeliveryStatus], Awaitable[None]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*on_status* is told what became of messages: delivered, or failed and why."""
        self._settings = settings
        super().__init__(
            TwilioPlatform(settings, account=name),
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            on_status=on_status,
            clock=clock,
        )

    async def fetch(self, attachment: Attachment, *, most: int = MOST_MEDIA_BYTES) -> bytes:
        """Return the content of a file that somebody sent.

        `InvalidInputError` if it is larger, gone, or not kept by Twilio.
        """
        if not attachment.url.startswith(f"{self._settings.account_url}/Messages/") or ".." in attachment.url:
            problem = f"{attachment.name or 'the attachment'} is not kept by Twilio for this account"
            raise InvalidInputError(problem)
        call = ApiCall(url=attachment.url, method="GET", name="media", shows=False)
        async with self._open_client():
            answer = await self._sender.fetch(await self._sender.authorized(call))
            place = answer.headers.get("location", "")
            if not 300 <= answer.status < 400 or not place:  # noqa: PLR2004 -- Twilio leads to another host
                return await self.download(call, most=most)
            parts = urlsplit(place)
            is_known = parts.scheme == "https" and f".{parts.hostname}".endswith(MEDIA_HOSTS)
            if not is_known and not place.startswith(f"{self._settings.api_url}/"):
                problem = "Twilio leads to a host that is none of its own"
                raise InvalidInputError(problem)
            elsewhere = ApiCall(url=place, method="GET", name="media", shows=False)
            return await self._client.download(elsewhere, most=most)
