"""The row of a lane: its lease and token, how many turns wait there, and when the next may begin."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.errors import FencedError
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.locks import of_lane

COLUMNS: Final = 8
"""Of a lane, besides its key."""


class LaneRow(msgspec.Struct, kw_only=True, gc=False):
    """A lane as it is stored. Transactions change the value and put it back."""

    session_key: str
    lease_epoch: int | None = None
    """Which opening of the store runs a turn here; None: no turn runs."""
    lease_token: int = 0
    """Counts whoever was given the lane; only the latest may write."""
    leased_at: int | None = None
    attempts: int = 0
    """How often in a row its turn was cut off. The lease itself counts the one that runs."""
    moved_session_id: str | None = None
    next_seq: int = 1
    waiting: int = 0
    """Turns that wait; the running one and merged messages do not count."""
    ready_at: int | None = None
    """When the next turn may begin; None while one runs or none waits."""

    @property
    def running(self) -> bool:
        """Whether a turn runs."""
        return self.lease_epoch is not None

    def lease(self, epoch: int, now: int) -> None:
        """Give the lane to a turn; should it be cut off, the lease tells."""
        self.lease_epoch, self.leased_at, self.ready_at = epoch, now, None
        self.lease_token += 1

    def fence_off(self) -> None:
        """Take the lane from whoever has it: what that one still writes is refused."""
        self.lease_epoch, self.leased_at = None, None
        self.lease_token += 1


class KnownLane(NamedTuple):
    """A lane as the last turn has left it: nothing runs or waits there, and nothing was cut off."""

    next_seq: int
    token: int


def load_lane(session_key: str, *, locked: bool = False) -> Transaction[LaneRow]:
    """The lane, which may never have been used before; *locked*, nobody else decides on it meanwhile."""
    rows = yield Statement("lane_row", (session_key,), lock=of_lane(session_key) if locked else None)
    return (yield from lane_in(session_key, rows))


def lane_in(session_key: str, rows: Rows) -> Transaction[LaneRow]:
    """The lane that was found, if it was ever used."""
    if not rows:
        return LaneRow(session_key=session_key)
    epoch, token, leased_at, attempts, moved, next_seq, stored, ready_at = rows[0][:COLUMNS]
    waiting = yield from believable(session_key, stored, next_seq)
    return LaneRow(
        session_key=session_key,
        lease_epoch=epoch,
        lease_token=token,
        leased_at=leased_at,
        attempts=attempts,
        moved_session_id=moved,
        next_seq=next_seq,
        waiting=waiting,
        ready_at=ready_at,
    )


def believable(session_key: str, waiting: Any, next_seq: int) -> Transaction[int]:
    """How many turns wait on a lane that says so; counted anew if that cannot be true.

    Only a damaged row says that fewer turns wait than none, or more than messages ever came. Added up with
    what all others say, it would turn everybody away, or nobody at all.
    """
    if isinstance(waiting, int) and 0 <= waiting < next_seq:
        return waiting
    return (yield from count_waiting(session_key))


def count_waiting(session_key: str) -> Transaction[int]:
    """How many turns wait on a lane, counted."""
    rows = yield Statement("count_waiting_turns", (session_key,))
    return int(rows[0][0])


def put_lane(lane: LaneRow) -> Transaction[None]:
    """Write the lane whole."""
    yield putting(lane)


def putting(lane: LaneRow) -> Statement:
    """Write the lane whole, as it is by now."""
    return Statement("put_lane_row", msgspec.structs.astuple(lane))


def held_lane(session_key: str, epoch: int, token: int) -> Transaction[LaneRow]:
    """The lane, if that turn still has it; else `FencedError`."""
    lane = yield from load_lane(session_key, locked=True)
    if (lane.lease_epoch, lane.lease_token) != (epoch, token):
        raise FencedError(session_key, token)
    return lane


def lease_as_known(known: KnownLane, session_key: str, epoch: int, now: int) -> Transaction[LaneRow | None]:
    """The lane, leased for the message that comes next; None if anything about it is not as it was known."""
    which = (epoch, now, session_key, known.next_seq, known.token)
    leased = yield Statement("lease_calm_lane", which, lock=of_lane(session_key))
    if not leased[0][0]:
        return None
    return LaneRow(
        session_key=session_key,
        lease_epoch=epoch,
        lease_token=known.token + 1,
        leased_at=now,
        next_seq=known.next_seq + 1,
    )


def queue_as_known(known: KnownLane, session_key: str, ready_at: int) -> Transaction[LaneRow | None]:
    """The lane, on which the message that comes next waits alone; None if anything is not as it was known."""
    which = (ready_at, session_key, known.next_seq, known.token)
    queued = yield Statement("queue_on_calm_lane", which, lock=of_lane(session_key))
    if not queued[0][0]:
        return None
    return LaneRow(
        session_key=session_key,
        lease_token=known.token,
        next_seq=known.next_seq + 1,
        waiting=1,
        ready_at=ready_at,
    )


def free_if_calm(session_key: str, epoch: int, token: int) -> Transaction[LaneRow | None]:
    """Give the lane back, if that turn still has it and nothing waits there; what matters of it then."""
    freed = yield Statement("free_calm_lane", (session_key, epoch, token), lock=of_lane(session_key))
    return LaneRow(session_key=session_key, lease_token=token) if freed[0][0] else None


def is_busy(session_key: str) -> Transaction[bool]:
    """Whether a turn runs or waits on the lane, which is work that a reset would cut off."""
    return bool((yield Statement("lane_is_busy", (session_key,))))


def is_running(session_key: str) -> Transaction[bool]:
    """Whether a turn runs on the lane."""
    return bool((yield Statement("lane_is_running", (session_key,))))
