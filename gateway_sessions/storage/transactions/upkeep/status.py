"""Counts of lanes, turns, sessions, messages and replies, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import entries, meta


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
    return (yield from meta.number("schema_version"))


def count_lanes() -> Transaction[int]:
    """Return the number of lanes that have a session."""
    rows = yield Statement("count_lanes")
    return int(rows[0][0])


def by_source() -> Transaction[list[SourceCount]]:
    """Return the number of sessions of each source, the largest first."""
    rows = yield Statement("count_by_source")
    return [SourceCount(platform=source, sessions=sessions) for source, sessions in rows]


def count_messages() -> Transaction[int]:
    """Return the number of messages."""
    rows = yield Statement("count_messages")
    return int(rows[0][0])


def lanes_in_use(limit: int) -> Transaction[list[LaneInUse]]:
    """Return lanes where a turn runs, then lanes where one waits, each kind from the oldest on."""
    found: list[LaneInUse] = []
    for key, epoch, token, leased_at, attempts, waiting, ready_at in (
        yield Statement("lanes_in_use", (limit,))
    ):
        oldest = (yield Statement("oldest_on_lane", (key,)))[0][0] if waiting else None
        found.append(
            LaneInUse(
                session_key=key,
                epoch=epoch,
                token=token,
                running_since=_instant(leased_at),
                attempts=attempts,
                waiting=waiting,
                oldest_waiting=_instant(oldest),
                ready_at=_instant(ready_at),
            )
        )
    return found


def work() -> Transaction[PendingWork]:
    """Return the number of turns and replies in each state."""
    [(running, behind, waiting, oldest, owed, messages, replies)] = yield Statement("count_work")
    return PendingWork(
        running=running,
        waiting=behind + waiting,
        oldest_waiting=_instant(oldest),
        owed_replies=owed,
        dead_messages=messages,
        dead_replies=replies,
    )


def running_by_opening() -> Transaction[dict[int, int]]:
    """Return the number of turns that each opening of the store has begun and not ended."""
    rows = yield Statement("count_running")
    return {int(epoch): int(running) for epoch, running in rows}


def first_due(limit: int) -> Transaction[list[SessionEntry]]:
    """Return entries whose policies may be due first; each policy tells the exact instant."""
    rows = yield Statement("first_entries_due", (limit,))
    return entries.readable(rows)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
