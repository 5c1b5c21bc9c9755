"""Methods of `SessionDB` that append, read, rewind, replace, edit and retract messages."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, Unpack

from gateway_sessions.core.checks import plain_text
from gateway_sessions.core.identity.row_ids import row_id
from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.transcript.messages import (
    AnchoredView,
    Content,
    Message,
    MessageMembers,
    MessageVersion,
    MessageWindow,
    Rewind,
    Role,
    UserTurn,
    message_of,
)
from gateway_sessions.core.transcript.replay import Chat
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transaction_runner import TransactionRunner
from gateway_sessions.storage.transactions.transcripts import conversation, message_windows, rewind, rewrite
from gateway_sessions.storage.transactions.transcripts import messages as transactions
from gateway_sessions.storage.transactions.transcripts.message_windows import Anchor
from gateway_sessions.storage.transactions.transcripts.messages import MessagePage

MANY: Final = 500

_log = logging.getLogger(__name__)


class TranscriptMethods(TransactionRunner):
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
        """Add messages behind the last, all or none, in one transaction; returns their ids.

        `SentBeforeErasureError` for what somebody sent who was erased since.
        """
        given = await _taken(messages)
        transaction = partial(transactions.append, session_id, given, self._clock.now(), self.change_ids)
        appended = await self.write(transaction)
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
        asked = MessagePage(
            after_seq=after_seq, before_seq=before_seq, limit=limit, include_hidden=include_hidden
        )
        return await self.read(partial(transactions.page, session_id, asked))

    async def get_messages_as_conversation(
        self, session_id: str, *, include_ancestors: bool = False, limit: int | None = None
    ) -> list[Chat]:
        """What goes to a model: calls have their results, roles alternate, nothing hidden is shown.

        With *include_ancestors*, also what was said before the session was compressed. *limit* is the
        number of stored messages that are looked at, the latest ones.
        """
        transaction = partial(
            conversation.conversation, session_id, limit, include_ancestors=include_ancestors
        )
        return await self.read(transaction)

    async def get_messages_around(
        self, session_id: str, message_id: int | str, window: int = 5, *, include_hidden: bool = False
    ) -> MessageWindow:
        """A message and up to *window* others on each side; nothing if it is not there.

        Compacted messages are shown, those taken back or retracted only with *include_hidden*.
        """
        anchor = Anchor(
            session_id=session_id,
            message_id=row_id("message_id", message_id),
            window=window,
            include_hidden=include_hidden,
        )
        return await self.read(partial(message_windows.around, anchor))

    async def get_anchored_view(
        self,
        session_id: str,
        message_id: int | str,
        window: int = 5,
        bookend: int = 3,
        *,
        keep_roles: Collection[str] | None = (Role.USER, Role.ASSISTANT),
        include_hidden: bool = False,
    ) -> AnchoredView:
        """The window around a message, and the first and last *bookend* texts outside it.

        Of other roles than *keep_roles*, only the message itself is shown; None keeps all.
        """
        anchor = Anchor(
            session_id=session_id,
            message_id=row_id("message_id", message_id),
            window=window,
            bookend=bookend,
            keep_roles=None if keep_roles is None else tuple(map(str, keep_roles)),
            include_hidden=include_hidden,
        )
        return await self.read(partial(message_windows.anchored, anchor))

    async def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        """Whether a message with that id of its platform was ever stored in the session."""
        return await self.read(partial(message_windows.has_platform_message, session_id, platform_message_id))

    async def list_recent_user_messages(self, session_id: str, limit: int = 20) -> list[UserTurn]:
        """What people said to the agent, the latest first."""
        return await self.read(partial(message_windows.recent_user_turns, session_id, limit))

    async def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns, or as many as there are; None if there is none.

        What is taken back is hidden, and comes back with `restore_rewound`.
        """
        return await self.write(partial(rewind.rewind, session_id, n, self.change_ids))

    async def rewind_to_message(self, session_id: str, message_id: int | str) -> Rewind:
        """Take back a message that a person said, and all that came after it."""
        return await self.write(
            partial(rewind.rewind_to, session_id, row_id("message_id", message_id), self.change_ids)
        )

    async def restore_rewound(self, session_id: str) -> int:
        """Bring back exactly what the last rewind took; how many messages.

        `NothingToUndoError` once the conversation has gone on since.
        """
        return await self.write(partial(rewind.restore, session_id))

    async def replace_messages(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> list[int]:
        """Put messages in the place of the conversation, all or none; returns their ids.

        What is hidden stays: the originals behind a summary, and what was taken back.
        """
        given = await _taken(messages)
        transaction = partial(rewrite.replace, session_id, given, self._clock.now(), self.change_ids)
        appended = await self.write(transaction)
        self._tell_of_replacements(session_id, appended.replaced)
        return appended.message_ids

    async def archive_and_compact(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> int:
        """Let messages, a summary, stand for the conversation so far; how many they stand for.

        The originals are still found by a search, and never sent to a model.
        """
        given = await _taken(messages)
        transaction = partial(rewrite.compact, session_id, given, self._clock.now(), self.change_ids)
        hidden, appended = await self.write(transaction)
        self._tell_of_replacements(session_id, appended.replaced)
        return hidden

    async def clear_messages(self, session_id: str) -> int:
        """Delete all messages of a session, hidden ones too; how many there were."""
        return await self.write(partial(rewrite.clear, session_id, self.change_ids))

    async def edit_message(self, session_id: str, platform_message_id: str, content: Content) -> bool:
        """Let a message say what it says on its platform now, and keep what it said; whether that is new."""
        now = self._clock.now()
        transaction = partial(
            rewrite.edit, session_id, plain_text(platform_message_id), content, now, self.change_ids
        )
        changed, replaced = await self.write(transaction)
        self._tell_of_replacements(session_id, int(replaced))
        return changed

    async def retract_message(self, session_id: str, platform_message_id: str) -> bool:
        """Hide what was deleted on its platform; False if nothing of that name is to be seen."""
        now = self._clock.now()
        transaction = partial(
            rewrite.retract, session_id, plain_text(platform_message_id), now, self.change_ids
        )
        return await self.write(transaction)

    async def get_message_versions(self, session_id: str, message_id: int | str) -> list[MessageVersion]:
        """What a message said before it was edited, the first version first."""
        return await self.read(partial(rewrite.versions, session_id, row_id("message_id", message_id)))

    def _tell_of_replacements(self, session_id: str, messages: int) -> None:
        if messages:
            _log.warning(
                "characters that cannot be stored were replaced",
                extra={"action": "text_replaced", "session_id": session_id, "messages": messages},
            )


async def _taken(messages: Iterable[Message | Mapping[str, Any]]) -> list[Message]:
    """The messages as values; many of them are made in a thread, for that would hold the loop up."""
    given = list(messages)
    if len(given) > MANY:
        return await in_thread(lambda: [message_of(one) for one in given])
    return [message_of(one) for one in given]
