"""An answer that cannot be stored is a failure like any other: people are told, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.notices.notice_texts import FAILED
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.storable_text import MAX_TEXT_BYTES
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.testing.agents import ScriptedAgent, hangs
from tests.integration.gateway.gateway_harness import busy_config, open_harness


def deep(levels: int) -> Any:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested]
    return nested


REFUSED: dict[str, Callable[[], Any]] = {
    "too long": lambda: "x" * (MAX_TEXT_BYTES + 1),
    "nested too deep": lambda: Reply("hi", extra={"a": deep(100)}),
    "nested much too deep": lambda: Reply("hi", extra={"a": deep(100_000)}),
    "not a number": lambda: Reply("hi", extra={"a": float("nan")}),
    "no JSON": lambda: Reply("hi", extra={"a": object()}),
    "reasoning that is no text": lambda: Reply("hi", reasoning=5),  # type: ignore[arg-type]
    "a reason that is no text": lambda: Reply("hi", finish_reason=5),  # type: ignore[arg-type]
    "no attachment": lambda: Reply("hi", attachments=("x",)),  # type: ignore[arg-type]
    "no format": lambda: Reply("hi", format="bogus"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED)
async def test_the_person_is_told_and_can_try_again(tmp_path: Path, answer: Callable[[], Any]):
    refused = True

    async def agent(turn: TurnContext) -> Reply | str:
        return answer() if refused else "done"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        assert harness.platform.shown() == [FAILED]
        assert await harness.outcomes("ann") == {"dead": 1}
        refused = False
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert harness.platform.shown()[-1] == "done"
        assert await harness.transcript("ann") == [("user", "one"), ("assistant", "done")]


async def test_what_was_to_be_told_with_it_is_told(tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply | str:
        return Reply("hi", extra={"a": float("nan")}) if turn.text == "two" else "done"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        harness.clock.step(hours=40)
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
        first, notice, failed = harness.platform.shown()
        assert (first, failed) == ("done", FAILED)
        assert "new conversation" in notice or "reset" in notice


async def test_the_same_goes_for_what_was_shown_of_a_reply_that_was_interrupted(tmp_path: Path):
    async def shows(turn: TurnContext) -> None:
        await turn.show("x" * (MAX_TEXT_BYTES + 1))

    agent = ScriptedAgent([shows, hangs()], "done")
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.clock.advance(seconds=1)
        await harness.wait_until_idle()
        assert FAILED in harness.platform.shown()
        assert await harness.outcomes("ann") == {"dead": 1, "turned": 1}


async def test_and_for_rows_that_an_agent_appends(tmp_path: Path):
    async def appends(turn: TurnContext) -> None:
        await turn.append({"role": "assistant", "content": "first"})
        await turn.append({"role": "tool", "content": "42", "extra": float("nan")})

    async with open_harness(tmp_path, agent=ScriptedAgent([appends])) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        assert harness.platform.shown() == [FAILED]
        assert await harness.transcript("ann") == [("user", "one"), ("assistant", "first")]


async def test_the_next_replies_of_the_lane_find_their_way(tmp_path: Path):
    agent = ScriptedAgent("x" * (MAX_TEXT_BYTES + 1), "two", "three")
    async with open_harness(tmp_path, agent=agent) as harness:
        for text in ("one", "two", "three"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert harness.platform.shown() == [FAILED, "two", "three"]
        assert not harness.gateway.busy
