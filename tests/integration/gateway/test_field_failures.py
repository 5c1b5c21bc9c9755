"""What went wrong in gateways that people used, each under the name of what they saw.

`FAILURES` says for each what a gateway did, and which test shows that ours does not. Failures of keys, of
files, of search and of commands have their tests where those are tested.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from gateway_sessions import SessionResetPolicy, SessionState
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.config import AgentConfig
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    AttachmentKind,
    Disposition,
    InboundMessage,
    Receipt,
    Rejected,
)
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.reset_policy import ResetMode
from gateway_sessions.errors import FencedError
from gateway_sessions.runtime.agents.protocol import current_turn
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    ScriptedAgents,
    answers,
    calls_tool,
    hangs,
    takes,
    waits_at,
)
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, busy_config, echo, open_harness
from tests.integration.gateway.restartable_gateway import AT_ONCE, RestartableGateway

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")

FAILURES: Final = MappingProxyType(
    {
        "a drain acknowledged messages and dropped them": "what_comes_while_draining_is_answered_later",
        "the queue was in memory only": "slot_overflow_and_burst_survive_a_kill",
        "'queued' was said and the message dropped": "no_message_that_was_said_to_be_queued_is_dropped",
        "a start threw the platform's backlog away": "what_comes_in_the_first_moment_of_a_start_is_taken",
        "an item was lost when many waited": "seven_that_wait_are_seven_turns_in_order",
        "a third sender's burst vanished": "a_third_sender_in_a_burst_is_heard",
        "one sender's text joined another's photo": "nobodys_words_join_another_ones_photo",
        "without an adapter, messages were dropped": "without_an_adapter_the_answer_waits",
        "two turns of one session ran at once": "one_session_has_one_turn_at_a_time",
        "a resume raced with a new message": "a_resume_and_a_new_message_make_two_turns_one_after_the_other",
        "a stop let the overflow run": "a_stop_ends_what_runs_and_all_that_waits",
        "a stopped agent went on writing": "a_stopped_agent_that_goes_on_writes_nothing",
        "an interruption lost the message behind it": "the_message_that_interrupts_is_answered",
        "a dead turn took what waited with it": "what_waits_outlives_a_turn_that_dies",
        "the count of crashes was deleted at each start": "crashes_are_counted_over_clean_files_and_starts",
        "only turns of the last two minutes resumed": "a_long_turn_resumes_and_a_finished_one_does_not",
        "no limit of freshness meant no resume at all": "without_a_limit_of_age_everything_resumes",
        "a stale resume mark began an old turn again": "what_was_cut_off_long_ago_does_not_begin_by_itself",
        "an expired resume was told as inactivity": "what_was_cut_off_long_ago_is_told_as_what_it_is",
        "one long resume blocked all chats": "a_long_resume_blocks_no_other_chat",
        "the watcher closed an agent in its turn": "the_watcher_closes_no_agent_that_works",
        "a turn longer than the idle time ended itself": "a_turn_may_last_longer_than_the_idle_time",
        "a context variable sent a reply to another chat": "a_variable_set_in_one_turn_is_unknown_in_others",
        "an agent saw the variables of whoever wrote": "a_variable_of_whoever_submits_is_unknown_in_a_turn",
        "an agent remembered what was taken back": "an_agent_does_not_remember_what_was_taken_back",
        "an undo forgot the wrong agent": "an_undo_makes_the_agent_of_that_very_lane_anew",
        "a reply was lost around a restart": "a_reply_is_not_lost_between_answer_and_send",
    }
)
"""What a gateway did, and the test that shows that ours does not, without the `test_` before its name."""


def test_each_failure_has_a_test_and_each_test_a_failure():
    here = vars(sys.modules[__name__])
    tests = {name.removeprefix("test_") for name, one in here.items() if inspect.iscoroutinefunction(one)}
    assert {one for one in tests if f"test_{one}" in here} == set(FAILURES.values())
    assert len(set(FAILURES.values())) == len(FAILURES)


def replies(harness: GatewayHarness, chat: str | None = None) -> list[str]:
    seen = [one for one in harness.platform.sent if chat in (None, one.target.chat_id)]
    return [one.text for one in seen if not one.message.is_notice]


# The queue


async def test_what_comes_while_draining_is_answered_later(restartable: RestartableGateway):
    async with restartable.run(agent=echo) as harness:
        await harness.gateway.drain(AT_ONCE)
        receipt = await harness.platform.says("ann", "hello")
        assert isinstance(receipt, Accepted)
        await harness.wait_until_idle()
        assert replies(harness) == []
    async with restartable.run(agent=echo) as harness:
        await harness.wait_until_idle()
        assert replies(harness) == ["hello"]


async def test_slot_overflow_and_burst_survive_a_kill(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "running")
        await harness.wait_until_idle()
        for text in ("slot", "overflow"):
            await harness.platform.says("ann", text)
            await harness.clock.advance(seconds=2)
        await harness.platform.says("bob", attachments=[PHOTO])  # waits for the rest of the album
    async with restartable.run(agent=echo) as harness:
        await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        assert replies(harness, "ann") == ["running", "slot", "overflow"]
        assert await harness.outcomes("bob") == {"turned": 1}


async def test_no_message_that_was_said_to_be_queued_is_dropped(tmp_path: Path):
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        await gate.passage()
        return turn.text

    async with open_harness(tmp_path, busy_config(BusyMode.QUEUE, debounce=AT_ONCE), agent=agent) as harness:
        receipts = {f"{number}": await harness.platform.says("ann", f"{number}") for number in range(40)}
        gate.open()
        await harness.wait_until_idle()
        taken = [text for text, one in receipts.items() if isinstance(one, Accepted)]
        assert replies(harness) == taken
        refused = [one for one in receipts.values() if isinstance(one, Rejected)]
        assert len(taken) + len(refused) == 40
        assert len(refused) == 7
        assert all(one.retry_after for one in refused)


async def test_what_comes_in_the_first_moment_of_a_start_is_taken(tmp_path: Path):
    class Backlog(FakePlatform):
        receipts: list[Receipt]

        @asynccontextmanager
        async def connect(self, submit: Submit) -> AsyncGenerator[None]:
            async with super().connect(submit):
                self.receipts = [await self.says("ann", f"old {n}", message_id=f"m{n}") for n in range(3)]
                yield

    clock = FakeClock()
    platform = Backlog(clock=clock)
    config = busy_config(BusyMode.QUEUE, debounce=AT_ONCE)
    async with open_harness(tmp_path, config, platform=platform, clock=clock, agent=echo) as harness:
        await harness.wait_until_idle()
        assert all(isinstance(one, Accepted) for one in platform.receipts)
        assert replies(harness) == ["old 0", "old 1", "old 2"]


async def test_seven_that_wait_are_seven_turns_in_order(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("first")])
    async with open_harness(tmp_path, busy_config(BusyMode.QUEUE, debounce=AT_ONCE), agent=agent) as harness:
        await harness.platform.says("ann", "first")
        await gate.reached()
        for number in range(7):
            await harness.platform.says("ann", f"q{number}")
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["first", *(f"q{number}" for number in range(7))]


async def test_a_third_sender_in_a_burst_is_heard(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate), answers("1")])
    config = replace(busy_config(BusyMode.QUEUE), group_sessions_per_user=False)
    async with open_harness(tmp_path, config, agent=agent) as harness:
        await harness.platform.says("zoe", "first", chat="room")
        await gate.reached()
        for person in ("ann", "bob", "cid", "dan"):
            assert isinstance(await harness.platform.says(person, f"I am {person}", chat="room"), Accepted)
        gate.open()
        await harness.clock.advance(seconds=2)
        said = [(turn.source.user_id, turn.text) for turn in agent.turns[1:]]
        assert said == [(who, f"I am {who}") for who in ("ann", "bob", "cid", "dan")]


async def test_nobodys_words_join_another_ones_photo(tmp_path: Path):
    agent = ScriptedAgent()
    config = replace(busy_config(BusyMode.QUEUE), group_sessions_per_user=False)
    async with open_harness(tmp_path, config, agent=agent) as harness:
        await harness.platform.says("ann", "my cat", chat="room", attachments=[PHOTO])
        await harness.platform.says("bob", "my secret", chat="room")
        await harness.clock.advance(seconds=2)
        said = [(turn.source.user_id, turn.text, len(turn.messages)) for turn in agent.turns]
        assert said == [("ann", "my cat", 1), ("bob", "my secret", 1)]


async def test_without_an_adapter_the_answer_waits(restartable: RestartableGateway):
    elsewhere = FakePlatform("elsewhere", clock=restartable.clock, run="")
    message = InboundMessage(source=elsewhere.source("ann"), text="hello", message_id="m1")
    async with restartable.run(agent=echo) as harness:
        assert isinstance(await harness.gateway.submit(message), Accepted)
        await harness.wait_until_idle()
        assert len(await harness.store.list_queued(harness.store.key_for(message.source))) == 0
    restartable.platform = elsewhere
    async with restartable.run(agent=echo) as harness:
        await harness.wait_until_idle()
        assert replies(harness) == ["hello"]


# Turns


async def test_one_session_has_one_turn_at_a_time(tmp_path: Path):
    running = most = 0

    async def agent(turn: TurnContext) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await turn.clock.sleep(1)
        running -= 1
        return turn.text

    async with open_harness(tmp_path, busy_config(BusyMode.QUEUE, debounce=AT_ONCE), agent=agent) as harness:
        await asyncio.gather(*(harness.platform.says("ann", f"{number}") for number in range(8)))
        await harness.clock.advance(seconds=10)
        assert (most, len(replies(harness))) == (1, 8)


async def test_a_resume_and_a_new_message_make_two_turns_one_after_the_other(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "one")
    running: list[str] = []

    async def agent(turn: TurnContext) -> str:
        running.append(turn.text)
        assert running == [turn.text]
        await turn.clock.sleep(1)
        running.remove(turn.text)
        return turn.text

    async with restartable.run(agent=agent) as harness:
        await harness.platform.says("ann", "two")
        await harness.clock.advance(seconds=5)
        assert replies(harness) == ["one", "two"]


async def test_a_stop_ends_what_runs_and_all_that_waits(tmp_path: Path):
    agent = ScriptedAgent([hangs()])
    async with open_harness(tmp_path, agent=agent) as harness:
        for number in range(3):
            await harness.platform.says("ann", f"{number}")
            await harness.clock.advance(seconds=2)
        await harness.platform.says("ann", "/stop")
        await harness.clock.advance(minutes=1)
        assert [turn.text for turn in agent.turns] == ["0"]
        assert await harness.outcomes("ann") == {"interrupted": 1, "cancelled": 2, "command": 1}


async def test_a_stopped_agent_that_goes_on_writes_nothing(tmp_path: Path):
    refused: list[FencedError] = []

    async def agent(turn: TurnContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            for write in (
                lambda: turn.append({"role": "assistant", "content": "late"}),
                lambda: turn.say("late"),
            ):
                with pytest.raises(FencedError) as error:
                    await write()
                refused.append(error.value)
        return "late"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.store.reset_session(harness.key("ann"))
        await harness.clock.advance(seconds=10)
        assert len(refused) == 2
        assert harness.platform.shown() == []
        assert await harness.transcript("ann") == []


async def test_the_message_that_interrupts_is_answered(tmp_path: Path):
    agent = ScriptedAgent([hangs()])
    async with open_harness(tmp_path, busy_config(BusyMode.INTERRUPT), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        receipt = await harness.platform.says("ann", "two")
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.INTERRUPTS
        await harness.clock.advance(seconds=10)
        assert replies(harness) == ["you said: two"]


async def test_what_waits_outlives_a_turn_that_dies(tmp_path: Path):
    gate = Gate()

    async def agent(turn: TurnContext) -> str:
        if turn.text == "one":
            await gate.passage()
            raise asyncio.CancelledError
        return turn.text

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await gate.reached()
        await harness.platform.says("ann", "two")
        gate.open()
        await harness.clock.advance(seconds=2)
        assert replies(harness) == ["two"]
        assert await harness.outcomes("ann") == {"dead": 1, "turned": 1}


# Recovery


async def test_crashes_are_counted_over_clean_files_and_starts(restartable: RestartableGateway):
    tried = ScriptedAgent(*[[hangs()]] * 9)
    for number in range(3):
        restartable.clock.step(hours=1)
        async with restartable.run(killed=True, agent=tried) as harness:
            if not number:
                await harness.platform.says("ann", "deadly")
        (restartable.home / "restart_counts.json").unlink(missing_ok=True)
    async with restartable.run(agent=tried) as harness:
        assert harness.store.started.suspended == (harness.key("ann"),)
        await harness.wait_until_idle()
        assert await harness.outcomes("ann") == {"dead": 1}
    assert len(tried.turns) == 3


async def test_a_long_turn_resumes_and_a_finished_one_does_not(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "long")
        await harness.clock.advance(minutes=20)
        await harness.store.get_or_create_session(harness.platform.source("bob"))  # in use a moment ago
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        assert harness.store.started.resumed == (harness.key("ann"),)
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["long"]


async def put_off_and_come_back(
    restartable: RestartableGateway, first: ScriptedAgent, *, days: float
) -> ScriptedAgent:
    """The second of two turns is put off by a drain; the agent that goes on with it later."""
    async with restartable.run(agent=first) as harness:
        for text in ("one", "two"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        await harness.gateway.drain(AT_ONCE)
    restartable.clock.step(days=days)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
    return agent


async def killed_and_come_back(
    restartable: RestartableGateway, first: ScriptedAgent, *, days: float
) -> ScriptedAgent:
    """The same, where the process is killed in the second turn."""
    async with restartable.run(killed=True, agent=first) as harness:
        for text in ("one", "two"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
    restartable.clock.step(days=days)
    agent = ScriptedAgent()
    async with restartable.run(agent=agent) as harness:
        await harness.wait_until_idle()
    return agent


End = Callable[..., Awaitable[ScriptedAgent]]
LONG_AGO: Final = pytest.mark.parametrize("end", [put_off_and_come_back, killed_and_come_back])
"""A turn of two hours ago, whatever has cut it off."""


@LONG_AGO
async def test_without_a_limit_of_age_everything_resumes(restartable: RestartableGateway, end: End):
    restartable.config = replace(QUICK, agent=AgentConfig(gateway_auto_continue_freshness=None))
    agent = await end(restartable, ScriptedAgent("1", [hangs()]), days=3)
    (history,) = agent.histories
    assert [row["content"] for row in history] == ["one", "1", "two"]


async def come_back_late(restartable: RestartableGateway, end: End) -> ScriptedAgent:
    return await end(
        restartable, ScriptedAgent("1", [calls_tool("search", "old context"), hangs()]), days=1 / 12
    )


@LONG_AGO
async def test_what_was_cut_off_long_ago_does_not_begin_by_itself(restartable: RestartableGateway, end: End):
    agent = await come_back_late(restartable, end)
    assert agent.turns == []


@LONG_AGO
async def test_what_was_cut_off_long_ago_is_told_as_what_it_is(restartable: RestartableGateway, end: End):
    await come_back_late(restartable, end)
    notices = [one.text for one in restartable.platform.sent if one.message.is_notice]
    assert len(notices) == 1
    assert "I was cut off while I worked on your last message, 2 h ago" in notices[0]
    assert "nothing new" not in notices[0]
    assert "new conversation" not in notices[0]


async def test_a_long_resume_blocks_no_other_chat(restartable: RestartableGateway):
    async with restartable.run(killed=True, agent=ScriptedAgent([hangs()])) as harness:
        await harness.platform.says("ann", "long")
    async with restartable.run(agent=ScriptedAgent([takes(3600), answers("at last")])) as harness:
        await harness.wait_until_idle()
        assert harness.gateway.running_turn(harness.key("ann")) is not None
        await harness.platform.says("bob", "hello")
        await harness.wait_until_idle()
        assert replies(harness) == ["you said: hello"]
        await harness.gateway.drain(AT_ONCE)


# Agents and sessions

IDLE = replace(
    QUICK,
    session_reset=SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=30),
    agent=AgentConfig(gateway_timeout=None),
)


async def test_the_watcher_closes_no_agent_that_works(tmp_path: Path):
    gate = Gate()
    agents = ScriptedAgents([waits_at(gate), answers("done")])
    async with open_harness(tmp_path, IDLE, agent_factory=agents) as harness:
        await harness.platform.says("ann", "long work")
        await gate.reached()
        harness.clock.step(days=2)
        await harness.store.watcher.sweep()
        harness.gateway.agents.sweep()
        await harness.wait_until_idle()
        assert [agent.closes for _, agent in agents.made] == [0]
        gate.open()
        await harness.wait_until_idle()
        assert replies(harness) == ["done"]
    assert agents.open == agents.closed_twice == []


async def test_a_turn_may_last_longer_than_the_idle_time(tmp_path: Path):
    gate = Gate()
    async with open_harness(
        tmp_path, IDLE, agent=ScriptedAgent([waits_at(gate), answers("done")])
    ) as harness:
        await harness.platform.says("ann", "long work")
        await gate.reached()
        before = await harness.store.peek_session_id(harness.key("ann"))
        harness.clock.step(hours=3)
        await harness.store.watcher.sweep()
        gate.open()
        await harness.wait_until_idle()
        await harness.platform.says("ann", "and now?")
        await harness.wait_until_idle()
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert (entry.session_id, entry.state) == (before, SessionState.ACTIVE)
        assert replies(harness) == ["done", "you said: and now?"]


async def test_a_variable_set_in_one_turn_is_unknown_in_others(tmp_path: Path):
    chat: ContextVar[str] = ContextVar("chat", default="nobody")
    seen: list[str] = []

    async def agent(turn: TurnContext) -> str:
        seen.append(chat.get())
        chat.set(turn.text)
        await turn.clock.sleep(1)
        assert (chat.get(), current_turn()) == (turn.text, turn)
        return f"for {chat.get()}"

    async def writes(person: str) -> None:
        chat.set(f"whoever submits for {person}")
        await harness.platform.says(person, person)

    async with open_harness(tmp_path, agent=agent) as harness:
        people = [f"p{number}" for number in range(10)]
        for _ in range(2):
            await asyncio.gather(*(writes(person) for person in people))
            await harness.clock.advance(seconds=2)
        assert set(seen) == {"nobody"}
        for person in people:
            assert replies(harness, person) == [f"for {person}"] * 2


async def test_a_variable_of_whoever_submits_is_unknown_in_a_turn(tmp_path: Path):
    chat: ContextVar[str] = ContextVar("chat", default="nobody")
    seen: dict[str, str] = {}

    async def agent(turn: TurnContext) -> str:
        seen[turn.text] = chat.get()
        chat.set(turn.text)
        if turn.text == "p0":  # one turn writes to somebody else, and so submits their message itself
            await harness.platform.says("zoe", "from p0")
        return turn.text

    async def writes(person: str) -> None:
        chat.set(f"the handler of {person}")
        await harness.platform.says(person, person)
        await harness.platform.says(person, f"{person} again")

    async with open_harness(tmp_path, busy_config(BusyMode.QUEUE, debounce=AT_ONCE), agent=agent) as harness:
        people = [f"p{number}" for number in range(5)]
        await asyncio.gather(*(writes(person) for person in people))
        await harness.wait_until_idle()
        for person in people:  # one task brings what all of them say, as an adapter does
            chat.set(f"the adapter, for {person}")
            await harness.platform.says(person, f"{person} once more")
        await harness.wait_until_idle()
        said = [text for person in people for text in (person, f"{person} again", f"{person} once more")]
        assert seen == dict.fromkeys([*said, "from p0"], "nobody")


async def test_an_agent_does_not_remember_what_was_taken_back(tmp_path: Path):
    agents = ScriptedAgents()
    async with open_harness(tmp_path, agent_factory=agents) as harness:
        for text in ("one", "two"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        session_id = await harness.store.peek_session_id(harness.key("ann"))
        assert session_id is not None
        await harness.store.rewind_session(session_id)  # the gateway is not told of it
        assert harness.gateway.agents.counts.idle == 1
        await harness.platform.says("ann", "three")
        await harness.wait_until_idle()
        assert len(agents.made) == 2
        history = agents.made[1][1].histories[0]
        assert [row["content"] for row in history if row["role"] == "user"] == ["one", "three"]


async def test_an_undo_makes_the_agent_of_that_very_lane_anew(tmp_path: Path):
    agents = ScriptedAgents()
    config = replace(QUICK, group_sessions_per_user=False)
    async with open_harness(tmp_path, config, agent_factory=agents) as harness:
        for person, chat in (("ann", "room"), ("bob", None)):
            await harness.platform.says(person, "one", chat=chat)
            await harness.wait_until_idle()
        await harness.platform.says("ann", "/undo", chat="room")
        await harness.wait_until_idle()
        assert [agent.closes for _, agent in agents.made] == [1, 0]
        for person, chat in (("ann", "room"), ("bob", None)):
            await harness.platform.says(person, "two", chat=chat)
            await harness.wait_until_idle()
        room, bob = harness.key("ann", "room"), harness.key("bob")
        assert [key for key, _ in agents.made] == [room, bob, room]
        assert [row["content"] for row in agents.made[2][1].histories[0]] == ["[Ann] two"]


# Replies


@pytest.mark.parametrize("killed", [True, False])
async def test_a_reply_is_not_lost_between_answer_and_send(restartable: RestartableGateway, killed: bool):
    with restartable.platform.outage():
        async with restartable.run(killed=killed, agent=echo) as harness:
            await harness.platform.says("ann", "hello")
            await harness.wait_until_idle()
    async with restartable.run(agent=ScriptedAgent()) as harness:
        await harness.clock.advance(minutes=1)
        assert replies(harness) == ["hello"]
