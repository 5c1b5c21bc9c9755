"""The first instant of a wall time, and the boundaries of days and schedules that follow from it."""

from __future__ import annotations

import datetime as real
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise

import pytest
from freezegun import freeze_time

from gateway_sessions.core.sessions.reset_times import (
    check_cron,
    first_instant,
    next_cron_boundary,
    next_daily_boundary,
    zone_named,
)
from gateway_sessions.errors import InvalidPolicyError

TICK = timedelta(microseconds=1)


def wall(text):
    """A wall time, without a zone."""
    return datetime.fromisoformat(text)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def daily(after, at_hour, zone):
    while True:
        after = next_daily_boundary(after, at_hour, zone)
        yield after


def cron(after, expression, zone):
    while True:
        after = next_cron_boundary(after, expression, zone)
        yield after


class TestZoneNamed:
    @pytest.mark.parametrize(
        "name", ["UTC", "Europe/Berlin", "America/Argentina/ComodRivadavia", "Etc/GMT+12"]
    )
    def test_an_iana_name_is_a_zone(self, name):
        assert zone_named(name).key == name

    @pytest.mark.parametrize(
        "name",
        ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe", "a\0b", "x" * 5000, "Ünlü/Şehir",
         "right/UTC", "posix/Europe/Berlin", "localtime", "posixrules", "tzdata.zi"],
    )  # fmt: skip
    def test_anything_else_is_refused(self, name):
        with pytest.raises(InvalidPolicyError, match="IANA") as caught:
            zone_named(name)
        assert (caught.value.field, caught.value.value) == ("zone", name)


class TestFirstInstant:
    @pytest.mark.parametrize(
        ("zone", "local", "instant"),
        [
            ("UTC", "2026-03-01 04:00", "2026-03-01 04:00"),  # utc
            ("Europe/Berlin", "2026-01-10 04:00", "2026-01-10 03:00"),  # winter
            ("Europe/Berlin", "2026-07-10 04:00", "2026-07-10 02:00"),  # summer
            ("Asia/Kathmandu", "2026-07-10 04:00", "2026-07-09 22:15"),  # quarter hour
            ("Europe/Berlin", "2026-10-25 02:30", "2026-10-25 00:30"),  # overlap
            ("Europe/Berlin", "2026-10-25 03:00", "2026-10-25 02:00"),  # end of an overlap
            ("Europe/Berlin", "2026-03-29 01:59:59.999999", "2026-03-29 00:59:59.999999"),  # before
            ("Europe/Berlin", "2026-03-29 02:00", "2026-03-29 01:00"),  # start of a gap
            ("Europe/Berlin", "2026-03-29 02:30", "2026-03-29 01:00"),  # in a gap
            ("Europe/Berlin", "2026-03-29 02:59:59.999999", "2026-03-29 01:00"),  # end of a gap
            ("Europe/Berlin", "2026-03-29 03:00", "2026-03-29 01:00"),  # after a gap
            ("Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03 15:30"),  # gap of half an hour
            ("Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04 14:45"),  # overlap of half an hour
            ("America/Havana", "2026-03-08 00:00", "2026-03-08 05:00"),  # Havana has no midnight
            ("Asia/Beirut", "2026-03-29 00:30", "2026-03-28 22:00"),  # Beirut has no midnight
            ("America/Nuuk", "2026-03-28 23:00", "2026-03-29 01:00"),  # Nuuk has no last hour
            ("Antarctica/Troll", "2026-03-29 01:30", "2026-03-29 01:00"),  # gap of two hours
            ("Antarctica/Troll", "2026-10-25 02:30", "2026-10-25 00:30"),  # overlap of two hours
            ("Africa/Casablanca", "2026-03-22 02:30", "2026-03-22 02:00"),  # gap after Ramadan
            ("America/St_Johns", "2006-04-02 00:01", "2006-04-02 03:31"),  # gap at a minute past
            ("America/St_Johns", "2006-10-29 00:00", "2006-10-29 02:30"),  # midnight before an overlap
            ("Pacific/Apia", "2011-12-30 00:00", "2011-12-30 10:00"),  # start of no day
            ("Pacific/Apia", "2011-12-30 18:00", "2011-12-30 10:00"),  # evening of no day
            ("Pacific/Kiritimati", "1994-12-31 12:00", "1994-12-31 10:00"),  # Kiritimati's missing eve
            ("America/Juneau", "1867-10-18 12:00", "1867-10-17 20:57:41"),  # first of two same days
            ("Africa/Monrovia", "1960-01-01 00:00:10", "1960-01-01 00:44:40"),  # offset of seconds
        ],
    )  # fmt: skip
    def test_is_when_the_clock_first_shows_that_time_or_a_later_one(self, zone, local, instant):
        assert first_instant(wall(local), zone_named(zone)) == utc(instant)

    def test_does_not_depend_on_the_fold_of_the_question(self):
        berlin = zone_named("Europe/Berlin")
        for local in (wall("2026-10-25 02:30"), wall("2026-03-29 02:30")):
            assert first_instant(local.replace(fold=1), berlin) == first_instant(local, berlin)

    def test_works_with_any_kind_of_zone(self):
        assert first_instant(wall("2026-01-01 00:00"), timezone(timedelta(hours=-3))) == utc(
            "2026-01-01 03:00"
        )

    def test_is_a_plain_utc_datetime_even_when_time_is_frozen(self):
        with freeze_time("2026-03-29"):
            instants = [
                first_instant(wall("2026-03-29 02:30"), zone_named("Europe/Berlin")),
                next_daily_boundary(utc("2031-05-05 01:00"), 5, zone_named("Asia/Tokyo")),
                next_cron_boundary(utc("2031-05-05 01:00"), "7 5 * * *", zone_named("Asia/Tokyo")),
            ]
        assert {type(instant) for instant in instants} == {real.datetime}
        assert {instant.tzinfo for instant in instants} == {UTC}


