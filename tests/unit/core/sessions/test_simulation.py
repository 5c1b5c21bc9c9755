"""What another reset policy would have done with what was recorded."""

from datetime import UTC, datetime, timedelta

from gateway_sessions import SessionResetPolicy
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.core.sessions.simulation import LaneActivity, WouldReset, simulate

START = datetime(2026, 3, 28, 12, tzinfo=UTC)


def at(*hours: float) -> list[datetime]:
    return [START + timedelta(hours=one) for one in hours]


def resets(policy: SessionResetPolicy, *hours: float, zone: str = "UTC") -> list[tuple[float, EndReason]]:
    book = PolicyBook(default=policy, zone_name=zone)
    found = simulate(LaneActivity("agent:main:cli:dm:1", book.resolve("cli", "dm"), at(*hours)))
    return [((one.at - START) / timedelta(hours=1), one.reason) for one in found]


def test_silence_resets_at_the_next_message():
    idle = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    assert resets(idle, 0, 0.5, 1.5, 3, 3.5, 10) == [(3, EndReason.IDLE), (10, EndReason.IDLE)]


def test_an_hour_of_the_day_resets_once_and_in_its_zone():
    daily = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4)
    assert resets(daily, 0, 15.5, 16.5, 17, 39, 41) == [(16.5, EndReason.DAILY), (41, EndReason.DAILY)]
    # In Berlin four o'clock is 03:00 UTC on the 28th and, an hour of the night less, 02:00 UTC on the 29th.
    assert resets(daily, 0, 13.5, 14.5, zone="Europe/Berlin") == [(14.5, EndReason.DAILY)]


def test_grace_puts_a_reset_off_and_does_not_forget_it():
    daily = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4, grace_minutes=120)
    assert resets(daily, 15, 16.5, 17.5, 21) == [(21, EndReason.DAILY)]


def test_no_policy_no_reset_and_no_activity_no_reset():
    never = SessionResetPolicy(mode=ResetMode.NONE)
    assert resets(never, 0, 1000) == []
    assert resets(SessionResetPolicy()) == []


def test_it_is_told_which_lane_and_since_when_it_was_silent():
    policy = PolicyBook(default=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=5)).resolve("cli", "dm")
    assert list(simulate(LaneActivity("lane", policy, at(0, 1)))) == [
        WouldReset("lane", START + timedelta(hours=1), EndReason.IDLE, START)
    ]
