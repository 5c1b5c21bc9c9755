"""Reset policies: one rule for all modes, and Hermes' formulas as the oracle where they are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.reset_policy import (
    PRESETS,
    Deferral,
    Deferred,
    Require,
    ResetMode,
    ResetNow,
    SessionResetPolicy,
    missed_boundary,
    next_reset,
    plan_reset,
    reset_due,
)
from gateway_sessions.core.sessions.reset_times import first_instant, next_cron_boundary, next_daily_boundary
from gateway_sessions.errors import InvalidPolicyError

TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana",
    "America/Nuuk", "Africa/Casablanca", "Antarctica/Troll", "Pacific/Apia", "Pacific/Kiritimati",
]  # fmt: skip
CRONS = [
    "0 4 * * *",
    "30 2 * * *",
    "*/20 1-3 * * *",
    "0 0 * * *",
    "15 3 * * mon",
    "59 23 L * *",
    "0 0 29 2 *",
]


@dataclass(frozen=True)
class At:
    last_interaction_at: datetime
    deferred_boundary: datetime | None = None


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


zones = st.sampled_from(ZONES).map(ZoneInfo)
# Whole minutes, hours and days are as likely as any instant: the edges are there.
lags = st.one_of(
    st.integers(-5, 3000).map(lambda count: count * MINUTE),
    st.integers(-3, 400).map(lambda count: count * timedelta(hours=1)),
    st.timedeltas(timedelta(days=-2), timedelta(days=40)),
).flatmap(lambda lag: st.sampled_from([-TICK, timedelta(0), TICK]).map(lambda edge: lag + edge))
instants = st.one_of(
    st.datetimes(utc("1975-01-01").replace(tzinfo=None), utc("2060-01-01").replace(tzinfo=None)),
    st.integers(0, 400 * 24 * 12).map(
        lambda count: utc("2026-01-01").replace(tzinfo=None) + count * 5 * MINUTE
    ),
).map(lambda instant: instant.replace(tzinfo=UTC))
windows = st.sampled_from([1, 30, 59, 60, 61, 1439, 1440, 1441, 2880, 10080])
hours = st.integers(0, 23)

hermes_policies = st.builds(
    SessionResetPolicy,
    mode=st.sampled_from([ResetMode.NONE, ResetMode.IDLE, ResetMode.DAILY, ResetMode.BOTH]),
    at_hour=hours,
    idle_minutes=windows,
)
policies = st.one_of(
    hermes_policies,
    st.builds(SessionResetPolicy, require=st.just(Require.ALL), at_hour=hours, idle_minutes=windows),
    st.builds(SessionResetPolicy, mode=st.just(ResetMode.CRON), cron=st.sampled_from(CRONS)),
)
clocks = st.builds(
    lambda last, missed: At(last, None if missed is None else last - missed),
    instants,
    st.one_of(st.none(), st.timedeltas(timedelta(0), timedelta(days=3))),
)


def hermes_reason(policy: SessionResetPolicy, updated_at: datetime, now: datetime) -> str | None:
    """Hermes 0.19's `_should_reset`, on naive local time."""
    if policy.mode == "none":
        return None
    if policy.mode in ("idle", "both") and now > updated_at + timedelta(minutes=policy.idle_minutes):
        return "idle"
    if policy.mode in ("daily", "both"):
        boundary = now.replace(hour=policy.at_hour, minute=0, second=0, microsecond=0)
        if now.hour < policy.at_hour:
            boundary -= DAY
        if updated_at < boundary:
            return "daily"
    return None


