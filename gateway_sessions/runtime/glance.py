"""A glance at a store while it is in use: who has it, what runs and waits, what resets next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from gateway_sessions.core.lifecycle import policy_for
from gateway_sessions.core.policies import next_reset
from gateway_sessions.core.policy_book import PolicyBook
from gateway_sessions.core.reasons import EndReason
from gateway_sessions.core.session import SessionState
from gateway_sessions.errors import ControlError
from gateway_sessions.runtime.control import OwnerStatus
from gateway_sessions.runtime.seat import Seat
from gateway_sessions.storage.verbs import status
from gateway_sessions.storage.verbs.status import LaneInUse, Work

LOOKED_AT: Final = 200
"""Of so many lanes that may be due first, it is found out when they are."""
_GOING_ON: Final = (SessionState.ACTIVE, SessionState.RESUME_PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextReset:
    """When a lane's policy ends its session, if nobody writes before."""

    session_key: str
    session_id: str
    at: datetime
    reason: EndReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """How a store is at one moment."""

    now: datetime
    owner: OwnerStatus | None
    owner_problem: str | None
    """Why the owner could not be asked, if there is one."""
    sessions: int
    """How many lanes have a session."""
    work: Work
    lanes: tuple[LaneInUse, ...]
    resets: tuple[NextReset, ...]


async def glance(seat: Seat, policies: PolicyBook, now: datetime, limit: int) -> Glance:
    """Look at a store without changing anything; of lanes and resets, no more than *limit*."""
    owner, problem = None, None
    try:
        owner = await seat.owner()
    except ControlError as error:
        problem = str(error)
    return Glance(
        now=now,
        owner=owner,
        owner_problem=problem,
        sessions=await seat.db.read(status.count_lanes),
        work=await seat.db.read(status.work),
        lanes=tuple(await seat.db.read(partial(status.lanes_in_use, limit))),
        resets=tuple((await _next_resets(seat, policies))[:limit]),
    )


async def _next_resets(seat: Seat, policies: PolicyBook) -> list[NextReset]:
    """The earliest first."""
    found: list[NextReset] = []
    for entry in await seat.db.read(partial(status.first_due, LOOKED_AT)):
        resolved = policy_for(entry, policies)
        due = next_reset(resolved.policy, entry, resolved.zone)
        if due is not None and entry.state in _GOING_ON:
            found.append(
                NextReset(
                    session_key=entry.session_key,
                    session_id=entry.session_id,
                    at=due.at,
                    reason=due.reason,
                )
            )
    return sorted(found, key=lambda one: (one.at, one.session_key))
