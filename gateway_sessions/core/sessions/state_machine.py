"""The state machine of a session as a table, and the plan of what a message or the watcher does to it.

Everything that decides about a state stands in this file. `TRANSITIONS` is the specification: an event that a
state does not list is refused with `InvalidTransitionError` and changes nothing. On access the order of
precedence is suspended, expired, fresh resume mark, reset policy, keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from gateway_sessions.core.instants import RESOLUTION
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.policy_rules import PolicyBook, ResolvedPolicy
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import (
    AskActiveWork,
    Deferral,
    Deferred,
    DueReset,
    NotDue,
    Require,
    ResetNow,
    ResetPlan,
    SessionResetPolicy,
    missed_boundary,
    next_reset,
    plan_reset,
)
from gateway_sessions.errors import InvalidTransitionError


class Event(StrEnum):
    """The events that can happen to a session."""

    KEPT = "kept"  # a message goes on with it
    INTERRUPTED = "interrupted"  # a turn was cut off by a restart, a deadline or a crash
    RECOVERED = "recovered"  # the resumed turn succeeded
    SUSPENDED = "suspended"  # a person, an operator or a crash loop wants it stopped for good
    FINALISED = "finalised"  # the watcher found it due and ended it
    RESET = "reset"  # a new session takes its place on the lane
    SWITCHED = "switched"  # another existing session takes its place on the lane
    UNDONE = "undone"  # the session before it comes back


_ACTIVE, _PENDING = SessionState.ACTIVE, SessionState.RESUME_PENDING
_EXPIRED, _SUSPENDED = SessionState.EXPIRED, SessionState.SUSPENDED

TRANSITIONS: Final = MappingProxyType(
    {
        (_ACTIVE, Event.KEPT): _ACTIVE,
        (_ACTIVE, Event.INTERRUPTED): _PENDING,
        (_ACTIVE, Event.SUSPENDED): _SUSPENDED,
        (_ACTIVE, Event.FINALISED): _EXPIRED,
        (_PENDING, Event.KEPT): _PENDING,
        (_PENDING, Event.INTERRUPTED): _PENDING,
        (_PENDING, Event.RECOVERED): _ACTIVE,
        (_PENDING, Event.SUSPENDED): _SUSPENDED,
        (_PENDING, Event.FINALISED): _EXPIRED,
        (_EXPIRED, Event.SUSPENDED): _SUSPENDED,
        (_SUSPENDED, Event.SUSPENDED): _SUSPENDED,
        (_SUSPENDED, Event.FINALISED): _SUSPENDED,
    }
    # Whatever the state, the lane's place can be taken by another session, which starts out active.
    | {
        (state, event): _ACTIVE
        for state in SessionState
        for event in (Event.RESET, Event.SWITCHED, Event.UNDONE)
    }
)


def advance(state: SessionState, event: Event) -> SessionState:
    """Return the state that *event* leads to, or raise `InvalidTransitionError`."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InvalidTransitionError(state, event) from None


def is_allowed(state: SessionState, event: Event) -> bool:
    """Return whether the table lists the event for the state."""
    return (state, event) in TRANSITIONS


BY_POLICY: Final = frozenset({EndReason.IDLE, EndReason.DAILY, EndReason.CRON})
"""The reasons of resets that a policy makes."""


@dataclass(frozen=True, slots=True)
class Keep:
    """The plan that the message goes on with the session."""

    deferred_boundary: datetime | None = None
    deferred_by: Deferral | None = None
    fast: bool = False
    """Whether only the clocks must be written, because the session is not due before its stored instant."""


@dataclass(frozen=True, slots=True)
class Replace:
    """The plan that the message starts a new session, with the reason."""

    reason: EndReason
    due: DueReset | None = None


Access: TypeAlias = Keep | Replace | AskActiveWork
"""The plan of what a message does to the session of its lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The facts that judge an access, besides the entry itself."""

    now: datetime
    policy: ResolvedPolicy
    freshness: timedelta | None
    """The age at which a resume mark stops counting; None: never."""
    active_work: bool | None = None
    """Whether work runs that a reset would cut off; None: unknown so far."""


def policy_for(entry: SessionEntry, policies: PolicyBook) -> ResolvedPolicy:
    """Return the policy that judges this entry."""
    return policies.resolve(
        entry.platform, entry.chat_type, override=entry.reset_policy, chat_zone=entry.zone
    )


def plan_access(entry: SessionEntry, rules: AccessRules) -> Access:
    """Decide what a message does to the session that its lane has now."""
    match entry.state:
        case SessionState.SUSPENDED:
            return Replace(EndReason.SUSPENDED)
        case SessionState.EXPIRED:
            return Replace(EndReason(entry.state_reason or EndReason.IDLE))
        case SessionState.RESUME_PENDING:
            return _plan_resume(entry, rules)
        case SessionState.ACTIVE:
            return plan_by_policy(entry, rules)
    assert_never(entry.state)


