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
    """What can happen to a session."""

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


def allows(state: SessionState, event: Event) -> bool:
    """Whether the table has that move."""
    return (state, event) in TRANSITIONS


BY_POLICY: Final = frozenset({EndReason.IDLE, EndReason.DAILY, EndReason.CRON})


@dataclass(frozen=True, slots=True)
class Keep:
    """The message goes on with the session."""

    deferred_boundary: datetime | None = None
    deferred_by: Deferral | None = None
    fast: bool = False
    """Nothing but the clocks has to be written: the session is not due before its stored instant."""


@dataclass(frozen=True, slots=True)
class Replace:
    """The message starts a new session, for that reason."""

    reason: EndReason
    due: DueReset | None = None


Access: TypeAlias = Keep | Replace | AskActiveWork
"""What a message does to the session of its lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """What an access is judged by, besides the entry itself."""

    now: datetime
    policy: ResolvedPolicy
    freshness: timedelta | None
    """How old a resume mark may be; None: of any age."""
    active_work: bool | None = None
    """Whether work runs that a reset would cut off; None: not asked yet."""


def policy_for(entry: SessionEntry, policies: PolicyBook) -> ResolvedPolicy:
    """The policy that judges this entry."""
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
    """Decide whether a session ends now though nobody writes.

    One that is suspended ends when its policy would have ended it: until then, an undo finds all as it was.
    """
    if entry.state is not SessionState.SUSPENDED:
        return plan_access(entry, rules)
    plan = plan_reset(rules.policy.policy, entry, rules.now, rules.policy.zone, rules.active_work)
    access = _as_access(plan, entry, rules)
    return Replace(EndReason.SUSPENDED) if isinstance(access, Replace) else access


def is_fresh(marked_at: datetime, now: datetime, freshness: timedelta | None) -> bool:
    """Whether a resume mark still counts. The edge is inclusive; no window means always."""
    return freshness is None or now - marked_at <= freshness


def plan_by_policy(entry: SessionEntry, rules: AccessRules) -> Access:
    """Decide by the reset policy alone; the watcher and `get_or_create_session` ask the same question."""
    if nothing_passed(entry, rules.policy, rules.now):
        return Keep(entry.deferred_boundary, fast=True)
    plan = plan_reset(rules.policy.policy, entry, rules.now, rules.policy.zone, rules.active_work)
    return _as_access(plan, entry, rules)


def _as_access(plan: ResetPlan, entry: SessionEntry, rules: AccessRules) -> Access:
    match plan:
        case NotDue():
            return Keep(boundary_to_remember(entry, rules.policy, rules.now))
        case Deferred(by=by):
            return Keep(boundary_to_remember(entry, rules.policy, rules.now), by)
        case AskActiveWork():
            return plan
        case ResetNow(due=due):
            return Replace(due.reason, due)
    assert_never(plan)


def nothing_passed(entry: SessionEntry, policy: ResolvedPolicy, now: datetime) -> bool:
    """Whether the stored instant alone tells that the policy has nothing to say yet.

    It is a lower bound: activity only ever moves the true instant later. Where silence and boundary must both
    have come, the boundary may pass long before that instant, and has to be noticed. So has a clock that was
    set back, and a boundary that an earlier policy left behind.
    """
    if entry.state is not SessionState.ACTIVE or entry.policy_fingerprint != policy.fingerprint:
        return False
    if now < entry.last_interaction_at or entry.deferred_boundary is not None:
        return False
    if policy.policy.require is Require.ALL:
        return False
    return entry.due_at is None or now < entry.due_at


def boundary_to_remember(entry: SessionEntry, policy: ResolvedPolicy, now: datetime) -> datetime | None:
    """What an interaction at *now* must leave in `deferred_boundary`, so that no reset gets lost by it."""
    if nothing_passed(entry, policy, now):
        return entry.deferred_boundary
    return missed_boundary(policy.policy, entry, now, policy.zone)


def notice_due(entry: SessionEntry, policy: SessionResetPolicy) -> bool:
    """Whether the automatic reset that opened this session has to be told.

    One that no policy asked for always is; one by policy unless it is switched off, or nothing was lost.
    """
    reason = entry.auto_reset_reason
    if reason is None or reason not in BY_POLICY:
        return reason is not None
    excluded = entry.platform in policy.notify_exclude_platforms
    return policy.notify and entry.reset_had_activity and not excluded


def due_instant(entry: SessionEntry, policy: ResolvedPolicy, freshness: timedelta | None) -> datetime | None:
    """The earliest instant at which `plan_access` may end the session by itself; the watcher looks then."""
    match entry.state:
        case SessionState.EXPIRED:
            return None
        case SessionState.RESUME_PENDING:
            due = next_reset(policy.policy, entry, policy.zone)
            if due is None or freshness is None:
                return None
            return max(due.at, marked_at(entry) + freshness + RESOLUTION)
        case SessionState.ACTIVE | SessionState.SUSPENDED:
            due = next_reset(policy.policy, entry, policy.zone)
            return due.at if due is not None else None
    assert_never(entry.state)


def marked_at(entry: SessionEntry) -> datetime:
    """When the session was marked, because its turn was last known to live then."""
    return entry.state_since or entry.updated_at


def is_resumed(entry: SessionEntry, now: datetime, freshness: timedelta | None) -> bool:
    """Whether a turn that was cut off in that session begins again by itself; else people ask for it.

    Only a mark that has aged out stops it. The session goes on in any case.
    """
    return entry.state is not SessionState.RESUME_PENDING or is_fresh(marked_at(entry), now, freshness)


def _plan_resume(entry: SessionEntry, rules: AccessRules) -> Access:
    """A fresh mark keeps the session, whatever its policy says. One that has aged out says nothing more."""
    if is_fresh(marked_at(entry), rules.now, rules.freshness):
        return Keep(boundary_to_remember(entry, rules.policy, rules.now))
    return plan_by_policy(entry, rules)
