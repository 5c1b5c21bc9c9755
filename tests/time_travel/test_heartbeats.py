"""What a program says by itself keeps no session alive, and tells nobody of a reset who is not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway_sessions import Config, InboundMessage, ResetMode, SessionResetPolicy
from gateway_sessions.runtime.agents.turn_context import TurnContext
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, open_harness

IDLE = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
DAILY = SessionResetPolicy(mode=ResetMode.DAILY, at_hour=4)


async def ok(turn: TurnContext) -> str:
    return f"{turn.text}: ok"


async def beats(harness: GatewayHarness, *, times: int, minutes: float) -> None:
    """Heartbeats, each that long after the one before."""
    for _ in range(times):
        await harness.clock.advance(minutes=minutes)
        source = harness.platform.source("ann")
        await harness.gateway.submit(InboundMessage(source=source, text="beat", internal=True))
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()


@pytest.mark.parametrize(("minutes", "times"), [(7, 9), (50, 2), (59, 2), (300, 1)])
async def test_heartbeats_however_often_keep_no_idle_session_alive(
    tmp_path: Path, minutes: float, times: int
):
    async with open_harness(tmp_path, replace(QUICK, session_reset=IDLE), agent=ok) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        first = await harness.store.get_session(harness.key("ann"))
        assert first is not None
        await beats(harness, times=times, minutes=minutes)
        now = await harness.store.get_session(harness.key("ann"))
        assert now is not None
        assert (now.session_id != first.session_id) == (minutes * times > 60)
        assert now.previous_session_id == first.session_id


async def test_heartbeats_move_no_clock_of_a_session_that_is_not_due(tmp_path: Path):
    async with open_harness(tmp_path, replace(QUICK, session_reset=IDLE), agent=ok) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        first = await harness.store.get_session(harness.key("ann"))
        assert first is not None
        await beats(harness, times=5, minutes=11)
        now = await harness.store.get_session(harness.key("ann"))
        assert now is not None
        assert (now.session_id, now.last_interaction_at) == (first.session_id, first.last_interaction_at)
        await harness.platform.says("ann", "still there?")
        await harness.wait_until_idle()
        assert (await harness.store.peek_session_id(harness.key("ann"))) == first.session_id


@pytest.mark.parametrize("config", [replace(QUICK, session_reset=one) for one in (IDLE, DAILY)])
async def test_people_are_told_of_a_reset_when_they_come_back_and_not_by_a_heartbeat(
    tmp_path: Path, config: Config
):
    async with open_harness(tmp_path, config, agent=ok) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        await harness.clock.advance(hours=24)
        await beats(harness, times=2, minutes=10)
        assert harness.platform.shown() == ["hello: ok", "beat: ok", "beat: ok"]
        await harness.platform.says("ann", "good morning")
        await harness.wait_until_idle()
        *_, notice, answer = harness.platform.shown()
        assert notice.startswith("This is a new conversation")
        assert answer == "good morning: ok"
        assert len(harness.platform.shown()) == 5
