"""Policies, when they come due, what waits, and which one counts."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import (
    PRESETS,
    AskActiveWork,
    Deferral,
    Deferred,
    DueReset,
    NotDue,
    Require,
    ResetMode,
    ResetNow,
    SessionResetPolicy,
    missed_boundary,
    next_reset,
    plan_reset,
    reset_due,
)
from gateway_sessions.errors import InvalidPolicyError

TICK = timedelta(microseconds=1)
HERMES = json.loads((Path(__file__).parents[3] / "data" / "hermes_vectors.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class At:
    last_interaction_at: datetime
    deferred_boundary: datetime | None = None


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NOON = utc("2026-06-10 12:00")
IDLE = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DAILY = SessionResetPolicy(mode=ResetMode.DAILY)
CRON = SessionResetPolicy(mode=ResetMode.CRON, cron="0 4 * * *")
ANY = SessionResetPolicy(mode=ResetMode.BOTH, idle_minutes=60)
ALL = SessionResetPolicy(mode=ResetMode.BOTH, idle_minutes=60, require=Require.ALL)
NEVER = PRESETS["never"]


class TestSessionResetPolicy:
    def test_the_default_is_silence_of_a_day_or_four_in_the_morning(self):
        assert SessionResetPolicy().to_dict() == {
            "mode": "both",
            "at_hour": 4,
            "idle_minutes": 1440,
            "cron": None,
            "require": "any",
            "grace_minutes": 0,
            "zone": None,
            "notify": True,
            "notify_exclude_platforms": ["api_server", "webhook"],
            "bg_process_max_age_hours": 24,
        }

    def test_words_become_members(self):
        policy = SessionResetPolicy(mode="both", require="all")
        assert policy.mode is ResetMode.BOTH
        assert policy.require is Require.ALL

    def test_excluded_platforms_are_kept_as_sources_write_them(self):
        assert SessionResetPolicy(notify_exclude_platforms=[" Telegram"]).notify_exclude_platforms == (
            "telegram",
        )

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("mode", "weekly"), ("mode", "Daily"), ("mode", None), ("mode", 1), ("mode", []),
            ("require", "some"), ("require", None), ("require", True),
            ("at_hour", 24), ("at_hour", -1), ("at_hour", 4.0), ("at_hour", "4"), ("at_hour", True),
            ("at_hour", None),
            ("idle_minutes", 0), ("idle_minutes", -5), ("idle_minutes", False), ("idle_minutes", 1e3),
            ("idle_minutes", 10**9), ("idle_minutes", float("nan")),
            ("grace_minutes", -1), ("grace_minutes", 10**9), ("grace_minutes", "5"), ("grace_minutes", True),
            ("bg_process_max_age_hours", 10**6), ("bg_process_max_age_hours", -(10**30)),
            ("bg_process_max_age_hours", 1.5), ("bg_process_max_age_hours", True),
            ("notify", 1), ("notify", "yes"), ("notify", None),
            ("notify_exclude_platforms", "telegram"), ("notify_exclude_platforms", None),
            ("notify_exclude_platforms", {"telegram": 1}),
            ("zone", "Mars/Olympus"), ("zone", ""), ("zone", 1), ("zone", "../../etc/passwd"),
            ("cron", 4), ("cron", "often"), ("cron", ""),
        ],
    )  # fmt: skip
    def test_a_value_that_cannot_be_evaluated_is_refused_by_name(self, field, value):
        with pytest.raises(InvalidPolicyError) as caught:
            SessionResetPolicy(**{field: value})
        assert caught.value.field == field
        assert caught.value.value is value
        assert field in str(caught.value)

    def test_a_platform_that_is_not_text_is_refused(self):
        with pytest.raises(InvalidPolicyError, match="text"):
            SessionResetPolicy(notify_exclude_platforms=(1,))

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("at_hour", 0), ("at_hour", 23), ("idle_minutes", 1), ("idle_minutes", 10 * 365 * 24 * 60),
            ("bg_process_max_age_hours", 0), ("bg_process_max_age_hours", -1), ("grace_minutes", 0),
            ("zone", "Pacific/Chatham"), ("notify_exclude_platforms", ()),
        ],
    )  # fmt: skip
    def test_the_edges_are_allowed(self, field, value):
        assert getattr(SessionResetPolicy(**{field: value}), field) == value

    @pytest.mark.parametrize("mode", ResetMode)
    def test_an_expression_is_given_in_mode_cron_and_only_there(self, mode):
        with pytest.raises(InvalidPolicyError, match="only there"):
            SessionResetPolicy(mode=mode, cron=None if mode is ResetMode.CRON else "0 4 * * *")

    @pytest.mark.parametrize("mode", [mode for mode in ResetMode if mode is not ResetMode.BOTH])
    def test_all_needs_two_conditions(self, mode):
        with pytest.raises(InvalidPolicyError, match="combine"):
            SessionResetPolicy(mode=mode, require="all", cron="0 4 * * *" if mode is ResetMode.CRON else None)

    def test_it_cannot_be_changed(self):
        with pytest.raises(FrozenInstanceError):
            DAILY.at_hour = 25
        with pytest.raises(InvalidPolicyError):
            replace(DAILY, at_hour=25)

    @pytest.mark.parametrize(
        "policy", [IDLE, DAILY, CRON, ANY, ALL, NEVER, replace(DAILY, zone="Asia/Tokyo")]
    )
    def test_the_stored_form_is_read_back_through_json(self, policy):
        assert SessionResetPolicy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy

    def test_missing_and_null_mean_the_default_and_unknown_members_nothing(self):
        assert SessionResetPolicy.from_dict({}) == SessionResetPolicy()
        nulls = dict.fromkeys((one.name for one in fields(SessionResetPolicy)), None)
        assert SessionResetPolicy.from_dict(nulls | {"colour": "red"}) == SessionResetPolicy()

    @pytest.mark.parametrize(
        ("word", "flag"),
        [("true", True), ("1", True), (" Yes", True), ("on", True), ("0", False), ("OFF", False)],
    )
    def test_a_word_that_stands_for_a_flag_is_read_as_one(self, word, flag):
        assert SessionResetPolicy.from_dict({"notify": word}).notify is flag

    def test_presets_are_policies_of_one_word(self):
        assert PRESETS["never"].mode is ResetMode.NONE
        assert PRESETS["hermes-classic"] == SessionResetPolicy()
        with pytest.raises(TypeError):
            PRESETS["mine"] = DAILY


class TestNextReset:
    @pytest.mark.parametrize(
        ("policy", "due"),
        [
            pytest.param(NEVER, None, id="none"),
            pytest.param(IDLE, DueReset(utc("2026-06-10 13:00") + TICK, EndReason.IDLE), id="idle"),
            pytest.param(DAILY, DueReset(utc("2026-06-11 04:00"), EndReason.DAILY), id="daily"),
            pytest.param(CRON, DueReset(utc("2026-06-11 04:00"), EndReason.CRON), id="cron"),
            pytest.param(
                ANY, DueReset(utc("2026-06-10 13:00") + TICK, EndReason.IDLE), id="any, silence first"
            ),
            pytest.param(
                SessionResetPolicy(),
                DueReset(utc("2026-06-11 04:00"), EndReason.DAILY),
                id="any, boundary first",
            ),
            pytest.param(ALL, DueReset(utc("2026-06-11 04:00"), EndReason.DAILY), id="all, boundary last"),
            pytest.param(
                SessionResetPolicy(require="all"),
                DueReset(utc("2026-06-11 12:00") + TICK, EndReason.IDLE),
                id="all, silence last",
            ),
        ],
    )
    def test_is_the_instant_at_which_the_policy_asks_for_it(self, policy, due):
        assert next_reset(policy, At(NOON), UTC) == due

    @pytest.mark.parametrize("policy", [DAILY, CRON])
    def test_is_a_missed_boundary_while_one_waits(self, policy):
        missed = utc("2026-06-10 04:00")
        due = next_reset(policy, At(NOON, missed), UTC)
        assert due is not None
        assert due.at == missed

    def test_needs_new_silence_beside_a_missed_boundary_if_all_are_required(self):
        assert next_reset(ALL, At(NOON, utc("2026-06-10 04:00")), UTC) == DueReset(
            utc("2026-06-10 13:00") + TICK, EndReason.IDLE
        )

    @pytest.mark.parametrize("policy", [IDLE, NEVER])
    def test_does_not_look_at_a_missed_boundary_without_a_condition_for_it(self, policy):
        missed = utc("2026-06-10 04:00")
        assert next_reset(policy, At(NOON, missed), UTC) == next_reset(policy, At(NOON), UTC)

    @pytest.mark.parametrize("require", Require)
    def test_two_conditions_of_the_same_instant_count_as_silence(self, require):
        policy = SessionResetPolicy(idle_minutes=60, require=require)
        last = utc("2026-06-10 03:00") - TICK
        assert next_reset(policy, At(last), UTC) == DueReset(utc("2026-06-10 04:00"), EndReason.IDLE)

    @pytest.mark.parametrize("policy", [IDLE, DAILY, CRON, ANY, ALL, NEVER])
    def test_beyond_the_calendar_is_never(self, policy):
        assert next_reset(policy, At(datetime.max.replace(tzinfo=UTC)), UTC) is None

    def test_one_condition_beyond_the_calendar_leaves_the_other(self):
        evening = At(utc("9999-12-31 10:00"))
        assert next_reset(SessionResetPolicy(idle_minutes=60), evening, UTC) == DueReset(
            utc("9999-12-31 11:00") + TICK, EndReason.IDLE
        )
        assert next_reset(SessionResetPolicy(at_hour=23), evening, UTC) == DueReset(
            utc("9999-12-31 23:00"), EndReason.DAILY
        )
        assert next_reset(SessionResetPolicy(at_hour=23, require="all"), evening, UTC) is None
        assert next_reset(SessionResetPolicy(idle_minutes=60, require="all"), evening, UTC) is None


class TestResetDue:
    @pytest.mark.parametrize("policy", [IDLE, DAILY, CRON, ANY, ALL, SessionResetPolicy()])
    def test_begins_at_the_instant_that_next_reset_gives(self, policy):
        due = next_reset(policy, At(NOON), UTC)
        assert due is not None
        assert reset_due(policy, At(NOON), due.at - TICK, UTC) is None
        assert reset_due(policy, At(NOON), due.at, UTC) == due

    def test_at_the_end_of_the_idle_time_it_is_still_alive(self):
        assert reset_due(IDLE, At(NOON), NOON + timedelta(minutes=60), UTC) is None

    def test_an_interaction_at_the_boundary_belongs_to_the_new_day(self):
        boundary = utc("2026-06-10 04:00")
        assert reset_due(DAILY, At(boundary), utc("2026-06-11 03:59"), UTC) is None
        assert reset_due(DAILY, At(boundary - TICK), boundary, UTC) == DueReset(boundary, EndReason.DAILY)

    def test_silence_is_the_reason_when_both_are_due_but_the_instant_is_the_first(self):
        due = reset_due(SessionResetPolicy(), At(NOON), NOON + timedelta(days=2), UTC)
        assert due == DueReset(utc("2026-06-11 04:00"), EndReason.IDLE)

    def test_the_later_condition_is_the_reason_when_all_are_required(self):
        assert reset_due(ALL, At(NOON), NOON + timedelta(days=2), UTC) == DueReset(
            utc("2026-06-11 04:00"), EndReason.DAILY
        )

    @pytest.mark.parametrize("policy", [IDLE, DAILY, CRON, ANY, ALL, NEVER])
    def test_a_clock_that_was_put_back_makes_nothing_due(self, policy):
        for back in (TICK, timedelta(hours=1), timedelta(days=400)):
            assert reset_due(policy, At(NOON), NOON - back, UTC) is None

    def test_a_clock_that_was_put_back_does_not_lose_a_missed_boundary(self):
        missed = At(NOON, utc("2026-06-10 04:00"))
        assert reset_due(DAILY, missed, NOON - timedelta(hours=1), UTC) is not None
        assert reset_due(DAILY, missed, utc("2026-06-10 03:59"), UTC) is None

    def test_agrees_with_what_hermes_answered_in_utc(self):
        disagreements = []
        for vector in HERMES["resets"]:
            policy, clocks = SessionResetPolicy.from_dict(vector["policy"]), At(utc(vector["updated_at"]))
            due = reset_due(policy, clocks, utc(vector["now"]), UTC)
            if (due.reason if due else None) != vector["reason"]:
                disagreements.append((vector, due))
        assert disagreements == []


class TestMissedBoundary:
    @pytest.mark.parametrize("policy", [DAILY, CRON, ANY, ALL])
    def test_is_the_boundary_that_has_passed(self, policy):
        boundary = utc("2026-06-11 04:00")
        assert missed_boundary(policy, At(NOON), boundary - TICK, UTC) is None
        assert missed_boundary(policy, At(NOON), boundary, UTC) == boundary
        assert missed_boundary(policy, At(NOON), boundary + timedelta(days=9), UTC) == boundary

    @pytest.mark.parametrize("policy", [DAILY, CRON, ANY, ALL])
    def test_stays_the_first_one(self, policy):
        first = utc("2026-06-09 04:00")
        assert missed_boundary(policy, At(NOON, first), NOON, UTC) == first

    @pytest.mark.parametrize("policy", [IDLE, NEVER])
    def test_is_nothing_for_a_policy_without_boundaries_even_if_one_was_stored(self, policy):
        assert missed_boundary(policy, At(NOON, NOON), NOON + timedelta(days=9), UTC) is None

    def test_beyond_the_calendar_is_nothing(self):
        end = datetime.max.replace(tzinfo=UTC)
        assert missed_boundary(DAILY, At(end), end, UTC) is None

    def test_keeps_the_reset_of_a_night_in_which_somebody_talks_over_the_boundary(self):
        """Without it, a person who writes every 50 minutes around four would not be reset for a day."""
        clocks = At(utc("2026-06-10 03:30"))
        for now in (utc("2026-06-10 04:20"), utc("2026-06-10 05:10")):
            assert reset_due(ALL, clocks, now, UTC) is None
            clocks = At(now, missed_boundary(ALL, clocks, now, UTC))
        assert reset_due(ALL, clocks, utc("2026-06-10 06:11"), UTC) == DueReset(
            utc("2026-06-10 06:10") + TICK, EndReason.IDLE
        )

    def test_keeps_the_reset_when_a_turn_ends_after_the_boundary(self):
        before, after = utc("2026-06-10 03:59"), utc("2026-06-10 04:05")
        settled = At(after, missed_boundary(DAILY, At(before), after, UTC))
        assert reset_due(DAILY, settled, utc("2026-06-10 09:00"), UTC) == DueReset(
            utc("2026-06-10 04:00"), EndReason.DAILY
        )


class TestPlanReset:
    def plan(self, active_work, *, hours=0.0, **changes):
        """What to do so many hours after four in the morning, last heard of at midnight."""
        now = utc("2026-06-10 04:00") + timedelta(hours=hours)
        return plan_reset(replace(DAILY, **changes), At(utc("2026-06-10 00:00")), now, UTC, active_work)

    DUE = DueReset(utc("2026-06-10 04:00"), EndReason.DAILY)

    @pytest.mark.parametrize("active_work", [None, False, True])
    def test_before_the_instant_nothing_is_due(self, active_work):
        assert self.plan(active_work, hours=-1) == NotDue()

    def test_a_due_reset_happens_when_no_work_runs(self):
        assert self.plan(active_work=False) == ResetNow(self.DUE)

    def test_whether_work_runs_is_asked_only_when_a_reset_is_due(self):
        assert self.plan(active_work=None) == AskActiveWork(self.DUE)

    def test_active_work_puts_it_off_until_the_veto_is_too_old(self):
        deferred = Deferred(Deferral.ACTIVE_WORK, self.DUE)
        assert self.plan(active_work=True) == deferred
        assert self.plan(active_work=True, hours=23.9) == deferred
        assert self.plan(active_work=True, hours=24) == ResetNow(self.DUE)
        assert self.plan(active_work=True, hours=1, bg_process_max_age_hours=1) == ResetNow(self.DUE)

    @pytest.mark.parametrize("unlimited", [0, -1])
    def test_a_veto_without_limit_never_ages(self, unlimited):
        plan = self.plan(active_work=True, hours=9999, bg_process_max_age_hours=unlimited)
        assert plan == Deferred(Deferral.ACTIVE_WORK, self.DUE)

    @pytest.mark.parametrize("active_work", [None, False, True])
    def test_grace_puts_it_off_before_anybody_is_asked(self, active_work):
        assert self.plan(active_work, grace_minutes=241) == Deferred(Deferral.GRACE, self.DUE)

    def test_grace_ends_with_its_last_minute(self):
        assert self.plan(active_work=False, grace_minutes=240) == ResetNow(self.DUE)

    def test_talking_on_does_not_make_the_veto_younger(self):
        clocks, now = At(utc("2026-06-10 00:00")), utc("2026-06-10 04:30")
        for _ in range(24):
            assert plan_reset(DAILY, clocks, now, UTC, active_work=True) == Deferred(
                Deferral.ACTIVE_WORK, self.DUE
            )
            clocks, now = At(now, missed_boundary(DAILY, clocks, now, UTC)), now + timedelta(hours=1)
        assert plan_reset(DAILY, clocks, now, UTC, active_work=True) == ResetNow(self.DUE)

    def test_the_veto_of_a_reset_by_either_condition_ages_from_the_first(self):
        now = NOON + timedelta(hours=25)  # silent since 13:00, boundary at 04:00
        assert plan_reset(replace(ANY, idle_minutes=1), At(NOON), now, UTC, active_work=True) == ResetNow(
            DueReset(NOON + timedelta(minutes=1) + TICK, EndReason.IDLE)
        )

    @pytest.mark.parametrize("active_work", [None, True])
    @pytest.mark.parametrize("policy", [IDLE, DAILY, CRON, ANY, ALL, NEVER])
    def test_a_clock_that_was_put_back_plans_nothing(self, policy, active_work):
        assert plan_reset(policy, At(NOON), NOON - timedelta(days=3), UTC, active_work) == NotDue()


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("policy", [IDLE, DAILY, ANY, ALL, CRON])
def test_the_zone_in_which_a_caller_writes_instants_changes_nothing(policy, name):
    """Arithmetic and comparison within one zone go by its wall clock, which jumps in a night like these."""
    zone = ZoneInfo(name)
    for start in map(utc, ("2026-03-28 22:30", "2026-03-08 04:30", "2026-10-24 23:30", "2026-11-01 05:10")):
        plain, local = At(start), At(start.astimezone(zone))
        assert next_reset(policy, local, zone) == next_reset(policy, plain, zone)
        for hours, work in product(range(12), (None, False, True)):
            now = start + timedelta(hours=hours)
            there = now.astimezone(zone)
            assert reset_due(policy, local, there, zone) == reset_due(policy, plain, now, zone)
            assert plan_reset(policy, local, there, zone, work) == plan_reset(policy, plain, now, zone, work)
