"""Methods of `SessionDB` that append, read, rewind, replace, edit and retract messages."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, Unpack

from gateway_sessions.core.checks import plain_text
from gateway_sessions.core.identity.row_ids import parse_row_id
from gateway_sessions.core.instants import parse_instant
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
    message_from,
)
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
from gateway_sessions.storage.transactions.transcripts import message_windows, messages, rewind, rewrite
from gateway_sessions.storage.transactions.transcripts import messages as transactions
from gateway_sessions.storage.transactions.transcripts.message_windows import Anchor
from gateway_sessions.storage.transactions.transcripts.messages import MessagePage

MANY: Final = 500
"""The number of messages above which they are made in a thread."""

_log = logging.getLogger(__name__)


class TranscriptMethods(TransactionRunner):
    """Messages: appended in order, read by page, and changed only in ways that the store records."""

    async def append_message(
        self,
        session_id: str,
        role: str,
        content: Content = None,
        *,
        timestamp: datetime | float | str | None = None,
        **members: Unpack[MessageMembers],
    ) -> int:
        """Append one message; return its id."""
        message = Message(role, content, sent_at=parse_instant("timestamp", timestamp), **members)
        return (await self.append_messages(session_id, [message]))[0]

    async def append_messages(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> list[int]:
        """Append messages, all or none, in one commit; return their ids.

        Raise `SentBeforeErasureError` for a message that was sent before an erasure of its author or owner.
        """
        given = await _as_messages(messages)
        transaction = partial(
            transactions.append_messages, session_id, given, self._clock.now(), self._change_ids
        )
        appended = await self.write(transaction)
        self._log_replacements(session_id, appended.replaced)
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
        """Return messages in order: the first behind `after_seq`, or without it the last before `before_seq`.

        Raise `SessionNotFoundError` if there is no such session.
        """
        asked = MessagePage(
            after_seq=after_seq, before_seq=before_seq, limit=limit, include_hidden=include_hidden
        )
        return await self.read(partial(transactions.load_page, session_id, asked))

    async def get_messages_as_conversation(
        self, session_id: str, *, include_ancestors: bool = False, limit: int | None = None
    ) -> list[Chat]:
        """Return the conversation for a model: calls have results, roles alternate, nothing is hidden.

        With *include_ancestors*, the messages before a compression are included. *limit* is the number of
        stored messages that are read, the latest ones.
        """
        transaction = partial(
            messages.load_conversation, session_id, limit, include_ancestors=include_ancestors
        )
        return await self.read(transaction)

    async def get_messages_around(
        self, session_id: str, message_id: int | str, window: int = 5, *, include_hidden: bool = False
    ) -> MessageWindow:
        """Return a message and up to *window* others on each side; an empty window if it is not there.

        Compacted messages are shown; rewound and retracted ones only with *include_hidden*.
        """
        anchor = Anchor(
            session_id=session_id,
            message_id=parse_row_id("message_id", message_id),
            window=window,
            include_hidden=include_hidden,
        )
        return await self.read(partial(message_windows.window_around, anchor))

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
        """Return the window around a message, and the first and last *bookend* texts outside it.

        Only messages of the roles in *keep_roles* are shown, and the message itself; None shows all roles.
        """
        anchor = Anchor(
            session_id=session_id,
            message_id=parse_row_id("message_id", message_id),
            window=window,
            bookend=bookend,
            keep_roles=None if keep_roles is None else tuple(map(str, keep_roles)),
            include_hidden=include_hidden,
        )
        return await self.read(partial(message_windows.window_with_ends, anchor))

    async def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        """Return whether a message with that id of its platform was ever stored in the session."""
        return await self.read(partial(message_windows.has_platform_message, session_id, platform_message_id))

    async def list_recent_user_messages(self, session_id: str, limit: int = 20) -> list[UserTurn]:
        """Return the latest messages of people to the agent, the latest first."""
        return await self.read(partial(message_windows.recent_user_turns, session_id, limit))

    async def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns, or as many as there are; None if there is none.

        Their messages are hidden, and `restore_rewound` shows them again.
        """
        return await self.write(partial(rewind.rewind_turns, session_id, n, self._change_ids))

    async def rewind_to_message(self, session_id: str, message_id: int | str) -> Rewind:
        """Take back a message of a person, and all messages after it."""
        return await self.write(
            partial(
                rewind.rewind_to_message, session_id, parse_row_id("message_id", message_id), self._change_ids
            )
        )

    async def restore_rewound(self, session_id: str) -> int:
        """Show the messages again that the last rewind hid; return how many.

        Raise `NothingToUndoError` if the conversation has gone on since.
        """
        return await self.write(partial(rewind.restore_rewound, session_id))

    async def replace_messages(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> list[int]:
        """Put messages in the place of the conversation, all or none; return their ids.

        Hidden messages stay: the originals behind a summary, and rewound ones.
        """
        given = await _as_messages(messages)
        transaction = partial(
            rewrite.replace_conversation, session_id, given, self._clock.now(), self._change_ids
        )
        appended = await self.write(transaction)
        self._log_replacements(session_id, appended.replaced)
        return appended.message_ids

    async def archive_and_compact(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> int:
        """Hide the conversation so far behind *messages*, a summary of it; return how many were hidden.

        Searches still find the originals; no model gets them.
        """
        given = await _as_messages(messages)
        transaction = partial(rewrite.compact_session, session_id, given, self._clock.now(), self._change_ids)
        hidden, appended = await self.write(transaction)
        self._log_replacements(session_id, appended.replaced)
        return hidden

    async def clear_messages(self, session_id: str) -> int:
        """Delete all messages of a session, hidden ones too; return how many there were."""
        return await self.write(partial(rewrite.clear_session, session_id, self._change_ids))

    async def edit_message(self, session_id: str, platform_message_id: str, content: Content) -> bool:
        """Replace the content of an edited message and keep the old version; return whether they differ."""
        now = self._clock.now()
        transaction = partial(
            rewrite.edit_message, session_id, plain_text(platform_message_id), content, now, self._change_ids
        )
        changed, replaced = await self.write(transaction)
        self._log_replacements(session_id, int(replaced))
        return changed

    async def retract_message(self, session_id: str, platform_message_id: str) -> bool:
        """Hide a message that was deleted on its platform; False if no message with that id is visible."""
        now = self._clock.now()
        transaction = partial(
            rewrite.retract_message, session_id, plain_text(platform_message_id), now, self._change_ids
        )
        return await self.write(transaction)

    async def get_message_versions(self, session_id: str, message_id: int | str) -> list[MessageVersion]:
        """Return the earlier versions of a message, the first one first."""
        return await self.read(
            partial(rewrite.load_versions, session_id, parse_row_id("message_id", message_id))
        )

    def _log_replacements(self, session_id: str, messages: int) -> None:
        if messages:
            _log.warning(
                "characters that cannot be stored were replaced",
                extra={"action": "text_replaced", "session_id": session_id, "messages": messages},
            )


async def _as_messages(messages: Iterable[Message | Mapping[str, Any]]) -> list[Message]:
    """Return the messages as values. Many are made in a thread, because they would hold up the loop."""
    given = list(messages)
    if len(given) > MANY:
        return await in_thread(lambda: [message_from(one) for one in given])
    return [message_from(one) for one in given]
