"""The state machine as a table, and what a message does to a session in every combination that can matter."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.policy_rules import PolicyBook, ResolvedPolicy
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import (
    AskActiveWork,
    Deferral,
    Require,
    ResetMode,
    SessionResetPolicy,
)
from gateway_sessions.core.sessions.state_machine import (
    TRANSITIONS,
    AccessRules,
    Event,
    Keep,
    Replace,
    advance,
    due_instant,
    interrupted_since,
    is_allowed,
    is_fresh,
    is_not_due_yet,
    missed_boundary_of,
    plan_access,
    plan_end,
    resumes_by_itself,
)
from gateway_sessions.errors import InvalidTransitionError

ACTIVE, PENDING, EXPIRED, SUSPENDED = SessionState
TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
FOUR = datetime(2026, 6, 10, 4, tzinfo=UTC)
FRESHNESS = HOUR

NEVER = SessionResetPolicy(mode=ResetMode.NONE)
DAILY = SessionResetPolicy(mode=ResetMode.DAILY)


def resolved(policy: SessionResetPolicy) -> ResolvedPolicy:
    return PolicyBook(default=policy).resolve("telegram", "dm")


def entry(last: datetime, state: SessionState = ACTIVE, **members) -> SessionEntry:
    return SessionEntry(
        session_key="agent:main:telegram:dm:1",
        session_id="20260610_000000_00000000",
        created_at=last,
        updated_at=last,
        last_interaction_at=last,
        state=state,
        **members,
    )


def scheduled(one: SessionEntry, policy: SessionResetPolicy, freshness=FRESHNESS) -> SessionEntry:
    """The entry as the store keeps it: with its instant, and the policy that this was computed from."""
    due_at = due_instant(one, resolved(policy), freshness)
    return replace(one, due_at=due_at, policy_fingerprint=resolved(policy).fingerprint)


def rules(policy: SessionResetPolicy, now: datetime = NOON, active=None, freshness=FRESHNESS) -> AccessRules:
    return AccessRules(now=now, policy=resolved(policy), freshness=freshness, active_work=active)


class TestTable:
    @pytest.mark.parametrize(("state", "event"), list(product(SessionState, Event)))
    def test_inside_the_table_a_state_moves_and_outside_it_raises(self, state, event):
        if (state, event) in TRANSITIONS:
            assert is_allowed(state, event)
            assert advance(state, event) is TRANSITIONS[state, event]
        else:
            assert not is_allowed(state, event)
            with pytest.raises(InvalidTransitionError) as caught:
                advance(state, event)
            assert (caught.value.state, caught.value.event) == (state, event)
            assert state in str(caught.value)
            assert event in str(caught.value)

    def test_the_table_cannot_be_changed(self):
        with pytest.raises(TypeError):
            TRANSITIONS[ACTIVE, Event.RECOVERED] = ACTIVE

    def test_every_state_can_be_reached_from_a_new_session(self):
        reached, frontier = set(), {ACTIVE}
        while frontier:
            reached |= frontier
            frontier = {after for (before, _), after in TRANSITIONS.items() if before in reached} - reached
        assert reached == set(SessionState)

    def test_every_event_happens_somewhere(self):
        assert {event for _, event in TRANSITIONS} == set(Event)

    @pytest.mark.parametrize("state", SessionState)
    def test_whatever_the_state_another_session_may_take_the_place(self, state):
        for event in (Event.RESET, Event.SWITCHED, Event.UNDONE):
            assert advance(state, event) is ACTIVE

    def test_nothing_but_another_session_ends_a_suspension(self):
        events = {event for event in Event if is_allowed(SUSPENDED, event)}
        kept = {event for event in events if advance(SUSPENDED, event) is SUSPENDED}
        assert events - kept == {Event.RESET, Event.SWITCHED, Event.UNDONE}

    def test_a_suspended_session_takes_no_resume_mark(self):
        assert not is_allowed(SUSPENDED, Event.INTERRUPTED)

    def test_a_session_that_has_ended_is_not_gone_on_with(self):
        assert not is_allowed(EXPIRED, Event.KEPT)
        assert not is_allowed(SUSPENDED, Event.KEPT)

    def test_only_a_cut_off_session_recovers(self):
        assert [state for state in SessionState if is_allowed(state, Event.RECOVERED)] == [PENDING]


@dataclass(frozen=True)
class Case:
    """One combination of all that `plan_access` looks at."""

    state: SessionState
    aged: bool
    """Whether the resume mark is older than the window."""
    due: bool
    """Whether the policy asks for a reset."""
    active: bool | None
    grace: bool
    require: Require

    @property
    def last(self) -> datetime:
        return NOON - (20 * HOUR if self.due else 10 * MINUTE)

    @property
    def policy(self) -> SessionResetPolicy:
        return SessionResetPolicy(
            idle_minutes=60, require=self.require, grace_minutes=24 * 60 if self.grace else 0
        )

    @property
    def entry(self) -> SessionEntry:
        if self.state is PENDING:
            since = NOON - FRESHNESS - (TICK if self.aged else timedelta(0))
            return entry(self.last, PENDING, state_reason="restart_timeout", state_since=since)
        if self.state is EXPIRED:
            return entry(self.last, EXPIRED, state_reason=str(EndReason.DAILY), state_since=self.last)
        return entry(self.last, self.state)

    def expected(self) -> object:
        """The precedence in words: suspended, expired, fresh mark, policy, keep."""
        if self.state is SUSPENDED:
            return EndReason.SUSPENDED
        if self.state is EXPIRED:
            return EndReason.DAILY
        if self.state is PENDING and not self.aged:
            return Keep
        if self.due:  # what came last
            return self.unless_put_off(EndReason.IDLE if self.require is Require.ANY else EndReason.DAILY)
        return Keep

    def unless_put_off(self, reason: EndReason) -> object:
        if self.grace:
            return Deferral.GRACE
        if self.active is None:
            return AskActiveWork
        if self.active:
            return Deferral.ACTIVE_WORK
        return reason


CASES = [
    Case(*combination)
    for combination in product(
        SessionState, (False, True), (False, True), (None, False, True), (False, True), Require
    )
]


def outcome(plan: object) -> object:
    if isinstance(plan, Replace):
        return plan.reason
    if isinstance(plan, Keep):
        return plan.deferred_by or Keep
    return type(plan)


class TestPrecedence:
    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_suspended_then_expired_then_a_fresh_mark_then_the_policy_then_keep(self, case):
        assert outcome(plan_access(case.entry, rules(case.policy, active=case.active))) == case.expected()

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_the_stored_instant_changes_no_decision(self, case):
        stored = scheduled(case.entry, case.policy)
        plan = plan_access(stored, rules(case.policy, active=case.active))
        assert outcome(plan) == case.expected()

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_under_a_policy_of_no_resets_only_a_stop_or_an_end_replaces(self, case):
        plan = plan_access(case.entry, rules(NEVER, active=case.active))
        assert isinstance(plan, Replace) == (case.state in {SUSPENDED, EXPIRED})

    @pytest.mark.parametrize("case", [case for case in CASES if case.state is PENDING], ids=str)
    def test_without_a_window_a_mark_is_fresh_for_ever(self, case):
        plan = plan_access(case.entry, rules(case.policy, active=case.active, freshness=None))
        assert outcome(plan) is Keep

    def test_an_end_without_a_reason_counts_as_silence(self):
        assert plan_access(entry(NOON, EXPIRED), rules(DAILY)) == Replace(EndReason.IDLE)

    def test_a_mark_without_a_time_is_as_old_as_the_last_write(self):
        marked = entry(NOON - FRESHNESS - TICK, PENDING)
        assert outcome(plan_access(marked, rules(NEVER))) is Keep
        fresh = entry(NOON - FRESHNESS, PENDING)
        idle = SessionResetPolicy(idle_minutes=10, mode="idle")
        assert outcome(plan_access(marked, rules(idle, active=False))) is EndReason.IDLE
        assert outcome(plan_access(fresh, rules(idle, active=False))) is Keep

    def test_the_veto_of_active_work_has_a_greatest_age(self):
        policy = SessionResetPolicy(mode="idle", idle_minutes=60, bg_process_max_age_hours=24)
        due = NOON + HOUR + TICK
        for now, expected in (
            (due + 24 * HOUR - TICK, Deferral.ACTIVE_WORK),
            (due + 24 * HOUR, EndReason.IDLE),
        ):
            assert outcome(plan_access(entry(NOON), rules(policy, now, active=True))) == expected


class TestEnd:
    @pytest.mark.parametrize("case", [case for case in CASES if case.state is not SUSPENDED], ids=str)
    def test_nobody_but_a_suspended_session_is_judged_otherwise_than_by_a_message(self, case):
        given_rules = rules(case.policy, active=case.active)
        assert plan_end(case.entry, given_rules) == plan_access(case.entry, given_rules)

    @pytest.mark.parametrize("case", [case for case in CASES if case.state is SUSPENDED], ids=str)
    def test_a_suspended_session_ends_when_its_policy_would_have_ended_it(self, case):
        given_rules = rules(case.policy, active=case.active)
        would = plan_access(replace(case.entry, state=ACTIVE), given_rules)
        ends = plan_end(case.entry, given_rules)
        assert outcome(ends) == (EndReason.SUSPENDED if isinstance(would, Replace) else outcome(would))


class TestFreshness:
    @pytest.mark.parametrize(
        ("age", "fresh"), [(-HOUR, True), (timedelta(0), True), (HOUR, True), (HOUR + TICK, False)]
    )
    def test_the_edge_of_the_window_is_inside(self, age, fresh):
        assert is_fresh(NOON - age, NOON, HOUR) is fresh

    def test_without_a_window_any_age_is_fresh(self):
        assert is_fresh(NOON - timedelta(days=9999), NOON, None)


class TestIsResumed:
    @pytest.mark.parametrize("state", SessionState)
    @pytest.mark.parametrize("age", [timedelta(0), HOUR, HOUR + TICK, timedelta(days=99)])
    def test_only_a_mark_that_has_aged_out_stops_a_turn(self, state, age):
        marked = entry(NOON - age, state, state_since=NOON - age)
        assert resumes_by_itself(marked, NOON, HOUR) == (state is not PENDING or age <= HOUR)
        assert resumes_by_itself(marked, NOON, None)

    def test_a_mark_without_a_time_is_as_old_as_the_last_write(self):
        assert not resumes_by_itself(entry(NOON - HOUR - TICK, PENDING), NOON, HOUR)
        assert interrupted_since(entry(NOON - HOUR, PENDING)) == NOON - HOUR


class TestNothingPassed:
    def test_an_entry_is_not_looked_at_again_before_its_instant(self):
        stored = scheduled(entry(NOON), DAILY)
        due = FOUR + timedelta(days=1)
        assert stored.due_at == due
        assert is_not_due_yet(stored, resolved(DAILY), due - TICK)
        assert not is_not_due_yet(stored, resolved(DAILY), due)

    def test_an_entry_without_an_instant_is_never_due(self):
        assert is_not_due_yet(scheduled(entry(NOON), NEVER), resolved(NEVER), NOON + timedelta(days=9999))

    def test_an_instant_of_another_policy_counts_for_nothing(self):
        assert not is_not_due_yet(scheduled(entry(NOON), DAILY), resolved(NEVER), NOON)

    @pytest.mark.parametrize("state", [PENDING, EXPIRED, SUSPENDED])
    def test_only_an_active_session_can_be_passed_over(self, state):
        assert not is_not_due_yet(scheduled(entry(NOON, state), NEVER), resolved(NEVER), NOON)

    def test_where_both_must_come_the_boundary_has_to_be_noticed_before_the_instant(self):
        both = SessionResetPolicy(require=Require.ALL, idle_minutes=24 * 60)
        assert not is_not_due_yet(scheduled(entry(NOON), both), resolved(both), NOON + TICK)


modes = st.sampled_from(
    [
        NEVER,
        DAILY,
        SessionResetPolicy(mode="idle", idle_minutes=60),
        SessionResetPolicy(idle_minutes=90),
        SessionResetPolicy(idle_minutes=600, require="all"),
        SessionResetPolicy(mode="cron", cron="*/30 9-17 * * *"),
        SessionResetPolicy(idle_minutes=60, zone="America/Havana"),
        SessionResetPolicy(idle_minutes=60, grace_minutes=120),
    ]
)
instants = st.integers(0, 4000).map(lambda count: NOON - 30 * HOUR + count * 7 * MINUTE)
entries = st.builds(
    lambda last, state, back, missed: entry(
        last,
        state,
        state_reason=str(EndReason.IDLE) if state is EXPIRED else None,
        state_since=last - back if state is PENDING else None,
        deferred_boundary=last - missed if missed is not None else None,
    ),
    instants,
    st.sampled_from([ACTIVE, PENDING]),
    st.timedeltas(timedelta(0), timedelta(hours=2)),
    st.none() | st.timedeltas(timedelta(0), timedelta(hours=30)),
)
windows = st.sampled_from([None, HOUR, 5 * MINUTE])


class TestDueInstant:
    @given(one=entries, policy=modes, freshness=windows, later=st.timedeltas(timedelta(0), timedelta(days=4)))
    def test_no_session_ends_by_itself_before_its_instant(self, one, policy, freshness, later):
        stored = scheduled(one, policy, freshness)
        now = one.last_interaction_at + later
        plan = plan_access(stored, rules(policy, now, active=False, freshness=freshness))
        if isinstance(plan, Replace):
            assert stored.due_at is not None
            assert stored.due_at <= now

    @given(one=entries, policy=modes, later=st.timedeltas(timedelta(0), timedelta(days=3)))
    def test_an_interaction_never_brings_the_instant_before_the_stored_one(self, one, policy, later):
        """Touches do not rewrite it, so it has to stay a lower bound."""
        stored = scheduled(one, policy)
        now = one.last_interaction_at + later
        moved = stored.evolve(
            now,
            last_interaction_at=now,
            deferred_boundary=missed_boundary_of(stored, resolved(policy), now),
        )
        due = due_instant(moved, resolved(policy), FRESHNESS)
        assert due is None or (stored.due_at is not None and stored.due_at <= due)

    @given(one=entries, policy=modes, freshness=windows)
    def test_at_its_instant_an_active_session_without_grace_ends(self, one, policy, freshness):
        stored = scheduled(one, policy, freshness)
        if stored.due_at is None or one.state is not ACTIVE or policy.grace_minutes:
            return
        now = max(stored.due_at, one.last_interaction_at)
        assert isinstance(plan_access(stored, rules(policy, now, active=False)), Replace)

    def test_an_ended_session_is_looked_at_no_more(self):
        assert due_instant(entry(NOON, EXPIRED), resolved(DAILY), FRESHNESS) is None

    def test_a_mark_only_puts_the_policys_instant_off(self):
        marked = entry(NOON, PENDING, state_since=NOON - MINUTE)
        quick = SessionResetPolicy(mode="idle", idle_minutes=10)
        assert due_instant(marked, resolved(quick), FRESHNESS) == NOON - MINUTE + FRESHNESS + TICK
        assert due_instant(marked, resolved(DAILY), FRESHNESS) == FOUR + timedelta(days=1)

    @pytest.mark.parametrize(("policy", "freshness"), [(NEVER, FRESHNESS), (DAILY, None)])
    def test_a_mark_that_cannot_age_is_never_looked_at(self, policy, freshness):
        marked = entry(NOON, PENDING, state_since=NOON)
        assert due_instant(marked, resolved(policy), freshness) is None

    def test_a_suspended_session_is_finalised_when_its_policy_says_so(self):
        assert due_instant(entry(NOON, SUSPENDED), resolved(DAILY), FRESHNESS) == FOUR + timedelta(days=1)


class Lane:
    """One lane in memory, moved as the store moves it: what counts is how often its sessions end."""

    def __init__(self, policy: SessionResetPolicy, last: datetime) -> None:
        self.policy = policy
        self.active: bool = False
        self.resets: list[EndReason] = []
        self.entry = scheduled(entry(last), policy)

    def message(self, now: datetime) -> None:
        plan = plan_access(self.entry, rules(self.policy, now, active=self.active))
        if isinstance(plan, Replace):
            self.resets.append(plan.reason)
            self.entry = scheduled(entry(now), self.policy)
        else:
            assert isinstance(plan, Keep)
            touched = self.entry.evolve(
                now, last_interaction_at=now, deferred_boundary=plan.deferred_boundary
            )
            self.entry = touched if plan.fast else scheduled(touched, self.policy)

    def turn_ends(self, now: datetime) -> None:
        boundary = missed_boundary_of(self.entry, resolved(self.policy), now)
        self.entry = self.entry.evolve(now, last_interaction_at=now, deferred_boundary=boundary)

    def mark(self, now: datetime) -> None:
        self.entry = scheduled(self.entry.evolve(now, state=PENDING, state_since=now), self.policy)

    def recover(self, now: datetime) -> None:
        self.entry = scheduled(self.entry.evolve(now, state=ACTIVE, state_since=None), self.policy)


GRACIOUS = SessionResetPolicy(mode="daily", grace_minutes=30)


class TestBoundaries:
    """A boundary that passes while something defers it leads to one reset later, and to no second one."""

    def test_one_that_passes_in_grace_is_made_up_for(self):
        lane = Lane(GRACIOUS, FOUR - 5 * MINUTE)
        for minutes in (1, 10, 25, 50):
            lane.message(FOUR + minutes * MINUTE)
        assert lane.resets == []
        lane.message(FOUR + 90 * MINUTE)
        assert lane.resets == [EndReason.DAILY]

    def test_one_that_passes_during_active_work_is_made_up_for(self):
        lane = Lane(DAILY, FOUR - HOUR)
        lane.active = True
        lane.message(FOUR + HOUR)
        lane.message(FOUR + 2 * HOUR)
        assert lane.resets == []
        lane.active = False
        lane.message(FOUR + 3 * HOUR)
        assert lane.resets == [EndReason.DAILY]

    def test_one_that_passes_during_a_turn_is_made_up_for(self):
        lane = Lane(DAILY, FOUR - HOUR)
        lane.message(FOUR - MINUTE)
        lane.turn_ends(FOUR + MINUTE)
        assert lane.resets == []
        lane.message(FOUR + 2 * MINUTE)
        assert lane.resets == [EndReason.DAILY]

    def test_one_that_passes_under_a_fresh_mark_is_made_up_for(self):
        lane = Lane(DAILY, FOUR - HOUR)
        lane.mark(FOUR - 10 * MINUTE)
        lane.message(FOUR + MINUTE)
        lane.turn_ends(FOUR + 2 * MINUTE)
        assert lane.resets == []
        lane.recover(FOUR + 2 * MINUTE)
        lane.message(FOUR + 3 * MINUTE)
        assert lane.resets == [EndReason.DAILY]

    def test_one_that_passes_while_a_resumed_turn_runs_is_made_up_for(self):
        lane = Lane(DAILY, FOUR - HOUR)
        lane.mark(FOUR - 10 * MINUTE)
        lane.message(FOUR - 5 * MINUTE)
        lane.turn_ends(FOUR + MINUTE)
        lane.recover(FOUR + MINUTE)
        lane.message(FOUR + 2 * MINUTE)
        assert lane.resets == [EndReason.DAILY]

    def test_one_that_passes_while_silence_is_required_too_is_made_up_for(self):
        lane = Lane(SessionResetPolicy(require="all", idle_minutes=60), FOUR - MINUTE)
        lane.message(FOUR + MINUTE)
        lane.message(FOUR + 30 * MINUTE)
        assert lane.resets == []
        lane.message(FOUR + 91 * MINUTE)
        assert lane.resets == [EndReason.IDLE]

    def test_after_it_was_made_up_for_the_next_reset_is_tomorrows(self):
        lane = Lane(GRACIOUS, FOUR - 5 * MINUTE)
        lane.message(FOUR + MINUTE)
        lane.message(FOUR + HOUR)
        for hours in range(1, 23):
            lane.message(FOUR + HOUR + hours * HOUR)
        assert lane.resets == [EndReason.DAILY]
        lane.message(FOUR + timedelta(days=1))
        assert lane.resets == [EndReason.DAILY, EndReason.DAILY]

    def test_two_that_pass_while_deferred_lead_to_one_reset(self):
        lane = Lane(SessionResetPolicy(mode="daily", bg_process_max_age_hours=0), FOUR - HOUR)
        lane.active = True
        for hours in range(1, 60):
            lane.message(FOUR + hours * HOUR)
        lane.active = False
        lane.message(FOUR + 60 * HOUR)
        lane.message(FOUR + 60 * HOUR + MINUTE)
        assert lane.resets == [EndReason.DAILY]

    def test_what_an_earlier_policy_left_behind_is_dropped(self):
        stored = scheduled(entry(NOON, deferred_boundary=FOUR), NEVER)
        assert plan_access(stored, rules(NEVER, NOON + MINUTE)) == Keep(None)

    @given(
        steps=st.lists(
            st.tuples(
                st.sampled_from(["message", "turn_ends", "mark", "recover", "work", "rest"]),
                st.integers(1, 300),
            ),
            max_size=40,
        )
    )
    def test_no_boundary_that_a_conversation_lived_through_is_lost(self, steps):
        """Whatever deferred it: once everything rests, a session that saw a boundary ends."""
        lane = Lane(SessionResetPolicy(mode="daily", bg_process_max_age_hours=0), FOUR + HOUR)
        now = FOUR + HOUR
        born = now
        for step, minutes in steps:
            now += minutes * MINUTE
            before = len(lane.resets)
            if step in {"work", "rest"}:
                lane.active = step == "work"
            else:
                getattr(lane, step)(now)
            if len(lane.resets) > before:
                born = now
        lane.active = False
        lane.recover(now)
        before = len(lane.resets)
        lane.message(now + MINUTE)
        next_boundary = FOUR + timedelta(days=(born - FOUR) // timedelta(days=1) + 1)
        assert (len(lane.resets) > before) == (next_boundary <= now + MINUTE)
