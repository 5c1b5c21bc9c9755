"""Instants: whole microseconds there and back, whatever form a caller gives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.instants import (
    EPOCH,
    as_utc,
    check_duration,
    first_change_id,
    from_micros,
    to_micros,
)
from gateway_sessions.errors import InvalidInputError

instants = st.datetimes(timezones=st.just(UTC))


@given(instant=instants)
def test_an_instant_comes_back_to_the_microsecond(instant):
    assert from_micros(to_micros(instant)) == instant


@given(one=instants, other=instants)
def test_microseconds_have_the_order_of_instants(one, other):
    assert (to_micros(one) < to_micros(other)) == (one < other)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00+00:00"),
        (-1, "1969-12-31T23:59:59.999999+00:00"),
        (1, "1970-01-01T00:00:00.000001+00:00"),
    ],
)
def test_instants_before_the_epoch_count_down(micros, text):
    assert from_micros(micros).isoformat() == text
    assert to_micros(from_micros(micros)) == micros


def test_an_instant_in_another_zone_is_the_same_one():
    there = datetime(2026, 6, 10, 14, tzinfo=ZoneInfo("Europe/Berlin"))
    assert to_micros(there) == to_micros(datetime(2026, 6, 10, 12, tzinfo=UTC))


@given(moment=st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), minutes=st.integers(-1439, 1439))  # noqa: DTZ001 -- hypothesis wants naive limits
def test_any_offset_is_taken_away_but_not_the_instant(moment, minutes):
    aware = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert as_utc(aware) == aware
    assert as_utc(aware).tzinfo is UTC


def test_a_time_without_a_zone_is_read_in_the_one_given():
    moment = datetime(2026, 6, 10, 14)  # noqa: DTZ001 -- it must not have one
    assert as_utc(moment).hour == 14
    assert as_utc(moment, naive_zone=ZoneInfo("Europe/Berlin")).hour == 12


@freeze_time("2026-06-10")
def test_an_instant_is_a_plain_one_even_while_time_is_frozen():
    assert type(as_utc(datetime.now(tz=UTC))) is type(EPOCH)


class TestFirstChangeId:
    def test_it_rises_with_time(self):
        now = datetime(2026, 6, 10, tzinfo=UTC)
        assert first_change_id(now, 0) < first_change_id(now + timedelta(microseconds=1), 0)

    def test_it_is_above_all_used_before_even_if_the_clock_went_back(self):
        now = datetime(2026, 6, 10, tzinfo=UTC)
        last = first_change_id(now, 0) + 500
        assert first_change_id(now - timedelta(days=400), last) == last + 1

    def test_it_fits_into_a_column_for_another_century(self):
        assert first_change_id(datetime(2110, 1, 1, tzinfo=UTC), 0) < 2**63


class TestDuration:
    @pytest.mark.parametrize("days", [0, 1.5, 36_525, -36_525])
    def test_up_to_a_century_is_one(self, days):
        assert check_duration("age", days=days) == timedelta(days=days)

    @pytest.mark.parametrize("days", [36_526, float("nan"), float("inf"), 1e300, -1e300, "1", None])
    def test_anything_else_is_refused_by_name(self, days):
        with pytest.raises(InvalidInputError, match="age"):
            check_duration("age", days=days)
