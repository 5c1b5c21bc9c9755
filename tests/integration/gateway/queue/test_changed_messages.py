"""What people edit or delete while it is worked on, or after it has failed, is what counts from then on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from gateway_sessions import Accepted, Duplicate, Scope, SessionEntry
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.testing import FakePlatform
from gateway_sessions.testing.agents import Gate, ScriptedAgent, answers, fails, hangs, waits_at
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, busy_config, open_harness
from tests.integration.gateway.restartable_gateway import RestartableGateway


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture
async def harness(tmp_path: Path, gate: Gate) -> AsyncGenerator[GatewayHarness]:
    """A gateway whose agent works until the gate opens, and remembers by itself what it was told."""

    def remembering(entry: SessionEntry, history: list[Chat]) -> object:
        heard = [str(row["content"]) for row in history if row["role"] == "user"]

        async def agent(turn: TurnContext) -> str:
            await gate.passage()
            heard.extend([turn.text] if turn.text not in heard else [])
            return " | ".join(heard)

        return agent

    async with open_harness(tmp_path, agent_factory=remembering) as opened:
        yield opened


async def test_a_password_that_was_deleted_while_it_was_answered_is_nowhere(
    harness: GatewayHarness, gate: Gate
):
    await harness.platform.says("ann", "my password is hunter2", message_id="m1")
    await gate.reached()
    assert isinstance(await harness.platform.deletes("m1"), Accepted)
    gate.open()
    await harness.wait_until_idle()
    session_id = await harness.store.peek_session_id(harness.key("ann")) or ""
    assert [row.role for row in await harness.store.db.get_messages(session_id)] == ["assistant"]
    found = await harness.store.db.search_messages("hunter2", scope=Scope.operator())
    assert [hit for hit in found.hits if hit.role == "user"] == []


async def test_an_agent_that_heard_what_was_edited_meanwhile_is_made_anew(
    harness: GatewayHarness, gate: Gate
):
    await harness.platform.says("ann", "my password is hunter2", message_id="m1")
    await gate.reached()
    assert isinstance(await harness.platform.edits("m1", "never mind"), Accepted)
    gate.open()
    await harness.wait_until_idle()
    await harness.platform.says("ann", "what did I say?")
    await harness.wait_until_idle()
    assert harness.platform.shown("ann")[-1] == "never mind | what did I say?"


async def test_an_amount_that_was_corrected_before_a_crash_is_not_the_former_one(
    restartable: RestartableGateway,
):
    gate = Gate()
    async with restartable.run(killed=True, agent=ScriptedAgent([waits_at(gate), hangs()])) as harness:
        await harness.platform.says("ann", "send 1000 euros", message_id="m1")
        await gate.reached()
        assert isinstance(await harness.platform.edits("m1", "send 10 euros"), Accepted)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
        assert [(turn.attempt, turn.text) for turn in agent.turns] == [(2, "send 10 euros")]
        assert (await harness.transcript("ann"))[0] == ("user", "send 10 euros")


async def test_what_was_deleted_before_a_crash_is_not_taken_up_again(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "send 1000 euros", message_id="m1")
        await harness.clock.advance(seconds=2)
        assert isinstance(await harness.platform.deletes("m1"), Accepted)
    agent = ScriptedAgent(["hello"])
    async with restartable.run(agent=agent) as harness:
        assert harness.store.started.resumed == ()
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        assert [(turn.attempt, turn.recovered, turn.text) for turn in agent.turns] == [(1, None, "hello")]


async def test_a_failed_message_is_retried_as_it_was_edited(tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        if turn.text == "boom":
            raise ValueError
        return f"you said: {turn.text}"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "boom", message_id="m1")
        await harness.wait_until_idle()
        assert isinstance(await harness.platform.edits("m1", "fixed wording"), Accepted)
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[-1] == "you said: fixed wording"
        assert (await harness.transcript("ann"))[0] == ("user", "fixed wording")


async def test_a_failed_message_that_was_deleted_is_not_retried(tmp_path: Path):
    agent = ScriptedAgent([fails(ValueError())])
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "my password is hunter2", message_id="m1")
        await harness.wait_until_idle()
        assert isinstance(await harness.platform.deletes("m1"), Accepted)
        assert await harness.store.dead_letters() == []
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert len(agent.turns) == 1
        assert await harness.outcomes("ann") == {"cancelled": 1, "applied": 1, "command": 1}


# Several messages, several changes


def edit(platform: FakePlatform, which: str, text: str, revision: int) -> InboundMessage:
    source = platform.source("ann")
    return InboundMessage(
        source=source, text=text, message_id=which, kind=MessageKind.EDIT, revision=revision
    )


@pytest.mark.parametrize("revisions", [(0, 0), (1, 2), (2, 1)])
async def test_of_edits_that_are_delivered_together_the_newest_stands(
    harness: GatewayHarness, gate: Gate, revisions: tuple[int, int]
):
    gate.open()
    await harness.platform.says("ann", "as it was", message_id="m1")
    await harness.wait_until_idle()
    edits = [edit(harness.platform, "m1", f"edit {at}", number) for at, number in enumerate(revisions)]
    receipts = await asyncio.gather(*map(harness.gateway.submit, edits))
    assert [type(one) for one in receipts] == [Accepted, Accepted]
    newest = "edit 0" if revisions == (2, 1) else "edit 1"
    assert (await harness.transcript("ann"))[0] == ("user", newest)


class Listener:
    """An agent that takes its time to hear what it is told."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.heard: list[str] = []

    async def run_turn(self, turn: TurnContext) -> str:
        await self.gate.passage()
        return turn.text

    async def steer(self, message: InboundMessage) -> bool:
        for _ in range(0 if self.heard else 20):
            await asyncio.sleep(0)
        self.heard.append(message.text)
        return True


