"""How people tell each other times and sizes."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway_sessions.core.notices.human_units import (
    ago,
    counted,
    counted_with_example,
    parse_byte_count,
    parse_duration,
    parse_moment,
    short_duration,
    size_with_unit,
)
from gateway_sessions.errors import InvalidInputError

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "told"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=-30), "just now"),
        (timedelta(minutes=1), "1m ago"),
        (timedelta(minutes=59, seconds=59), "59m ago"),
        (timedelta(hours=1), "1h ago"),
        (timedelta(hours=23, minutes=59), "23h ago"),
        (timedelta(hours=24), "yesterday"),
        (timedelta(hours=48), "2d ago"),
        (timedelta(days=6, hours=23), "6d ago"),
        (timedelta(days=7), "2026-03-24"),
        (timedelta(hours=-3, minutes=-5), "in 3h 5m"),
    ],
)
def test_how_long_ago_is_told_briefly(passed: timedelta, told: str):
    assert ago(NOW - passed, NOW) == told


def test_nobody_knows_when():
    assert ago(None, NOW) == "?"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (61, "1m 1s"), (3600, "1h"),
     (3660, "1h 1m"), (86_400, "1d"), (97_200, "1d 3h"),
     (-5, "0s")],
)  # fmt: skip
def test_a_length_of_time_has_two_units_at_most(seconds: int, told: str):
    assert short_duration(timedelta(seconds=seconds)) == told


@pytest.mark.parametrize(
    ("number", "told"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_550_000, "1.6 MB"), (3 * 10**15, "3000.0 TB")],
)
def test_a_size_is_told(number: int, told: str):
    assert size_with_unit(number) == told


@pytest.mark.parametrize(
    ("text", "meant"),
    [("90", timedelta(days=90)), ("45m", timedelta(minutes=45)),
     ("1.5h", timedelta(minutes=90)), (" 2W ", timedelta(weeks=2)), ("0", timedelta(0))],
)  # fmt: skip
def test_a_length_is_understood(text: str, meant: timedelta):
    assert parse_duration("--older-than", text) == meant


@pytest.mark.parametrize("text", ["", "h", "-1d", "1y", "two", "1h30", "9" * 20])
def test_what_is_no_length_is_refused_by_name(text: str):
    with pytest.raises(InvalidInputError, match="--older-than"):
        parse_duration("--older-than", text)


@pytest.mark.parametrize(
    ("text", "meant"), [("7", 7), ("500k", 500_000), ("1.5 MB", 1_500_000), ("2g", 2 * 10**9)]
)
def test_a_number_of_bytes_is_understood(text: str, meant: int):
    assert parse_byte_count("--max-size", text) == meant


@pytest.mark.parametrize("text", ["", "M", "-5", "5X", "big"])
def test_what_is_no_size_is_refused_by_name(text: str):
    with pytest.raises(InvalidInputError, match="--max-size"):
        parse_byte_count("--max-size", text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, None),
        ("5h", NOW - timedelta(hours=5)),
        ("3", NOW - timedelta(days=3)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T10:00+02:00", datetime(2026, 3, 1, 8, tzinfo=UTC)),
    ],
)
def test_a_moment_is_so_long_ago_or_a_date(text: str | None, meant: datetime | None):
    assert parse_moment("--since", text, NOW) == meant


def test_what_is_no_moment_is_refused_by_name():
    with pytest.raises(InvalidInputError, match="--since: 'someday' is no time"):
        parse_moment("--since", "someday", NOW)


def test_one_thing_is_one_thing():
    assert [counted(number, "lane") for number in (0, 1, 2000)] == ["0 lanes", "1 lane", "2,000 lanes"]
    assert counted(2, "reply", "replies") == "2 replies"


def test_one_of_several_things_is_an_example_and_a_single_one_is_all_there_is():
    told = [counted_with_example(number, "lane that waits", "lanes that wait", "a") for number in (1, 2000)]
    assert told == ["1 lane that waits: a", "2,000 lanes that wait, such as a"]