class TestNextDailyBoundary:
    def test_is_strictly_after(self):
        boundary = utc("2026-01-10 04:00")
        assert next_daily_boundary(boundary - TICK, 4, UTC) == boundary
        assert next_daily_boundary(boundary, 4, UTC) == utc("2026-01-11 04:00")

    def test_is_later_on_the_same_local_date_while_the_hour_is_to_come(self):
        tokyo = zone_named("Asia/Tokyo")  # UTC+9
        assert next_daily_boundary(utc("2026-01-09 15:00"), 4, tokyo) == utc("2026-01-09 19:00")

    def test_in_a_gap_is_the_transition(self):
        berlin = zone_named("Europe/Berlin")
        assert list(islice(daily(utc("2026-03-27 12:00"), 2, berlin), 3)) == [
            utc("2026-03-28 01:00"),
            utc("2026-03-29 01:00"),
            utc("2026-03-30 00:00"),
        ]

    def test_comes_once_in_an_overlap(self):
        berlin = zone_named("Europe/Berlin")
        assert list(islice(daily(utc("2026-10-24 12:00"), 2, berlin), 3)) == [
            utc("2026-10-25 00:00"),
            utc("2026-10-26 01:00"),
            utc("2026-10-27 01:00"),
        ]
        assert next_daily_boundary(utc("2026-10-25 01:30"), 2, berlin) == utc("2026-10-26 01:00")

    def test_at_a_missing_midnight_is_the_transition(self):
        havana = zone_named("America/Havana")
        assert next_daily_boundary(utc("2026-03-07 12:00"), 0, havana) == utc("2026-03-08 05:00")

    def test_of_a_date_without_its_last_hour_is_the_beginning_of_the_next_date(self):
        nuuk = zone_named("America/Nuuk")
        assert list(islice(daily(utc("2026-03-28 12:00"), 23, nuuk), 2)) == [
            utc("2026-03-29 01:00"),
            utc("2026-03-30 00:00"),
        ]

    def test_comes_once_when_the_clock_goes_back_over_midnight(self):
        st_johns = zone_named("America/St_Johns")  # until 2011 at 00:01, back to 23:01 of the day before
        assert list(islice(daily(utc("2006-10-27 12:00"), 0, st_johns), 3)) == [
            utc("2006-10-28 02:30"),
            utc("2006-10-29 02:30"),
            utc("2006-10-30 03:30"),
        ]
        assert next_daily_boundary(utc("2006-10-29 03:00"), 0, st_johns) == utc("2006-10-30 03:30")

    @pytest.mark.parametrize("at_hour", range(24))
    @pytest.mark.parametrize(
        ("zone", "missing"),
        [
            ("Pacific/Apia", "2011-12-30"),
            ("Pacific/Fakaofo", "2011-12-30"),
            ("Pacific/Kwajalein", "1993-08-21"),
            ("Pacific/Kiritimati", "1994-12-31"),
            ("Asia/Manila", "1844-12-31"),
        ],
    )
    def test_does_not_come_for_a_date_that_was_left_out(self, zone, missing, at_hour):
        place, date = zone_named(zone), wall(missing)
        boundaries = islice(daily(date.replace(tzinfo=UTC) - timedelta(days=4), at_hour, place), 7)
        shown = [boundary.astimezone(place) for boundary in boundaries]
        assert {time.hour for time in shown} == {at_hour}
        days = [time.date() for time in shown]
        assert date.date() not in days
        assert date.date() - timedelta(days=1) in days
        assert date.date() + timedelta(days=1) in days
        assert sum((later - day).days for day, later in pairwise(days)) == 7

    @pytest.mark.parametrize("at_hour", range(24))
    def test_comes_once_for_a_date_that_was_lived_twice(self, at_hour):
        juneau = zone_named("America/Juneau")
        boundaries = list(islice(daily(utc("1867-10-15 00:00"), at_hour, juneau), 7))
        days = [boundary.astimezone(juneau).date() for boundary in boundaries]
        assert all(later - day == timedelta(days=1) for day, later in pairwise(days))

    def test_beyond_the_calendar_is_an_overflow(self):
        with pytest.raises(OverflowError):
            next_daily_boundary(datetime.max.replace(tzinfo=UTC), 4, UTC)
        with pytest.raises(OverflowError):
            next_daily_boundary(datetime.max.replace(tzinfo=UTC), 4, zone_named("Asia/Tokyo"))
        with pytest.raises(OverflowError):
            next_daily_boundary(utc("9999-12-31 05:00"), 23, zone_named("America/New_York"))


