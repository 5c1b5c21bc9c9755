"""Exactly one daily boundary per local date, in every IANA zone, around every move of its clock.

The zones are those of the `tzdata` package. Names whose files are equal byte for byte are one zone, and zones
whose clocks read alike throughout the five years are walked once: a boundary is a function of that reading.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from importlib.resources import files
from io import BytesIO
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from gateway_sessions.core.sessions.reset_policy import ResetMode, SessionResetPolicy, reset_due
from gateway_sessions.core.sessions.reset_times import first_instant, next_cron_boundary, next_daily_boundary

TICK = timedelta(microseconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)
APART = 2 * DAY
"""Between two probes a clock moves once at most: the moves that are found are much farther apart."""
PROBES = [FIRST + count * APART for count in range((LAST - FIRST) // APART + 1)]
EVERYTHING = pytest.param(True, marks=[pytest.mark.soak, pytest.mark.timeout(120)])


@dataclass(frozen=True)
class Move:
    """A clock goes from one offset to another."""

    at: datetime
    before: timedelta
    after: timedelta

    def first_instant(self, local: datetime) -> datetime:
        """The answer for any wall time that is nearer to this move than to another."""
        instant = local.replace(tzinfo=UTC) - self.before
        return instant if instant < self.at else max(self.at, local.replace(tzinfo=UTC) - self.after)

    def dates(self, start: datetime, end: datetime) -> list[date]:
        """The local dates that the clock shows in that time."""
        shown = {(start + self.before).date(), (self.at - TICK + self.before).date()}
        shown |= {(self.at + self.after).date(), (end + self.after).date()}
        shown |= {(start + self.before + n * DAY).date() for n in range((self.at - start) // DAY + 1)}
        shown |= {(self.at + self.after + n * DAY).date() for n in range((end - self.at) // DAY + 1)}
        return sorted(shown)


@dataclass(frozen=True)
class Clock:
    """The reading of a zone's clock in the five years, and the names of the zones that read so."""

    zone: ZoneInfo
    names: tuple[str, ...]
    moves: tuple[Move, ...]


def zone_files() -> dict[bytes, list[str]]:
    """The names of each different zone."""
    data = files("tzdata")
    found: dict[bytes, list[str]] = {}
    for name in (data / "zones").read_text(encoding="utf-8").split():
        found.setdefault(data.joinpath("zoneinfo", *name.split("/")).read_bytes(), []).append(name)
    return found


def offset(instant: datetime, zone: tzinfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)


def moves_between_probes(zone: tzinfo) -> Iterator[Move]:
    offsets = [offset(probe, zone) for probe in PROBES]
    for probe, (before, after) in zip(PROBES, pairwise(offsets), strict=False):
        if before != after:
            low, high = 0, APART // TICK
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(probe + middle * TICK, zone) == before else (low, middle)
            yield Move(probe + high * TICK, before, after)


@pytest.fixture(scope="module")
def clocks() -> list[Clock]:
    readings: dict[object, tuple[ZoneInfo, list[str]]] = {}
    for data, names in zone_files().items():
        zone = ZoneInfo.from_file(BytesIO(data), key=names[0])
        reading = (offset(FIRST, zone), tuple(moves_between_probes(zone)))
        readings.setdefault(reading, (zone, []))[1].extend(names)
    return [Clock(zone, tuple(names), moves) for (_, moves), (zone, names) in readings.items()]


def boundaries(start: datetime, end: datetime, at_hour: int, zone: tzinfo) -> list[datetime]:
    """Those in (start, end]."""
    found = []
    while (start := next_daily_boundary(start, at_hour, zone)) <= end:
        found.append(start)
    return found


def surroundings(clock: Clock) -> Iterator[tuple[Move, datetime, datetime]]:
    """The moves of a clock, each with two days before and after; of a clock that rests, a new year."""
    rest = offset(FIRST, clock.zone)
    for move in clock.moves or (Move(FIRST + 366 * DAY, rest, rest),):
        yield move, move.at - 2 * DAY, move.at + 2 * DAY


def test_all_zones_are_there(clocks):
    names = [name for clock in clocks for name in clock.names]
    assert len(names) == len(set(names)) > 590
    assert sum(len(clock.moves) for clock in clocks) > 200
    assert all(other.at - one.at > 5 * DAY for clock in clocks for one, other in pairwise(clock.moves))


@pytest.mark.parametrize("every_hour", [False, EVERYTHING])
def test_each_local_date_has_exactly_one_boundary(clocks, every_hour):
    for clock in clocks:
        for move, start, end in surroundings(clock):
            dates = move.dates(start, end)
            for at_hour in range(24) if every_hour else hours_about(move):
                expected = [
                    move.first_instant(datetime(day.year, day.month, day.day, at_hour))  # noqa: DTZ001 - a wall time
                    for day in dates
                ]
                assert all(one < other for one, other in pairwise(expected)), (clock.names, move, at_hour)
                inside = [boundary for boundary in expected if start < boundary <= end]
                assert boundaries(start, end, at_hour, clock.zone) == inside, (clock.names, move, at_hour)
                assert (
                    len(dates) - len(inside) <= 2
                )  # the first date's may be behind us, the last one's to come


@dataclass(frozen=True, slots=True)
class ParallelTransaction:
    """Somebody who wrote a moment ago."""

    last_interaction_at: datetime
    deferred_boundary: None = None


def hours_about(move: Move) -> set[int]:
    """The hours that the clock shows when it moves, and one on the other side of the day."""
    shown = {(move.at + at + n * HOUR).hour for at in (move.before, move.after) for n in (-1, 0, 1)}
    return {*shown, (min(shown) + 12) % 24}


