"""Commands, as people use them on a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from gateway_sessions import GatewaySessionsError, InvalidInputError, SessionState
from gateway_sessions.core.notices.command_replies import (
    COMPRESSING,
    NO_COMPRESSOR,
    NO_CONVERSATION,
    NOT_COMPRESSED,
    NOTHING_TO_COMPRESS,
    NOTHING_TO_RETRY,
    NOTHING_TO_STOP,
    QUEUE_EMPTY,
    RETRIED_LATER,
)
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    AttachmentKind,
    Disposition,
    InboundMessage,
    Rejected,
    RejectReason,
)
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.transcript.messages import Hidden
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.testing.agents import Gate, ScriptedAgent, answers, calls_tool, fails, waits_at
from tests.integration.gateway.gateway_harness import GatewayHarness, busy_config, open_harness
from tests.integration.gateway.shared_gateway import AgentOfEachPerson, Person

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHOTO = Attachment(kind=AttachmentKind.PHOTO, url="file:a.jpg")
SUMMARY = [{"role": "user", "content": "all of it"}, {"role": "assistant", "content": "in short"}]


class Summaries:
    """A compressor that does what a test says."""

    def __init__(self) -> None:
        self.gate: Gate | None = None
        self.given: list[list[Chat]] = []

    async def __call__(self, chats: list[Chat]) -> list[dict[str, str]]:
        self.given.append(chats)
        if self.gate is not None:
            await self.gate.passage()
        return SUMMARY


SUMMARIES = Summaries()
AGENTS = AgentOfEachPerson()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[GatewayHarness]:
    home: Path = tmp_path_factory.mktemp("commands")
    async with open_harness(home, agent=AGENTS, compressor=SUMMARIES) as opened:
        yield opened
        await opened.gateway.drain(timedelta())  # a test that failed may have left a turn running


@pytest.fixture
def person(harness: GatewayHarness) -> Callable[..., Person]:
    return lambda chat=None: Person(harness, AGENTS, chat=chat)


@pytest.fixture
def ann(person: Callable[..., Person]) -> Person:
    return person()


@pytest.fixture
def bob(person: Callable[..., Person]) -> Person:
    return person()


class TestWhatIsACommand:
    @pytest.mark.parametrize("text", ["/usr/bin/new", "/nonsense", "/new/x", "say /new", "/", "/ new"])
    async def test_a_path_or_an_unknown_word_is_not_taken_for_a_command(self, ann: Person, text: str):
        assert await ann.say_and_hear(text) == f"you said: {text}"

    async def test_a_command_may_name_the_bot_it_is_for_and_be_written_in_capitals(self, ann: Person):
        await ann.say_and_hear("hello")
        assert await ann.use_command("/STOP@our_bot") == NOTHING_TO_STOP

    async def test_what_the_program_says_is_never_a_command(self, harness: GatewayHarness, ann: Person):
        message = InboundMessage(source=harness.platform.source(ann.name), text="/new", internal=True)
        receipt = await harness.gateway.submit(message)
        assert isinstance(receipt, Accepted)
        assert receipt.disposition is Disposition.STARTS
        await harness.wait_until_idle()

    async def test_a_command_says_where_it_was_carried_out(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("hello")
        receipt = await ann.says("/status")
        assert receipt == Accepted(
            seq=2,
            session_key=ann.key,
            session_id=await harness.store.peek_session_id(ann.key),
            disposition=Disposition.COMMAND,
        )

    async def test_one_that_is_too_large_is_refused(self, harness: GatewayHarness, ann: Person):
        receipt = await ann.says("/title " + "x" * harness.store.config.gateway.max_message_bytes)
        assert isinstance(receipt, Rejected)
        assert receipt.reason is RejectReason.TOO_LARGE
        await harness.wait_until_idle()

    async def test_looking_around_keeps_no_session_alive(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("hello")
        before = await harness.store.get_session(ann.key)
        for text in ("/status", "/help", "/title", "/model", "/resume", "/queue", "/stop"):
            await ann.use_command(text)
        after = await harness.store.get_session(ann.key)
        assert before is not None
        assert after is not None
        assert after.last_interaction_at == before.last_interaction_at


class TestNew:
    @pytest.mark.parametrize("name", ["new", "reset"])
    async def test_it_begins_a_conversation_that_knows_nothing_of_the_one_before(
        self, harness: GatewayHarness, ann: Person, name: str
    ):
        await ann.say_and_hear("hello")
        old = await harness.store.peek_session_id(ann.key)
        told = await ann.use_command(f"/{name}")
        assert told == "This is a new conversation. /undo-reset brings the one before back."
        assert await harness.store.peek_session_id(ann.key) != old
        await ann.say_and_hear("again")
        assert await ann.transcript() == ["again", "you said: again"]

    async def test_it_may_be_called_something(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("hello")
        assert "“Rome”" in await ann.use_command("/new <Rome>")
        session_id = await harness.store.peek_session_id(ann.key)
        assert session_id is not None
        assert await harness.store.db.get_session_title(session_id) == "Rome"

    async def test_a_title_that_is_taken_leaves_everything_as_it_was(
        self, harness: GatewayHarness, ann: Person
    ):
        gate = Gate()
        ann.script_agent("fine", [waits_at(gate), answers("done")])
        await ann.use_command("/title Rome")
        await ann.say_and_hear("hello")
        await ann.says("go on")
        await gate.reached()
        assert "already" in await ann.use_command("/new Rome")
        gate.open()
        await harness.wait_until_idle()
        assert "done" in await ann.transcript()

    async def test_it_works_before_anything_was_said(self, ann: Person):
        assert await ann.use_command("/new") == "A new conversation begins."
        assert await ann.use_command("/new Rome") == (
            "This is a new conversation, “Rome”. /undo-reset brings the one before back."
        )

    async def test_the_first_of_all_may_be_called_something(self, ann: Person):
        assert await ann.use_command("/new Rome") == "A new conversation begins, “Rome”."
        assert "“Rome”" in await ann.use_command("/title")

    async def test_undo_reset_brings_the_one_before_back_with_its_settings(self, ann: Person):
        await ann.say_and_hear("hello")
        await ann.use_command("/model gpt")
        await ann.use_command("/new")
        assert "is back" in await ann.use_command("/undo-reset")
        assert await ann.transcript() == ["hello", "you said: hello"]
        assert "gpt" in await ann.use_command("/model")
        assert await ann.use_command("/undo_reset") == "There is nothing to undo."

    async def test_nothing_can_be_undone_where_nothing_was_said(self, ann: Person):
        assert await ann.use_command("/undo-reset") == "There is nothing to undo."


class TestOvertaking:
    @pytest.mark.parametrize("command", ["/new", "/stop", "/branch", "/undo-reset", "/resume Rome"])
    async def test_what_runs_and_what_waits_is_ended_and_told_with_its_number(
        self, harness: GatewayHarness, ann: Person, command: str
    ):
        gate = Gate()
        agent = ann.script_agent("one", "two", [waits_at(gate), answers("late")])
        await ann.use_command("/title Rome")
        await ann.say_and_hear("one")
        await ann.use_command("/new")
        await ann.say_and_hear("two")
        await ann.says("three")
        await gate.reached()
        for text in ("four", "five"):
            await harness.clock.advance(seconds=5)
            await ann.says(text)
        told = await ann.use_command(command)
        assert "2 waiting messages were dropped" in told
        assert ("Stopped" if command == "/stop" else "I stopped what I was doing") in told
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "three"]
        assert await harness.store.queue_depth(ann.key) == 0
        assert "late" not in harness.platform.shown(ann.name)

    async def test_stop_leaves_nothing_of_the_overflow_running(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        agent = ann.script_agent([waits_at(gate), answers("late")])
        await ann.says("one")
        await gate.reached()
        for number in range(5):
            await ann.says(f"/queue item {number}")
        assert "5 waiting messages were dropped" in await ann.use_command("/stop")
        await harness.clock.advance(minutes=5)
        assert [turn.text for turn in agent.turns] == ["one"]
        assert (await harness.outcomes(ann.name))["cancelled"] == 5

    async def test_stop_does_not_end_the_conversation(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        ann.script_agent([calls_tool("search", "found"), waits_at(gate)], "second")
        await ann.says("one")
        await gate.reached()
        before = await harness.store.get_session(ann.key)
        await ann.use_command("/stop")
        after = await harness.store.get_session(ann.key)
        assert before is not None
        assert after is not None
        assert (after.session_id, after.state) == (before.session_id, SessionState.ACTIVE)
        assert await ann.say_and_hear("two") == "second"
        assert "one" in await ann.transcript()

    async def test_the_old_run_neither_speaks_nor_writes_once_it_was_overtaken(
        self, harness: GatewayHarness, ann: Person
    ):
        released, refused = asyncio.Event(), list[str]()

        async def stubborn(turn):  # type: ignore[no-untyped-def]
            await turn.show("working on")
            try:
                await Gate().passage()
            except asyncio.CancelledError:
                await released.wait()
            for attempt in (turn.say("I said"), turn.append({"role": "assistant", "content": "I wrote"}),
                            turn.show("I showed")):  # fmt: skip
                try:
                    await attempt
                except GatewaySessionsError as error:
                    refused.append(type(error).__name__)
            return "I answered"

        ann.script_agent([stubborn], "second")
        await ann.says("one")
        await harness.wait_until_idle()
        old = await harness.store.peek_session_id(ann.key)
        assert old is not None
        assert "new conversation" in await ann.use_command("/new")
        assert await ann.say_and_hear("two") == "second"
        released.set()
        await harness.wait_until_idle()
        assert refused == ["FencedError"] * 3
        shown = harness.platform.shown(ann.name)
        assert [text for text in shown if text.startswith("I ")] == []
        assert await ann.transcript() == ["two", "second"]
        written = [row.text for row in await harness.store.db.get_messages(old)]
        assert written == ["one", "[This turn was stopped.]"]

    async def test_the_next_turn_does_not_wait_for_a_stopped_one_that_goes_on(self, tmp_path: Path):
        over, begun_before_that = asyncio.Event(), list[bool]()

        async def stubborn(turn):  # type: ignore[no-untyped-def]
            try:
                await Gate().passage()
            except asyncio.CancelledError:
                await asyncio.Event().wait()
            finally:
                over.set()

        async def second(turn):  # type: ignore[no-untyped-def]
            begun_before_that.append(not over.is_set())
            return "second"

        own_cast = AgentOfEachPerson()
        async with open_harness(tmp_path, busy_config(BusyMode.COLLECT), agent=own_cast) as own:
            zoe = Person(own, own_cast)
            zoe.script_agent([stubborn], [second])
            await zoe.says("one")
            await own.clock.advance(seconds=1)
            await zoe.use_command("/stop")
            shown = len(own.platform.typing_shown)
            await own.clock.advance(seconds=4.5)
            assert len(own.platform.typing_shown) == shown
            await zoe.says("two")
            await own.clock.advance(seconds=10)
            assert begun_before_that == [True]
            assert "second" in own.platform.shown(zoe.name)

    async def test_a_run_that_has_finished_is_not_answered_for_after_a_stop(
        self, harness: GatewayHarness, ann: Person
    ):
        gate = Gate()
        ann.script_agent([waits_at(gate), answers("late")])
        await ann.says("one")
        await gate.reached()
        stopping = harness.gateway.command(harness.platform.source(ann.name), "/stop")
        gate.open()
        assert await stopping in ("Stopped.", NOTHING_TO_STOP)
        await harness.wait_until_idle()
        outcome = await harness.outcomes(ann.name)
        assert ("late" in harness.platform.shown(ann.name)) == ("turned" in outcome)


class TestWhileATurnRuns:
    async def test_every_command_is_answered_although_the_agent_hangs(
        self, harness: GatewayHarness, ann: Person
    ):
        gate = Gate()
        ann.script_agent("one", [waits_at(gate), answers("late")])
        await ann.say_and_hear("one")
        await ann.says("two")
        await gate.reached()
        for text in ("/status", "/title Rome", "/title", "/model gpt", "/queue", "/help", "/resume", "/undo",
                     "/retry", "/compress"):  # fmt: skip
            async with asyncio.timeout(15):
                assert await harness.gateway.command(harness.platform.source(ann.name), text)
        gate.open()
        await harness.wait_until_idle()
        assert await ann.transcript() == ["one", "one", "two", "late"]

    async def test_status_tells_since_when_and_what(self, harness: GatewayHarness, ann: Person):
        gate = Gate()

        async def searching(turn):  # type: ignore[no-untyped-def]
            turn.progress("searching the web")

        ann.script_agent([searching, waits_at(gate), answers("done")])
        await ann.use_command("/title Rome")
        await ann.says("one")
        await gate.reached()
        await harness.clock.advance(seconds=125)
        await ann.says("two")
        lines = (await ann.use_command("/status")).splitlines()
        assert lines[:2] == ["Now: working, for 2 min 5 s, “searching the web”", "Waiting: 1 message"]
        assert "“Rome”" in lines[2]
        gate.open()
        await harness.wait_until_idle()
        assert (await ann.use_command("/status")).startswith("Now: idle\nWaiting: nothing")

    @pytest.mark.parametrize("command", ["/undo", "/retry", "/compress"])
    async def test_nothing_is_taken_back_under_a_running_turn(
        self, harness: GatewayHarness, ann: Person, command: str
    ):
        gate = Gate()
        ann.script_agent("one", [waits_at(gate), answers("two")])
        await ann.say_and_hear("1")
        await ann.says("2")
        await gate.reached()
        assert "/stop ends it" in await ann.use_command(command)
        gate.open()
        await harness.wait_until_idle()
        assert await ann.transcript() == ["1", "one", "2", "two"]


class TestQueue:
    async def test_each_queued_message_gets_a_turn_of_its_own_in_order(
        self, harness: GatewayHarness, ann: Person
    ):
        gate = Gate()
        agent = ann.script_agent([waits_at(gate), answers("1")])
        await ann.says("one")
        await gate.reached()
        receipts = [await ann.says(f"/queue {word}") for word in ("two", "three", "four")]
        dispositions = [one.disposition for one in receipts if isinstance(one, Accepted)]
        assert dispositions == [Disposition.QUEUED] * 3
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "three", "four"]

    async def test_whoever_queues_something_is_told_each_time(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        ann.script_agent([waits_at(gate), answers("1")])
        await ann.says("one")
        await gate.reached()
        await ann.says("/queue two")
        await ann.says("/queue three")
        await harness.wait_until_idle()
        told = [text for text in harness.platform.shown(ann.name) if text.startswith("Queued")]
        assert told == [
            "Queued: I will answer this when I am done.",
            "Queued: I will answer this when I am done, after 1 other.",
        ]
        gate.open()
        await harness.wait_until_idle()

    async def test_on_an_idle_lane_it_is_an_ordinary_message(self, ann: Person):
        assert await ann.say_and_hear("/queue hello") == "you said: hello"
        assert await ann.transcript() == ["hello", "you said: hello"]

    async def test_what_is_queued_may_look_like_a_command(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("hello")
        before = await harness.store.peek_session_id(ann.key)
        assert await ann.say_and_hear("/queue /new") == "you said: /new"
        assert await harness.store.peek_session_id(ann.key) == before

    async def test_pictures_are_queued_with_their_words(self, ann: Person):
        agent = ann.script_agent("nice")
        await ann.say_and_hear("/queue look", attachments=[PHOTO])
        assert agent.turns[0].messages[0].attachments == (PHOTO,)
        assert agent.turns[0].text == "look"

    async def test_it_is_delivered_twice_and_queued_once(self, harness: GatewayHarness, ann: Person):
        agent = ann.script_agent("1")
        await ann.say_and_hear("/queue hello", message_id=f"{ann.name}-q")
        await harness.platform.redelivers(f"{ann.name}-q")
        await harness.wait_until_idle()
        assert len(agent.turns) == 1

    async def test_what_waits_is_listed_moved_and_taken_out(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        agent = ann.script_agent([waits_at(gate), answers("1")])
        await ann.says("one")
        await gate.reached()
        for word in ("two", "three", "four"):
            await ann.says(f"/queue {word}")
        assert (await ann.use_command("/queue list")).splitlines()[1:] == [
            "#2 “two”",
            "#3 “three”",
            "#4 “four”",
        ]
        assert (await ann.use_command("/queue move 4 1")).splitlines()[1:] == [
            "#4 “four”",
            "#2 “two”",
            "#3 “three”",
        ]
        assert await ann.use_command("/queue cancel 2") == "Took 1 message out."
        assert "Nothing with the number 2" in await ann.use_command("/queue cancel 2")
        assert "Nothing with the number 99" in await ann.use_command("/queue move 99 1")
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "four", "three"]

    async def test_it_is_cleared_and_the_running_turn_goes_on(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        agent = ann.script_agent([waits_at(gate), answers("1")])
        await ann.says("one")
        await gate.reached()
        await ann.says("/queue two")
        assert await ann.use_command("/queue clear") == "Took 1 waiting message out."
        assert await ann.use_command("/queue clear") == QUEUE_EMPTY
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.finished] == ["one"]

    async def test_a_full_queue_refuses_and_says_so(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        ann.script_agent([waits_at(gate), answers("1")])
        await ann.says("one")
        await gate.reached()
        for number in range(32):
            await ann.says(f"/queue {number}")
        receipt = await ann.says("/queue one too many")
        assert isinstance(receipt, Rejected)
        assert receipt.reason is RejectReason.QUEUE_FULL
        told = await harness.gateway.command(harness.platform.source(ann.name), "/queue another")
        assert told == receipt.text
        await ann.use_command("/stop")


class TestTitlesAndModels:
    async def test_a_title_given_before_the_first_message_is_not_lost(
        self, harness: GatewayHarness, ann: Person
    ):
        assert await ann.use_command("/title “Rome”") == "This conversation is called ““Rome””."
        assert await ann.use_command("/title 'Rome'") == "This conversation is called “Rome”."
        await ann.say_and_hear("hello")
        session_id = await harness.store.peek_session_id(ann.key)
        assert session_id is not None
        assert await harness.store.db.get_session_title(session_id) == "Rome"
        assert (
            await ann.use_command("/title") == f"This conversation is called “Rome”. Its id is {session_id}."
        )

    async def test_a_model_chosen_before_the_first_message_is_not_lost(self, ann: Person):
        agent = ann.script_agent("1", "2")
        assert "gpt-x" in await ann.use_command("/model gpt-x")
        await ann.say_and_hear("hello")
        assert agent.turns[0].model == "gpt-x"
        assert await ann.use_command("/model") == "The model here is gpt-x."
        assert "default" in await ann.use_command("/model default")
        await ann.say_and_hear("again")
        assert agent.turns[1].model is None

    async def test_where_there_is_no_conversation_there_is_nothing_to_show(self, ann: Person):
        assert await ann.use_command("/title") == NO_CONVERSATION
        assert await ann.use_command("/model") == "The model here is the default one."
        assert NO_CONVERSATION in await ann.use_command("/status")
        assert await ann.use_command("/branch") == NO_CONVERSATION

    async def test_a_conversation_without_a_title_says_so(self, ann: Person):
        await ann.say_and_hear("…")
        assert "has no title" in await ann.use_command("/title")

    async def test_a_title_that_cannot_be_one_changes_nothing(self, ann: Person):
        await ann.use_command("/title Rome")
        for text in ("\u200b\u200b", "x" * 101):
            assert "1 to 100 characters" in await ann.use_command(f"/title {text}")
        assert "“Rome”" in await ann.use_command("/title")

    async def test_a_title_of_ones_own_is_not_given_twice(self, ann: Person):
        await ann.use_command("/title Rome")
        await ann.say_and_hear("hello")
        await ann.use_command("/new")
        assert "already" in await ann.use_command("/title Rome")

    async def test_other_peoples_titles_are_free(self, ann: Person, bob: Person):
        await ann.use_command("/title Rome")
        assert await bob.use_command("/title Rome") == "This conversation is called “Rome”."


class TestResume:
    async def test_it_goes_on_with_a_number_of_the_list_that_was_shown(
        self, harness: GatewayHarness, ann: Person
    ):
        for place in ("Rome", "Paris", "Oslo"):
            await harness.clock.advance(minutes=1)
            await ann.use_command(f"/new {place}")
            await ann.say_and_hear(f"about {place}")
        shown = (await ann.use_command("/resume")).splitlines()[1:]
        assert [line.split(",")[0] for line in shown] == ["1. “Oslo”", "2. “Paris”", "3. “Rome”"]
        assert shown[0].endswith("(this one)")
        await harness.clock.advance(minutes=1)
        assert "“Rome”" in await ann.use_command("/resume 3")
        await ann.say_and_hear("more")  # the order of a new list would be another one
        assert "“Paris”" in await ann.use_command("/resume <2>")
        assert await ann.transcript() == ["about Paris", "you said: about Paris"]

    async def test_a_number_without_a_list_is_one_of_the_list_there_would_be(self, ann: Person):
        await ann.use_command("/new Rome")
        await ann.say_and_hear("about Rome")
        await ann.use_command("/new")
        assert "“Rome”" in await ann.use_command("/resume 1")

    @pytest.mark.parametrize("how", ["{}", "<{}>", '"{}"', "[{}]", "'{}'"])
    async def test_brackets_and_quotation_marks_do_not_matter(self, ann: Person, how: str):
        await ann.use_command("/new Rome and back")
        await ann.say_and_hear("hello")
        await ann.use_command("/new")
        assert "Back in “Rome and back”" in await ann.use_command(f"/resume {how.format('Rome and back')}")

    async def test_an_id_or_its_beginning_will_do(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("hello")
        old = await harness.store.peek_session_id(ann.key)
        assert old is not None
        await ann.use_command("/new")
        assert (await ann.use_command(f"/resume {old[:-1]}")).startswith("Back in")
        assert await harness.store.peek_session_id(ann.key) == old

    async def test_the_conversation_one_is_in_goes_on_undisturbed(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        ann.script_agent([waits_at(gate), answers("done")])
        await ann.use_command("/title Rome")
        await ann.says("one")
        await gate.reached()
        assert "You are in it already" in await ann.use_command("/resume Rome")
        gate.open()
        await harness.wait_until_idle()
        assert await ann.transcript() == ["one", "done"]

    async def test_what_nobody_knows_is_not_found(self, ann: Person):
        await ann.say_and_hear("hello")
        assert "I know no conversation of yours by “Atlantis”" in await ann.use_command("/resume Atlantis")
        assert "I know no conversation" in await ann.use_command("/resume 7")

    async def test_several_that_could_be_meant_are_listed(self, ann: Person):
        for _ in range(2):
            await ann.say_and_hear("hello")
            await ann.use_command("/new")
        told = await ann.use_command("/resume 2026")
        assert "give the whole id" in told
        assert len(told.splitlines()) > 2

    async def test_a_title_does_not_lead_to_another_persons_conversation(self, ann: Person, bob: Person):
        await ann.use_command("/title our secret")
        await ann.say_and_hear("hello")
        await bob.say_and_hear("hi")
        assert "I know no conversation" in await bob.use_command("/resume our secret")
        assert "secret" not in await bob.use_command("/resume")

    async def test_an_id_does_not_lead_there_either(self, harness: GatewayHarness, ann: Person, bob: Person):
        await ann.say_and_hear("hello")
        await bob.say_and_hear("hi")
        session_id = await harness.store.peek_session_id(ann.key)
        assert "I know no conversation" in await bob.use_command(f"/resume {session_id}")
        assert await harness.store.peek_session_id(ann.key) == session_id

    async def test_a_room_sees_nothing_of_what_somebody_says_alone(
        self, harness: GatewayHarness, ann: Person
    ):
        await ann.use_command("/title private matters")
        await ann.say_and_hear("hello")
        ann.chat = f"room of {ann.name}"
        assert "private" not in await ann.use_command("/resume")
        await ann.say_and_hear("hello all")
        assert "private" not in await ann.use_command("/resume")

    async def test_a_shared_conversation_does_not_take_in_a_private_one(
        self, harness: GatewayHarness, ann: Person
    ):
        await ann.use_command("/title private matters")
        await ann.say_and_hear("hello")
        source = harness.platform.source(ann.name, chat="room", thread=f"topic {ann.name}")
        told = await harness.gateway.command(source, "/resume private matters")
        assert told is not None
        assert "I know no conversation" in told

    async def test_a_conversation_that_moved_away_is_brought_back_at_once(
        self, harness: GatewayHarness, ann: Person
    ):
        await ann.use_command("/title Rome")
        await ann.say_and_hear("hello")
        here = await harness.store.peek_session_id(ann.key)
        ann.chat = f"den of {ann.name}"
        assert "Back in “Rome”" in await ann.use_command("/resume Rome")
        ann.chat = None
        assert await harness.store.peek_session_id(ann.key) is None
        assert "Back in “Rome”" in await ann.use_command("/resume Rome")
        assert await harness.store.peek_session_id(ann.key) == here

    async def test_one_that_works_elsewhere_stays_there(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        ann.script_agent([waits_at(gate), answers("done")])
        await ann.use_command("/title Rome")
        await ann.says("one")
        await gate.reached()
        ann.chat = f"den of {ann.name}"
        assert "in the middle of something" in await ann.use_command("/resume Rome")
        gate.open()
        await harness.wait_until_idle()


class TestTakingBack:
    async def test_undo_takes_back_as_many_turns_as_asked(self, ann: Person):
        for number in range(4):
            await ann.say_and_hear(f"turn {number}")
        assert await ann.use_command("/undo") == "Took back 1 turn, from “turn 3” on."
        assert await ann.use_command("/undo 2") == "Took back 2 turns, from “turn 1” on."
        assert await ann.transcript() == ["turn 0", "you said: turn 0"]
        assert await ann.use_command("/undo 50") == "Took back 1 turn, from “turn 0” on."
        assert await ann.use_command("/undo") == "There is nothing to undo."

    async def test_undo_wants_a_number(self, ann: Person):
        await ann.say_and_hear("hello")
        assert "from 1 to 100" in await ann.use_command("/undo everything")
        assert await ann.transcript() == ["hello", "you said: hello"]

    async def test_retry_puts_the_same_question_again(self, harness: GatewayHarness, ann: Person):
        agent = ann.script_agent("1", [calls_tool("search"), answers("2")], "3")
        await ann.say_and_hear("one")
        await ann.say_and_hear("two", attachments=[PHOTO])
        await harness.clock.advance(seconds=2)
        await ann.use_command("/retry")
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "two"]
        assert agent.turns[2].messages[0].attachments == (PHOTO,)
        texts = [content for content in await ann.transcript() if isinstance(content, str)]
        assert texts == ["one", "1", "3"]

    async def test_retry_keeps_what_was_taken_back_and_what_was_compacted(
        self, harness: GatewayHarness, ann: Person
    ):
        await ann.say_and_hear("old")
        session_id = await harness.store.peek_session_id(ann.key)
        assert session_id is not None
        await harness.store.db.archive_and_compact(session_id, SUMMARY)
        await ann.say_and_hear("new")
        await ann.use_command("/retry")
        rows = await harness.store.db.get_messages(session_id, include_hidden=True)
        hidden = {row.text: row.hidden_because for row in rows}
        assert hidden["old"] is Hidden.COMPACTED
        assert [row.hidden_because for row in rows if row.text == "new"] == [Hidden.REWOUND, None]

    async def test_retry_takes_up_a_turn_that_failed(self, harness: GatewayHarness, ann: Person):
        agent = ann.script_agent("1", [calls_tool("search"), fails(LookupError("model"))], "3")
        await ann.say_and_hear("one")
        await ann.say_and_hear("two")
        assert (await harness.outcomes(ann.name))["dead"] == 1
        await ann.use_command("/retry")
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "two"]
        assert await ann.transcript() == ["one", "1", "two", "3"]
        assert "dead" not in await harness.outcomes(ann.name)

    async def test_what_failed_is_tried_again_after_what_runs(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        agent = ann.script_agent([fails(LookupError("model"))], [waits_at(gate), answers("2")], "3")
        await ann.say_and_hear("one")
        await ann.says("two")
        await gate.reached()
        assert await ann.use_command("/retry") == RETRIED_LATER
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "one"]

    async def test_what_failed_long_ago_is_not_the_last_turn(self, harness: GatewayHarness, ann: Person):
        agent = ann.script_agent([fails(LookupError("model"))], "2", "3")
        await ann.say_and_hear("one")
        await harness.clock.advance(minutes=1)
        await ann.say_and_hear("two")
        await ann.use_command("/retry")
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "two", "two"]

    async def test_what_failed_is_taken_up_in_the_next_conversation(
        self, harness: GatewayHarness, ann: Person
    ):
        agent = ann.script_agent([fails(LookupError("model"))], "2")
        await ann.say_and_hear("one")
        await ann.use_command("/new")
        await ann.use_command("/retry")
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "one"]
        assert await ann.transcript() == ["one", "2"]

    async def test_a_stopped_turn_is_tried_again(self, harness: GatewayHarness, ann: Person):
        gate = Gate()
        agent = ann.script_agent([waits_at(gate), answers("late")], "2")
        await ann.says("one")
        await gate.reached()
        await ann.use_command("/stop")
        await ann.use_command("/retry")
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["one", "one"]
        assert await ann.transcript() == ["one", "2"]

    async def test_there_may_be_nothing_to_try_again(self, ann: Person):
        assert await ann.use_command("/retry") == NOTHING_TO_RETRY
        await ann.use_command("/title Rome")
        assert await ann.use_command("/retry") == NOTHING_TO_RETRY

    async def test_an_agent_that_is_kept_warm_forgets_what_was_taken_back(self, tmp_path: Path):
        histories: list[list[object]] = []

        def factory(entry, history):  # type: ignore[no-untyped-def]
            async def answer(turn):  # type: ignore[no-untyped-def]
                histories.append([row["content"] for row in await turn.history()])
                return "ok"

            return answer

        async with open_harness(tmp_path, agent_factory=factory) as own:
            zoe = Person(own, AgentOfEachPerson())
            await zoe.say_and_hear("one")
            await zoe.say_and_hear("two")
            await zoe.use_command("/undo")
            await zoe.say_and_hear("three")
        assert histories[-1] == ["one", "ok", "three"]


class TestBranching:
    async def test_a_copy_goes_on_and_the_original_stays(self, harness: GatewayHarness, ann: Person):
        await ann.use_command("/title Rome")
        await ann.say_and_hear("hello")
        original = await harness.store.peek_session_id(ann.key)
        assert "“Rome #2”" in await ann.use_command("/branch")
        await ann.say_and_hear("only here")
        assert "Back in “Rome”" in await ann.use_command(f"/resume {original}")
        assert await ann.transcript() == ["hello", "you said: hello"]

    async def test_it_may_be_called_something(self, ann: Person):
        await ann.say_and_hear("hello")
        assert "“Oslo”" in await ann.use_command("/fork Oslo")
        assert await ann.transcript() == ["hello", "you said: hello"]


class TestCompressing:
    async def test_the_conversation_goes_on_with_the_summary(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("one")
        await ann.say_and_hear("two")
        original = await harness.store.peek_session_id(ann.key)
        assert original is not None
        told = await ann.use_command("/compress")
        assert told.startswith(COMPRESSING)
        assert "2 messages in the place of 4" in told
        assert [row["content"] for row in SUMMARIES.given[-1]] == [
            "one",
            "you said: one",
            "two",
            "you said: two",
        ]
        assert await ann.transcript() == ["all of it", "in short"]
        assert len(await harness.store.db.get_messages(original)) == 4

    async def test_what_is_said_meanwhile_is_not_lost(self, harness: GatewayHarness, ann: Person):
        await ann.say_and_hear("one")
        SUMMARIES.gate = gate = Gate()
        try:
            assert await ann.use_command("/compress") == COMPRESSING
            await gate.reached()
            assert await ann.use_command("/compress") == COMPRESSING  # the same one goes on
            assert await ann.say_and_hear("two") == "you said: two"
            before = len(harness.platform.sent)
            gate.open()
            await harness.wait_until_idle()
        finally:
            SUMMARIES.gate = None
        assert [one.text for one in harness.platform.sent[before:]] == [NOT_COMPRESSED]
        assert await ann.transcript() == ["one", "you said: one", "two", "you said: two"]

    async def test_there_may_be_nothing_to_compress(self, ann: Person):
        assert NOTHING_TO_COMPRESS in await ann.use_command("/compress")
        await ann.use_command("/title Rome")
        assert NOTHING_TO_COMPRESS in await ann.use_command("/compress")

    async def test_without_a_compressor_it_says_so(self, tmp_path: Path):
        async with open_harness(tmp_path, agent=AGENTS) as own:
            assert await own.gateway.command(own.platform.source("ann"), "/compress") == NO_COMPRESSOR


class TestHelp:
    async def test_it_lists_every_command_with_its_arguments(self, harness: GatewayHarness, ann: Person):
        told = await ann.use_command("/help")
        for command in harness.gateway.commands:
            assert f"{command.help.call}: {command.summary}" in told

    async def test_it_tells_of_one(self, ann: Person):
        assert await ann.use_command("/help /NEW") == (
            "/new [title]: Begin a new conversation. What runs or waits here is stopped. Also called /reset."
        )
        assert "There is no command “nonsense”" in await ann.use_command("/help nonsense")


class TestPrograms:
    async def test_a_program_gets_the_answer_and_nobody_else(self, harness: GatewayHarness, ann: Person):
        source = harness.platform.source(ann.name)
        assert await harness.gateway.command(source, "/title Rome") == "This conversation is called “Rome”."
        assert await harness.gateway.command(source, "/queue") == QUEUE_EMPTY
        await harness.wait_until_idle()
        assert harness.platform.shown(ann.name) == []

    async def test_it_can_queue_something_on_behalf_of_a_person(self, harness: GatewayHarness, ann: Person):
        source = harness.platform.source(ann.name)
        assert await harness.gateway.command(source, "/queue hello") is None
        await harness.wait_until_idle()
        assert await ann.transcript() == ["hello", "you said: hello"]

    async def test_what_is_no_command_is_refused(self, harness: GatewayHarness, ann: Person):
        with pytest.raises(InvalidInputError, match="is no command"):
            await harness.gateway.command(harness.platform.source(ann.name), "hello")

    async def test_one_that_is_too_large_is_answered_with_the_refusal(
        self, harness: GatewayHarness, ann: Person
    ):
        text = "/title " + "x" * harness.store.config.gateway.max_message_bytes
        told = await harness.gateway.command(harness.platform.source(ann.name), text)
        assert told == "Your message is too large, and I did not take it."


async def _unused(call: CommandCall) -> str:
    return "unused"


async def test_commands_are_checked_when_they_are_made():
    with pytest.raises(InvalidInputError, match="cannot be called"):
        Command("No Such", _unused)


async def test_what_was_queued_with_a_command_can_be_edited(tmp_path: Path):
    gate = Gate()
    agent = ScriptedAgent([waits_at(gate)])
    async with open_harness(tmp_path, agent=agent) as harness:
        await harness.platform.says("ann", "hello")
        await gate.reached()
        await harness.platform.says("ann", "/queue foo", message_id="m9")
        assert isinstance(await harness.platform.edits("m9", "/queue bar -- and more"), Accepted)
        waiting = [one for one in await harness.store.list_queued(harness.key("ann")) if not one.running]
        assert [one.message.text for one in waiting] == ["bar -- and more"]
        assert isinstance(await harness.platform.edits("m9", "baz"), Accepted)
        gate.open()
        await harness.wait_until_idle()
        assert [turn.text for turn in agent.turns] == ["hello", "baz"]
