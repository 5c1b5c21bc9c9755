"""Commands are carried out once, whatever fails: written down before, settled with their answer after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from gateway_sessions import GatewaySessionsError, InvalidInputError, SessionStore
from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.config import AgentConfig, GatewayConfig
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.notices.notice_texts import GIVEN_UP
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Disposition,
    Duplicate,
    InboundMessage,
    MessageKind,
    Rejected,
    RejectReason,
)
from gateway_sessions.core.queue.items import ItemKind
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall, CommandSet
from gateway_sessions.runtime.observability.event_stream import EventKind
from gateway_sessions.storage.transactions.queue.admit import NotedItem
from gateway_sessions.storage.transactions.queue.slash_commands import MOST_OWED
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import (
    Gate,
    ScriptedAgent,
    SteerableScriptedAgent,
    answers,
    fails,
    waits_at,
)
from gateway_sessions.testing.fake_platform import FakePlatform
from gateway_sessions.testing.faults import crash_at, raising
from gateway_sessions.testing.inside import queue_of
from tests.integration.gateway.gateway_harness import (
    QUICK,
    GatewayHarness,
    busy_config,
    open_harness,
    quote_message,
)
from tests.raw_sql import execute_sql


def notices(harness: GatewayHarness, chat: str = "ann") -> list[str]:
    return [one.text for one in harness.platform.sent if one.message.is_notice and one.target.chat_id == chat]


class Counted:
    """A command that counts its calls, and waits where a test says so."""

    def __init__(self, *, gate: Gate | None = None, error: BaseException | None = None) -> None:
        self.calls: list[CommandCall] = []
        self.gate = gate
        self.error = error

    async def __call__(self, call: CommandCall) -> str | None:
        self.calls.append(call)
        if self.gate is not None:
            await self.gate.passage()
        if self.error is not None:
            raise self.error
        return f"pong {call.arguments}".strip()


# Once


async def test_a_command_delivered_again_is_not_carried_out_again(tmp_path: Path):
    ping = Counted()
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", ping)]) as harness:
        first = await harness.platform.says("ann", "/ping", message_id="m1")
        again = await harness.platform.redelivers("m1")
        await harness.wait_until_idle()
        assert isinstance(first, Accepted)
        assert again == Duplicate(seq=first.seq, session_key=first.session_key)
        assert (len(ping.calls), notices(harness)) == (1, ["pong"])


async def test_deliveries_at_the_same_time_are_one(tmp_path: Path):
    ping = Counted()
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", ping)]) as harness:
        message = InboundMessage(source=harness.platform.source("ann"), text="/ping", message_id="m1")
        receipts = await asyncio.gather(*(harness.platform.delivers(message) for _ in range(8)))
        await harness.wait_until_idle()
        assert sum(isinstance(one, Duplicate) for one in receipts) == 7
        assert len(ping.calls) == 1


@pytest.mark.parametrize("point", ["command_noted", "command_carried_out"])
async def test_a_command_that_a_crash_cut_off_is_told_of_and_never_done_again(tmp_path: Path, point: str):
    platform, clock = FakePlatform(run=""), FakeClock()
    async with open_harness(tmp_path, agent=quote_message, platform=platform, clock=clock) as harness:
        await platform.says("ann", "hello")
        await harness.wait_until_idle()
        with crash_at(point, action=raising(RuntimeError("crash"))) as crash:
            try:
                await platform.says("ann", "/new", message_id="restart")
            except RuntimeError:
                assert point == "command_noted"
        assert crash.fired
        before = await harness.store.peek_session_id(harness.key("ann"))
    for _ in range(2):  # the second start has nothing to tell any more
        async with open_harness(tmp_path, agent=quote_message, platform=platform, clock=clock) as harness:
            assert isinstance(await platform.redelivers("restart"), Duplicate)
            await harness.wait_until_idle()
            assert await harness.store.peek_session_id(harness.key("ann")) == before
            assert notices(harness) == [
                "I was restarted while I carried out /new: nobody knows whether it was done."
            ]


async def test_a_command_that_the_end_of_a_gateway_cut_off_is_told_of(tmp_path: Path):
    ping, platform = Counted(gate=Gate()), FakePlatform(run="")
    commands = [Command("ping", ping, begun="Pinging.")]
    async with open_harness(tmp_path, agent=quote_message, platform=platform, commands=commands) as harness:
        await platform.says("ann", "/ping")
        assert ping.gate is not None
        await ping.gate.reached()
        await harness.wait_until_idle()
        assert not await harness.gateway.drain(timedelta())
    async with open_harness(tmp_path, agent=quote_message, platform=platform) as harness:
        await harness.wait_until_idle()
        assert notices(harness) == [
            "Pinging.",
            "I was restarted while I carried out /ping: nobody knows whether it was done.",
        ]


async def test_a_command_of_a_program_is_told_to_nobody_after_a_crash(tmp_path: Path):
    platform = FakePlatform(run="")
    async with open_harness(tmp_path, agent=quote_message, platform=platform) as harness:
        with crash_at("command_carried_out", action=raising(RuntimeError("crash"))):
            await harness.gateway.command(platform.source("ann"), "/new")
    async with open_harness(tmp_path, agent=quote_message, platform=platform) as harness:
        await harness.wait_until_idle()
        assert [one.message.text for one in harness.store.started.abandoned] == ["/new"]
        assert notices(harness) == []


async def test_a_turn_that_was_given_up_is_told_of_once(tmp_path: Path):
    platform, config = FakePlatform(run=""), replace(QUICK, agent=AgentConfig(max_restart_attempts=1))
    message = InboundMessage(source=platform.source("ann"), text="deadly", message_id="m1")
    async with SessionStore.open(tmp_path, config, clock=FakeClock()) as store:
        await store.enqueue(message)
        assert await store.claim() is not None
    for _ in range(2):
        async with open_harness(tmp_path, config, agent=quote_message, platform=platform) as harness:
            await harness.wait_until_idle()
    (told,) = platform.sent
    assert (told.text, told.target.reply_to) == (GIVEN_UP, "m1")


async def test_an_edit_that_an_earlier_version_had_only_noted_is_carried_out_at_the_next_start(
    tmp_path: Path,
):
    agent, platform = ScriptedAgent(), FakePlatform(run="")
    async with open_harness(tmp_path, agent=agent, platform=platform) as harness:
        await platform.says("ann", "hello", message_id="m1")
        await harness.wait_until_idle()
        source = platform.source("ann")
        edit = InboundMessage(source=source, text="else", message_id="m1", kind=MessageKind.EDIT)
        assert isinstance(await queue_of(harness.store).record_arrival(edit, ItemKind.CHANGE), NotedItem)
    async with open_harness(tmp_path, agent=agent, platform=platform) as harness:
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["hello"]
        assert await harness.store.queue_depth(harness.key("ann")) == 0
        assert (await harness.outcomes("ann"), notices(harness)) == ({"turned": 1, "applied": 1}, [])
        assert (await harness.transcript("ann"))[0] == ("user", "else")


# Whoever waits, and how long


async def test_a_command_goes_on_when_the_connection_that_brought_it_breaks(tmp_path: Path):
    ping = Counted(gate=Gate())
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", ping)]) as harness:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.platform.says, "ann", "/ping")
            assert ping.gate is not None
            await ping.gate.reached()
            tasks.cancel_scope.cancel()
        ping.gate.open()
        await harness.wait_until_idle()
        assert notices(harness) == ["pong"]
        assert await harness.outcomes("ann") == {"command": 1}


async def test_a_command_that_hangs_is_cut_off_and_holds_up_nobody_else(tmp_path: Path):
    ping = Counted(gate=Gate())
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", ping)]) as harness:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.platform.says, "ann", "/ping")
            assert ping.gate is not None
            await ping.gate.reached()
            await harness.platform.says("bob", "hello")
            await harness.platform.says("ann", "/title Rome")
            await harness.wait_until_idle()
            assert notices(harness) == ["This conversation is called “Rome”."]
            assert harness.platform.shown("bob") == ["you said: hello"]
            await harness.clock.advance(seconds=11)
        await harness.wait_until_idle()
        assert (
            notices(harness)[1] == "/ping took too long, so I stopped it. It may not have been carried out."
        )
        assert await harness.outcomes("ann") == {"cancelled": 1, "command": 1}


async def test_one_that_finishes_while_it_is_cut_off_has_its_say(tmp_path: Path):
    async def slow(call: CommandCall) -> str:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return "just in time"
        return "never"

    command = Command("slow", slow, limit=timedelta(seconds=1))
    async with open_harness(tmp_path, agent=quote_message, commands=[command]) as harness:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.platform.says, "ann", "/slow")
            await harness.wait_until_idle()
            await harness.clock.advance(seconds=2)
        await harness.wait_until_idle()
        assert notices(harness) == ["just in time"]


async def test_a_long_one_is_carried_out_in_the_background(tmp_path: Path):
    ping = Counted(gate=Gate())
    commands = [Command("ping", ping, begun="Pinging.", limit=timedelta(minutes=5))]
    async with open_harness(tmp_path, agent=quote_message, commands=commands) as harness:
        receipt = await harness.platform.says("ann", "/ping")
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.COMMAND
        await harness.clock.advance(minutes=4)
        assert notices(harness) == ["Pinging."]
        assert ping.gate is not None
        ping.gate.open()
        await harness.wait_until_idle()
        assert notices(harness) == ["Pinging.", "pong"]


async def test_the_end_of_a_gateway_waits_for_commands_and_their_answers(tmp_path: Path):
    ping, platform = Counted(gate=Gate()), FakePlatform(run="")
    commands = [Command("ping", ping, begun="Pinging.")]
    async with open_harness(tmp_path, agent=quote_message, platform=platform, commands=commands) as harness:
        await platform.says("ann", "/ping")
        assert ping.gate is not None
        await ping.gate.reached()
        assert harness.gateway.busy
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.gateway.drain)
            await anyio.wait_all_tasks_blocked()
            ping.gate.open()
    assert platform.shown("ann") == ["Pinging.", "pong"]


# What a handler sees, and what it may do


async def test_a_handler_knows_who_asks_where_and_in_which_conversation(tmp_path: Path):
    ping = Counted()
    async with open_harness(
        tmp_path, agent=quote_message, commands=[Command("ping", ping, aliases=("p",))]
    ) as harness:
        await harness.platform.says("ann", "hello", chat="den")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/P@bot — one two", chat="den")
        (call,) = ping.calls
        assert (call.name, call.arguments, call.command.name) == ("p", "— one two", "ping")
        assert (call.session_key, call.source.user_id) == (harness.key("ann", "den"), "ann")
        assert call.entry == await harness.store.get_session(call.session_key)
        assert call.gateway is harness.gateway
        assert call.store is harness.store
        assert call.own.owners == {call.owner} < call.scope.owners


async def test_a_handler_sees_no_context_of_whoever_brought_the_message(tmp_path: Path):
    secret: ContextVar[str] = ContextVar("secret", default="nothing")
    seen: list[str] = []

    async def look(call: CommandCall) -> None:
        seen.append(secret.get())

    async with open_harness(tmp_path, agent=quote_message, commands=[Command("look", look)]) as harness:
        token = secret.set("ann's")
        await harness.platform.says("ann", "/look")
        secret.reset(token)
        await harness.wait_until_idle()
        assert (seen, notices(harness)) == (["nothing"], [])
        assert await harness.outcomes("ann") == {"command": 1}


async def test_a_given_command_takes_the_place_of_ours_and_of_its_names(tmp_path: Path):
    given = [Command("reset", Counted(), summary="Say pong."), Command("fork", Counted())]
    async with open_harness(tmp_path, agent=quote_message, commands=given) as harness:
        source = harness.platform.source("ann")
        assert await harness.gateway.command(source, "/reset now") == "pong now"
        assert await harness.gateway.command(source, "/new") == "A new conversation begins."
        told = await harness.gateway.command(source, "/help")
        assert told is not None
        assert "/reset: Say pong." in told


async def test_an_error_of_ours_is_put_into_a_sentence_and_another_one_into_no_detail(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    given = [
        Command("ours", Counted(error=GatewaySessionsError("it is raining"))),
        Command("theirs", Counted(error=LookupError("secret detail"))),
    ]
    async with open_harness(tmp_path, agent=quote_message, commands=given) as harness:
        for text in ("/ours", "/theirs"):
            await harness.platform.says("ann", text)
        await harness.wait_until_idle()
        assert notices(harness) == [
            "That did not work: It is raining.",
            "Something went wrong with /theirs. It may not have been carried out.",
        ]
        assert await harness.outcomes("ann") == {"cancelled": 2}
    assert [getattr(one, "action", None) for one in caplog.records] == ["command_failed"]


async def test_a_long_answer_is_sent_in_parts(tmp_path: Path):
    async def talk(call: CommandCall) -> str:
        return "\n".join(f"line {number}" for number in range(30))

    platform = FakePlatform(capabilities=AdapterCapabilities(max_length=64), run="")
    async with open_harness(
        tmp_path, agent=quote_message, platform=platform, commands=[Command("talk", talk)]
    ) as harness:
        await platform.says("ann", "/talk")
        await harness.wait_until_idle()
        assert len(platform.sent) > 3
        assert "\n".join(platform.shown("ann")).split("\n") == [f"line {number}" for number in range(30)]


async def test_answers_come_in_order_behind_what_was_said_before(tmp_path: Path):
    gate = Gate()

    async def talk(turn):  # type: ignore[no-untyped-def]
        await turn.say("first")
        await turn.say("second")

    agent = ScriptedAgent([talk, waits_at(gate), answers("last")])
    async with open_harness(tmp_path, agent=agent) as harness:
        with harness.platform.late_ack():
            await harness.platform.says("ann", "hello")
            await gate.reached()
            await harness.platform.says("ann", "/title Rome")
            gate.open()
            await harness.wait_until_idle()
        await harness.wait_until_idle()
        titled = "This conversation is called “Rome”."
        assert harness.platform.shown("ann") == ["first", "second", titled, "last"]


async def test_an_account_that_nobody_serves_is_owed_its_answer(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        other = InboundMessage(source=FakePlatform("other").source("ann"), text="/help")
        receipt = await harness.gateway.submit(other)
        assert isinstance(receipt, Accepted)
        await harness.wait_until_idle()
        rows = execute_sql(tmp_path / "sessions.db", "SELECT platform, state FROM outbox")
        assert rows == [("other", "owed")]


async def test_whoever_floods_a_lane_with_commands_is_not_owed_more_and_more(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", Counted())]) as harness:
        with harness.platform.outage():
            for _ in range(MOST_OWED + 20):
                await harness.platform.says("ann", "/ping")
            await harness.platform.says("bob", "/ping")
            await harness.wait_until_idle()
        await harness.clock.advance(minutes=10)
        await harness.wait_until_idle()
        assert len(notices(harness)) == MOST_OWED
        assert len(notices(harness, "bob")) == 1


async def test_listeners_are_told_of_commands(tmp_path: Path):
    async with (
        open_harness(tmp_path, agent=quote_message) as harness,
        harness.gateway.events.listen() as listener,
    ):
        await harness.platform.says("ann", "/title Rome", message_id="m1")
        await harness.platform.redelivers("m1")
        await harness.platform.says("ann", "/title " + "x" * 101)
        await harness.wait_until_idle()
        heard = [await anext(listener)]
        while sum(one.kind is EventKind.COMMAND for one in heard) < 2:
            heard.append(await anext(listener))
        commands = [one for one in heard if one.kind is EventKind.COMMAND]
        assert [one.facts["name"] for one in commands] == ["title", "title"]
        assert [one.facts["problem"] is None for one in commands] == [True, False]
        assert EventKind.MESSAGE_DUPLICATE in [one.kind for one in heard]


# Who may


async def test_whoever_may_not_use_a_command_is_told_so_and_it_is_not_carried_out(tmp_path: Path):
    asked: list[tuple[str, str | None]] = []

    async def allowed(call: CommandCall) -> bool:
        asked.append((call.command.name, call.source.user_id))
        return call.source.user_id == "ann" and call.name != "stop"

    async with open_harness(tmp_path, agent=quote_message, allowed=allowed) as harness:
        for person in ("ann", "bob"):
            for text in ("/title Rome", "/stop", "/queue hello"):
                await harness.platform.says(person, text)
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == [
            "This conversation is called “Rome”.",
            "You may not use /stop here.",
            "you said: hello",
        ]
        assert set(harness.platform.shown("bob")) == {
            "You may not use /title here.", "You may not use /stop here.", "You may not use /queue here.",
        }  # fmt: skip
        assert await harness.store.peek_session_id(harness.key("bob")) is None
        assert ("queue", "ann") in asked


async def test_nobody_may_while_nobody_knows_who_may(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    def allowed(call: CommandCall) -> bool:
        raise LookupError("no list of members")

    async with open_harness(tmp_path, agent=quote_message, allowed=allowed) as harness:
        await harness.platform.says("ann", "/title Rome")
        await harness.platform.says("ann", "/queue hello")
        await harness.wait_until_idle()
        assert notices(harness) == ["You may not use /title here.", "You may not use /queue here."]
    assert {getattr(one, "action", None) for one in caplog.records} == {"command_veto_failed"}


async def test_a_list_of_members_that_does_not_answer_is_not_waited_for(tmp_path: Path):
    async def allowed(call: CommandCall) -> bool:
        await anyio.sleep_forever()
        return True

    async with open_harness(tmp_path, agent=quote_message, allowed=allowed) as harness:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(harness.platform.says, "ann", "/queue hello")
            await harness.wait_until_idle()
            await harness.clock.advance(seconds=11)
            await harness.wait_until_idle()
            await harness.clock.advance(seconds=11)
        await harness.wait_until_idle()
        assert await harness.outcomes("ann") == {"cancelled": 1}


# Storage that fails


@contextmanager
def unwritable(when: Callable[[], object] = lambda: True) -> Iterator[None]:
    """Within the block nothing can be written, as soon as that is so."""

    def fail(point: str) -> None:
        if point == "before_commit" and when():
            raise StorageUnavailableError("sessions.db", "is locked")

    arm_failpoints(fail)
    try:
        yield
    finally:
        arm_failpoints(None)


async def test_what_cannot_be_written_down_is_not_carried_out(tmp_path: Path):
    ping = Counted()
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", ping)]) as harness:
        with unwritable(), pytest.raises(StorageUnavailableError):
            await harness.platform.says("ann", "/ping", message_id="m1")
        assert ping.calls == []
        assert isinstance(await harness.platform.redelivers("m1"), Accepted)
        assert len(ping.calls) == 1


async def test_what_was_carried_out_is_settled_as_soon_as_that_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    ping = Counted()
    async with open_harness(tmp_path, agent=quote_message, commands=[Command("ping", ping)]) as harness:
        with unwritable(lambda: ping.calls):
            assert isinstance(await harness.platform.says("ann", "/ping"), Accepted)
            await harness.clock.advance(seconds=10)
            assert notices(harness) == []
        await harness.clock.advance(seconds=10)
        assert (len(ping.calls), notices(harness)) == (1, ["pong"])
        assert await harness.outcomes("ann") == {"command": 1}
    assert "command_delayed" in {getattr(one, "action", None) for one in caplog.records}


async def test_a_command_sent_before_an_erasure_is_refused(tmp_path: Path):
    clock = FakeClock()
    platform = FakePlatform(clock=clock, run="")
    async with open_harness(tmp_path, agent=quote_message, platform=platform, clock=clock) as harness:
        await platform.says("ann", "hello")
        await harness.wait_until_idle()
        late = InboundMessage(source=platform.source("ann"), text="/title mine", sent_at=clock.now())
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        await clock.advance(minutes=1)
        await harness.store.erase(entry.owner)
        receipt = await platform.delivers(late)
        assert isinstance(receipt, Rejected)
        assert receipt.reason is RejectReason.ERASED


# Turns that are taken back


async def test_what_was_said_into_a_turn_is_taken_back_and_tried_again_with_it(tmp_path: Path):
    gate = Gate()
    agent = SteerableScriptedAgent("1", [waits_at(gate), answers("2")], "3")
    async with open_harness(tmp_path, busy_config(BusyMode.STEER), agent=agent) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("ann", "two")
        await gate.reached()
        await harness.platform.says("ann", "and more")
        gate.open()
        await harness.wait_until_idle()
        await harness.platform.says("ann", "/retry")
        await harness.wait_until_idle()
        assert agent.turns[-1].text == "two\nand more"
        assert await harness.transcript("ann") == [
            ("user", "one"), ("assistant", "1"), ("user", "two\nand more"), ("assistant", "3"),
        ]  # fmt: skip


async def test_many_turns_are_counted_as_people_count_them(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        entry = await harness.store.get_or_create_session(harness.platform.source("ann"))
        rows = [
            {"role": role, "content": f"{role} {number}", **({"steered": True} if number % 2 else {})}
            for number in range(80)
            for role in ("user", "assistant")
        ]
        await harness.store.db.append_messages(entry.session_id, rows)
        source = harness.platform.source("ann")
        told = await harness.gateway.command(source, "/undo 39")
        assert told == "Took back 39 turns, from “user 2 user 3” on."
        left = await harness.store.db.get_messages(entry.session_id)
        assert [row.text for row in left] == ["user 0", "assistant 0", "user 1", "assistant 1"]


async def test_a_message_without_an_id_is_known_by_its_words(tmp_path: Path):
    agent = ScriptedAgent([fails(LookupError("model"))], "2", [fails(LookupError("model"))], "4")
    async with open_harness(tmp_path, agent=agent) as harness:
        source = harness.platform.source("ann")
        for text in ("one", "/retry", "two", "/retry"):
            await harness.platform.delivers(InboundMessage(source=source, text=text))
            await harness.wait_until_idle()
        assert await harness.transcript("ann") == [
            ("user", "one"), ("assistant", "2"), ("user", "two"), ("assistant", "4"),
        ]  # fmt: skip


async def test_what_cannot_be_submitted_again_is_not_taken_back(tmp_path: Path):
    gate = Gate()
    config = replace(QUICK, gateway=GatewayConfig(max_waiting=1))
    async with open_harness(
        tmp_path, config, agent=ScriptedAgent("1", [waits_at(gate), answers("2")])
    ) as harness:
        await harness.platform.says("ann", "one")
        await harness.wait_until_idle()
        await harness.platform.says("bob", "runs")
        await gate.reached()
        await harness.platform.says("bob", "waits")
        told = await harness.gateway.command(harness.platform.source("ann"), "/retry")
        assert told is not None
        assert told.startswith("I have too much to do")
        assert await harness.transcript("ann") == [("user", "one"), ("assistant", "1")]
        gate.open()
        await harness.wait_until_idle()


# Making them


def test_a_command_needs_time():
    with pytest.raises(InvalidInputError, match="more than nothing"):
        Command("ping", Counted(), limit=timedelta())


def test_a_set_of_commands_knows_each_by_all_its_names():
    ping, pong = Command("ping", Counted(), aliases=("p",)), Command("p", Counted())
    names = CommandSet([ping], [pong])
    assert "ping" in names
    assert names["p"] is pong
    assert list(names) == [ping, pong]
    assert "pong" not in names


# What is chosen before the first message


@pytest.mark.parametrize("reset", ["/new", "a day"])
async def test_a_title_and_a_model_that_come_first_outlive_a_reset(tmp_path: Path, reset: str):
    models: list[str | None] = []

    async def agent(turn: TurnContext) -> str:
        models.append(turn.model)
        return "well"

    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "/title Rome")
        await harness.platform.says("ann", "/model large")
        await harness.wait_until_idle()
        empty = await harness.store.peek_session_id(harness.key("ann"))
        if reset == "/new":
            await harness.platform.says("ann", "/new")
        else:
            await harness.clock.advance(hours=30)
        await harness.wait_until_idle()
        await harness.platform.says("ann", "hello")
        await harness.wait_until_idle()
        session_id = await harness.store.peek_session_id(harness.key("ann"))
        assert empty is not None
        assert session_id not in (empty, None)
        assert models == ["large"]
        assert await harness.store.db.get_session_title(session_id) == "Rome"
        assert await harness.store.db.get_session_title(empty) is None


async def test_they_come_back_with_the_session_they_were_chosen_for(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        await harness.platform.says("ann", "/title Rome")
        await harness.platform.says("ann", "/model large")
        await harness.wait_until_idle()
        empty = await harness.store.peek_session_id(harness.key("ann"))
        await harness.platform.says("ann", "/new")
        await harness.platform.says("ann", "/undo-reset")
        await harness.wait_until_idle()
        entry = await harness.store.get_session(harness.key("ann"))
        assert entry is not None
        assert entry.session_id == empty
        assert entry.model_override == {"model": "large"}
        assert await harness.store.db.get_session_title(entry.session_id) == "Rome"


async def test_a_conversation_in_which_something_was_said_keeps_its_own(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        for text in ("/title Rome", "/model large", "hello"):
            await harness.platform.says("ann", text)
            await harness.wait_until_idle()
        was = await harness.store.peek_session_id(harness.key("ann"))
        await harness.platform.says("ann", "/new")
        await harness.wait_until_idle()
        entry = await harness.store.get_session(harness.key("ann"))
        assert was is not None
        assert entry is not None
        assert entry.model_override is None
        assert await harness.store.db.get_session_title(was) == "Rome"
        assert await harness.store.db.get_session_title(entry.session_id) is None
