"""What another reset policy would have done: it is asked at each moment when somebody wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.policies import ResetNow, missed_boundary, plan_reset
from gateway_sessions.core.policy_book import ResolvedPolicy
from gateway_sessions.core.reasons import EndReason


@dataclass(frozen=True, slots=True)
class Activity:
    """When people wrote on one lane."""

    session_key: str
    platform: str
    chat_type: str
    moments: Sequence[datetime]
    """In their order."""


@dataclass(frozen=True, slots=True)
class WouldReset:
    """A message that would have begun a new session."""

    session_key: str
    at: datetime
    reason: EndReason
    silent_since: datetime
    """When somebody wrote last before that."""


@dataclass(frozen=True, slots=True)
class _Clocks:
    last_interaction_at: datetime
    deferred_boundary: datetime | None


def simulate(lanes: Iterable[Activity], policy_of: Callable[[Activity], ResolvedPolicy]) -> list[WouldReset]:
    """Every reset that the policies would have brought about, in the order of the lanes."""
    return [one for lane in lanes for one in _of_lane(lane, policy_of(lane))]


def _of_lane(lane: Activity, resolved: ResolvedPolicy) -> Iterable[WouldReset]:
    clocks: _Clocks | None = None
    for moment in lane.moments:
        if clocks is None:
            clocks = _Clocks(moment, None)
            continue
        plan = plan_reset(resolved.policy, clocks, moment, resolved.zone, active_work=False)
        if isinstance(plan, ResetNow):
            yield WouldReset(lane.session_key, moment, plan.due.reason, clocks.last_interaction_at)
            clocks = _Clocks(moment, None)
        else:
            missed = missed_boundary(resolved.policy, clocks, moment, resolved.zone)
            clocks = _Clocks(moment, missed)
