"""`TeamsAdapter`: one bot on Teams, whose activities are acknowledged when they are stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.webhooks import ApiCall, DeliveryStatus, WebhookPort
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.teams.activities import TeamsReadingRules
from gateway_sessions.integrations.teams.objects import TeamsActivity
from gateway_sessions.integrations.teams.platform import TeamsPlatform
from gateway_sessions.integrations.teams.settings import TeamsSettings
from gateway_sessions.ports import Clock

MOST_FILE_BYTES: Final = 20 << 20
"""The most bytes of a file that are fetched unless more is asked for: it is held in memory."""


class TeamsAdapter(WebhookAdapter):
    """An adapter for one bot on Teams."""

    def __init__(
        self,
        settings: TeamsSettings,
        *,
        name: str = "",
        groups: Groups[TeamsActivity] = GroupTalk.MENTION,
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        on_status: Callable[[DeliveryStatus], Awaitable[None]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*groups* says which messages are for the bot if Teams sends all; the rest is `WebhookAdapter`'s."""
        self._settings = settings
        rules = TeamsPlatform(settings, TeamsReadingRules(name, as_group_rules(groups)))
        super().__init__(
            rules,
            name=name,
            path=path,
            port=port,
            unreadable=unreadable,
            on_status=on_status,
            clock=clock,
        )

    async def fetch(self, attachment: Attachment, *, most: int = MOST_FILE_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent.

        `InvalidInputError` if it is larger, or has an address that is none of Teams': nothing else is called.
        """
        url = attachment.url
        if not self._settings.may_call(url) and not self._settings.may_fetch(url):
            problem = f"{attachment.name or 'the attachment'} has an address that is none of Teams'"
            raise InvalidInputError(problem)
        return await self.download(ApiCall(url=url, method="GET", name="attachment", shows=False), most=most)