@given(policy=hermes_policies, last=instants, lag=lags)
@example(policy=SessionResetPolicy(mode=ResetMode.IDLE), last=utc("2026-06-10"), lag=DAY)
@example(policy=SessionResetPolicy(mode=ResetMode.IDLE), last=utc("2026-06-10"), lag=DAY + TICK)
@example(policy=SessionResetPolicy(mode=ResetMode.DAILY), last=utc("2026-06-10 04:00"), lag=DAY - TICK)
@example(policy=SessionResetPolicy(mode=ResetMode.DAILY), last=utc("2026-06-10 03:59"), lag=MINUTE)
@example(policy=SessionResetPolicy(), last=utc("2026-06-10 04:00"), lag=2 * DAY)
def test_in_utc_the_rule_is_that_of_hermes(policy, last, lag):
    due = reset_due(policy, At(last), last + lag, UTC)
    assert (due.reason if due else None) == hermes_reason(policy, last, last + lag)


@given(policy=policies, at=clocks, lag=lags, zone=zones)
def test_a_reset_is_due_exactly_from_the_instant_that_next_reset_gives(policy, at, lag, zone):
    coming = next_reset(policy, at, zone)
    for now in (
        at.last_interaction_at + lag,
        *((coming.at - TICK, coming.at, coming.at + TICK) if coming else ()),
    ):
        due = reset_due(policy, at, now, zone)
        assert (due is not None) == (coming is not None and now >= coming.at)
        assert due is None or (coming is not None and due.at == coming.at)


@given(policy=policies, last=instants, back=st.timedeltas(timedelta(0), timedelta(days=900)), zone=zones)
def test_nothing_is_due_at_or_before_the_last_interaction(policy, last, back, zone):
    assert reset_due(policy, At(last), last - back, zone) is None


@given(policy=policies, last=instants, later=st.timedeltas(timedelta(0), timedelta(days=9)), zone=zones)
def test_an_interaction_never_makes_a_reset_come_sooner(policy, last, later, zone):
    """Stored instants are lower bounds because of this."""
    first, second = next_reset(policy, At(last), zone), next_reset(policy, At(last + later), zone)
    assert (first is None) == (second is None)
    assert first is None or second is None or first.at <= second.at


@given(
    policy=policies,
    last=instants,
    lags=st.lists(st.timedeltas(timedelta(0), 2 * DAY), max_size=12),
    zone=zones,
)
def test_a_boundary_that_has_passed_is_not_lost_by_messages_that_are_kept(policy, last, lags, zone):
    at = At(last)
    passed = None
    for lag in lags:
        now = at.last_interaction_at + lag
        missed = missed_boundary(policy, at, now, zone)
        assert passed in (None, missed)
        passed, at = missed, At(now, missed)
        coming = next_reset(policy, at, zone)
        if missed is not None:
            assert coming is not None
            assert coming.at == missed or policy.require is Require.ALL
    if policy.mode in (ResetMode.DAILY, ResetMode.BOTH):
        boundary = next_daily_boundary(last, policy.at_hour, zone)
        assert at.deferred_boundary == (boundary if boundary <= at.last_interaction_at else None)


@given(
    policy=policies, at=clocks, lag=lags, zone=zones, grace=st.integers(0, 5000), hours=st.integers(-1, 90)
)
def test_a_reset_waits_for_grace_and_young_work_and_for_nothing_else(policy, at, lag, zone, grace, hours):
    policy = replace(policy, grace_minutes=grace, bg_process_max_age_hours=hours)
    now = at.last_interaction_at + lag
    due = reset_due(policy, at, now, zone)
    plans = [plan_reset(policy, at, now, zone, active_work) for active_work in (False, True)]
    if due is None:
        assert plans[0] == plans[1]
    elif now < at.last_interaction_at + grace * MINUTE:
        assert plans == [Deferred(Deferral.GRACE, due)] * 2
    elif hours > 0 and now >= due.at + timedelta(hours=hours):
        assert plans == [ResetNow(due)] * 2
    else:
        assert plans == [ResetNow(due), Deferred(Deferral.ACTIVE_WORK, due)]