class TestNextCronBoundary:
    def test_is_strictly_after(self):
        boundary = utc("2026-01-10 04:30")
        assert next_cron_boundary(boundary - TICK, "30 4 * * *", UTC) == boundary
        assert next_cron_boundary(boundary, "30 4 * * *", UTC) == utc("2026-01-11 04:30")
        assert next_cron_boundary(boundary + TICK, "30 4 * * *", UTC) == utc("2026-01-11 04:30")

    @pytest.mark.parametrize(
        ("expression", "boundary"),
        [
            ("*/15 * * * *", "2026-01-10 12:15"),
            ("0 4 * * mon", "2026-01-12 04:00"),
            ("0 4 1 * *", "2026-02-01 04:00"),
            ("0 4 L * *", "2026-01-31 04:00"),
            ("0 4 * * 5#3", "2026-01-16 04:00"),
            ("0 4 * * L5", "2026-01-30 04:00"),
            ("0 4 15W * *", "2026-01-15 04:00"),
            ("0 4 1,20 * tue", "2026-01-13 04:00"),
            ("0 0 29 2 *", "2028-02-29 00:00"),
            ("0 0 ? feb SUN", "2026-02-01 00:00"),
            ("5 22-2 * * *", "2026-01-10 22:05"),
        ],
    )
    def test_is_the_next_time_that_the_expression_names(self, expression, boundary):
        check_cron(expression)
        assert next_cron_boundary(utc("2026-01-10 12:00"), expression, UTC) == utc(boundary)

    def test_is_found_on_the_clock_of_the_zone(self):
        assert next_cron_boundary(
            utc("2026-07-10 12:00"), "0 4 * * *", zone_named("America/New_York")
        ) == utc("2026-07-11 08:00")

    def test_comes_once_in_the_night_when_the_clock_goes_back(self):
        berlin = zone_named("Europe/Berlin")
        assert list(islice(cron(utc("2026-10-24 12:00"), "30 2 * * *", berlin), 2)) == [
            utc("2026-10-25 00:30"),
            utc("2026-10-26 01:30"),
        ]
        assert next_cron_boundary(utc("2026-10-25 01:10"), "30 2 * * *", berlin) == utc("2026-10-26 01:30")

    def test_rests_while_wall_times_are_shown_again(self):
        berlin = zone_named("Europe/Berlin")
        assert next_cron_boundary(utc("2026-10-25 00:59"), "* * * * *", berlin) == utc("2026-10-25 02:00")
        assert next_cron_boundary(utc("2026-10-25 01:30"), "* * * * *", berlin) == utc("2026-10-25 02:00")

    def test_in_a_gap_is_the_transition_once_for_all_the_times_in_it(self):
        berlin = zone_named("Europe/Berlin")
        assert list(islice(cron(utc("2026-03-29 00:45"), "*/10 * * * *", berlin), 4)) == [
            utc("2026-03-29 00:50"),
            utc("2026-03-29 01:00"),
            utc("2026-03-29 01:10"),
            utc("2026-03-29 01:20"),
        ]
        assert next_cron_boundary(utc("2026-03-28 12:00"), "30 2 * * *", berlin) == utc("2026-03-29 01:00")

    def test_beyond_the_calendar_is_an_overflow(self):
        with pytest.raises(OverflowError):
            next_cron_boundary(utc("9999-12-31 23:59:30"), "0 4 * * *", UTC)
        with pytest.raises(OverflowError):
            next_cron_boundary(utc("9998-06-01 00:00"), "0 0 29 2 *", UTC)
        with pytest.raises(OverflowError):
            next_cron_boundary(utc("9999-12-31 23:59:30"), "0 4 * * *", zone_named("Asia/Tokyo"))


