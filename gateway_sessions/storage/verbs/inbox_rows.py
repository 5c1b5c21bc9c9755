"""What the queue of a lane comes to: messages as they are kept, and when the next turn may begin."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.instants import to_micros
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs.lane_rows import LaneRow

_READ: Final = msgspec.json.Decoder(InboundMessage)


def decode_message(session_key: str, payload: str | None) -> InboundMessage:
    """The message again; `StorageCorruptError` if it is none."""
    try:
        return _READ.decode(payload or "")
    except (msgspec.MsgspecError, ValueError) as error:
        lane = f"lane {session_key!r}"
        problem = f"a waiting message is damaged ({error}); it was left as it is"
        raise StorageCorruptError(lane, problem) from error


def is_ready(lane: LaneRow, now: datetime) -> bool:
    """Whether the lane's next turn may begin."""
    return lane.ready_at is not None and lane.ready_at <= to_micros(now)


def reckon_ready(lane: LaneRow) -> Verb[None]:
    """Find out when the lane's next turn may begin."""
    lane.ready_at = None
    if lane.running or not lane.waiting:
        return
    rows = yield Statement("next_waiting", (lane.session_key,))
    lane.ready_at = rows[0][1] if rows else None


def recount(lane: LaneRow) -> Verb[None]:
    """Find out anew how many turns wait on the lane, and when the next one may begin."""
    rows = yield Statement("count_waiting_turns", (lane.session_key,))
    lane.waiting = rows[0][0]
    yield from reckon_ready(lane)
