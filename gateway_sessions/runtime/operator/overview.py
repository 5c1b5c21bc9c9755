"""The overview of a store in use for `gsess top`: its owner, running turns, queue and next resets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from gateway_sessions.core.sessions.entry import SessionState
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import next_reset
from gateway_sessions.core.sessions.state_machine import policy_for
from gateway_sessions.errors import ControlError
from gateway_sessions.runtime.operator.store_client import StoreClient, is_cut_off
from gateway_sessions.runtime.store.control import OwnerStatus
from gateway_sessions.storage.transactions.upkeep import status
from gateway_sessions.storage.transactions.upkeep.status import LaneInUse, PendingWork

LOOKED_AT: Final = 200
"""Lanes that may be due first, for which the next reset is worked out."""
_GOING_ON: Final = (SessionState.ACTIVE, SessionState.RESUME_PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextReset:
    """The next reset of a lane by its policy, if nobody writes before."""

    session_key: str
    session_id: str
    at: datetime
    reason: EndReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The state of a store at one moment."""

    now: datetime
    owner: OwnerStatus | None
    owner_problem: str | None
    """Why the owner could not be asked, if there is one."""
    sessions: int
    """The number of lanes that have a session."""
    work: PendingWork
    lanes: tuple[LaneInUse, ...]
    resets: tuple[NextReset, ...]
    at_work: int = 0
    """Turns that the owner runs, whatever kind of agent has them."""
    elsewhere: int = 0
    """The number of other processes that have a database on a server open."""


async def load_overview(client: StoreClient, policies: PolicyBook, now: datetime, limit: int) -> Overview:
    """Look at a store without changing anything; of lanes and resets, no more than *limit*."""
    owner, problem = None, None
    try:
        owner = await client.owner()
    except ControlError as error:
        problem = str(error)
    running = await client.db.read(status.count_running_turns)
    alive, own = await client.living(), None if owner is None else owner.epoch
    cut_off = sum(turns for epoch, turns in running.items() if is_cut_off(epoch, alive))
    work = await client.db.read(status.load_pending_work)
    lanes = await client.db.read(partial(status.lanes_in_use, limit))
    return Overview(
        now=now,
        owner=owner,
        owner_problem=problem,
        sessions=await client.db.read(status.count_lanes),
        work=replace(work, running=max(work.running - cut_off, 0), cut_off=cut_off),
        lanes=tuple(replace(one, cut_off=is_cut_off(one.epoch, alive)) for one in lanes),
        resets=tuple((await _find_next_resets(client, policies))[:limit]),
        at_work=0 if own is None else running.get(own, 0),
        elsewhere=len((alive or frozenset()) - {own}),
    )


async def _find_next_resets(client: StoreClient, policies: PolicyBook) -> list[NextReset]:
    """The earliest first."""
    found: list[NextReset] = []
    for entry in await client.db.read(partial(status.load_first_due, LOOKED_AT)):
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