class TestCheckCron:
    @pytest.mark.parametrize(
        "expression",
        ["* * * * *", "0 4 * * *", "*/5 0-6,22 1-15/2 JAN-mar mon-FRI", "0 4 L * *", "0 4 ? * 1#5",
         "0 0 * 2 1#5", "0 0 29 2 *", "0 0 31 * *", "0  0\t1 1 *"],
    )  # fmt: skip
    def test_plain_cron_passes(self, expression):
        check_cron(expression)

    @pytest.mark.parametrize(
        ("expression", "problem"),
        [
            ("", "five fields"),
            ("@daily", "five fields"),
            ("0 4 * *", "five fields"),
            ("0 4 * * * 30", "five fields"),
            ("0 4 * * * 30 2027", "five fields"),
            ("0 4 * * möntag", "five fields"),
            ("0 4 * * \u0661", "five fields"),
            ("R 4 * * *", "chance"),
            ("0 r(1-5) * * *", "chance"),
            ("H/15 4 * * *", "chance"),
            ("60 4 * * *", "not understood"),
            ("0 24 * * *", "not understood"),
            ("0 4 0 * *", "not understood"),
            ("0 4 * 13 *", "not understood"),
            ("0 4 * * 8", "not understood"),
            ("0 4 * * 1#6", "not understood"),
            ("*/0 4 * * *", "not understood"),
            ("-1 4 * * *", "not understood"),
            ("5- 4 * * *", "not understood"),
            ("a b c d e", "not understood"),
            ("0 4 L * mon", "needs \\*"),
            ("0 4 15W * mon", "needs \\*"),
            ("0 4 15 * mon#2", "needs \\*"),
            ("0 4 15 * l5", "needs \\*"),
            ("0 0 30 2 *", "no year has"),
            ("0 0 31 4,6,9,11 *", "no year has"),
            ("0" * 300, "longer than 256"),
        ],
    )
    def test_anything_else_is_refused_with_the_reason(self, expression, problem):
        with pytest.raises(InvalidPolicyError, match=problem) as caught:
            check_cron(expression)
        assert isinstance(caught.value, ValueError)
        assert caught.value.field == "cron"
