"""Remove sessions: choose those to prune, then delete their rows piece by piece.

The row of a session goes at once, and the messages of a long one after it, piece by piece. A note in `meta`
names the session until its last message is gone, so that a crash in between leaves no message for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.sessions.retention import (
    FirstPruneDue,
    GroupMember,
    PrunePlan,
    RetentionBounds,
    SessionGroup,
)
from gateway_sessions.errors import SessionBusyError, SessionOnLaneError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.index_notes import note_changed_messages
from gateway_sessions.storage.tables.lanes import lane_lease
from gateway_sessions.storage.tables.sql_files import row_of

PAGE: Final = 500
"""The number of sessions read in one page."""
PIECE: Final = 200
"""The number of messages removed in one commit: so few that other writes never wait long for it."""
LEFT_OVER: Final = "left_over:"
_BEHIND: Final = "left_over;"
_BEGINNING: Final = (-(1 << 62), "")
"""A position before every session."""


@row_of("sessions_to_prune")
class PrunableSession(NamedTuple):
    """A session that may be pruned, and whether others hang on it."""

    session_id: str
    last_active: int
    last_seq: int
    text_bytes: int
    is_kept: int
    has_others: int


@row_of("session_to_remove", "sessions_that_hang_on")
class RemovableSession(NamedTuple):
    """A session of a group that is removed together."""

    session_id: str
    last_active: int
    last_seq: int
    text_bytes: int
    is_kept: int
    relation: str | None
    has_ended: int


AnySession: TypeAlias = PrunableSession | RemovableSession


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunableKind:
    """The kind of sessions that may be pruned."""

    source: str | None = None
    relation: Relation | None = None
    include_archived: bool = False
    only_empty: bool = False
    unended: bool = False
    """True if sessions that have not ended may be pruned as well."""

    @property
    def params(self) -> tuple[object, ...]:
        """Return the parameters of the statements that look for such sessions."""
        relation = None if self.relation is None else str(self.relation)
        flags = (int(self.include_archived), int(self.only_empty), int(self.unended))
        return (self.source, self.source, relation, relation, *flags)


@dataclass(slots=True)
class RemovedSessions:
    """The sessions that one step has removed."""

    session_ids: list[str] = field(default_factory=list[str])
    in_use: list[str] = field(default_factory=list[str])
    """The sessions that were planned for removal and have been used again since."""


def plan_removal(
    bounds: RetentionBounds, kind: PrunableKind, limit: int | None = None
) -> Transaction[PrunePlan]:
    """Return the sessions to remove to keep the bounds, the oldest first: all, or the first *limit*."""
    ((count, text_bytes),) = yield Statement("size_of_sessions_to_prune", kind.params)
    made = PrunePlan(bounds, count=count, text_bytes=text_bytes, limit=limit)
    yield from _offer_groups(made, kind)
    return made


def first_removal_due(kind: PrunableKind) -> Transaction[datetime | None]:
    """Return when the session was touched that grows too old before all others; None if none ever does."""
    found = FirstPruneDue()
    yield from _offer_groups(found, kind)
    return found.last_active


def _offer_groups(taker: PrunePlan | FirstPruneDue, kind: PrunableKind) -> Transaction[None]:
    """Offer sessions with their sub-agents, the oldest first, until the taker wants no more."""
    position = _BEGINNING
    while True:
        rows = yield Statement("sessions_to_prune", (*position, *kind.params, PAGE))
        for one in map(PrunableSession._make, rows):
            if not taker.wants_more(from_micros(one.last_active)):
                return
            group = (yield from load_group(one.session_id, unended=kind.unended)) if one.has_others else None
            taker.offer_group(group or _single_group(one))
            position = (one.last_active, one.session_id)
        if len(rows) < PAGE:
            return


def load_group(session_id: str, *, unended: bool) -> Transaction[SessionGroup | None]:
    """Return a session with its sub-agents, and whether one of these, or its continuation, is in use.

    Unless *unended*, a session that has not ended stays, and so do the sessions that it continues.
    """
    rows = yield Statement("session_to_remove", (session_id,))
    if not rows:
        return None
    head = RemovableSession._make(rows[0])
    members, latest, protected = [_group_member(head)], head.last_active, bool(head.is_kept)
    protected = protected or not (unended or head.has_ended)
    seen, waiting = {session_id}, [(session_id, True)]
    while waiting:
        parent, removed = waiting.pop()
        rows = yield Statement("sessions_that_hang_on", (parent,))
        for one in map(RemovableSession._make, rows):
            if one.session_id in seen:
                continue
            goes = removed and not (parent == session_id and one.relation == Relation.CONTINUATION)
            seen.add(one.session_id)
            waiting.append((one.session_id, goes))
            members += [_group_member(one)] if goes else []
            goes_on = not (goes or unended or one.has_ended)
            latest, protected = max(latest, one.last_active), protected or bool(one.is_kept) or goes_on
    return SessionGroup(members=tuple(members), last_active=from_micros(latest), protected=protected)


def remove_groups(
    groups: Sequence[SessionGroup], ids: Iterator[int], *, unended: bool
) -> Transaction[RemovedSessions]:
    """Remove the planned sessions, except those that have been used since."""
    removed = RemovedSessions()
    for planned in groups:
        head = planned.members[0].session_id
        group = yield from load_group(head, unended=unended)
        if group is not None and not group.is_unchanged_since(planned):
            removed.in_use.append(head)
            continue
        for member in group.members if group is not None else ():
            yield from remove_session(member.session_id, ids)
            removed.session_ids.append(member.session_id)
    return removed


def check_deletable(session_id: str) -> Transaction[None]:
    """Raise the error that a deletion would raise, if any."""
    group = yield from load_group(session_id, unended=True)
    for member in group.members if group is not None else ():
        yield from _require_no_lane(member.session_id)


def delete_session(session_id: str, ids: Iterator[int]) -> Transaction[list[str]]:
    """Remove a session with its sub-agents; return their ids. Raise an error if one of them is on a lane."""
    group = yield from load_group(session_id, unended=True)
    if group is None:
        return []
    for member in group.members:
        yield from _require_no_lane(member.session_id)
    for member in group.members:
        yield from remove_session(member.session_id, ids)
    return [member.session_id for member in group.members]


def remove_session(session_id: str, ids: Iterator[int]) -> Transaction[Counter[str]]:
    """Remove and count every row of a session; sessions that came from it stay, without a parent."""
    one = (session_id,)
    yield Statement("detach_children", one)
    yield Statement("forget_moved_session", (session_id, session_id))
    steps = {
        "hook_calls": ("delete_hook_calls_of_session", (f"{session_id}:", f"{session_id};", session_id)),
        "usage_events": ("delete_usage_of_session", one),
        "transitions": ("delete_transitions_of_session", one),
        "totals": ("delete_totals", one),
        "sessions": ("delete_session_row", one),
    }
    removed: Counter[str] = Counter()
    for table, (name, params) in steps.items():
        ((count,),) = yield Statement(name, params)
        removed[table] += count
    removed["messages"] = yield from _remove_messages(session_id, ids)
    if removed["messages"] == PIECE:
        yield from meta.set_fact(f"{LEFT_OVER}{session_id}", 1)
    return removed


def removed_with_leftovers() -> Transaction[list[str]]:
    """Return the removed sessions of which some messages are left."""
    rows = yield Statement("leftovers", (LEFT_OVER, _BEHIND))
    return [name.removeprefix(LEFT_OVER) for (name,) in rows]


def remove_leftover_messages(session_id: str, ids: Iterator[int]) -> Transaction[int]:
    """Remove some messages of a removed session; return how many. Fewer than `PIECE` were the last."""
    if (yield from meta.get_fact(f"{LEFT_OVER}{session_id}")) is None:
        return 0  # somebody else has, and by now there may be a new session of that name
    removed = yield from _remove_messages(session_id, ids)
    if removed < PIECE:
        yield Statement("forget_meta", (f"{LEFT_OVER}{session_id}",))
    return removed


def remove_earlier_session(session_id: str, ids: Iterator[int]) -> Transaction[None]:
    """Remove all that is left of an earlier session with this id, before a new one begins."""
    while (yield from remove_leftover_messages(session_id, ids)):
        pass


def _remove_messages(session_id: str, ids: Iterator[int]) -> Transaction[int]:
    rows = yield Statement("some_messages_of_session", (session_id, PIECE))
    gone = [(message_id,) for (message_id,) in rows]
    yield Statement("delete_message", many=gone)
    yield Statement("delete_message_versions", many=gone)
    yield from note_changed_messages((message_id for (message_id,) in gone), ids)
    return len(gone)


def _require_no_lane(session_id: str) -> Transaction[None]:
    for (session_key,) in (yield Statement("lane_of_session", (session_id,))):
        lane = yield from lane_lease(session_key)
        if lane is not None and lane.lease_epoch is not None:
            raise SessionBusyError(session_key, session_id)
        raise SessionOnLaneError(session_key, session_id)


def _group_member(one: AnySession) -> GroupMember:
    return GroupMember(one.session_id, messages=one.last_seq, text_bytes=one.text_bytes)


def _single_group(one: PrunableSession) -> SessionGroup:
    latest = from_micros(one.last_active)
    return SessionGroup(members=(_group_member(one),), last_active=latest, protected=bool(one.is_kept))
