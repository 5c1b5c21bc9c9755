"""Remove sessions: choose those to prune, then delete their rows piece by piece.

The row of a session goes at once, and the messages of a long one after it, piece by piece. A note in `meta`
names the session until its last message is gone, so that a crash in between leaves no message for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.sessions.retention import Bounds, FirstToGo, GroupMember, PrunePlan, SessionGroup
from gateway_sessions.errors import SessionBusyError, SessionOnLaneError
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.index_notes import note_changes

PAGE: Final = 500
"""The number of sessions read in one page."""
ENDED: Final = 6
"""The column that is true if a session has ended."""
PIECE: Final = 200
"""The number of messages removed in one commit: so few that other writes never wait long for it."""
LEFT_OVER: Final = "left_over:"
_BEHIND: Final = "left_over;"
_BEGINNING: Final = (-(1 << 62), "")
"""A position before every session."""


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
class Removed:
    """The sessions that one step has removed."""

    session_ids: list[str] = field(default_factory=list[str])
    in_use: list[str] = field(default_factory=list[str])
    """The sessions that were planned for removal and have been used again since."""


def plan(bounds: Bounds, kind: PrunableKind, limit: int | None = None) -> Transaction[PrunePlan]:
    """Return the sessions to remove to keep the bounds, the oldest first: all, or the first *limit*."""
    sizes = yield Statement("size_of_sessions_to_prune", kind.params)
    made = PrunePlan(bounds, count=sizes[0][0], text_bytes=sizes[0][1], limit=limit)
    yield from _offer_to(made, kind)
    return made


def first_to_go(kind: PrunableKind) -> Transaction[datetime | None]:
    """Return when the session was touched that grows too old before all others; None if none ever does."""
    found = FirstToGo()
    yield from _offer_to(found, kind)
    return found.last_active


def _offer_to(taker: PrunePlan | FirstToGo, kind: PrunableKind) -> Transaction[None]:
    """Offer sessions with their sub-agents, the oldest first, until the taker wants no more."""
    position = _BEGINNING
    while True:
        rows = yield Statement("sessions_to_prune", (*position, *kind.params, PAGE))
        for row in rows:
            if not taker.wants_more(from_micros(row[1])):
                return
            group = (yield from group_of(row[0], unended=kind.unended)) if row[5] else None
            taker.offer(group or _alone(row))
        if len(rows) < PAGE:
            return
        position = (rows[-1][1], rows[-1][0])


def group_of(session_id: str, *, unended: bool) -> Transaction[SessionGroup | None]:
    """Return a session with its sub-agents, and whether one of these, or its continuation, is in use.

    Unless *unended*, a session that has not ended stays, and so do the sessions that it continues.
    """
    rows = yield Statement("session_to_remove", (session_id,))
    if not rows:
        return None
    members, latest, protected = [_member(rows[0])], rows[0][1], bool(rows[0][4])
    protected = protected or not (unended or rows[0][ENDED])
    seen, waiting = {session_id}, [(session_id, True)]
    while waiting:
        parent, removed = waiting.pop()
        for row in (yield Statement("sessions_that_hang_on", (parent,))):
            if row[0] in seen:
                continue
            goes = removed and not (parent == session_id and row[5] == Relation.CONTINUATION)
            seen.add(row[0])
            waiting.append((row[0], goes))
            members += [_member(row)] if goes else []
            goes_on = not (goes or unended or row[ENDED])
            latest, protected = max(latest, row[1]), protected or bool(row[4]) or goes_on
    return SessionGroup(members=tuple(members), last_active=from_micros(latest), protected=protected)


def remove_groups(
    groups: Sequence[SessionGroup], ids: Iterator[int], *, unended: bool
) -> Transaction[Removed]:
    """Remove the planned sessions, except those that have been used since."""
    removed = Removed()
    for planned in groups:
        head = planned.members[0].session_id
        group = yield from group_of(head, unended=unended)
        if group is not None and not group.is_still(planned):
            removed.in_use.append(head)
            continue
        for member in group.members if group is not None else ():
            yield from remove(member.session_id, ids)
            removed.session_ids.append(member.session_id)
    return removed


def check_deletable(session_id: str) -> Transaction[None]:
    """Raise the error that a deletion would raise, if any."""
    group = yield from group_of(session_id, unended=True)
    for member in group.members if group is not None else ():
        yield from _is_on_no_lane(member.session_id)


def delete(session_id: str, ids: Iterator[int]) -> Transaction[list[str]]:
    """Remove a session with its sub-agents; return their ids. Raise an error if one of them is on a lane."""
    group = yield from group_of(session_id, unended=True)
    if group is None:
        return []
    for member in group.members:
        yield from _is_on_no_lane(member.session_id)
    for member in group.members:
        yield from remove(member.session_id, ids)
    return [member.session_id for member in group.members]


def remove(session_id: str, ids: Iterator[int]) -> Transaction[Counter[str]]:
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
        rows = yield Statement(name, params)
        removed[table] += rows[0][0]
    removed["messages"] = yield from _remove_messages(session_id, ids)
    if removed["messages"] == PIECE:
        yield from meta.remember(f"{LEFT_OVER}{session_id}", 1)
    return removed


def leftovers() -> Transaction[list[str]]:
    """Return the removed sessions of which some messages are left."""
    rows = yield Statement("leftovers", (LEFT_OVER, _BEHIND))
    return [row[0].removeprefix(LEFT_OVER) for row in rows]


def remove_leftover(session_id: str, ids: Iterator[int]) -> Transaction[int]:
    """Remove some messages of a removed session; return how many. Fewer than `PIECE` were the last."""
    if (yield from meta.get(f"{LEFT_OVER}{session_id}")) is None:
        return 0  # somebody else has, and by now there may be a new session of that name
    removed = yield from _remove_messages(session_id, ids)
    if removed < PIECE:
        yield Statement("forget_meta", (f"{LEFT_OVER}{session_id}",))
    return removed


def make_way(session_id: str, ids: Iterator[int]) -> Transaction[None]:
    """Remove all that is left of an earlier session with this id, before a new one begins."""
    while (yield from remove_leftover(session_id, ids)):
        pass


def _remove_messages(session_id: str, ids: Iterator[int]) -> Transaction[int]:
    rows = yield Statement("some_messages_of_session", (session_id, PIECE))
    gone = [(row[0],) for row in rows]
    yield Statement("delete_message", many=gone)
    yield Statement("delete_message_versions", many=gone)
    yield from note_changes((row[0] for row in rows), ids)
    return len(rows)


def _is_on_no_lane(session_id: str) -> Transaction[None]:
    keys = yield Statement("lane_of_session", (session_id,))
    if not keys:
        return
    lanes = yield Statement("get_lane", (keys[0][0],))
    if lanes and lanes[0][0] is not None:
        raise SessionBusyError(keys[0][0], session_id)
    raise SessionOnLaneError(keys[0][0], session_id)


def _member(row: Row) -> GroupMember:
    return GroupMember(row[0], messages=row[2], text_bytes=row[3])


def _alone(row: Row) -> SessionGroup:
    return SessionGroup(members=(_member(row),), last_active=from_micros(row[1]), protected=bool(row[4]))
