"""Counts of lanes, turns, sessions, messages and replies, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import entries, meta
from gateway_sessions.storage.tables.sql_files import row_of


@row_of("lanes_in_use")
class LaneInUseRow(NamedTuple):
    """A lane where a turn runs or waits, as it is stored."""

    session_key: str
    lease_epoch: int | None
    lease_token: int
    leased_at: int | None
    attempts: int
    waiting: int
    ready_at: int | None


@row_of("count_work")
class WorkCounts(NamedTuple):
    """The counts of work that are stored."""

    turns_running: int
    waiting_behind: int
    """Turns that wait on lanes where a turn runs."""
    waiting_ready: int
    """Turns that wait on the other lanes."""
    oldest_waiting: int | None
    owed_replies: int
    dead_messages: int
    dead_replies: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneInUse:
    """A lane where a turn runs or waits."""

    session_key: str
    epoch: int | None
    """The opening of the store that runs the lane's turn; None: no turn runs."""
    token: int
    """The token of the lane's latest lease."""
    running_since: datetime | None
    attempts: int
    """The number of tries of the turn that were cut off in a row."""
    waiting: int
    """The number of waiting turns."""
    oldest_waiting: datetime | None
    ready_at: datetime | None
    """The time at which the next turn may begin, if no turn runs."""
    cut_off: bool = False
    """True if the process that ran the turn is gone: the turn is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWork:
    """The number of turns and replies in each state."""

    running: int
    """The number of turns that began and did not end; those of dead processes count until recovery."""
    waiting: int
    oldest_waiting: datetime | None
    owed_replies: int
    dead_messages: int
    dead_replies: int
    cut_off: int = 0
    """The number of turns whose process is gone: they are tried again, and are not among the running ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """The number of sessions of one source."""

    platform: str
    sessions: int


def schema_version() -> Transaction[int]:
    """Return the version of the database's schema."""
    return (yield from meta.get_number("schema_version"))


def count_lanes() -> Transaction[int]:
    """Return the number of lanes that have a session."""
    ((count,),) = yield Statement("count_lanes")
    return int(count)


def count_by_source() -> Transaction[list[SourceCount]]:
    """Return the number of sessions of each source, the largest first."""
    rows = yield Statement("count_by_source")
    return [SourceCount(platform=source, sessions=sessions) for source, sessions in rows]


def count_messages() -> Transaction[int]:
    """Return the number of messages."""
    ((count,),) = yield Statement("count_messages")
    return int(count)


def lanes_in_use(limit: int) -> Transaction[list[LaneInUse]]:
    """Return lanes where a turn runs, then lanes where one waits, each kind from the oldest on."""
    found: list[LaneInUse] = []
    for lane in map(LaneInUseRow._make, (yield Statement("lanes_in_use", (limit,)))):
        oldest = None
        if lane.waiting:
            ((oldest,),) = yield Statement("oldest_on_lane", (lane.session_key,))
        found.append(
            LaneInUse(
                session_key=lane.session_key,
                epoch=lane.lease_epoch,
                token=lane.lease_token,
                running_since=_instant_or_none(lane.leased_at),
                attempts=lane.attempts,
                waiting=lane.waiting,
                oldest_waiting=_instant_or_none(oldest),
                ready_at=_instant_or_none(lane.ready_at),
            )
        )
    return found


def load_pending_work() -> Transaction[PendingWork]:
    """Return the number of turns and replies in each state."""
    (row,) = yield Statement("count_work")
    counts = WorkCounts._make(row)
    return PendingWork(
        running=counts.turns_running,
        waiting=counts.waiting_behind + counts.waiting_ready,
        oldest_waiting=_instant_or_none(counts.oldest_waiting),
        owed_replies=counts.owed_replies,
        dead_messages=counts.dead_messages,
        dead_replies=counts.dead_replies,
    )


def count_running_turns() -> Transaction[dict[int, int]]:
    """Return the number of turns that each opening of the store has begun and not ended."""
    rows = yield Statement("count_running")
    return {int(epoch): int(running) for epoch, running in rows}


def load_first_due(limit: int) -> Transaction[list[SessionEntry]]:
    """Return entries whose policies may be due first; each policy tells the exact instant."""
    rows = yield Statement("first_entries_due", (limit,))
    return entries.decode_readable(rows)


def _instant_or_none(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
