"""What people edit or delete while it is worked on, or after it has failed, is what counts from then on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway_sessions import Accepted, Scope, SessionEntry
from gateway_sessions.core.replay import Chat
from gateway_sessions.runtime.turn_context import TurnContext
from gateway_sessions.testing.scripted_agent import Gate, ScriptedAgent, fails, hangs, waits_at
from tests.integration.gateway.house import House, open_house
from tests.integration.gateway.lives import Lives


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture
async def house(tmp_path: Path, gate: Gate) -> AsyncGenerator[House]:
    """A gateway whose agent works until the gate opens, and remembers by itself what it was told."""

    def remembering(entry: SessionEntry, history: list[Chat]) -> object:
        heard = [str(row["content"]) for row in history if row["role"] == "user"]

        async def agent(turn: TurnContext) -> str:
            await gate.passage()
            heard.extend([turn.text] if turn.text not in heard else [])
            return " | ".join(heard)

        return agent

    async with open_house(tmp_path, agent_factory=remembering) as opened:
        yield opened


async def test_a_password_that_was_deleted_while_it_was_answered_is_nowhere(house: House, gate: Gate):
    await house.platform.says("ann", "my password is hunter2", message_id="m1")
    await gate.reached()
    assert isinstance(await house.platform.deletes("m1"), Accepted)
    gate.open()
    await house.settles()
    session_id = await house.store.peek_session_id(house.key("ann")) or ""
    assert [row.role for row in await house.store.db.get_messages(session_id)] == ["assistant"]
    found = await house.store.db.search_messages("hunter2", scope=Scope.operator())
    assert [hit for hit in found.hits if hit.role == "user"] == []


async def test_an_agent_that_heard_what_was_edited_meanwhile_is_made_anew(house: House, gate: Gate):
    await house.platform.says("ann", "my password is hunter2", message_id="m1")
    await gate.reached()
    assert isinstance(await house.platform.edits("m1", "never mind"), Accepted)
    gate.open()
    await house.settles()
    await house.platform.says("ann", "what did I say?")
    await house.settles()
    assert house.platform.shown("ann")[-1] == "never mind | what did I say?"


async def test_an_amount_that_was_corrected_before_a_crash_is_not_the_former_one(lives: Lives):
    gate = Gate()
    async with lives.life(killed=True, agent=ScriptedAgent([waits_at(gate), hangs()])) as house:
        await house.platform.says("ann", "send 1000 euros", message_id="m1")
        await gate.reached()
        assert isinstance(await house.platform.edits("m1", "send 10 euros"), Accepted)
    agent = ScriptedAgent()
    async with lives.life(agent=agent) as house:
        await house.settles()
        assert [(turn.attempt, turn.text) for turn in agent.turns] == [(2, "send 10 euros")]
        assert (await house.transcript("ann"))[0] == ("user", "send 10 euros")


async def test_what_was_deleted_before_a_crash_is_not_taken_up_again(lives: Lives):
    async with lives.life(killed=True, agent=ScriptedAgent([hangs()])) as house:
        await house.platform.says("ann", "send 1000 euros", message_id="m1")
        await house.clock.advance(seconds=2)
        assert isinstance(await house.platform.deletes("m1"), Accepted)
    agent = ScriptedAgent(["hello"])
    async with lives.life(agent=agent) as house:
        assert house.store.started.resumed == ()
        await house.platform.says("ann", "hello")
        await house.settles()
        assert [(turn.attempt, turn.recovered, turn.text) for turn in agent.turns] == [(1, None, "hello")]


async def test_a_failed_message_is_retried_as_it_was_edited(tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        if turn.text == "boom":
            raise ValueError
        return f"you said: {turn.text}"

    async with open_house(tmp_path, agent=agent) as house:
        await house.platform.says("ann", "boom", message_id="m1")
        await house.settles()
        assert isinstance(await house.platform.edits("m1", "fixed wording"), Accepted)
        await house.platform.says("ann", "/retry")
        await house.settles()
        assert house.platform.shown("ann")[-1] == "you said: fixed wording"
        assert (await house.transcript("ann"))[0] == ("user", "fixed wording")


async def test_a_failed_message_that_was_deleted_is_not_retried(tmp_path: Path):
    agent = ScriptedAgent([fails(ValueError())])
    async with open_house(tmp_path, agent=agent) as house:
        await house.platform.says("ann", "my password is hunter2", message_id="m1")
        await house.settles()
        assert isinstance(await house.platform.deletes("m1"), Accepted)
        assert await house.store.dead_letters() == []
        await house.platform.says("ann", "/retry")
        await house.settles()
        assert len(agent.turns) == 1
        assert await house.outcomes("ann") == {"cancelled": 1, "applied": 1, "command": 1}