def plan_end(entry: SessionEntry, rules: AccessRules) -> Access:
    """Decide whether a session ends now without a message.

    A suspended session ends when its policy would have ended it: until then, an undo finds the session
    unchanged.
    """
    if entry.state is not SessionState.SUSPENDED:
        return plan_access(entry, rules)
    plan = plan_reset(rules.policy.policy, entry, rules.now, rules.policy.zone, rules.active_work)
    access = _access_plan(plan, entry, rules)
    return Replace(EndReason.SUSPENDED) if isinstance(access, Replace) else access


def is_fresh(marked_at: datetime, now: datetime, freshness: timedelta | None) -> bool:
    """Return whether a resume mark still counts. The edge is inclusive; None means always."""
    return freshness is None or now - marked_at <= freshness


def plan_by_policy(entry: SessionEntry, rules: AccessRules) -> Access:
    """Decide by the reset policy alone; the watcher and `get_or_create_session` ask the same question."""
    if is_not_due_yet(entry, rules.policy, rules.now):
        return Keep(entry.deferred_boundary, fast=True)
    plan = plan_reset(rules.policy.policy, entry, rules.now, rules.policy.zone, rules.active_work)
    return _access_plan(plan, entry, rules)


def _access_plan(plan: ResetPlan, entry: SessionEntry, rules: AccessRules) -> Access:
    match plan:
        case NotDue():
            return Keep(missed_boundary_of(entry, rules.policy, rules.now))
        case Deferred(by=by):
            return Keep(missed_boundary_of(entry, rules.policy, rules.now), by)
        case AskActiveWork():
            return plan
        case ResetNow(due=due):
            return Replace(due.reason, due)
    assert_never(plan)


def is_not_due_yet(entry: SessionEntry, policy: ResolvedPolicy, now: datetime) -> bool:
    """Return whether the stored instant alone tells that the policy resets nothing yet.

    The stored instant is a lower bound: activity only ever moves the true instant later. Where silence and
    boundary must both have come, the boundary may pass long before that instant, and has to be noticed. A
    clock that was set back has to be noticed as well, and so has a boundary that an earlier policy left
    behind.
    """
    if entry.state is not SessionState.ACTIVE or entry.policy_fingerprint != policy.fingerprint:
        return False
    if now < entry.last_interaction_at or entry.deferred_boundary is not None:
        return False
    if policy.policy.require is Require.ALL:
        return False
    return entry.due_at is None or now < entry.due_at


def missed_boundary_of(entry: SessionEntry, policy: ResolvedPolicy, now: datetime) -> datetime | None:
    """Return the value that an interaction at *now* leaves in `deferred_boundary`: no reset is lost."""
    if is_not_due_yet(entry, policy, now):
        return entry.deferred_boundary
    return missed_boundary(policy.policy, entry, now, policy.zone)


def is_notice_due(entry: SessionEntry, policy: SessionResetPolicy) -> bool:
    """Return whether a notice must tell people of the automatic reset that opened this session.

    A reset without a policy's reason is always told; a reset by policy is told unless the policy switches
    notices off or the session before had no activity.
    """
    reason = entry.auto_reset_reason
    if reason is None or reason not in BY_POLICY:
        return reason is not None
    excluded = entry.platform in policy.notify_exclude_platforms
    return policy.notify and entry.reset_had_activity and not excluded


def due_instant(entry: SessionEntry, policy: ResolvedPolicy, freshness: timedelta | None) -> datetime | None:
    """Return the earliest instant at which `plan_access` may end the session; the watcher looks then."""
    match entry.state:
        case SessionState.EXPIRED:
            return None
        case SessionState.RESUME_PENDING:
            due = next_reset(policy.policy, entry, policy.zone)
            if due is None or freshness is None:
                return None
            return max(due.at, interrupted_since(entry) + freshness + RESOLUTION)
        case SessionState.ACTIVE | SessionState.SUSPENDED:
            due = next_reset(policy.policy, entry, policy.zone)
            return due.at if due is not None else None
    assert_never(entry.state)


def interrupted_since(entry: SessionEntry) -> datetime:
    """Return the instant of the session's mark, when its turn was last known to live."""
    return entry.state_since or entry.updated_at


def resumes_by_itself(entry: SessionEntry, now: datetime, freshness: timedelta | None) -> bool:
    """Return whether a cut-off turn of that session begins again by itself; else people must ask for it.

    Only a mark that has aged out prevents it. The session goes on in any case.
    """
    return entry.state is not SessionState.RESUME_PENDING or is_fresh(
        interrupted_since(entry), now, freshness
    )


def _plan_resume(entry: SessionEntry, rules: AccessRules) -> Access:
    """Return the plan of a session with a resume mark: a fresh mark keeps it, an old one says nothing."""
    if is_fresh(interrupted_since(entry), rules.now, rules.freshness):
        return Keep(missed_boundary_of(entry, rules.policy, rules.now))
    return plan_by_policy(entry, rules)
