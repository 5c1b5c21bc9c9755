"""The explanation why a lane has its session, and what its next message will do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.policy_rules import PolicyBook, ResolvedPolicy
from gateway_sessions.core.sessions.reset_policy import AskActiveWork, next_reset
from gateway_sessions.core.sessions.state_machine import AccessRules, Keep, Replace, plan_access, policy_for
from gateway_sessions.ports import Reader
from gateway_sessions.storage.tables import entries
from gateway_sessions.storage.transactions.sessions import lists
from gateway_sessions.storage.transactions.sessions.lists import Lane, SessionTransition

HISTORY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All facts that decide about a lane now."""

    session_key: str
    now: datetime
    """The instant of the explanation."""
    entry: SessionEntry | None
    """The lane's entry; None if the lane has no session."""
    lane: Lane
    """The state of the lane: its queue and its lease."""
    policy: ResolvedPolicy | None
    """The reset policy that applies; None without a session."""
    next_reset_at: datetime | None
    """In UTC; None: the policy never resets."""
    next_reset_local: datetime | None
    """The same instant on the clock of the policy's zone."""
    active_work: bool
    """Whether work runs that a reset would cut off."""
    next_message: str
    """The effect of the next message and its reason, in one sentence."""
    history: tuple[SessionTransition, ...]
    """The last changes of the lane's session, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules that decide about every lane."""

    now: datetime
    policies: PolicyBook
    freshness: timedelta | None


async def explain_lane(db: Reader, session_key: str, rules: Rules, *, active_work: bool) -> Explanation:
    """Explain a lane without changing it."""
    entry = await db.read(partial(entries.load, session_key))
    lane = await db.read(partial(lists.lane_state, session_key))
    history = await db.read(partial(lists.list_transitions, session_key, HISTORY))
    policy = policy_for(entry, rules.policies) if entry is not None else None
    due = next_reset(policy.policy, entry, policy.zone) if entry is not None and policy is not None else None
    return Explanation(
        session_key=session_key,
        now=rules.now,
        entry=entry,
        lane=lane,
        policy=policy,
        next_reset_at=due.at if due is not None else None,
        next_reset_local=due.at.astimezone(policy.zone) if due is not None and policy is not None else None,
        active_work=active_work,
        next_message=_describe_next_message(rules, entry, policy, lane, active_work=active_work),
        history=tuple(history),
    )


def _describe_next_message(
    given: Rules,
    entry: SessionEntry | None,
    policy: ResolvedPolicy | None,
    lane: Lane,
    *,
    active_work: bool,
) -> str:
    if entry is None or policy is None:
        if lane.moved_session_id is not None:
            return f"starts a new session, because {lane.moved_session_id} was resumed elsewhere"
        return "starts the first session of this lane"
    rules = AccessRules(now=given.now, policy=policy, freshness=given.freshness, active_work=active_work)
    plan = plan_access(entry, rules)
    assert not isinstance(plan, AskActiveWork)  # noqa: S101 -- the answer was given
    match plan:
        case Replace(reason=reason):
            return f"starts a new session in place of {entry.session_id}, because of: {reason}"
        case Keep(deferred_by=None) if entry.resume_pending:
            return f"goes on with {entry.session_id}, which was cut off ({entry.resume_reason})"
        case Keep(deferred_by=None):
            return f"goes on with {entry.session_id}"
        case Keep(deferred_by=by):
            return f"goes on with {entry.session_id}: a reset is due, and waits because of {by}"
