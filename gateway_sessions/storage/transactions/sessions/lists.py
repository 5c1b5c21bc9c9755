"""Lists of sessions, entries, transitions and active lanes, page by page and within a scope.

A list of sessions shows each conversation once, as the session in which it goes on today. The lists of lanes
in use, and of the instants at which people wrote there, feed the simulation of policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.record import Relation, SessionSummary
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import lineage
from gateway_sessions.storage.tables.column_decoding import (
    DAMAGE,
    enum_member,
    escape_like_pattern,
    log_skipped_row,
    raise_damaged,
)
from gateway_sessions.storage.tables.entries import EntryRow, decode_archive, decode_readable, load_by_session
from gateway_sessions.storage.tables.lanes import load_lane
from gateway_sessions.storage.tables.sessions import stored_session
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.transactions.sessions.titles import scope_params

BEFORE_ALL: Final = (1 << 62, "")
"""A position before every session, because lists begin with the latest."""
FEW: Final = 5_000
"""The number of sessions up to which sorting them all is faster than walking past all others."""
MORE_THAN_FEW: Final = 1 << 30
"""A limit above every number of sessions that is sorted in memory."""
NOBODY: Final = "[]"


@row_of("list_recent", "list_recent_of_few", "list_begun", "list_one", "list_by_id")
class ListedSession(NamedTuple):
    """A session as lists show it, as it is stored."""

    session_id: str
    source: str
    title: str | None
    preview: str
    last_active: int
    started_at: int
    owner: str
    session_key: str | None
    user_id: str | None
    parent_session_id: str | None
    relation: str | None
    ended_at: int | None
    end_reason: str | None
    model: str | None
    pinned: int
    archived: int
    message_count: int
    tool_call_count: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionListQuery:
    """The filters of a list of sessions."""

    scope: Scope
    source: str | None = None
    exclude_sources: tuple[str, ...] = ()
    archived: bool | None = False
    min_message_count: int = 0
    text: str | None = None
    """A text to find in the title, the preview, the id or the source."""
    every_session: bool = False
    """True if each session of a line is listed by itself."""

    @property
    def scope_params(self) -> tuple[Any, ...]:
        """Return the parameters that choose sessions by scope."""
        scope = scope_params(self.scope)
        return (*scope, int(self.every_session), *scope)

    @property
    def filter_params(self) -> tuple[Any, ...]:
        """Return the parameters that choose sessions by their own columns."""
        archived = None if self.archived is None else int(self.archived)
        excluded = msgspec.json.encode(self.exclude_sources).decode()
        kind = (self.source, self.source, excluded, archived, archived)
        return (*kind, self.min_message_count, int(self.text is not None), *_patterns(self.text or ""))


def list_recent(
    wanted: SessionListQuery, after: SessionSummary | None, limit: int
) -> Transaction[list[SessionSummary]]:
    """Return conversations, the latest active first, behind the last one of the page before."""
    drivers = yield from _params_if_few(wanted)
    name = "list_recent" if drivers is None else "list_recent_of_few"
    found: list[SessionSummary] = []
    position = (to_micros(after.last_active), after.session_id) if after is not None else BEFORE_ALL
    while len(found) < limit:
        chosen = (*(drivers or ()), *position, *wanted.scope_params, *wanted.filter_params)
        room = limit - len(found)
        rows = yield Statement(name, (*chosen, room))
        for row in map(ListedSession._make, rows):
            shown = yield from _skip_if_damaged(row, _show_from_root, wanted)
            if shown is not None:
                found.append(shown)
            position = (row.last_active, row.session_id)
        if len(rows) < room:
            break
    return found


def list_by_beginning(
    wanted: SessionListQuery, after: SessionSummary | None, limit: int
) -> Transaction[list[SessionSummary]]:
    """Return conversations, the latest begun first, behind the last one of the page before."""
    drivers = yield from _params_if_few(wanted)
    if drivers is not None:
        return (yield from _sorted_by_beginning(wanted, drivers, after))[:limit]
    found: list[SessionSummary] = []
    position = (to_micros(after.started_at), after.lineage_root) if after is not None else BEFORE_ALL
    while len(found) < limit:
        chosen = (*position, *wanted.scope_params, int(wanted.every_session), *wanted.filter_params)
        room = limit - len(found)
        rows = yield Statement("list_begun", (*chosen, room))
        for row in map(ListedSession._make, rows):
            shown = yield from _skip_if_damaged(row, _show_at_tip, wanted)
            if shown is not None:
                found.append(shown)
            position = (row.started_at, row.session_id)
        if len(rows) < room:
            break
    return found


def _sorted_by_beginning(
    wanted: SessionListQuery, drivers: tuple[Any, ...], after: SessionSummary | None
) -> Transaction[list[SessionSummary]]:
    chosen = (*drivers, *BEFORE_ALL, *wanted.scope_params, *wanted.filter_params)
    rows = yield Statement("list_recent_of_few", (*chosen, MORE_THAN_FEW))
    found: list[SessionSummary] = []
    for row in map(ListedSession._make, rows):
        shown = yield from _skip_if_damaged(row, _show_from_root, wanted)
        if shown is not None and (after is None or _start_of(shown) < _start_of(after)):
            found.append(shown)
    return sorted(found, key=_start_of, reverse=True)


def _start_of(summary: SessionSummary) -> tuple[datetime, str]:
    return summary.started_at, summary.lineage_root


def list_by_id(text: str, scope: Scope, limit: int) -> Transaction[list[SessionSummary]]:
    """Return sessions whose id is the text, begins with it, or holds it, in this order."""
    wanted = text.strip()
    if not wanted:
        return []
    middle, beginning = f"%{escape_like_pattern(wanted)}%", f"{escape_like_pattern(wanted)}%"
    rows = yield Statement("list_by_id", (middle, *scope_params(scope), wanted, beginning, limit))
    found: list[SessionSummary] = []
    for row in map(ListedSession._make, rows):
        shown = yield from _show_from_root(row, SessionListQuery(scope=scope))
        found.append(shown or _summary_or_error(row))
    return found


def _params_if_few(wanted: SessionListQuery) -> Transaction[tuple[Any, ...] | None]:
    """Return the parameters that find the few sessions which may match; None if there are many."""
    for question, answer in _questions_for_few(wanted):
        ((count,),) = yield question
        if count < FEW:
            return answer
    if wanted.text is not None:
        rows = yield Statement("few_that_say", (*_patterns(wanted.text), FEW))
        if len(rows) < FEW:
            return NOBODY, None, None, 0, msgspec.json.encode([session_id for (session_id,) in rows]).decode()
    return None


def _questions_for_few(wanted: SessionListQuery) -> Iterator[tuple[Statement, tuple[Any, ...]]]:
    """Yield questions that may show that few sessions match, with the parameters that find these."""
    _, owners, session_key = scope_params(wanted.scope)
    if not wanted.scope.sees_everything:
        question = Statement("few_of_owners", (owners, FEW, session_key, FEW))
        yield question, (owners, session_key, None, 0, NOBODY)
    if wanted.archived:
        yield Statement("few_archived", (FEW,)), (NOBODY, None, None, 1, NOBODY)
    if wanted.source is not None:
        question = Statement("few_of_source", (wanted.source, FEW))
        yield question, (NOBODY, None, wanted.source, 0, NOBODY)


def _skip_if_damaged(
    row: ListedSession,
    look: Callable[[ListedSession, SessionListQuery], Transaction[SessionSummary | None]],
    wanted: SessionListQuery,
) -> Transaction[SessionSummary | None]:
    """Return what *look* makes of a row; None if the row is damaged, so that all others are shown."""
    try:
        return (yield from look(row, wanted))
    except StorageCorruptError:
        log_skipped_row(f"session {row.session_id}", session_id=str(row.session_id))
        return None


def _show_from_root(row: ListedSession, wanted: SessionListQuery) -> Transaction[SessionSummary | None]:
    """Return the session with the start of its conversation; None for the session of a sub-agent."""
    before = yield from _ancestors_of(row)
    if any(link.relation == Relation.DELEGATE for link in before):
        return None
    if wanted.every_session:
        return _summary_or_error(row)
    root = None
    for link in reversed(before):
        if not link.visible(wanted.scope):
            break
        root = link
    return _summary_or_error(row, root)


def _show_at_tip(row: ListedSession, wanted: SessionListQuery) -> Transaction[SessionSummary | None]:
    """Return the session in which a conversation goes on today, if it matches the filters."""
    begun = yield from _show_from_root(row, wanted)
    if begun is None or wanted.every_session or row.end_reason != EndReason.COMPRESSION:
        return begun
    tip = yield from lineage.visible_tip(row.session_id, wanted.scope)
    rows = yield Statement("list_one", (tip, *wanted.filter_params))
    if not rows:
        return None
    root = lineage.LineageLink(row.session_id, started_at=row.started_at)
    return _summary_or_error(ListedSession._make(rows[0]), root)


def _ancestors_of(row: ListedSession) -> Transaction[list[lineage.LineageLink]]:
    """Return the sessions that a session continues."""
    if row.relation != Relation.CONTINUATION:
        return []
    line = yield from lineage.compression_line(row.session_id)
    return line[: [link.session_id for link in line].index(row.session_id)]


def _summary_or_error(row: ListedSession, root: lineage.LineageLink | None = None) -> SessionSummary:
    try:
        return _read_summary(row, root)
    except DAMAGE as error:
        raise_damaged(f"session {row.session_id!r}", error, "its row")


def _read_summary(row: ListedSession, root: lineage.LineageLink | None) -> SessionSummary:
    session, relation = f"session {row.session_id!r}", row.relation
    return SessionSummary(
        session_id=row.session_id,
        source=row.source,
        title=row.title,
        preview=row.preview,
        last_active=from_micros(row.last_active),
        started_at=from_micros(row.started_at if root is None else root.started_at),
        lineage_root=row.session_id if root is None else root.session_id,
        owner=row.owner,
        session_key=row.session_key,
        user_id=row.user_id,
        parent_session_id=row.parent_session_id,
        relation=None if relation is None else enum_member(session, Relation, relation),
        ended_at=None if row.ended_at is None else from_micros(row.ended_at),
        end_reason=row.end_reason,
        model=row.model,
        pinned=bool(row.pinned),
        archived=bool(row.archived),
        message_count=row.message_count,
        tool_call_count=row.tool_call_count,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        estimated_cost_usd=row.estimated_cost_usd,
    )


def _patterns(text: str) -> tuple[str, ...]:
    """Return the patterns for the preview, the title, the id and the source.

    A database ignores the case of Latin letters at best, so the text is tried in lower, upper and title case.
    """
    plain = f"%{escape_like_pattern(text)}%"
    cases = tuple(f"%{escape_like_pattern(one)}%" for one in (text.lower(), text.upper(), text.title()))
    return (*cases, *cases, plain, plain)


FAR_FUTURE = 1 << 62
"""An instant and an id above all others."""


@row_of("transitions_of_lane")
@dataclass(frozen=True, slots=True)
class SessionTransition:
    """One row of the transition log."""

    at: datetime
    session_id: str
    event: str
    from_state: str | None
    to_state: str
    reason: str | None
    actor: str


@dataclass(frozen=True, slots=True)
class Lane:
    """The state of a lane besides its session."""

    running: bool = False
    attempts: int = 0
    moved_session_id: str | None = None
    epoch: int | None = None
    """The opening of the store that runs the turn."""
    token: int | None = None
    """The token of the turn's lease."""
    running_since: datetime | None = None
    cut_off: bool = False
    """True if the process that began the turn is gone, as far as the caller has looked."""


