"""A message is answered: the turn, what it leaves behind, and what its agent gets to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.config import AgentConfig, GatewayConfig
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Duplicate,
    InboundMessage,
    MessageKind,
    Rejected,
    RejectReason,
)
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import InvalidInputError, StoreStoppedError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.agents.protocol import current_turn
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.runtime.queue.turn import Turn
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.engines.sqlite.worker import TransactionDrive
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    ScriptedAgents,
    answers,
    calls_tool,
    fails,
    hangs,
    says,
    streams,
    uses,
    waits_at,
)
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, open_harness, quote_message, wait_until


async def test_a_plain_function_answers_and_the_transcript_has_both_sides(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        receipt = await harness.platform.says("ann", "hello")
        assert isinstance(receipt, Accepted)
        assert receipt.seq == 1
        assert (await harness.platform.wait_for_reply("ann")).text == "you said: hello"
        await harness.wait_until_idle()
        assert await harness.transcript("ann") == [("user", "hello"), ("assistant", "you said: hello")]
        assert await harness.outcomes("ann") == {"turned": 1}
        assert harness.gateway.running_turn(harness.key("ann")) is None


@pytest.mark.parametrize(("method", "times"), [("read", 0), ("write", 2), ("begin_write", 1), ("change", 0)])
async def test_a_turn_of_a_warm_lane_asks_the_database_three_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, times: int
):
    """When its message comes, when it ends, and when its reply was sent: all three change something."""
    asked: list[object] = []
    real: Callable[..., Awaitable[object]] = getattr(SessionDB, method)

    def counted(db: SessionDB, work: object) -> Awaitable[object]:
        asked.append(work)
        return real(db, work)

    async with open_harness(tmp_path, agent=quote_message) as harness:
        for text in ("one", "two"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        monkeypatch.setattr(SessionDB, method, counted)
        await harness.platform.says("ann", "three")
        await harness.wait_until_idle()
        monkeypatch.undo()
    assert len(asked) == times


def noted(transaction: Transaction[Any], names: list[str]) -> Transaction[Any]:
    """The same transaction, whose statements are noted by their names."""
    try:
        statement = next(transaction)
        while True:
            names.append(statement.name)
            statement = transaction.send((yield statement))
    except StopIteration as stop:
        return stop.value


async def test_a_turn_of_a_warm_lane_takes_few_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What its process knows it does not ask for, and what has not changed it does not write."""
    names: list[str] = []
    real = TransactionDrive.drive
    async with open_harness(tmp_path, agent=quote_message) as harness:
        for text in ("one", "two"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        monkeypatch.setattr(
            TransactionDrive, "drive", lambda run, transaction: real(run, noted(transaction, names))
        )
        await harness.platform.says("ann", "three")
        await harness.wait_until_idle()
        monkeypatch.undo()
    admitted = ["known_event", "touch_entry", "any_tombstone_since", "lease_calm_lane", "add_item"]
    ended = [
        "free_calm_lane",
        "touch_entry",
        "advance_totals",
        "add_message",
        "settle_turn_as_begun",
        "add_reply",
    ]
    assert [one for one in names if not one.endswith("_to_index")] == [*admitted, *ended, "reply_sent"]


async def test_a_turn_that_waits_for_a_place_takes_few_statements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its lane is not looked at when the message comes, and once when the turn begins."""
    names: list[str] = []
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        if turn.text == "wait":
            await gate.passage()
        return turn.text

    config = replace(QUICK, busy=BusyRules(debounce=timedelta(0)), gateway=GatewayConfig(max_turns=1))
    real = TransactionDrive.drive
    async with open_harness(tmp_path, config, agent=agent) as harness:
        for person in ("ann", "bob") * 2:
            await harness.platform.says(person, "hello")
            await harness.wait_until_idle()
        await harness.platform.says("ann", "wait")
        monkeypatch.setattr(
            TransactionDrive, "drive", lambda run, transaction: real(run, noted(transaction, names))
        )
        await harness.platform.says("bob", "hello")
        assert names == [
            "known_event",
            "touch_entry",
            "any_tombstone_since",
            "queue_on_calm_lane",
            "add_item",
        ]
        names.clear()
        gate.open()
        await harness.wait_until_idle()
        monkeypatch.undo()
    looked_at = names.index("lane_and_queue")
    assert names[looked_at:][:4] == ["lane_and_queue", "items_of_next", "take_item", "put_lane_row"]
    assert not {"lane_row", "next_waiting", "entry_version", "entry_by_key"} & set(names)


async def test_a_message_delivered_again_is_answered_once(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "hello", message_id="m1")
        again = [await harness.platform.redelivers("m1") for _ in range(3)]
        assert again == [Duplicate(seq=1, session_key=harness.key("ann"))] * 3
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["you said: hello"]
        assert await harness.transcript("ann") == [("user", "hello"), ("assistant", "you said: hello")]


async def test_what_says_nothing_is_refused_and_leaves_nothing(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        refused = await harness.platform.says("ann", "   ")
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectReason.EMPTY
        assert not await harness.store.has_any_sessions()


async def test_an_agent_sees_its_turn(tmp_path: Path):
    seen: list[TurnContext] = []
    read: list[list[object]] = []

    async def agent(turn: TurnContext) -> str:
        seen.append(turn)
        read.append([row["content"] for row in await turn.history()])
        assert current_turn() is turn
        return "ok"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await harness.wait_until_idle()
    first, second = seen
    assert (first.seq, second.seq) == (1, 2)
    assert read == [["one"], ["one", "ok", "two"]]
    assert second.recovered is None
    assert second.deadline is not None
    assert "fake" in second.prompt.lower()
    assert first.idempotency_key != second.idempotency_key


async def test_tools_what_is_said_on_the_way_and_usage_are_part_of_the_turn(tmp_path: Path):
    agent = ScriptedAgent(
        [says("a moment"), calls_tool("search", "found it"), uses(model="m", input_tokens=7), answers("done")]
    )
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "look")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["a moment", "done"]
        roles = [role for role, _ in await harness.transcript("ann")]
        assert roles == ["user", "assistant", "tool", "assistant"]
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert (entry.input_tokens, entry.last_prompt_tokens) == (7, 7)


async def test_a_streamed_reply_grows_in_place_and_is_sent_once(tmp_path: Path):
    async with open_harness(tmp_path, agent=ScriptedAgent([streams("hel", "lo ", "ann")])) as harness:
        await harness.platform.says("ann", "hi")
        await harness.wait_until_idle()
        (shown,) = harness.platform.sent
        assert shown.text == "hello ann"
        assert [one.text for one in shown.before][:1] == ["hel"]
        assert await harness.transcript("ann") == [("user", "hi"), ("assistant", "hello ann")]


async def test_an_agent_that_fails_leaves_a_dead_letter_and_says_so(tmp_path: Path):
    agent = ScriptedAgent([fails(ValueError("no model"))], "better")
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        (told,) = harness.platform.shown("ann")
        assert "Something went wrong" in told
        (dead,) = await harness.store.dead_letters()
        assert dead.message.text == "hello"
        assert dead.problem == "ValueError: no model"
        await harness.store.requeue(dead.item_id)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[1:] == ["better"]
        assert await harness.store.dead_letters() == []


async def test_a_factory_that_returns_nonsense_fails_the_turn_and_not_the_gateway(tmp_path: Path):
    async with open_harness(tmp_path, agent_factory=lambda entry, history: 5) as harness:  # type: ignore[arg-type,return-value]
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        (dead,) = await harness.store.dead_letters()
        assert "returned a value of int" in dead.problem


async def test_a_turn_that_takes_too_long_is_stopped_and_its_lane_is_free(tmp_path: Path):
    config = replace(QUICK, agent=AgentConfig(gateway_timeout=timedelta(minutes=1)))
    async with open_harness(tmp_path, config, agent=ScriptedAgent([hangs()], "second")) as harness:
        await harness.platform.says("ann", "hello")
        await harness.clock.advance(seconds=59)
        assert harness.platform.shown("ann") == []
        await harness.clock.advance(seconds=1)
        await harness.wait_until_idle()
        assert "took too long" in harness.platform.shown("ann")[0]
        await harness.platform.says("ann", "again")
        await harness.wait_until_idle()
        assert harness.platform.shown("ann")[1:] == ["second"]


async def test_a_turn_without_a_sign_of_life_is_stopped(tmp_path: Path):
    config = replace(QUICK, gateway=replace(QUICK.gateway, inactivity_timeout=timedelta(seconds=10)))
    gate = Gate()

    async def slow(turn: TurnContext) -> str:
        for _ in range(3):
            await turn.clock.sleep(8)
            turn.progress()
        await gate.passage()
        return "never"

    async with open_harness(tmp_path, config, agent=slow) as harness:
        await harness.platform.says("ann", "hello")
        await harness.clock.advance(seconds=24)
        assert harness.platform.shown("ann") == []
        await harness.clock.advance(seconds=11)  # a sign of life is noticed when the typing indicator is due
        await harness.wait_until_idle()
        assert "got stuck" in harness.platform.shown("ann")[0]


async def test_warm_agents_serve_the_next_turn_and_each_lane_has_its_own(tmp_path: Path):
    agents = ScriptedAgents("one", "two", "three")
    async with open_harness(tmp_path, agent_factory=agents) as harness:
        for text in ("a", "b"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        await harness.platform.says("bob", "c")
        await harness.wait_until_idle()
        assert [key for key, _ in agents.made] == [harness.key("ann"), harness.key("bob")]
        assert harness.platform.shown("ann") == ["one", "two"]
        assert harness.gateway.agents.counts.idle == 2
    assert agents.open == []
    assert agents.closed_twice == []


async def test_an_agent_whose_transcript_somebody_else_wrote_to_is_made_anew(tmp_path: Path):
    agents = ScriptedAgents("one", "two")
    async with open_harness(tmp_path, agent_factory=agents) as harness:
        await harness.platform.says("ann", "a")
        await harness.wait_until_idle()
        session_id = await harness.store.peek_session_id(harness.key("ann"))
        assert session_id is not None
        await harness.store.append_to_transcript(
            session_id, {"role": "user", "content": "aside", "observed": True}
        )
        await harness.platform.says("ann", "b")
        await harness.wait_until_idle()
        assert len(agents.made) == 2


async def test_turns_of_different_lanes_never_see_each_other(tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        await turn.clock.sleep(turn.seq)
        await asyncio.sleep(0)
        mine = current_turn()
        return f"{mine.source.user_id}:{turn.text}"

    async with open_harness(tmp_path, agent=agent) as harness:
        people = [f"p{number}" for number in range(20)]
        for person in people:
            await harness.platform.says(person, f"for {person}")
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        for person in people:
            assert harness.platform.shown(person) == [f"{person}:for {person}"]


async def test_no_more_turns_run_at_once_than_there_is_room_for_and_nobody_is_forgotten(tmp_path: Path):
    gate, running = Gate(), set[str]()
    most = 0

    async def agent(turn: TurnContext) -> str:
        nonlocal most
        running.add(turn.session_key)
        most = max(most, len(running))
        await gate.passage()
        await asyncio.sleep(0.001)
        running.discard(turn.session_key)
        return "ok"

    config = replace(QUICK, gateway=replace(QUICK.gateway, max_turns=3))
    async with open_harness(tmp_path, config, agent=agent) as harness:
        for number in range(10):
            await harness.platform.says(f"p{number}", "hello")
        await wait_until(lambda: len(running) == 3)
        gate.open()
        await wait_until(lambda: len(harness.platform.shown()) == 10)
    assert most == 3


async def test_one_who_writes_on_many_lanes_leaves_room_for_others(tmp_path: Path):
    gate = Gate()
    begun: list[str] = []

    async def agent(turn: TurnContext) -> str:
        begun.append(turn.source.user_id or "")
        await gate.passage()
        return "ok"

    config = replace(QUICK, gateway=replace(QUICK.gateway, max_turns=4, max_turns_per_owner=2))
    async with open_harness(tmp_path, config, agent=agent) as harness:
        for number in range(6):
            await harness.platform.says("flooder", "hello", thread=f"t{number}")
        await harness.platform.says("polite", "hello")
        await wait_until(lambda: len(begun) == 3)
        assert sorted(begun) == ["flooder", "flooder", "polite"]
        gate.open()
        await wait_until(lambda: len(begun) == 7)


async def test_edits_and_deletions_reach_what_waits_and_what_was_said(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("first")], "second")
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one", message_id="m1")
        await gate.reached()
        await harness.platform.says("ann", "two", message_id="m2")
        await harness.clock.advance(seconds=2)  # no burst
        await harness.platform.says("ann", "three", message_id="m3")
        assert isinstance(await harness.platform.edits("m2", "two, better"), Accepted)
        assert isinstance(await harness.platform.deletes("m3"), Accepted)
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two, better"]
        assert isinstance(await harness.platform.edits("m1", "one, better"), Accepted)
        assert (await harness.transcript("ann"))[0] == ("user", "one, better")
        assert await harness.outcomes("ann") == {"turned": 2, "cancelled": 1, "applied": 3}


@pytest.mark.parametrize("reset", ["/new", "a day"])
async def test_what_was_said_before_a_reset_can_be_edited_and_deleted(tmp_path: Path, reset: str):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "my PIN is 1234", message_id="m1")
        await harness.clock.advance(seconds=2)  # no burst
        await harness.platform.says("ann", "my dog is Rex", message_id="m2")
        await harness.wait_until_idle()
        before = await harness.store.peek_session_id(harness.key("ann"))
        assert before is not None
        if reset == "/new":
            await harness.platform.says("ann", "/new")
        else:
            await harness.clock.advance(hours=30)
        await harness.wait_until_idle()
        await harness.platform.says("ann", "hello", message_id="m3")
        await harness.wait_until_idle()
        assert await harness.store.peek_session_id(harness.key("ann")) != before
        assert isinstance(await harness.platform.deletes("m1"), Accepted)
        assert isinstance(await harness.platform.edits("m2", "my dog is Max"), Accepted)
        said = [row.text for row in await harness.store.db.get_messages(before) if row.role == "user"]
        assert said == ["my dog is Max"]
        for gone in ("1234", "Rex"):
            found = await harness.store.db.search_messages(gone, scope=Scope.operator())
            assert [hit.role for hit in found.hits if hit.role == "user"] == []


async def test_a_deletion_reaches_the_branches_of_a_conversation(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "my PIN is 1234", message_id="m1")
        await harness.wait_until_idle()
        key = harness.key("ann")
        first = await harness.store.peek_session_id(key)
        await harness.store.branch_session(key)
        second = await harness.store.peek_session_id(key)
        assert isinstance(await harness.platform.deletes("m1"), Accepted)
        for session_id in (first, second):
            assert session_id is not None
            rows = await harness.store.db.get_messages(session_id)
            assert [row.role for row in rows] == ["assistant"]


async def test_a_change_of_something_unknown_is_refused(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "hello", message_id="m1")
        await harness.wait_until_idle()
        source = harness.platform.source("ann")
        unknown = InboundMessage(source=source, text="?", message_id="m9", kind=MessageKind.EDIT, revision=1)
        refused = await harness.gateway.submit(unknown)
        assert isinstance(refused, Rejected)
        assert refused.reason is RejectReason.UNKNOWN


async def test_two_adapters_of_one_account_are_refused(tmp_path: Path):
    async with SessionStore.open(tmp_path, QUICK) as store:
        with pytest.raises(InvalidInputError, match="a name of its own"):
            Gateway(store, agent=quote_message, adapters=[FakePlatform(run=""), FakePlatform(run="")])


async def test_a_gateway_that_has_ended_takes_nothing(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        gateway, platform = harness.gateway, harness.platform
        message_source = platform.source("ann")
    with pytest.raises(StoreStoppedError):
        await gateway.submit(InboundMessage(source=message_source, text="late"))


async def test_the_conversation_is_read_only_for_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reads: list[int | None] = []
    real = Turn.transcript

    async def counted(turn: Turn, limit: int | None = None) -> list[Chat]:
        reads.append(limit)
        return await real(turn, limit)

    monkeypatch.setattr(Turn, "transcript", counted)

    async def forgetful(turn: TurnContext) -> str:
        if turn.text == "what was it?":
            return str([row["content"] for row in await turn.history(limit=1)])
        return "ok"

    async with open_harness(tmp_path, agent_factory=lambda entry, history: forgetful) as harness:
        for text in ("one", "two", "what was it?"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        assert (
            harness.platform.shown("ann")[-1]
            == "['[The beginning of this conversation is not shown.]', 'ok', 'what was it?']"
        )
    assert reads == [None, 1], "a warm agent costs no reading of what it has seen"


async def test_the_history_has_what_the_turn_itself_has_written(tmp_path: Path):
    read: list[list[str]] = []

    async def searching(turn: TurnContext) -> str:
        read.append([row["role"] for row in await turn.history()])
        call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        await turn.append({"role": "assistant", "content": None, "tool_calls": [call]})
        await turn.append({"role": "tool", "content": "found", "tool_call_id": "call_1"})
        read.append([row["role"] for row in await turn.history()])
        return "ok"

    async with open_harness(tmp_path, agent=searching) as harness:
        await harness.platform.says("ann", "look for it")
        await harness.wait_until_idle()
    assert read == [["user"], ["user", "assistant", "tool"]]


async def test_a_reset_is_told_although_the_agent_reports_no_usage(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "hello")
        await harness.clock.advance(days=2)
        await harness.platform.says("ann", "are you there?")
        await harness.wait_until_idle()
        notice, answer = harness.platform.sent[-2:]
        assert notice.message.is_notice
        assert "/undo-reset brings the one before back" in notice.text
        assert answer.text == "you said: are you there?"
