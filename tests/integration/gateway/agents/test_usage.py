"""What a turn has used was spent, however the turn ends: it is counted, and once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway_sessions import Config, Scope
from gateway_sessions.budgets import BudgetLimit, Budgets
from gateway_sessions.config import AgentConfig
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.usage.usage_events import make_usage
from gateway_sessions.errors import FencedError, StorageUnavailableError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.storage.transactions.transcripts.usage import record_turn_usage
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, busy_config, open_harness

LIMITED = replace(QUICK, agent=AgentConfig(gateway_timeout=timedelta(seconds=5)))
WATCHED = replace(QUICK, gateway=replace(QUICK.gateway, inactivity_timeout=timedelta(seconds=5)))


async def spends(turn: TurnContext) -> str:
    """Use a model, and then do as one is told."""
    turn.report_usage(model="m", input_tokens=10, estimated_cost_usd=1.0)
    match turn.text:
        case "fail":
            raise LookupError
        case "hang":
            await asyncio.Event().wait()
        case "answer what cannot be stored":
            return "x" * (17 << 20)
        case "spend while being stopped":
            try:
                await asyncio.Event().wait()
            finally:
                turn.report_usage(model="m", input_tokens=10, estimated_cost_usd=1.0)
        case _:
            pass
    return "done"


async def spent(harness: GatewayHarness, session_id: str) -> tuple[int, float | None]:
    used = (await harness.store.db.usage_of_session(session_id)).total
    return used.events, used.cost_usd


async def after(harness: GatewayHarness, *said: str) -> tuple[int, float | None]:
    """What was spent in the session of the first message, once all is said."""
    await harness.platform.says("ann", said[0])
    await harness.wait_until_idle()
    session_id = await harness.store.peek_session_id(harness.key("ann"))
    assert session_id is not None
    for text in said[1:]:
        await harness.platform.says("ann", text)
        await harness.wait_until_idle()
    for _ in range(2):
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()
    return await spent(harness, session_id)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (QUICK, ["done"]),
        (QUICK, ["fail"]),
        (QUICK, ["answer what cannot be stored"]),
        (LIMITED, ["hang"]),
        (WATCHED, ["hang"]),
        (QUICK, ["hang", "/stop"]),
        (QUICK, ["hang", "/new"]),
    ],
)
async def test_a_turn_costs_what_it_has_used_however_it_ends(tmp_path: Path, config: Config, said: list[str]):
    async with open_harness(tmp_path, config, agent=spends) as harness:
        assert await after(harness, *said) == (1, 1.0)


@pytest.mark.parametrize("mode", [BusyMode.INTERRUPT, BusyMode.ROLLBACK])
async def test_so_do_both_of_which_one_stops_the_other(tmp_path: Path, mode: BusyMode):
    async with open_harness(tmp_path, busy_config(mode), agent=spends) as harness:
        assert await after(harness, "hang", "done") == (2, 2.0)


@pytest.mark.parametrize("stop", ["/stop", "/new"])
async def test_what_is_spent_while_a_turn_is_stopped_counts_as_well(tmp_path: Path, stop: str):
    async with open_harness(tmp_path, agent=spends) as harness:
        assert await after(harness, "spend while being stopped", stop) == (2, 2.0)


async def test_a_turn_that_goes_on_after_the_next_start_has_cost_both_times(tmp_path: Path):
    async with open_harness(tmp_path, agent=spends) as harness:
        await harness.platform.says("ann", "hang")
        await harness.wait_until_idle()
        await harness.gateway.drain(timedelta(0))
    async with open_harness(
        tmp_path, agent=spends, clock=harness.clock, platform=harness.platform
    ) as harness:
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/stop")
        await harness.wait_until_idle()
        session_id = await harness.store.peek_session_id(harness.key("ann"))
        assert session_id is not None
        assert await spent(harness, session_id) == (2, 2.0)


async def test_turns_that_fail_reach_a_budget(tmp_path: Path):
    config = replace(QUICK, budgets=Budgets(session=BudgetLimit(usd=1.5)))
    calls = 0

    async def agent(turn: TurnContext) -> str:
        nonlocal calls
        calls += 1
        return await spends(turn)

    async with open_harness(tmp_path, config, agent=agent) as harness:
        for _ in range(4):
            await harness.platform.says("ann", "fail")
            await harness.wait_until_idle()
        assert calls == 2


async def test_nothing_is_counted_of_somebody_who_was_forgotten_meanwhile(tmp_path: Path):
    leaves = asyncio.Event()

    async def agent(turn: TurnContext) -> None:
        turn.report_usage(model="m", input_tokens=10, estimated_cost_usd=1.0)
        try:
            await asyncio.Event().wait()
        finally:
            await leaves.wait()

    async with open_harness(tmp_path, agent=agent) as harness:
        for text in ("hang", "/stop"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        await harness.store.erase(harness.platform.source("ann"))
        leaves.set()
        await harness.wait_until_idle()
        assert harness.gateway.running_turn(harness.key("ann")) is None
        assert (await harness.store.db.insights(scope=Scope.operator())).models == ()


async def test_a_turn_may_tell_again_what_it_used_when_it_is_tried_again_in_another_session(tmp_path: Path):
    fails = True

    async def agent(turn: TurnContext) -> str:
        turn.report_usage(make_usage(f"request {turn.seq}", turn.clock.now(), estimated_cost_usd=1.0))
        if fails:
            raise LookupError
        turn.report_usage(model="m", estimated_cost_usd=0.5)
        return "done"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hi")
        await harness.wait_until_idle()
        first = await harness.store.peek_session_id(harness.key("ann"))
        fails = False
        for text in ("/new", "/retry"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        second = await harness.store.peek_session_id(harness.key("ann"))
        assert harness.platform.shown()[-1] == "done"
        assert first is not None
        assert second is not None
        assert (await spent(harness, first), await spent(harness, second)) == ((1, 1.0), (1, 0.5))


async def test_what_is_told_after_the_end_is_refused_because_nobody_would_count_it(tmp_path: Path):
    turns: list[TurnContext] = []

    async def agent(turn: TurnContext) -> str:
        turns.append(turn)
        return "done"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hi")
        await harness.wait_until_idle()
        with pytest.raises(FencedError):
            turns[0].report_usage(model="m", input_tokens=1)


class Away:
    """A database that takes no more of what was spent until it is back."""

    def __init__(self, harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away = True
        self.refused = 0
        self._write = harness.store.db.write
        monkeypatch.setattr(harness.store.db, "write", self)

    async def __call__(self, transaction: Any) -> object:
        if self.away and getattr(transaction, "func", None) is record_turn_usage:
            self.refused += 1
            raise StorageUnavailableError("sessions.db", "it is away")
        return await self._write(transaction)


async def test_what_was_spent_is_counted_when_the_database_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with open_harness(tmp_path, agent=spends) as harness:
        database = Away(harness, monkeypatch)
        assert await after(harness, "hang", "/stop") == (0, 0.0)
        await harness.platform.says("ann", "done")
        await harness.wait_until_idle()
        assert harness.platform.shown() == ["Stopped.", "done"]
        database.away = False
        session_id = await harness.store.peek_session_id(harness.key("ann"))
        assert session_id is not None
        await harness.clock.advance(seconds=30)
        await harness.wait_until_idle()
        assert await spent(harness, session_id) == (2, 2.0)


async def test_a_gateway_that_ends_meanwhile_says_that_it_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with open_harness(tmp_path, agent=spends) as harness:
        database = Away(harness, monkeypatch)
        await after(harness, "hang", "/stop")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.gateway.drain, timedelta(0))
            await harness.clock.advance(seconds=31)
        assert database.refused > 1
        lost = [one for one in caplog.records if getattr(one, "action", "") == "usage_lost"]
        assert [vars(one)["session_key"] for one in lost] == [harness.key("ann")]