def list_entries(
    scope: Scope, since: datetime | None, after: SessionEntry | None, limit: int
) -> Transaction[list[SessionEntry]]:
    """Return visible entries, the latest written first, behind the last one of the page before.

    Damaged ones are left aside; a page that is not full is the last one all the same.
    """
    oldest = to_micros(since) if since is not None else -FAR_FUTURE
    position = (to_micros(after.updated_at), after.entry_id) if after is not None else (FAR_FUTURE, 0)
    name, asked = "list_entries", tuple[Any, ...]()
    if not scope.sees_everything:
        owners = msgspec.json.encode(sorted(scope.owners)).decode()
        name, asked = "list_entries_of_owners", (owners, scope.session_key)
    found: list[SessionEntry] = []
    while room := limit - len(found):
        rows = yield Statement(name, (*asked, oldest, *position, room))
        found += decode_readable(rows)
        if len(rows) < room:
            break
        end = EntryRow._make(rows[-1])
        position = end.updated_at, end.entry_id
    return found


def entry_of_session(session_id: str, scope: Scope) -> Transaction[SessionEntry | None]:
    """Return the entry whose current session this is, if *scope* may see it."""
    entry = yield from load_by_session(session_id)
    if entry is None or not scope.sees(owner=entry.owner, session_key=entry.session_key):
        return None
    return entry


