from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.usage.insights import Activity, Insights, PlatformUse, activity_by_time

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
QUARTER = 900_000_000


def quarters(*instants: datetime) -> dict[int, int]:
    return {to_micros(instant) // QUARTER: number for number, instant in enumerate(instants, start=1)}


def days_ago(*numbers: int) -> dict[int, int]:
    return quarters(*(NOW - timedelta(days=number) for number in numbers))


def test_without_messages_there_is_no_activity():
    activity = activity_by_time({}, UTC, NOW)
    assert activity == Activity()
    assert (activity.busiest_day, activity.busiest_weekday, activity.busiest_hour) == (None, None, None)
    assert (activity.active_days, activity.longest_streak, activity.current_streak) == (0, 0, 0)


def test_dates_and_hours_are_those_of_the_zone():
    at = datetime(2026, 3, 19, 18, 40, tzinfo=UTC)
    activity = activity_by_time(quarters(at), ZoneInfo("Asia/Kathmandu"), NOW)  # 5:45 ahead
    assert activity.days == ((date(2026, 3, 20), 1),)
    assert (activity.hours[0], activity.weekdays[4]) == (1, 1)
    assert (activity.busiest_hour, activity.busiest_weekday) == (0, 4)


def test_the_busiest_of_several_is_the_first():
    activity = activity_by_time(dict.fromkeys(days_ago(1, 4), 3), UTC, NOW)
    assert activity.busiest_day == date(2026, 3, 16)


def test_the_longest_streak_need_not_be_the_current_one():
    activity = activity_by_time(days_ago(0, 1, 5, 6, 7), UTC, NOW)
    assert (activity.longest_streak, activity.current_streak, activity.active_days) == (3, 2, 5)


def test_a_streak_goes_on_while_today_is_still_silent():
    assert activity_by_time(days_ago(1, 2), UTC, NOW).current_streak == 2
    assert activity_by_time(days_ago(2, 3), UTC, NOW).current_streak == 0


def test_the_overview_adds_up_all_platforms():
    one = PlatformUse(platform="a", sessions=1, started=1, messages=2, active=timedelta(hours=1))
    report = Insights(since=NOW, until=NOW, zone="UTC", source=None, platforms=(one, one))
    assert report.overview.messages == 4
    assert report.overview.active == timedelta(hours=2)
    assert not report.empty
