"""Append messages to a session, and read them page by page or as the conversation for a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search.documents import Searchable
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.transcript.messages import Message, ModelMessage
from gateway_sessions.core.transcript.model_history import Chat, conversation_of
from gateway_sessions.errors import InvalidInputError, SessionNotFoundError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import tombstones
from gateway_sessions.storage.tables.message_rows import (
    EncodedMessage,
    TextColumns,
    decode_messages,
    decode_model_messages,
    encode_message,
)
from gateway_sessions.storage.tables.sessions import ancestor
from gateway_sessions.storage.tables.statements import session_lock

EVERYTHING: Final = 1 << 62
"""A number above that of all rows, and a place behind all messages, of any session."""


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append."""

    message_ids: list[int]
    replaced: int
    """The number of messages with characters that no database can store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """The bounds of a page of a session's messages."""

    after_seq: int | None = None
    before_seq: int | None = None
    limit: int | None = None
    include_hidden: bool = False

    @property
    def params(self) -> tuple[int, int, bool, int]:
        """Return the parameters of the statements that read messages."""
        return (
            self.after_seq or 0,
            EVERYTHING if self.before_seq is None else self.before_seq,
            self.include_hidden,
            row_limit(self.limit),
        )


def row_limit(limit: int | None) -> int:
    """Return the number of rows to read: all without a limit; `InvalidInputError` for a negative one."""
    if limit is not None and limit < 0:
        problem = f"limit = {limit} must be 0 or more"
        raise InvalidInputError(problem)
    return EVERYTHING if limit is None else limit


def append_messages(
    session_id: str, messages: Sequence[Message], now: datetime, ids: Iterator[int], *, copied: bool = False
) -> Transaction[Appended]:
    """Add messages behind the last one, all or none; `SessionNotFoundError` if there is no such session.

    Raise `SentBeforeErasureError` for a message that was sent before the session's owner or its author was
    erased, unless the store had the message already and it is merely *copied*.
    """
    stored = [encode_message(message, now) for message in messages]
    if not stored:
        yield from require_session(session_id)
        return Appended([], 0)
    # A message without a time is new: it must come in even if the clock was set back since an erasure.
    pairs = () if copied else tuple(zip(stored, messages, strict=True))
    sent = [(row.stored.sent_at, one.author) for row, one in pairs if one.sent_at is not None]
    yield from _advance_totals(session_id, stored, to_micros(now), sent)
    message_ids = [next(ids) for _ in stored]
    yield _add_statement(session_id, message_ids, stored)
    return Appended(message_ids, sum(one.replaced for one in stored))


def load_page(session_id: str, asked: MessagePage) -> Transaction[list[Message]]:
    """Return messages in order: the first behind `after_seq`, or without it the last before `before_seq`."""
    backwards = asked.before_seq is not None and asked.after_seq is None
    rows = yield Statement("messages_before" if backwards else "messages_after", (session_id, *asked.params))
    if not rows:
        yield from require_session(session_id)
    return decode_messages(reversed(rows) if backwards else rows)


def require_session(session_id: str) -> Transaction[None]:
    """Raise `SessionNotFoundError` if there is no such session."""
    if not (yield Statement("session_exists", (session_id,))):
        raise SessionNotFoundError(session_id)


def _add_statement(
    session_id: str, message_ids: Sequence[int], stored: Sequence[EncodedMessage]
) -> Statement:
    """Return the statement that adds the messages; for plain texts a shorter one, in half of the time."""
    plain = all(isinstance(one.stored, TextColumns) for one in stored)
    columns: list[tuple[object, ...]] = [one.stored if plain else one.columns for one in stored]
    last = len(stored) - 1
    rows = [
        (message_id, session_id, session_id, last - at, *values)
        for at, (message_id, values) in enumerate(zip(message_ids, columns, strict=True))
    ]
    name, said = "add_text" if plain else "add_message", partial(_searchable_texts, session_id, stored)
    return Statement(name, many=rows, said=said) if last else Statement(name, rows[0], said=said)


def _searchable_texts(session_id: str, stored: Sequence[EncodedMessage]) -> list[Searchable]:
    return [one.columns.as_searchable(session_id) for one in stored]


def _advance_totals(
    session_id: str, stored: Sequence[EncodedMessage], now: int, sent: Sequence[tuple[int, str | None]]
) -> Transaction[None]:
    first_sent = min((instant for instant, _ in sent), default=tombstones.ANY_TIME)
    active = [one for one in stored if one.active]
    brought = (
        len(stored),
        len(active),
        sum(one.calls for one in active),
        sum(one.size for one in stored),
        next((one.preview for one in active if one.preview is not None), None),
        min(now, max(one.stored.sent_at for one in stored)),  # a platform's clock may be ahead of ours
    )
    ((changed,),) = yield Statement(
        "advance_totals", (*brought, session_id, first_sent), lock=session_lock(session_id)
    )
    if changed:
        return
    session = yield from ancestor(session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    yield from tombstones.refuse_if_erased(session_id, session.owner, first_sent)
    for instant, author in sent:
        if author is not None:
            yield from tombstones.refuse_if_erased(session_id, author, instant)
    ((changed,),) = yield Statement("advance_totals", (*brought, session_id, tombstones.ANY_TIME))
    if not changed:
        raise SessionNotFoundError(session_id)


MAX_ANCESTORS = 1000
"""The largest number of sessions that a conversation reads back through."""
MAX_OVERLAP = 64
"""The largest number of its parent's last messages that a continuation may begin with."""


def load_conversation(
    session_id: str, limit: int | None, *, include_ancestors: bool, pending: Sequence[Message] = ()
) -> Transaction[list[Chat]]:
    """Return the conversation in the form that a model gets; it is valid whatever happened to the transcript.

    The *pending* messages, which are not in the transcript yet, stand at its end.
    """
    said = yield from _last_messages(session_id, limit)
    if not said:
        yield from require_session(session_id)
    seen = {session_id}
    child = session_id
    while include_ancestors and (limit is None or len(said) < limit) and len(seen) < MAX_ANCESTORS:
        parent = None
        for came_from, relation in (yield Statement("parent_of_session", (child,))):
            parent = came_from if relation == Relation.CONTINUATION else None
        if parent is None or parent in seen:
            break
        before = yield from _last_messages(parent, limit)
        said = before + said[_repeated_messages(before, said) :]
        seen.add(parent)
        child = parent
    return conversation_of([*said, *pending], limit=None if limit is None else limit + len(pending))


def _last_messages(session_id: str, limit: int | None) -> Transaction[list[ModelMessage]]:
    if limit is None:
        return decode_model_messages((yield Statement("conversation_of_session", (session_id,))))
    rows = yield Statement("end_of_conversation", (session_id, row_limit(limit)))
    return decode_model_messages(reversed(rows))


def _repeated_messages(before: list[ModelMessage], behind: list[ModelMessage]) -> int:
    """Return how many of its parent's last messages a continuation repeats at its beginning."""
    for count in range(min(len(before), len(behind), MAX_OVERLAP), 0, -1):
        if all(map(_is_same_message, before[-count:], behind[:count])):
            return count
    return 0


def _is_same_message(one: ModelMessage, other: ModelMessage) -> bool:
    return (one.role, one.content, one.tool_call_id, one.tool_calls) == (
        other.role,
        other.content,
        other.tool_call_id,
        other.tool_calls,
    )