def ended_entry(session_id: str) -> Transaction[SessionEntry | None]:
    """Return the archived entry of a session that has ended; None if the session goes on, or is gone."""
    session = yield from stored_session(session_id)
    if session is None or session.ended_at is None or session.entry is None:
        return None
    return decode_archive(session.entry)


def lane_state(session_key: str) -> Transaction[Lane]:
    """Return whether a turn runs and by which lease, its failed tries, and the session that moved away."""
    row = yield from load_lane(session_key)
    known = Lane(running=row.running, attempts=row.attempts, moved_session_id=row.moved_session_id)
    if row.lease_epoch is None or row.leased_at is None:
        return known
    since = from_micros(row.leased_at)
    return replace(known, epoch=row.lease_epoch, token=row.lease_token, running_since=since)


def list_transitions(session_key: str, limit: int) -> Transaction[list[SessionTransition]]:
    """Return the latest transitions of a lane, the newest first."""
    rows = yield Statement("transitions_of_lane", (session_key, limit))
    return [SessionTransition(from_micros(at), *what) for at, *what in rows]


def any_session() -> Transaction[bool]:
    """Return whether there has ever been a session."""
    return bool((yield Statement("any_session")))


def list_lanes_since(since: datetime, after: str, limit: int) -> Transaction[list[str]]:
    """Return lanes with messages since then, in the order of their keys, behind the key *after*."""
    rows = yield Statement("lanes_in_use_since", (after, to_micros(since), limit))
    return [session_key for (session_key,) in rows]


def list_moments_on(session_key: str, since: datetime) -> Transaction[list[datetime]]:
    """Return the instants at which people wrote on a lane since then, in their order."""
    rows = yield Statement("moments_on_lane", (session_key, to_micros(since)))
    return [from_micros(sent_at) for (sent_at,) in rows]
