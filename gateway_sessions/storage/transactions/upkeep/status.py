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
    """Which opening of the store runs its turn; None: none runs."""
    token: int
    """Counts whoever was given the lane."""
    running_since: datetime | None
    attempts: int
    """How often in a row its turn was cut off."""
    waiting: int
    """Turns that wait."""
    oldest_waiting: datetime | None
    ready_at: datetime | None
    """When the next turn may begin, if none runs."""
    cut_off: bool = False
    """Whether the process that ran its turn is gone: it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWork:
    """How much there is to do."""

    running: int
    """Turns that were begun and not ended; of processes that are gone, until somebody looks, as well."""
    waiting: int
    oldest_waiting: datetime | None
    owed_replies: int
    dead_messages: int
    dead_replies: int
    cut_off: int = 0
    """Turns whose process is gone: they are tried again, and are not among those that run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """How much there is of one source."""

    platform: str
    sessions: int


def schema_version() -> Transaction[int]:
    """The version of the schema that the database has."""
    return (yield from meta.number("schema_version"))


def count_lanes() -> Transaction[int]:
    """How many lanes have a session."""
    rows = yield Statement("count_lanes")
    return int(rows[0][0])


def by_source() -> Transaction[list[SourceCount]]:
    """How much there is of each source, the one with most sessions first."""
    rows = yield Statement("count_by_source")
    return [SourceCount(platform=source, sessions=sessions) for source, sessions in rows]


def count_messages() -> Transaction[int]:
    """How many messages there are."""
    rows = yield Statement("count_messages")
    return int(rows[0][0])


def lanes_in_use(limit: int) -> Transaction[list[LaneInUse]]:
    """Lanes where a turn runs, then lanes where one waits, each kind from the oldest on."""
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
    """How much there is to do."""
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
    """How many turns each opening of the store has begun and not ended."""
    rows = yield Statement("count_running")
    return {int(epoch): int(running) for epoch, running in rows}


def first_due(limit: int) -> Transaction[list[SessionEntry]]:
    """Entries whose policy may be due first; the instant itself, only their policies know."""
    rows = yield Statement("first_entries_due", (limit,))
    return entries.readable(rows)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
