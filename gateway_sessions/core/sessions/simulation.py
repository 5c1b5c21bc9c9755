"""The resets that another policy would have made on a lane, computed from when people wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.sessions.policy_rules import ResolvedPolicy
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import ResetNow, missed_boundary, plan_reset


@dataclass(frozen=True, slots=True)
class LaneActivity:
    """The times when people wrote on one lane, and the policy that is tried there."""

    session_key: str
    policy: ResolvedPolicy
    moments: Sequence[datetime]
    """The times of the messages, in order."""


@dataclass(frozen=True, slots=True)
class WouldReset:
    """A message that would have begun a new session."""

    session_key: str
    at: datetime
    """The instant of that message."""
    reason: EndReason
    silent_since: datetime
    """The instant of the message before it."""


@dataclass(frozen=True, slots=True)
class _Clocks:
    last_interaction_at: datetime
    deferred_boundary: datetime | None


def simulate(lane: LaneActivity) -> Iterator[WouldReset]:
    """Yield every reset that the policy would have made on a lane."""
    resolved = lane.policy
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
