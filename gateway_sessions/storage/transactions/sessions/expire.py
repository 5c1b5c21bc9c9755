"""Expire due sessions, reschedule policies, prune lanes, and mark recent sessions, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.instants import clamp_to_calendar, to_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.sessions.state_machine import Event, is_allowed
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.change import Change, LaneEvent
from gateway_sessions.storage.tables.entries import EntryRow, decode_readable, load, remove, split_off_damaged
from gateway_sessions.storage.tables.lanes import is_busy, lane_lease
from gateway_sessions.storage.transactions.sessions.lane_changes import mark_cut_off
from gateway_sessions.storage.transactions.sessions.session_transitions import (
    apply_event,
    end_entry,
    transition_statement,
)

PAGE = 100
"""The number of entries per page: so few that other writes never wait long for one page."""


@dataclass(frozen=True, slots=True)
class EntryPosition:
    """The position in a walk through entries: the last entry that was read."""

    instant: int = -(1 << 63)
    session_key: str = ""


def load_due_page(
    now: datetime, after: EntryPosition
) -> Transaction[tuple[list[SessionEntry], EntryPosition | None]]:
    """Return a page of entries whose policy is due, and the position to go on at; None at the end."""
    rows = yield Statement("entries_due", (to_micros(now), after.instant, after.session_key, PAGE))
    end = _last_position(rows, PAGE)
    return decode_readable(rows), EntryPosition(end.due_at or 0, end.session_key) if end else None


def _last_position(rows: Rows, limit: int) -> EntryRow | None:
    """Return the last entry of a full page, behind which the next page begins; None if there are no more."""
    return EntryRow._make(rows[-1]) if len(rows) == limit else None


def first_due() -> Transaction[datetime | None]:
    """Return when the policy of any entry has to be looked at first; None if none ever has."""
    ((due_at,),) = yield Statement("first_due")
    return None if due_at is None else clamp_to_calendar(due_at)


def oldest_write() -> Transaction[datetime | None]:
    """Return when the entry was written that has been left alone for longest; None without entries."""
    ((written_at,),) = yield Statement("oldest_write")
    return None if written_at is None else clamp_to_calendar(written_at)


def runs_any_turn(epoch: int) -> Transaction[bool]:
    """Return whether any turn runs in that opening of the store."""
    return bool((yield Statement("any_turn_of", (epoch,))))


def finalise_session(
    change: Change, planned: SessionEntry, reason: EndReason
) -> Transaction[SessionEntry | None]:
    """End a due session; None if it was used, or a turn began on its lane, since the end was planned."""
    entry = yield from _load_if_unchanged(planned)
    if entry is None or not is_allowed(entry.state, Event.FINALISED):
        return None
    yield from end_entry(change, entry, reason)
    if entry.suspended:
        yield transition_statement(change, entry, Event.FINALISED, came_from=entry.state, reason=reason)
        yield Statement("reschedule_entry", (None, entry.policy_fingerprint, entry.entry_id, entry.version))
        return entry
    return (yield from apply_event(change, entry, Event.FINALISED, reason))


def finalise_page(change: Change, planned: Sequence[tuple[SessionEntry, EndReason]]) -> Transaction[int]:
    """End several due sessions in one commit; return how many of them were still due."""
    finalised = 0
    for entry, reason in planned:
        finalised += (yield from finalise_session(change, entry, reason)) is not None
    return finalised


def reschedule(change: Change, entries: Sequence[SessionEntry]) -> Transaction[int]:
    """Store when each policy has to be looked at next; leave out entries that were written meanwhile."""
    rows: list[tuple[object, ...]] = []
    for entry in entries:
        due = change.with_due_instant(entry)
        if (due.due_at, due.policy_fingerprint) != (entry.due_at, entry.policy_fingerprint):
            due_at = to_micros(due.due_at) if due.due_at is not None else None
            rows.append((due_at, due.policy_fingerprint, entry.entry_id, entry.version))
    yield Statement("reschedule_entry", many=rows)
    return len(rows)


def reschedule_page(change: Change, after: str) -> Transaction[tuple[int, str | None]]:
    """Reschedule a page of all entries; return how many, and the key to go on behind, or None at the end.

    The entries are read in the same transaction, because transactions that know no policies, such as the
    counting of use, may write any entry.
    """
    rows = yield Statement("entries_in_key_order", (after, PAGE))
    rescheduled = yield from reschedule(change, decode_readable(rows))
    end = _last_position(rows, PAGE)
    return rescheduled, end.session_key if end is not None else None


@dataclass(frozen=True, slots=True)
class KeyPage:
    """A page of entries in the order of their keys."""

    entries: list[SessionEntry]
    damaged: list[str]
    """The keys of lanes whose entries cannot be read."""
    after: str | None
    """The key behind which the next page begins; None at the end."""


def load_key_page(after: str, limit: int = PAGE) -> Transaction[KeyPage]:
    """Return a page of all entries in key order, for callers that need every entry."""
    rows = yield Statement("entries_in_key_order", (after, limit))
    found, damaged = split_off_damaged(rows)
    end = _last_position(rows, limit)
    return KeyPage(found, damaged, end.session_key if end is not None else None)


def load_keys_after(after: str, limit: int) -> Transaction[list[str]]:
    """Return a page of the keys of all lanes that have a session, in their order."""
    return [session_key for (session_key,) in (yield Statement("keys_in_order", (after, limit)))]


def load_stale_page(before: datetime, after: int) -> Transaction[tuple[list[SessionEntry], int | None]]:
    """Return a page of entries not written since *before*, and the id to go on after, or None at the end."""
    rows = yield Statement("entries_not_written_since", (after, to_micros(before), PAGE))
    end = _last_position(rows, PAGE)
    return decode_readable(rows), end.entry_id if end is not None else None


def prune_lanes(change: Change, planned: Sequence[SessionEntry]) -> Transaction[list[SessionEntry]]:
    """Forget lanes. Their sessions end, so that a later message never brings the old history back."""
    pruned: list[SessionEntry] = []
    for one in planned:
        entry = yield from _load_if_unchanged(one)
        if entry is None:
            continue
        yield from end_entry(change, entry, EndReason.PRUNED)
        yield from remove(entry)
        yield Statement("delete_idle_lane", (entry.session_key,))
        yield transition_statement(
            change, entry, LaneEvent.PRUNED, came_from=entry.state, reason=EndReason.PRUNED
        )
        pruned.append(entry)
    return pruned


def mark_recent_interrupted(
    change: Change, since: datetime, after: int, limit: int
) -> Transaction[tuple[list[SessionEntry], int | None]]:
    """Mark sessions that were used lately as cut off; return them and the id to go on after, or None."""
    rows = yield Statement("entries_active_since", (after, to_micros(since), PAGE))
    marked: list[SessionEntry] = []
    for entry in decode_readable(rows):
        lane = yield from lane_lease(entry.session_key)
        attempts = (lane.attempts if lane is not None else 0) + 1
        marked.append(
            (yield from mark_cut_off(change, entry, attempts, limit, ResumeReason.RESTART_INTERRUPTED))
        )
    end = _last_position(rows, PAGE)
    return marked, end.entry_id if end is not None else None


def count_cut_off_tries() -> Transaction[dict[str, int]]:
    """Return how often in a row each lane's turn was cut off."""
    rows = yield Statement("tried_lanes")
    return {str(session_key): int(attempts) for session_key, attempts in rows}


def _load_if_unchanged(planned: SessionEntry) -> Transaction[SessionEntry | None]:
    """Return the entry if it has not changed since the plan and no turn runs or waits on its lane."""
    entry = yield from load(planned.session_key)
    if entry is None or (entry.version, entry.session_id) != (planned.version, planned.session_id):
        return None
    return None if (yield from is_busy(entry.session_key)) else entry
