"""`WhatsApp`: the adapter for one number of the WhatsApp Business Platform, hosted by Meta (Cloud API)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.adapters.webhooks.api_calls import ApiCall
from gateway_sessions.adapters.webhooks.endpoints import WebhookEndpoint
from gateway_sessions.adapters.webhooks.events import DeliveryStatus
from gateway_sessions.adapters.webhooks.sent_evidence import REPORT_WAIT
from gateway_sessions.adapters.webhooks.server import WebhookPort
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.whatsapp.rules import WhatsAppRules, WhatsAppSettings
from gateway_sessions.integrations.whatsapp.webhooks import MEDIA
from gateway_sessions.ports import Clock

MOST_BYTES: Final = 100 << 20
"""WhatsApp takes no larger files from people."""
_HOSTS: Final = (".fbsbx.com", ".facebook.com", ".fbcdn.net", ".whatsapp.net")
"""Where Meta keeps files; the token goes nowhere else."""


class WhatsApp(WebhookAdapter):
    """An adapter for one number."""

    def __init__(
        self,
        settings: WhatsAppSettings,
        *,
        name: str = "",
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        on_status: Callable[[DeliveryStatus], Awaitable[None]] | None = None,
        report_wait: timedelta = REPORT_WAIT,
        clock: Clock | None = None,
    ) -> None:
        """The path is by default `/whatsapp`; the other options are those of `WebhookAdapter`."""
        self._settings = settings
        self._number = WhatsAppRules(settings, account=name)
        self._api_host = urlsplit(settings.api_url).hostname
        super().__init__(
            self._number,
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            on_status=on_status,
            report_wait=report_wait,
            clock=clock,
        )

    def share_path(self, others: Sequence[WebhookEndpoint]) -> None:
        """Leave to other numbers of the same app what is theirs: Meta calls one address for all of them.

        `InvalidInputError` if one of them is of another app, or the same number.
        """
        numbers = [one.number_beside(self._settings) for one in others if isinstance(one, WhatsApp)]
        known = {one for one in numbers if one is not None}
        if len(known) < len(others):
            problem = (
                f"two webhooks have the path {self.path!r}: only different numbers of one WhatsApp app, with"
                " the same app_secret and verify_token, share a path; give others another path="
            )
            raise InvalidInputError(problem)
        self._number.leave_to_others(known)

    def number_beside(self, settings: WhatsAppSettings) -> str | None:
        """Return the id of this number if it can share a path with the number of *settings*."""
        mine = self._settings
        is_same_app = set(mine.app_secrets) == set(settings.app_secrets)
        is_same_word = mine.verify_token == settings.verify_token
        is_other = mine.phone_number_id != settings.phone_number_id
        return mine.phone_number_id if is_same_app and is_same_word and is_other else None

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large.

        WhatsApp keeps files for 30 days.
        """
        if not attachment.url.startswith(MEDIA):
            problem = f"{attachment.url[:40]!r} is no file of WhatsApp"
            raise InvalidInputError(problem)
        told = await self.make(self._number.media_call(attachment.url.removeprefix(MEDIA)))
        match told:
            case {"url": str(url)} if self._is_host_of_files(url):
                return await self.download(ApiCall(url=url, method="GET", name="file"), most=most)
            case _:
                problem = "WhatsApp has not told where the file is"
                raise InvalidInputError(problem)

    def _is_host_of_files(self, url: str) -> bool:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return host == self._api_host or (parts.scheme == "https" and host.endswith(_HOSTS))
