"""What is said in sessions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Unpack

from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.messages import Content, Message, MessageMembers, message_of
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import messages as verbs
from gateway_sessions.storage.verbs.messages import Page

_log = logging.getLogger(__name__)


class TranscriptMethods(VerbRunner):
    """Messages: added in order, read by page, and changed only in ways that can be told."""

    async def append_message(
        self,
        session_id: str,
        role: str,
        content: Content = None,
        *,
        timestamp: datetime | float | str | None = None,
        **members: Unpack[MessageMembers],
    ) -> int:
        """Add one message behind the last; returns its id."""
        message = Message(role, content, sent_at=instant_of("timestamp", timestamp), **members)
        return (await self.append_messages(session_id, [message]))[0]

    async def append_messages(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> list[int]:
        """Add messages behind the last, all or none, in one transaction; returns their ids."""
        given = [message_of(one) for one in messages]
        verb = partial(verbs.append, session_id, given, self._clock.now(), self.change_ids)
        appended = await self.write(verb)
        self._tell_of_replacements(session_id, appended.replaced)
        return appended.message_ids

    async def get_messages(
        self,
        session_id: str,
        *,
        include_hidden: bool = False,
        limit: int | None = None,
        after_seq: int | None = None,
        before_seq: int | None = None,
    ) -> list[Message]:
        """Messages in their order: the first behind `after_seq`, or without it the last before `before_seq`.

        `SessionNotFoundError` if there is no such session.
        """
        asked = Page(after_seq=after_seq, before_seq=before_seq, limit=limit, include_hidden=include_hidden)
        return await self.read(partial(verbs.page, session_id, asked))

    def _tell_of_replacements(self, session_id: str, messages: int) -> None:
        if messages:
            _log.warning(
                "characters that cannot be stored were replaced",
                extra={"action": "text_replaced", "session_id": session_id, "messages": messages},
            )