@given(one=policies, other=policies)
def test_fingerprints_are_equal_exactly_when_policies_are(one, other):
    book = PolicyBook()
    fingerprints = [book.resolve("irc", "dm", override=policy).fingerprint for policy in (one, other)]
    assert (fingerprints[0] == fingerprints[1]) == (one == other)
    assert SessionResetPolicy.from_dict(one.to_dict()) == one


@given(
    local=instants.map(lambda instant: instant.replace(tzinfo=None)),
    step=st.timedeltas(timedelta(0), DAY),
    zone=zones,
)
def test_a_later_wall_time_never_comes_first(local, step, zone):
    first, second = first_instant(local, zone), first_instant(local + step, zone)
    assert first <= second
    assert first.astimezone(zone).replace(tzinfo=None) >= local
    assert (first - TICK).astimezone(zone).replace(tzinfo=None) < local


minutes_named = st.sets(st.integers(0, 59), min_size=1, max_size=4)
hours_named = st.sets(hours, min_size=1, max_size=6)
weekdays_named = st.one_of(st.just(set(range(7))), st.sets(st.integers(0, 6), min_size=3))
# Days around which the clock of some zone in the list moves.
moves = st.sampled_from(
    ["2026-03-08", "2026-03-22", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"]
)


@given(
    minutes=minutes_named,
    hours=hours_named,
    weekdays=weekdays_named,
    day=moves,
    early=st.integers(0, 2880),
    zone=zones,
)
def test_a_schedule_fires_whenever_the_clock_reaches_a_named_time_it_never_showed(
    minutes, hours, weekdays, day, early, zone
):
    """The oracle watches the clock minute by minute and remembers the highest time it has seen."""
    start = utc(day) - early * MINUTE

    def named(wall):
        return wall.minute in minutes and wall.hour in hours and wall.isoweekday() % 7 in weekdays

    def shown(count):
        return (start + count * MINUTE).astimezone(zone).replace(tzinfo=None)

    highest = max(shown(count) for count in range(-180, 1))
    fired = []
    for count in range(1, 3 * 1440):
        while highest < shown(count):
            highest += MINUTE
            if named(highest) and fired[-1:] != [start + count * MINUTE]:
                fired.append(start + count * MINUTE)
    listed = [",".join(map(str, sorted(numbers))) for numbers in (minutes, hours, weekdays)]
    expression = f"{listed[0]} {listed[1]} * * {listed[2]}"
    found, after = [], start
    while (after := next_cron_boundary(after, expression, zone)) < start + 3 * 1440 * MINUTE:
        found.append(after)
    assert found == fired
    assert all(one < other for one, other in pairwise(found))


class Difference(NamedTuple):
    """What Hermes does, what we do, and why."""

    why: str
    hermes: Callable[[], object]
    ours: Callable[[], object]


NEW_YORK = ZoneInfo("America/New_York")
HOUR_IDLE = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DAILY = SessionResetPolicy(mode=ResetMode.DAILY)


def in_new_york(instant: datetime) -> datetime:
    """Naive local time, as Hermes keeps it."""
    return instant.astimezone(NEW_YORK).replace(tzinfo=None)


def hermes_there(policy: SessionResetPolicy, last: str, now: str) -> str | None:
    return hermes_reason(policy, in_new_york(utc(last)), in_new_york(utc(now)))


def ours_there(policy: SessionResetPolicy, last: str, now: str) -> str | None:
    due = reset_due(policy, At(utc(last)), utc(now), NEW_YORK)
    return due.reason if due else None


def refused(make: Callable[[], object]) -> bool:
    try:
        make()
    except InvalidPolicyError:
        return True
    return False


SPRING = ("2026-03-08 06:30", "2026-03-08 07:20")  # 01:30 and 03:20 on the clock, fifty minutes
AUTUMN = ("2026-11-01 05:50", "2026-11-01 07:00")  # 01:50 and 02:00 on the clock, seventy minutes
BROKEN = {"at_hour": 25}

DELIBERATE_DIFFERENCES = {
    "a missing hour is not silence": Difference(
        "Hermes subtracts wall times, so that a night in spring is an hour too long",
        lambda: hermes_there(HOUR_IDLE, *SPRING),
        lambda: ours_there(HOUR_IDLE, *SPRING),
    ),
    "a repeated hour is silence": Difference(
        "and a night in autumn an hour too short",
        lambda: hermes_there(HOUR_IDLE, *AUTUMN),
        lambda: ours_there(HOUR_IDLE, *AUTUMN),
    ),
    "the zone is the chat's, not the host's": Difference(
        "four in the morning is when the person sleeps; Hermes takes the clock of the machine, here UTC",
        lambda: hermes_reason(DAILY, utc("2026-06-10 03:00"), utc("2026-06-10 05:00")),
        lambda: ours_there(DAILY, "2026-06-10 03:00", "2026-06-10 05:00"),
    ),
    "every policy is checked when it is made": Difference(
        "Hermes checks the default only; hour 25 of a platform is an exception when a message comes in",
        lambda: False,
        lambda: refused(lambda: SessionResetPolicy(**BROKEN)),
    ),
    "an unknown mode is refused": Difference(
        "Hermes takes it for `none`, and nothing is ever reset",
        lambda: False,
        lambda: refused(lambda: SessionResetPolicy.from_dict({"mode": "weekly"})),
    ),
    "an unknown word for notify is refused": Difference(
        "Hermes takes it for true",
        lambda: False,
        lambda: refused(lambda: SessionResetPolicy.from_dict({"notify": "perhaps"})),
    ),
    "a grace window": Difference(
        "Hermes resets in the middle of a conversation",
        lambda: hermes_reason(DAILY, utc("2026-06-10 03:59"), utc("2026-06-10 04:01")),
        lambda: (
            plan_reset(
                replace(DAILY, grace_minutes=10),
                At(utc("2026-06-10 03:59")),
                utc("2026-06-10 04:01"),
                UTC,
                active_work=False,
            ).by
        ),
    ),
    "a reset that was put off is remembered": Difference(
        "in Hermes the message that was kept moves the clock, and the boundary is forgotten",
        lambda: hermes_reason(DAILY, utc("2026-06-10 04:01"), utc("2026-06-10 09:00")),
        lambda: (
            reset_due(
                DAILY, At(utc("2026-06-10 04:01"), utc("2026-06-10 04:00")), utc("2026-06-10 09:00"), UTC
            ).reason
        ),
    ),
    "the age of a veto counts from the instant the reset was due": Difference(
        "Hermes counts from the start of each process, so that a new one every day keeps a session for ever",
        lambda: Deferred,
        lambda: type(
            plan_reset(DAILY, At(utc("2026-06-09")), utc("2026-06-10 04:00"), UTC, active_work=True)
        ),
    ),
    "a chat type is set within a platform": Difference(
        "in Hermes a platform's policy beats that of a chat type, whatever the platform",
        lambda: "platform",
        lambda: (
            PolicyBook(by_platform={"irc": DAILY}, by_chat_type={("irc", "group"): HOUR_IDLE})
            .resolve("irc", "group")
            .level
        ),
    ),
    "the shipped default": Difference(
        "Hermes 0.19 ships `none`, its documents say `both`",
        lambda: PRESETS["never"].mode,
        lambda: SessionResetPolicy().mode,
    ),
    "more ways to say when": Difference(
        "cron expressions, and both conditions at once, have no counterpart",
        lambda: {"none", "idle", "daily", "both"},
        lambda: {mode.value for mode in ResetMode},
    ),
}


@pytest.mark.parametrize("name", DELIBERATE_DIFFERENCES)
def test_each_deliberate_difference_from_hermes_is_one(name):
    difference = DELIBERATE_DIFFERENCES[name]
    assert difference.why
    assert difference.ours() != difference.hermes()
