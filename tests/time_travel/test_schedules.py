"""Schedules through days, nights in which the clock changes, restarts, kills and corrected clocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest

from gateway_sessions import InvalidInputError, TurnContext
from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import GatewayConfig
from gateway_sessions.core.delivery.schedules import LATE, MissedTimes, RunPlan, Timing, plan_run
from gateway_sessions.errors import InvalidPolicyError, StorageError, UnknownTargetError
from gateway_sessions.events import EventKind
from gateway_sessions.queue import ScheduleState
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, echo, open_harness
from tests.integration.gateway.restartable_gateway import RestartableGateway

BERLIN = ZoneInfo("Europe/Berlin")
SPRING = datetime(2026, 3, 29, tzinfo=BERLIN)
"""The day on which 02:00 to 03:00 is left out."""
AUTUMN = datetime(2026, 10, 25, tzinfo=BERLIN)
"""The day on which 02:00 to 03:00 comes twice."""
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)


@pytest.fixture
def restartable(tmp_path: Path) -> RestartableGateway:
    """A gateway that can be killed and started again, with the files that it leaves."""
    return RestartableGateway(tmp_path)


async def chimes(turn: TurnContext) -> str:
    """Answer with the time of a clock on a wall in Berlin."""
    return f"{turn.clock.now().astimezone(BERLIN):%d. %H:%M}"


async def heard(
    home: Path, start: datetime, days: int, cron: str, **options: Any
) -> tuple[list[str], GatewayHarness]:
    """What the agent said by a schedule within some days."""
    clock = FakeClock(start.astimezone(UTC))
    async with open_harness(home, clock=clock, agent=chimes) as harness:
        await harness.gateway.schedules.add(
            "chimes", cron=cron, zone="Europe/Berlin", to="fake:ann", prompt="What time is it?", **options
        )
        await clock.advance(days * DAY)
        return harness.platform.shown("ann"), harness


class TestDaylightSavingTime:
    async def test_a_time_that_is_left_out_comes_right_after_the_gap(self, tmp_path: Path):
        said, _ = await heard(tmp_path, SPRING - DAY, 3, "30 2 * * *")
        assert said == ["28. 02:30", "29. 03:00", "30. 02:30"]

    async def test_a_time_that_comes_twice_is_run_once(self, tmp_path: Path):
        said, _ = await heard(tmp_path, AUTUMN - DAY, 3, "30 2 * * *")
        assert said == ["24. 02:30", "25. 02:30", "26. 02:30"]

    @pytest.mark.parametrize(("day", "times"), [(SPRING, 23), (AUTUMN, 24)])
    async def test_each_hour_of_the_clock_is_run_once(self, tmp_path: Path, day: datetime, times: int):
        said, _ = await heard(tmp_path, day - HOUR, 2, "0 * * * *")
        of_the_day = [one for one in said if one.startswith(f"{day:%d}.")]
        assert len(of_the_day) == len(set(of_the_day)) == times

    @pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca", "UTC"])
    async def test_a_year_has_one_run_for_each_day(self, zone: str):
        timing = Timing(cron="15 2 * * *", zone=zone)
        timing.check()
        instant, runs = datetime(2026, 1, 1, tzinfo=UTC), 0
        end = datetime(2027, 1, 1, tzinfo=UTC)
        days = set[object]()
        while (following := timing.next_after(instant)) is not None and following < end:
            days.add(following.astimezone(ZoneInfo(zone)).date())
            instant, runs = following, runs + 1
        assert runs == len(days)
        assert runs in (364, 365)


class TestMissedTimes:
    @pytest.mark.parametrize(
        ("missed", "said"),
        [
            ("run_once", ["02. 08:00", "05. 12:00", "06. 08:00"]),
            (MissedTimes.SKIP, ["02. 08:00", "06. 08:00"]),
        ],
    )
    async def test_times_without_a_gateway_are_run_once_or_skipped(
        self, restartable: RestartableGateway, missed: str, said: list[str]
    ):
        clock = restartable.clock
        await clock.advance_to(datetime(2027, 1, 2, 6, tzinfo=BERLIN).astimezone(UTC))
        async with restartable.run(killed=True, agent=chimes) as harness:
            await harness.gateway.schedules.add(
                "chimes",
                cron="0 8 * * *",
                zone="Europe/Berlin",
                to="fake:ann",
                prompt="What time is it?",
                missed=missed,
            )
            await clock.advance(3 * HOUR)
        await clock.advance_to(datetime(2027, 1, 5, 12, tzinfo=BERLIN).astimezone(UTC))
        async with restartable.run(agent=chimes) as harness:
            await clock.advance(DAY)
            assert harness.platform.shown("ann") == said

    def test_a_time_is_missed_after_a_minute(self):
        timing = Timing(cron="0 8 * * *", zone="UTC", missed=MissedTimes.SKIP)
        due = datetime(2026, 1, 1, 8, tzinfo=UTC)
        assert plan_run(due, timing, due + LATE) == RunPlan(runs=True, next_at=due + DAY)
        assert plan_run(due, timing, due + LATE + timedelta(microseconds=1)).runs is False

    def test_the_next_time_lies_behind_the_one_that_was_due_also_if_the_clock_was_set_back(self):
        timing = Timing(cron="0 8 * * *", zone="UTC")
        due = datetime(2026, 1, 2, 8, tzinfo=UTC)
        assert plan_run(due, timing, due - DAY).next_at == due + DAY

    async def test_a_clock_that_is_set_back_repeats_no_time(self, tmp_path: Path):
        clock = FakeClock("2026-06-01 07:00")
        async with open_harness(tmp_path, clock=clock, agent=chimes) as harness:
            await harness.gateway.schedules.add(
                "chimes", cron="0 8 * * *", zone="UTC", to="fake:ann", prompt="?"
            )
            await clock.advance(2 * HOUR)
            clock.step(-2 * HOUR)
            await clock.advance(3 * HOUR)
            assert len(harness.platform.shown("ann")) == 1
            await clock.advance(DAY)
            assert len(harness.platform.shown("ann")) == 2

    async def test_beyond_the_calendar_it_is_done(self):
        timing = Timing(cron="0 0 31 12 *", zone="UTC")
        assert timing.next_after(datetime(9999, 12, 31, 1, tzinfo=UTC)) is None
        due = datetime(9999, 12, 31, tzinfo=UTC)
        assert plan_run(due, timing, due).next_at is None


async def test_a_year_of_mornings_survives_restarts_and_kills(restartable: RestartableGateway):
    clock = restartable.clock
    await clock.advance_to(datetime(2026, 12, 31, 12, tzinfo=BERLIN).astimezone(UTC))
    for number in range(12):
        async with restartable.run(killed=number % 2 == 0, agent=chimes) as harness:
            await harness.gateway.schedules.add(
                "chimes", cron="0 8 * * *", zone="Europe/Berlin", to="fake:ann", say="Good morning"
            )
            await clock.advance(30 * DAY)
    assert len(restartable.platform.shown("ann")) == 360
    assert {one.text for one in restartable.platform.sent} == {"Good morning"}


@pytest.mark.parametrize("place", ["schedule_admitted", "schedule_ran"])
@pytest.mark.parametrize("what", [{"prompt": "?"}, {"say": "ding"}])
async def test_a_run_that_is_cut_off_anywhere_is_made_once(
    restartable: RestartableGateway, place: str, what: dict[str, str]
):
    clock = restartable.clock
    async with restartable.run(killed=True, agent=chimes) as harness:
        await harness.gateway.schedules.add("chimes", cron="0 8 * * *", zone="UTC", to="fake:ann", **what)
        cut: list[str] = []

        def cut_off(name: str) -> None:
            if name == place and len(cut) < 3:
                cut.append(name)
                raise StorageError("the store", "is gone")

        arm_failpoints(cut_off)
        try:
            await clock.advance(DAY)
        finally:
            arm_failpoints(None)
        assert cut or (place, "say" in what) == ("schedule_admitted", True)
    async with restartable.run(agent=chimes) as harness:
        await clock.advance(timedelta(minutes=2))
        assert len(harness.platform.shown("ann")) == 1
        await clock.advance(DAY)
        assert len(harness.platform.shown("ann")) == 2


class TestTurns:
    async def test_a_turn_of_a_schedule_is_internal_and_answers_nobody(self, tmp_path: Path):
        async def look(turn: TurnContext) -> str:
            seen.append((turn.messages[0].internal, turn.text))
            return "Rain"

        seen: list[tuple[bool, str]] = []
        async with open_harness(tmp_path, agent=look) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
            entry = await harness.store.get_or_create_session(harness.platform.source("ann"), touch=False)
            before = entry.last_interaction_at
            at = harness.clock.now() + HOUR
            await harness.gateway.schedules.add("weather", at=at, to="fake:ann", prompt="How is the weather?")
            await harness.clock.advance(HOUR)
            assert seen == [(False, "hello"), (True, "How is the weather?")]
            assert harness.platform.shown("ann") == ["Rain", "Rain"]
            assert harness.platform.sent[-1].target.reply_to is None
            after = await harness.store.get_or_create_session(harness.platform.source("ann"), touch=False)
            assert after.last_interaction_at == before
            assert after.session_id == entry.session_id

    async def test_a_room_is_addressed_by_its_source(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=chimes) as harness:
            room = harness.platform.source("ann", chat="room", thread="7")
            await harness.gateway.schedules.add("room", cron="0 * * * *", to=room, prompt="?")
            await harness.clock.advance(HOUR)
            (sent,) = harness.platform.sent
            assert (sent.target.chat_id, sent.target.thread_id) == ("room", "7")

    async def test_without_room_in_the_queue_it_is_tried_again(self, tmp_path: Path):
        gate = anyio.Event()

        async def waits(turn: TurnContext) -> str:
            await gate.wait()
            return turn.text

        full = replace(QUICK, gateway=GatewayConfig(max_turns=1, max_waiting=1))
        async with open_harness(tmp_path, full, agent=waits) as harness:
            for person in ("bob", "eve"):
                await harness.platform.says(person, "hello")
                await harness.wait_until_idle()
            await harness.gateway.schedules.add("x", cron="* * * * *", to="fake:ann", prompt="and?")
            await harness.clock.advance(timedelta(seconds=90))
            (one,) = await harness.gateway.schedules.list()
            assert one.runs == 0
            gate.set()
            await harness.clock.advance(timedelta(seconds=40))
            assert harness.platform.shown("ann") == ["and?"]


class TestCare:
    async def test_it_is_listed_paused_and_removed(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=chimes) as harness:
            schedules = harness.gateway.schedules
            for name in ("b", "a"):
                await schedules.add(name, cron="0 * * * *", zone="UTC", to="fake:ann", say=name)
            later = await harness.gateway.say("fake:ann", "once", when=harness.clock.now() + DAY)
            assert [one.name for one in await schedules.list()] == ["a", "b"]
            paused = await schedules.pause("a")
            assert paused is not None
            assert paused.state is ScheduleState.PAUSED
            await harness.clock.advance(2 * HOUR)
            assert harness.platform.shown("ann") == ["b", "b"]
            resumed = await schedules.resume("a")
            assert resumed is not None
            assert resumed.due_at == harness.clock.now() + HOUR
            assert await schedules.remove("b")
            assert not await schedules.remove("b")
            await harness.clock.advance(HOUR)
            assert harness.platform.shown("ann") == ["b", "b", "a"]
            assert (await schedules.pause("c"), await schedules.resume("c")) == (None, None)
            with pytest.raises(InvalidInputError, match="must not begin with"):
                await schedules.remove(later.id)

    async def test_each_run_is_an_event(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            async with harness.gateway.events.listen(kinds=[EventKind.SCHEDULE_RAN]) as events:
                await harness.gateway.schedules.add("x", cron="0 * * * *", to="fake:ann", say="hi")
                await harness.clock.advance(2 * HOUR)
                found = events.take()
            assert [one.facts["schedule"] for one in found] == ["x", "x"]

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"cron": "* * * * *"},
            {"cron": "* * * * *", "say": "x", "prompt": "y"},
            {"cron": "* * * * *", "at": datetime(2030, 1, 1, tzinfo=UTC), "say": "x"},
            {"at": datetime(2030, 1, 1, tzinfo=UTC), "zone": "UTC", "say": "x"},
            {"cron": "* * * * *", "say": ""},
            {"cron": "* * * * *", "prompt": " "},
            {"cron": "* * * * *", "say": "x", "missed": "sometimes"},
            {"cron": 5, "say": "x"},
            {"at": "tomorrow", "say": "x"},
        ],
    )
    async def test_what_makes_no_schedule_is_refused(self, tmp_path: Path, options: dict[str, Any]):
        async with open_harness(tmp_path, agent=echo) as harness:
            with pytest.raises(InvalidInputError):
                await harness.gateway.schedules.add("x", to="fake:ann", **options)
            assert await harness.gateway.schedules.list() == []

    async def test_wrong_times_zones_names_and_targets_are_refused(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=echo) as harness:
            add = harness.gateway.schedules.add
            with pytest.raises(InvalidPolicyError):
                await add("x", cron="61 * * * *", to="fake:ann", say="x")
            with pytest.raises(InvalidPolicyError):
                await add("x", cron="* * * * *", zone="Berlin", to="fake:ann", say="x")
            with pytest.raises(UnknownTargetError):
                await add("x", cron="* * * * *", to="pager", say="x")
            for name in ("", " ", "say:x", "x" * 201, "a\nb", 7):
                with pytest.raises(InvalidInputError, match="the name of a schedule"):
                    await add(name, cron="* * * * *", to="fake:ann", say="x")  # type: ignore[arg-type]

    async def test_a_schedule_of_an_account_that_is_not_served_here_waits(self, tmp_path: Path):
        other = FakePlatform("pager")
        clock = FakeClock()
        async with open_harness(tmp_path, clock=clock, agent=echo, others=[other]) as harness:
            await harness.gateway.schedules.add("x", cron="0 * * * *", to="pager:1", say="hi")
        async with open_harness(tmp_path, clock=clock, agent=echo) as harness:
            await clock.advance(DAY)
            (one,) = await harness.gateway.schedules.list()
            assert one.runs == 0
        async with open_harness(tmp_path, clock=clock, agent=echo, others=[other]):
            await clock.advance(timedelta(seconds=1))
            assert other.shown() == ["hi"]
