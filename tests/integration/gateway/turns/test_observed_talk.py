"""What people say to each other in a room reaches the agent with the next turn, and begins none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway_sessions import Accepted, BusyMode, Config, InboundMessage, SessionSource, TurnContext
from gateway_sessions.queue import Disposition
from tests.integration.gateway.gateway_harness import QUICK, busy_config, open_harness

SHARED = replace(QUICK, group_sessions_per_user=False)


def in_room(
    person: str, text: str, *, observed: bool = False, message_id: str | None = None
) -> InboundMessage:
    source = SessionSource(
        platform="fake", chat_type="group", chat_id="room", user_id=person, user_name=person.title()
    )
    return InboundMessage(source=source, text=text, message_id=message_id or text, observed=observed)


async def test_the_agent_reads_with_the_next_turn_who_said_what(tmp_path: Path):
    read: list[str] = []

    async def agent(turn: TurnContext) -> str:
        read.append(str((await turn.history())[-1]["content"]))
        return "well"

    async with open_harness(tmp_path, SHARED, agent=agent) as one:
        for person, text in (("ben", "the train is late"), ("cleo", "/stop@somebody"), ("ben", "by an hour")):
            receipt = await one.gateway.submit(in_room(person, text, observed=True))
            assert isinstance(receipt, Accepted)
            assert receipt.disposition is Disposition.OBSERVED
        await one.wait_until_idle()
        assert (read, one.platform.sent) == ([], [])
        await one.gateway.submit(in_room("ann", "what now?"))
        await one.wait_until_idle()
        (words,) = read
        order = ["[Ben] the train is late", "[Cleo] /stop@somebody", "[Ben] by an hour", "[Ann] what now?"]
        assert sorted(order, key=words.index) == order


@pytest.mark.parametrize("mode", list(BusyMode))
async def test_it_stops_no_turn_and_reaches_none_that_runs(tmp_path: Path, mode: BusyMode):
    begun, go_on = anyio.Event(), anyio.Event()
    turns: list[list[str]] = []

    async def agent(turn: TurnContext) -> str:
        turns.append([one.text for one in turn.messages])
        begun.set()
        await go_on.wait()
        return "well"

    config: Config = replace(busy_config(mode, debounce=timedelta(0)), group_sessions_per_user=False)
    async with open_harness(tmp_path, config, agent=agent) as one:
        await one.gateway.submit(in_room("ann", "one"))
        await begun.wait()
        receipt = await one.gateway.submit(in_room("ben", "hm", observed=True))
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.OBSERVED
        go_on.set()
        await one.wait_until_idle()
        assert turns == [["one"]]
        assert [reply.text for reply in one.platform.sent] == ["well"]
        rows: list[Any] = await one.store.db.get_messages(receipt.session_id or "")
        assert [(row.text, row.observed) for row in rows] == [("one", False), ("hm", True), ("well", False)]


async def test_nobody_is_told_that_it_is_refused(tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        return "well"

    async with open_harness(tmp_path, SHARED, agent=agent) as one:
        await one.gateway.submit(in_room("ben", " ", observed=True, message_id="1"))
        await one.wait_until_idle()
        assert one.platform.sent == []


async def test_who_shares_no_session_is_told_so_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def agent(turn: TurnContext) -> str:
        return "well"

    async with open_harness(tmp_path, agent=agent) as one:
        for text in ("hm", "aha"):
            await one.gateway.submit(in_room("ben", text, observed=True))
    told = [one for one in caplog.records if getattr(one, "action", "") == "observed_apart"]
    assert [one.levelname for one in told] == ["WARNING"]
