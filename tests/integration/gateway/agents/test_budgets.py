"""Budgets: people are warned once, what would go over does not run, and nothing gets lost by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Config
from gateway_sessions.budgets import BudgetLimit, Budgets, UnknownPrices
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.budget_gate import has_limits
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import Gate
from tests.integration.gateway.documented_events import take_events
from tests.integration.gateway.gateway_harness import QUICK, open_harness, wait_until

NOON = "2026-06-10T12:00:00+00:00"


def limited(config: Config = QUICK, **budgets: Any) -> Config:
    return replace(config, budgets=Budgets(**budgets))


def tokens(limit: int) -> BudgetLimit:
    return BudgetLimit(tokens=limit)


async def costly(turn: TurnContext) -> str:
    """Use as many tokens as the message says."""
    turn.report_usage(model="large", input_tokens=int(turn.text), api_calls=1)
    return f"used {turn.text}"


async def test_without_budgets_nothing_is_looked_up(tmp_path: Path):
    assert not has_limits(Budgets())
    assert has_limits(Budgets(day=BudgetLimit(usd=0)))
    async with open_harness(tmp_path, agent=costly) as harness, harness.store.events.listen() as listener:
        for _ in range(2):
            await harness.platform.says("ann", "100000")
            await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["used 100000"] * 2
        assert take_events(listener, EventKind.BUDGET_WARNING, EventKind.BUDGET_STOP) == []


async def test_people_are_warned_once_in_a_session_and_a_day(tmp_path: Path):
    clock = FakeClock(NOON)
    config = limited(person=tokens(100), warn_percent=80)
    async with (
        open_harness(tmp_path, config, clock=clock, agent=costly) as harness,
        harness.store.events.listen(kinds=[EventKind.BUDGET_WARNING]) as listener,
    ):
        for text in ("85", "5", "5"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [
            "used 85",
            "85 % of your budget for today is used.",
            "used 5",
            "used 5",
        ]
        (warned,) = take_events(listener)
        assert (warned.facts["budget"], warned.facts["spent"], warned.facts["percent"]) == ("person", 85, 85)
        await clock.advance(hours=13)
        for text in ("85", "1"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert [text for text in harness.platform.shown("ann") if "%" in text] == [
            "85 % of your budget for today is used."
        ] * 2


async def test_another_budget_has_a_warning_of_its_own(tmp_path: Path):
    config = limited(person=tokens(100), session=tokens(110))
    async with open_harness(tmp_path, config, agent=costly) as harness:
        for text in ("85", "5", "1"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        told = [text for text in harness.platform.shown("ann") if "%" in text]
        assert told == [
            "85 % of your budget for today is used.",
            "81 % of the budget of this conversation is used.",
        ]


async def test_a_warning_that_nobody_got_is_given_again(tmp_path: Path):
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        if turn.text == "hang":
            await gate.passage()
        return await costly(turn)

    config = replace(limited(person=tokens(100)), busy=replace(QUICK.busy, mode="interrupt"))
    async with open_harness(tmp_path, config, agent=agent) as harness:
        await harness.platform.says("ann", "85")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "hang")
        await gate.reached()
        await harness.platform.says("ann", "5")
        await harness.clock.advance(seconds=2)
        assert [text for text in harness.platform.shown("ann") if "%" in text] == [
            "85 % of your budget for today is used."
        ]
        assert "used 5" in harness.platform.shown("ann")


async def test_what_would_go_over_a_budget_does_not_run_and_is_answered(tmp_path: Path):
    clock = FakeClock(NOON)
    async with (
        open_harness(tmp_path, limited(person=tokens(100)), clock=clock, agent=costly) as harness,
        harness.store.events.listen(kinds=[EventKind.BUDGET_STOP]) as listener,
    ):
        for text in ("120", "30"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        stopped = (
            "I did not work on that: your budget for today is used up. "
            "It goes on at 00:00 (UTC), in 12 hours. Please send your message again then."
        )
        assert harness.platform.shown("ann") == ["used 120", stopped]
        assert await harness.transcript("ann") == [
            ("user", "120"),
            ("assistant", "used 120"),
            ("user", "30"),
            ("assistant", stopped),
        ]
        (event,) = take_events(listener)
        assert event.session_key == harness.key("ann")
        await harness.platform.says("bob", "1")
        await harness.wait_until_idle()
        assert harness.platform.shown("bob") == ["used 1"]


async def test_after_midnight_a_message_that_was_stopped_can_be_tried_again(tmp_path: Path):
    clock = FakeClock(NOON)
    config = limited(replace(QUICK, session_reset=SessionResetPolicy(mode="none")), person=tokens(100))
    async with open_harness(tmp_path, config, clock=clock, agent=costly) as harness:
        for text in ("120", "30"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        await clock.advance(hours=12)
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[-1] == "used 30"
        assert (await harness.transcript("ann"))[-2:] == [("user", "30"), ("assistant", "used 30")]


async def test_a_day_is_that_of_the_lane(tmp_path: Path):
    clock = FakeClock("2026-06-10T20:00:00+00:00")
    async with open_harness(tmp_path, limited(day=tokens(100)), clock=clock, agent=costly) as harness:
        await harness.platform.says("ann", "1")
        await harness.wait_until_idle()
        await harness.store.set_zone(harness.key("ann"), "Asia/Tokyo")
        for text in ("100", "1"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert "It goes on at 00:00 (Asia/Tokyo), in 19 hours." in harness.platform.shown("ann")[-1]
        await harness.platform.says("bob", "1")
        await harness.wait_until_idle()
        assert "It goes on at 00:00 (UTC), in 4 hours." in harness.platform.shown("bob")[-1]


async def test_a_new_conversation_has_a_budget_of_its_own(tmp_path: Path):
    async with open_harness(tmp_path, limited(session=tokens(100)), agent=costly) as harness:
        for text in ("120", "30"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert "/new begins a conversation with a budget of its own." in harness.platform.shown("ann")[-1]
        await harness.store.reset_session(harness.key("ann"))
        await harness.platform.says("ann", "30")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[-1] == "used 30"


@pytest.mark.parametrize("way_on", ["/new", "a night"])
async def test_whoever_does_what_a_budget_says_is_answered(tmp_path: Path, way_on: str):
    clock = FakeClock(NOON)
    nightly = replace(QUICK, session_reset=SessionResetPolicy(mode="daily"))
    limit = limited(nightly, **{"session" if way_on == "/new" else "person": tokens(100)})
    async with open_harness(tmp_path, limit, clock=clock, agent=costly) as harness:
        for text in ("120", "30"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        told = harness.platform.shown("ann")[-1]
        assert told.endswith("Please send your message again then.")
        assert ("/new" in told, "/retry" in told) == (way_on == "/new", False)
        if way_on == "/new":
            await harness.platform.says("ann", "/new")
        else:
            await clock.advance(hours=20)
        await harness.platform.says("ann", "30")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[-1] == "used 30"


async def test_unknown_prices_stop_a_budget_in_dollars_if_they_shall(tmp_path: Path):
    config = limited(day=BudgetLimit(usd=5), unknown_prices=UnknownPrices.STOP)
    async with open_harness(tmp_path, config, agent=costly) as harness:
        for text in ("1", "2"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert (
            "nobody knows how much of today's budget for everybody is used"
            in harness.platform.shown("ann")[-1]
        )


async def test_nobody_is_told_of_what_the_program_itself_wanted(tmp_path: Path):
    async with open_harness(tmp_path, limited(person=tokens(100)), agent=costly) as harness:
        await harness.platform.says("ann", "85")
        await harness.wait_until_idle()
        for text in ("20", "20"):
            internal = InboundMessage(source=harness.platform.source("ann"), text=text, internal=True)
            await harness.gateway.submit(internal)
            await harness.wait_until_idle()
        await wait_until(lambda: harness.gateway.running_turn(harness.key("ann")) is None)
        assert harness.platform.shown("ann") == ["used 85", "used 20"]
        assert await harness.outcomes("ann") == {"turned": 3}