@pytest.mark.parametrize("every_hour", [False, EVERYTHING])
def test_a_walk_resets_exactly_once_per_local_date(clocks, every_hour):
    policies = [SessionResetPolicy(mode=ResetMode.DAILY, at_hour=at_hour) for at_hour in range(24)]
    for clock in clocks:
        for move, _, _ in surroundings(clock):
            edges = (move.at - TICK, move.at, move.at + TICK)
            steps = sorted([*edges, *(move.at + n * HOUR for n in range(-20, 21) if n)])
            for policy in policies if every_hour else [policies[hour] for hour in hours_about(move)]:
                resets, last = [], ParallelTransaction(steps[0])
                for now in steps[1:]:
                    if reset_due(policy, last, now, clock.zone):
                        resets.append(now)
                    last = ParallelTransaction(now)
                expected = [
                    next(step for step in steps if step >= boundary)
                    for boundary in boundaries(steps[0], steps[-1], policy.at_hour, clock.zone)
                ]
                assert resets == expected, (clock.names, move, policy.at_hour)


@pytest.mark.parametrize("every_zone", [False, EVERYTHING])
@pytest.mark.parametrize(("nth", "expression"), [(0, "30 2 * * *"), (1, "0 0 * * *"), (2, "15 1,23 * * *")])
def test_a_schedule_fires_at_most_once_for_each_wall_time(clocks, nth, expression, every_zone):
    for clock in clocks if every_zone else clocks[nth::3]:
        for move, start, end in surroundings(clock):
            found, after = [], start
            while (after := next_cron_boundary(after, expression, clock.zone)) <= end:
                found.append(after)
            minute, hours = expression.split()[:2]
            walls = [
                datetime(day.year, day.month, day.day, int(hour), int(minute))  # noqa: DTZ001 - a wall time
                for day in move.dates(start, end)
                for hour in hours.split(",")
            ]
            expected = sorted({move.first_instant(wall) for wall in walls})
            assert found == [boundary for boundary in expected if start < boundary <= end], (
                clock.names,
                move,
            )


def recorded_transitions(data: bytes) -> Iterator[datetime]:
    """Every instant that a zone's file lists; its last rule goes on from there and is probed above."""
    begin = 0
    for width in (4, 8):  # the second block holds all that the first does, in 64 bits
        counts = struct.unpack_from(">6l", data, begin + 20)
        is_utc, is_standard, leaps, times, types, characters = counts
        begin += 44
        if width == 8:
            for seconds in struct.unpack_from(f">{times}q", data, begin):
                if seconds > -62_000_000_000:
                    yield EPOCH + timedelta(seconds=seconds)
        begin += times * (width + 1) + types * 6 + characters + leaps * (width + 4) + is_standard + is_utc


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(120)])])
def test_every_move_in_history_is_found_to_the_microsecond(stride):
    seen = set()
    for number, (data, names) in enumerate(zone_files().items()):
        zone = ZoneInfo.from_file(BytesIO(data), key=names[0])
        for at in islice(recorded_transitions(data), number % stride, None, stride):
            move = Move(at, offset(at - TICK, zone), offset(at, zone))
            if move not in seen:
                seen.add(move)
                walls = [(at + shift).replace(tzinfo=None) for shift in (move.before, move.after)]
                for local in (
                    *walls,
                    min(walls) - TICK,
                    max(walls) - TICK,
                    min(walls) + abs(walls[0] - walls[1]) / 2,
                ):
                    assert first_instant(local, zone) == move.first_instant(local), (names, move, local)
    assert len(seen) > 5000 / stride


@pytest.mark.parametrize(
    ("name", "around", "minutes"),
    [
        ("Australia/Lord_Howe", "2026-10-03", 30),
        ("Australia/Lord_Howe", "2026-04-04", -30),
        ("Pacific/Apia", "2011-12-30", 24 * 60),
        ("Pacific/Kwajalein", "1993-08-21", 24 * 60),
        ("Pacific/Kiritimati", "1994-12-31", 24 * 60),
        ("America/Juneau", "1867-10-18", -24 * 60),
        ("America/Havana", "2026-03-08", 60),
        ("Asia/Beirut", "2026-03-28", 60),
        ("Antarctica/Troll", "2026-03-29", 120),
        ("Africa/Casablanca", "2026-02-15", -60),
        ("America/St_Johns", "2006-04-02", 60),
        ("America/St_Johns", "2006-10-29", -60),
        ("America/Nuuk", "2026-03-29", 60),
        ("Africa/Monrovia", "1972-01-07", 44.5),
    ],
)
def test_strange_nights_keep_one_boundary_per_date_that_was_lived(name, around, minutes):
    zone = ZoneInfo(name)
    start = datetime.fromisoformat(around).replace(tzinfo=UTC) - 4 * DAY
    quarters = [start + count * HOUR / 4 for count in range(8 * 96)]
    assert offset(quarters[-1], zone) - offset(quarters[0], zone) == timedelta(minutes=minutes)
    lived = sorted({quarter.astimezone(zone).date() for quarter in quarters})[1:-1]
    for at_hour in range(24):
        after = first_instant(datetime(*lived[0].timetuple()[:3]), zone) - TICK  # noqa: DTZ001 - a wall time
        found = [after := next_daily_boundary(after, at_hour, zone) for _ in lived]
        assert all(one < other for one, other in pairwise(found))
        for day, boundary in zip(lived, found, strict=True):
            wall = boundary.astimezone(zone).replace(tzinfo=None)
            asked = datetime(day.year, day.month, day.day, at_hour)  # noqa: DTZ001 - a wall time
            assert timedelta(0) <= wall - asked <= timedelta(minutes=abs(minutes)), (day, at_hour, wall)