async def test_a_running_agent_hears_of_edits_in_the_order_in_which_they_came(tmp_path: Path, gate: Gate):
    agent = Listener(gate)
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "as it was", message_id="m1")
        await gate.reached()
        edits = [edit(harness.platform, "m1", f"edit {number}", number) for number in (1, 3, 2, 4)]
        await asyncio.gather(*map(harness.gateway.submit, edits))
        gate.open()
        await harness.wait_until_idle()
        assert agent.heard == ["edit 1", "edit 3", "edit 4"]
        assert (await harness.transcript("ann"))[0] == ("user", "edit 4")


async def test_an_agent_that_has_yet_to_be_made_begins_with_what_was_edited_meanwhile(
    tmp_path: Path, gate: Gate
):
    """Its turn said what it had said before, and its history what it says now."""
    let_go = Gate()
    let_go.open()
    agent = Listener(let_go)

    async def factory(entry: SessionEntry, history: list[Chat]) -> Listener:
        await gate.passage()
        return agent

    async with open_harness(tmp_path, agent_factory=factory) as harness:
        await harness.platform.says("ann", "pay 100", message_id="m1")
        await gate.reached()
        assert isinstance(await harness.platform.edits("m1", "pay 200"), Accepted)
        gate.open()
        await harness.wait_until_idle()
        assert (harness.platform.shown("ann"), agent.heard) == (["pay 200"], [])


async def test_an_edit_that_is_delivered_together_with_its_message_is_of_that_message(
    harness: GatewayHarness, gate: Gate
):
    gate.open()
    new = InboundMessage(source=harness.platform.source("ann"), text="helo", message_id="m1")
    both = await asyncio.gather(*map(harness.gateway.submit, (new, edit(harness.platform, "m1", "hello", 1))))
    assert [type(one) for one in both] == [Accepted, Accepted]
    await harness.wait_until_idle()
    assert (await harness.transcript("ann"))[0] == ("user", "hello")


@pytest.mark.parametrize("killed", [False, True])
async def test_one_message_of_a_burst_is_changed_in_the_next_life_and_known_in_the_one_after(
    restartable: RestartableGateway, killed: bool
):
    gate = Gate()
    async with restartable.run(killed=killed, agent=ScriptedAgent([waits_at(gate), "well"])) as harness:
        await harness.platform.says("ann", "first")
        await gate.reached()
        await harness.platform.says("ann", "Transfer 100 to Bob", message_id="m2")
        await harness.platform.says("ann", "and never to Eve", message_id="m3")
        gate.open()
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()
    change = edit(harness.platform, "m3", "and never to Mallory", 1)
    for kind in (Accepted, Duplicate):
        async with restartable.run(killed=killed, agent=ScriptedAgent()) as harness:
            assert isinstance(await harness.gateway.submit(change), kind)
            texts = [text for role, text in await harness.transcript("ann") if role == "user"]
            assert texts == ["first", "Transfer 100 to Bob\nand never to Mallory"]


