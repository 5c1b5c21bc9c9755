"""The database fails while an agent works: that is nobody's answer, so the turn is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionStore, TurnContext
from gateway_sessions.config.gateway_sections import GatewayConfig
from gateway_sessions.core.notices.notice_texts import FAILED
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import MissingRightError, StorageFullError, StorageUnavailableError
from gateway_sessions.runtime.gateway import execution
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.storage.tables.lanes import load_lane
from gateway_sessions.testing import FakeClock, FakePlatform
from gateway_sessions.testing.agents import ScriptedAgent
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, echo, open_harness
from tests.raw_sql import execute_sql

Trouble = Callable[[], Exception]


def unavailable() -> Exception:
    return StorageUnavailableError("sessions.db", "a disk that fails now and then")


def no_right() -> Exception:
    return MissingRightError("PostgreSQL", "permission denied for table messages")


def full() -> Exception:
    return StorageFullError("sessions.db", "no space is left")


class Careful:
    """Writes down what it does before it answers."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str | None]] = []

    async def run_turn(self, turn: TurnContext) -> str:
        self.told.append((turn.attempt, turn.recovered))
        assert await turn.history()
        await turn.append({"role": "assistant", "content": "I look it up."})
        return f"you said: {turn.text}"


def fail(monkeypatch: pytest.MonkeyPatch, method: str, trouble: Trouble, times: int) -> None:
    """Let that method of turns fail so often."""
    real: Callable[..., Awaitable[object]] = getattr(Turn, method)
    left = times

    async def failing(self: Turn, *args: object, **options: object) -> object:
        nonlocal left
        if left:
            left -= 1
            raise trouble()
        return await real(self, *args, **options)

    monkeypatch.setattr(Turn, method, failing)


def answers(harness: GatewayHarness) -> list[str]:
    return [one.text for one in harness.platform.sent if not one.message.is_notice]


async def passes(harness: GatewayHarness, seconds: int) -> None:
    for _ in range(seconds):
        await harness.clock.advance(seconds=1)
        await harness.wait_until_idle()


@pytest.mark.parametrize("trouble", [unavailable, full])
@pytest.mark.parametrize("method", ["append", "transcript"])
async def test_a_turn_whose_storage_failed_is_tried_again_a_little_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, trouble: Trouble
):
    fail(monkeypatch, method, trouble, times=1)
    agent = Careful()
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "and again")
        await harness.wait_until_idle()
        assert answers(harness) == []
        await passes(harness, seconds=5)
        assert answers(harness) == [
            "you said: hello\nand again"
        ]  # it waits like any other, so they are a burst
        assert await harness.outcomes("ann") == {"turned": 2}
        assert [attempt for attempt, _ in agent.told][-1] == 2
        assert "attempt 2" in str(agent.told[-1][1])


async def test_other_lanes_do_not_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fail(monkeypatch, "append", unavailable, times=1)
    async with open_harness(tmp_path, agent=Careful()) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        await harness.platform.says("bob", "hi")
        await harness.wait_until_idle()
        assert harness.platform.shown() == ["you said: hi"]


async def test_a_fault_that_passes_makes_no_dead_letter_however_often_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    agent, faults = Careful(), QUICK.agent.max_restart_attempts * 3
    fail(monkeypatch, "append", unavailable, times=faults)
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await passes(harness, seconds=200)
        assert [attempt for attempt, _ in agent.told] == list(range(1, faults + 2))
        assert harness.platform.shown("ann") == ["you said: hello"]
        assert await harness.outcomes("ann") == {"turned": 1}


async def test_a_fault_that_passes_is_no_try_of_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fail(monkeypatch, "append", unavailable, times=1)
    async with open_harness(tmp_path, agent=Careful()) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        lane = await harness.store.db.read(partial(load_lane, harness.key("ann")))
        assert (lane.running, lane.attempts, lane.waiting) == (False, 0, 1)


async def test_a_fault_is_known_in_whatever_an_agent_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fail(monkeypatch, "append", unavailable, times=2)

    async def wrapping(turn: TurnContext) -> str:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(turn.append({"role": "assistant", "content": "I look it up."}))
        except ExceptionGroup as group:
            problem = "a tool has failed"
            raise LookupError(problem) from group
        return f"you said: {turn.text}"

    async with open_harness(tmp_path, agent=wrapping) as harness:
        await harness.platform.says("ann", "hello")
        await passes(harness, seconds=5)
        assert harness.platform.shown("ann") == ["you said: hello"]


