"""The row of a lane: its lease and token, how many turns wait there, and when the next may begin."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from gateway_sessions.errors import FencedError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.locks import of_lane
from gateway_sessions.storage.tables.sql_files import record_of, row_of


@record_of("put_lane_row")
class LaneRow(msgspec.Struct, kw_only=True, gc=False):
    """The row of a lane. Transactions change the value and write it back."""

    session_key: str
    lease_epoch: int | None = None
    """The opening of the store that runs a turn here; None: no turn runs."""
    lease_token: int = 0
    """Rises each time the lane is leased or taken away; a write with an older token is refused."""
    leased_at: int | None = None
    attempts: int = 0
    """The number of cut-off tries in a row of the turn that runs or is next, without the try that runs."""
    moved_session_id: str | None = None
    next_seq: int = 1
    waiting: int = 0
    """The number of waiting turns; the running turn and merged messages do not count."""
    ready_at: int | None = None
    """The time at which the next turn may begin; None while a turn runs or none waits."""

    @property
    def running(self) -> bool:
        """Return whether a turn runs."""
        return self.lease_epoch is not None

    def lease(self, epoch: int, now: int) -> None:
        """Lease the lane to a turn; the lease stays in the row if the process ends before the turn."""
        self.lease_epoch, self.leased_at, self.ready_at = epoch, now, None
        self.lease_token += 1

    def fence_off(self) -> None:
        """Take the lane from its turn: later writes of that turn carry an older token and are refused."""
        self.lease_epoch, self.leased_at = None, None
        self.lease_token += 1


@row_of("lane_row")
class LaneColumns(NamedTuple):
    """All columns of a lane besides its key."""

    lease_epoch: int | None
    lease_token: int
    leased_at: int | None
    attempts: int
    moved_session_id: str | None
    next_seq: int
    waiting: int
    ready_at: int | None


@row_of("get_lane")
class LaneLease(NamedTuple):
    """The columns of a lane for transactions that do not write them."""

    lease_epoch: int | None
    """The opening of the store that runs a turn there; None: no turn runs."""
    attempts: int
    moved_session_id: str | None


class KnownLane(NamedTuple):
    """A lane as the last turn has left it: no turn runs or waits there, and none was cut off."""

    next_seq: int
    token: int


def load_lane(session_key: str, *, locked: bool = False) -> Transaction[LaneRow]:
    """Return the lane, new if it was never used.

    *Locked*, no other transaction decides on the lane until the commit.
    """
    rows = yield Statement("lane_row", (session_key,), lock=of_lane(session_key) if locked else None)
    return (yield from lane_in(session_key, LaneColumns._make(rows[0]) if rows else None))


def lane_lease(session_key: str) -> Transaction[LaneLease | None]:
    """Return the lease of a lane and how often its turn was cut off; None if the lane was never used."""
    rows = yield Statement("get_lane", (session_key,))
    return LaneLease._make(rows[0]) if rows else None


def lane_in(session_key: str, columns: LaneColumns | None) -> Transaction[LaneRow]:
    """Return the lane with these columns; a new one if there are none."""
    if columns is None:
        return LaneRow(session_key=session_key)
    waiting = yield from believable(session_key, columns.waiting, columns.next_seq)
    return LaneRow(session_key=session_key, **columns._replace(waiting=waiting)._asdict())


def believable(session_key: str, waiting: Any, next_seq: int) -> Transaction[int]:
    """Return the stored number of waiting turns; counted anew if it cannot be true.

    Only a damaged row holds a number below zero, or above the number of messages that ever came. Added to the
    numbers of all other lanes, it would make the store refuse every message, or none.
    """
    if isinstance(waiting, int) and 0 <= waiting < next_seq:
        return waiting
    return (yield from count_waiting(session_key))


def count_waiting(session_key: str) -> Transaction[int]:
    """Count the turns that wait on a lane."""
    ((waiting,),) = yield Statement("count_waiting_turns", (session_key,))
    return int(waiting)


def put_lane(lane: LaneRow) -> Transaction[None]:
    """Write all columns of the lane."""
    yield putting(lane)


def putting(lane: LaneRow) -> Statement:
    """Return the statement that writes all columns of the lane as they are now."""
    return Statement("put_lane_row", msgspec.structs.astuple(lane))


def held_lane(session_key: str, epoch: int, token: int) -> Transaction[LaneRow]:
    """Return the lane if the turn with that token still holds it; else raise `FencedError`."""
    lane = yield from load_lane(session_key, locked=True)
    if (lane.lease_epoch, lane.lease_token) != (epoch, token):
        raise FencedError(session_key, token)
    return lane


def lease_as_known(known: KnownLane, session_key: str, epoch: int, now: int) -> Transaction[LaneRow | None]:
    """Lease the lane to the message that comes next; None if the lane is not as it was known."""
    which = (epoch, now, session_key, known.next_seq, known.token)
    ((leased,),) = yield Statement("lease_calm_lane", which, lock=of_lane(session_key))
    if not leased:
        return None
    return LaneRow(
        session_key=session_key,
        lease_epoch=epoch,
        lease_token=known.token + 1,
        leased_at=now,
        next_seq=known.next_seq + 1,
    )


def queue_as_known(known: KnownLane, session_key: str, ready_at: int) -> Transaction[LaneRow | None]:
    """Let the message that comes next wait alone on the lane; None if the lane is not as it was known."""
    which = (ready_at, session_key, known.next_seq, known.token)
    ((queued,),) = yield Statement("queue_on_calm_lane", which, lock=of_lane(session_key))
    if not queued:
        return None
    return LaneRow(
        session_key=session_key,
        lease_token=known.token,
        next_seq=known.next_seq + 1,
        waiting=1,
        ready_at=ready_at,
    )


def free_if_calm(session_key: str, epoch: int, token: int) -> Transaction[LaneRow | None]:
    """Give the lane back if that turn still holds it and no turn waits; None if it was not given back."""
    ((freed,),) = yield Statement("free_calm_lane", (session_key, epoch, token), lock=of_lane(session_key))
    return LaneRow(session_key=session_key, lease_token=token) if freed else None


def is_busy(session_key: str) -> Transaction[bool]:
    """Return whether a turn runs or waits on the lane: a reset would cut off that work."""
    return bool((yield Statement("lane_is_busy", (session_key,))))


def is_running(session_key: str) -> Transaction[bool]:
    """Return whether a turn runs on the lane."""
    return bool((yield Statement("lane_is_running", (session_key,))))
