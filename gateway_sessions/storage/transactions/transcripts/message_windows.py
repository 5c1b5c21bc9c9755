"""Windows of messages around a message, both ends of a session, and people's latest messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.transcript.messages import (
    AnchoredView,
    Hidden,
    Message,
    MessageWindow,
    UserTurn,
    brief_line,
)
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.message_rows import decode_messages
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.transactions.transcripts.messages import require_session, row_limit
from gateway_sessions.storage.transactions.transcripts.rewind import UserTurnRow
from gateway_sessions.storage.transactions.transcripts.rewrite import rows_made_of

SHOWN: frozenset[str | None] = frozenset({None, Hidden.COMPACTED})


@row_of("find_message")
class FoundPlace(NamedTuple):
    """The place of a message in its session, and why it is hidden, if it is."""

    seq: int
    role: str
    hidden_because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A message, and the size of the window around it."""

    session_id: str
    message_id: int
    window: int
    bookend: int = 0
    keep_roles: tuple[str, ...] | None = None
    include_hidden: bool = False


def window_around(anchor: Anchor) -> Transaction[MessageWindow]:
    """Return the message and its neighbours; an empty window if it is missing, or hidden from the caller."""
    places = yield Statement("find_message", (anchor.message_id, anchor.session_id))
    if not places:
        yield from require_session(anchor.session_id)
        return MessageWindow()
    place = FoundPlace._make(places[0])
    if place.hidden_because not in SHOWN and not anchor.include_hidden:
        return MessageWindow()
    radius = max(anchor.window, 0)
    where = (anchor.session_id, place.seq, anchor.include_hidden)
    before = decode_messages((yield Statement("visible_messages_until", (*where, radius + 1))))
    behind = decode_messages((yield Statement("visible_messages_from", (*where, radius + 1))))
    return MessageWindow((*reversed(before), *behind[1:]), len(before) - 1, len(behind) - 1)


def window_with_ends(anchor: Anchor) -> Transaction[AnchoredView]:
    """Return the window around a message and the first and last texts outside it, in the roles to keep."""
    seen = yield from window_around(anchor)
    if not seen.messages:
        return AnchoredView()
    roles = None if anchor.keep_roles is None else msgspec.json.encode(anchor.keep_roles).decode()
    kept = (anchor.include_hidden, roles, roles, max(anchor.bookend, 0))
    first, last = seen.messages[0].seq, seen.messages[-1].seq
    start = yield Statement("first_texts_before", (anchor.session_id, first, *kept))
    end = yield Statement("last_texts_behind", (anchor.session_id, last, *kept))
    return AnchoredView(
        _filter_roles(seen, anchor), tuple(decode_messages(start)), tuple(decode_messages(reversed(end)))
    )


def recent_user_turns(session_id: str, limit: int) -> Transaction[list[UserTurn]]:
    """Return the latest messages of people to the agent, the latest first."""
    rows = yield Statement("recent_user_turns", (session_id, row_limit(limit)))
    if not rows:
        yield from require_session(session_id)
    return [
        UserTurn(one.message_id, one.seq, from_micros(one.sent_at), brief_line(one.content or ""))
        for one in map(UserTurnRow._make, rows)
    ]


def has_platform_message(session_id: str, platform_message_id: str) -> Transaction[bool]:
    """Return whether a message with that id of its platform was ever stored in the session."""
    rows = yield Statement("platform_message_exists", (session_id, platform_message_id))
    found = bool(rows or (yield from rows_made_of([session_id], platform_message_id)))
    if not found:
        yield from require_session(session_id)
    return found


def _filter_roles(window: MessageWindow, anchor: Anchor) -> MessageWindow:
    if anchor.keep_roles is None:
        return window
    roles: Sequence[str] = anchor.keep_roles

    def kept(messages: Sequence[Message]) -> list[Message]:
        return [one for one in messages if one.role in roles]

    at = window.messages_before
    before, behind = kept(window.messages[:at]), kept(window.messages[at + 1 :])
    return MessageWindow((*before, window.messages[at], *behind), len(before), len(behind))