async def test_a_fault_that_does_not_pass_counts_as_a_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    agent = Careful()
    fail(monkeypatch, "append", no_right, times=1000)
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await passes(harness, seconds=20)
        assert [attempt for attempt, _ in agent.told] == [1, 2, 3]
        assert len(agent.told) == QUICK.agent.max_restart_attempts
        assert harness.platform.shown("ann") == [FAILED]
        assert await harness.outcomes("ann") == {"dead": 1}


async def test_a_turn_that_can_never_be_stored_is_given_up_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    agent = Careful()
    fail(monkeypatch, "append", unavailable, times=1000)
    monkeypatch.setattr(execution, "MOST_TRIES", 6)
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await passes(harness, seconds=100)
        assert len(agent.told) == 7
        assert await harness.outcomes("ann") == {"dead": 1}


async def test_while_nothing_can_be_written_the_turn_waits_for_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fail(monkeypatch, "append", full, times=1)
    fail(monkeypatch, "release", full, times=3)
    async with open_harness(tmp_path, agent=Careful()) as harness:
        await harness.platform.says("ann", "hello")
        await passes(harness, seconds=10)
        assert harness.platform.shown("ann") == ["you said: hello"]


async def test_a_commit_that_waited_long_is_made_soon_after_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fail(monkeypatch, "commit", unavailable, times=10_000)
    async with open_harness(tmp_path, agent=Careful()) as harness:
        await harness.platform.says("ann", "hello")
        await passes(harness, seconds=120)
        await harness.platform.says("ann", "and again")
        assert answers(harness) == []
        monkeypatch.undo()
        await passes(harness, seconds=3)
        assert answers(harness) == ["you said: hello", "you said: and again"]


async def test_a_gateway_that_ends_waits_for_no_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        fail(patch, "commit", unavailable, times=10_000)
        async with open_harness(tmp_path, agent=Careful()) as harness:
            await harness.platform.says("ann", "hello")
            await passes(harness, seconds=30)
            async with asyncio.timeout(15):  # the clock stands still
                assert not await harness.gateway.drain(timedelta(0))
            assert harness.gateway.running_turn(harness.key("ann")) is None
    async with open_harness(
        tmp_path, agent=Careful(), clock=harness.clock, platform=harness.platform
    ) as harness:
        await passes(harness, seconds=5)
        assert harness.platform.shown("ann") == ["you said: hello"]


async def test_a_gateway_that_ends_meanwhile_leaves_the_turn_to_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        fail(patch, "append", unavailable, times=1)
        async with open_harness(tmp_path, agent=Careful()) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
            assert await harness.gateway.drain(timedelta(0))
    async with open_harness(
        tmp_path, agent=Careful(), clock=harness.clock, platform=harness.platform
    ) as harness:
        await passes(harness, seconds=5)
        assert harness.platform.shown("ann") == ["you said: hello"]


async def test_a_damaged_lane_keeps_no_other_lane_waiting(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    clock = FakeClock()
    platform = FakePlatform(clock=clock)
    async with SessionStore.open(tmp_path, QUICK, clock=clock) as store:
        for person in ("ann", "bob"):
            message = InboundMessage(source=platform.source(person), text=f"from {person}", message_id=person)
            await store.enqueue(message)
            clock.step(seconds=1)
    execute_sql(tmp_path / "sessions.db", "UPDATE entries SET record = '{' WHERE session_key LIKE '%ann'")
    one_at_a_time = replace(QUICK, gateway=GatewayConfig(max_turns=1))
    async with open_harness(tmp_path, one_at_a_time, clock=clock, platform=platform, agent=echo) as harness:
        await harness.wait_until_idle()
        assert platform.shown() == ["from bob"]
        assert await harness.outcomes("ann") == {"open": 1}
        assert await harness.store.queue_depth(harness.key("ann")) == 1
        assert [getattr(one, "action", None) for one in caplog.records].count("lane_damaged") == 1
        await harness.clock.advance(minutes=6)
        await harness.wait_until_idle()
        assert [getattr(one, "action", None) for one in caplog.records].count("lane_damaged") == 2


async def test_a_conversation_that_cannot_be_read_is_no_reason_to_say_nothing(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent()) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        execute_sql(tmp_path / "sessions.db", "UPDATE messages SET tool_calls = '{' WHERE role = 'assistant'")
        await harness.platform.says("ann", "are you there?")
        await harness.wait_until_idle()
        assert "Something went wrong" in harness.platform.shown("ann")[-1]
        (dead,) = await harness.store.dead_letters()
        assert dead.message.text == "are you there?"