class TestAskedAgain:
    """What was answered and is tried again with `/retry` is the message that it was."""

    @staticmethod
    async def answered(harness: GatewayHarness, *texts: str) -> None:
        for number, text in enumerate(texts, 1):
            await harness.platform.says("ann", text, message_id=f"m{number}")
        await harness.clock.advance(seconds=5)
        await harness.wait_until_idle()

    async def test_an_edit_counts_in_the_conversation_that_goes_on(self, tmp_path: Path):
        """Only the hidden row was edited, and a model went on to read what the message had said."""
        async with open_harness(tmp_path, agent=ScriptedAgent("1", "2")) as harness:
            await self.answered(harness, "pay 100")
            await harness.platform.says("ann", "/retry")
            await harness.wait_until_idle()
            assert isinstance(await harness.platform.edits("m1", "pay 200"), Accepted)
            assert await harness.transcript("ann") == [("user", "pay 200"), ("assistant", "2")]

    async def test_nothing_is_left_of_a_deletion_in_the_conversation_that_goes_on(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=ScriptedAgent("1", "2")) as harness:
            await self.answered(harness, "my password is hunter2")
            await harness.platform.says("ann", "/retry")
            await harness.wait_until_idle()
            assert isinstance(await harness.platform.deletes("m1"), Accepted)
            rows = await harness.store.db.get_messages(
                await harness.store.peek_session_id(harness.key("ann")) or ""
            )
            assert [row.text for row in rows] == ["2"]

    async def test_an_edit_counts_while_it_is_answered_again(self, tmp_path: Path, gate: Gate):
        async with open_harness(
            tmp_path, agent=ScriptedAgent("1", [waits_at(gate), answers("2")])
        ) as harness:
            await self.answered(harness, "pay 100")
            await harness.platform.says("ann", "/retry")
            await gate.reached()
            assert isinstance(await harness.platform.edits("m1", "pay 200"), Accepted)
            gate.open()
            await harness.wait_until_idle()
            assert await harness.transcript("ann") == [("user", "pay 200"), ("assistant", "2")]

    async def test_each_message_of_a_burst_keeps_its_id(self, tmp_path: Path):
        async with open_harness(
            tmp_path, busy_config(BusyMode.COLLECT), agent=ScriptedAgent("1", "2")
        ) as harness:
            await self.answered(harness, "Transfer 100 to Bob", "and never to Eve")
            await harness.platform.says("ann", "/retry")
            await harness.wait_until_idle()
            assert isinstance(await harness.platform.edits("m2", "and never to Mallory"), Accepted)
            assert isinstance(await harness.platform.deletes("m1"), Accepted)
            assert await harness.transcript("ann") == [("user", "and never to Mallory"), ("assistant", "2")]

    async def test_one_that_is_delivered_again_is_known(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=ScriptedAgent("1", "2")) as harness:
            await self.answered(harness, "hello")
            message = InboundMessage(source=harness.platform.source("ann"), text="hello", message_id="m1")
            await harness.platform.says("ann", "/retry")
            await harness.wait_until_idle()
            assert isinstance(await harness.gateway.submit(message), Duplicate)
            assert await harness.transcript("ann") == [("user", "hello"), ("assistant", "2")]

    async def test_in_a_room_it_stays_the_word_of_whoever_said_it(self, tmp_path: Path):
        """It became the word of whoever asked for it: an erasure of the first left it there."""
        config = replace(QUICK, group_sessions_per_user=False)
        async with open_harness(tmp_path, config, agent=ScriptedAgent("1", "2")) as harness:
            receipt = await harness.platform.says("ann", "my secret", chat="room", message_id="m1")
            await harness.wait_until_idle()
            await harness.platform.says("bob", "/retry", chat="room")
            await harness.wait_until_idle()
            session_id = getattr(receipt, "session_id", "")
            rows = await harness.store.db.get_messages(session_id, include_hidden=True)
            mine = [(row.author or "", row.extra.get("name")) for row in rows if row.text == "my secret"]
            assert [(who.endswith(":ann"), name) for who, name in mine] == [(True, "Ann"), (True, "Ann")]
