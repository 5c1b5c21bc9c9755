"""`LineAdapter`: one official account of LINE, whose events are acknowledged when they are stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from gateway_sessions.adapters.file_sizes import check_size
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.webhooks import ApiCall, DeliveryStatus, WebhookPort
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.line.events import CONTENT, LineReadingRules
from gateway_sessions.integrations.line.names import LineNames
from gateway_sessions.integrations.line.objects import LineEvent
from gateway_sessions.integrations.line.platform import LinePlatform, LineSettings
from gateway_sessions.ports import Clock

MOST_CONTENT_BYTES: Final = 20 << 20
"""The most bytes of a file that are fetched unless more is asked for: it is held in memory."""


class LineAdapter(WebhookAdapter):
    """An adapter for one official account of LINE."""

    def __init__(
        self,
        settings: LineSettings,
        *,
        name: str = "",
        groups: Groups[LineEvent] = GroupTalk.MENTION,
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        on_status: Callable[[DeliveryStatus], Awaitable[None]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*groups* says which messages of groups are for the account; the rest is `WebhookAdapter`'s."""
        self._settings = settings
        super().__init__(
            LinePlatform(settings, LineReadingRules(name, as_group_rules(groups))),
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            on_status=on_status,
            clock=clock,
        )
        self._names = LineNames(settings.api_url, self._sender.call, self._clock)

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Take events within the block, with names; `AdapterUnavailableError` if the token opens nothing."""
        async with super().connect(partial(self._names.submit, submit)):
            yield

    async def fetch(self, attachment: Attachment, *, most: int = MOST_CONTENT_BYTES) -> bytes:
        """Return the content that somebody sent; `InvalidInputError` if it is larger, or not there.

        LINE keeps the content of a message for a limited time.
        """
        message_id = attachment.url.removeprefix(CONTENT)
        if not attachment.url.startswith(CONTENT) or not message_id.isalnum():
            problem = f"{attachment.name or 'the attachment'} is not kept by LINE"
            raise InvalidInputError(problem)
        check_size(attachment, most)
        url = f"{self._settings.data_url}/v2/bot/message/{message_id}/content"
        return await self.download(ApiCall(url=url, method="GET", name="content", shows=False), most=most)
