"""`gateway.ask` returns the answer of a message's turn, or says why there is none."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import anyio
import msgspec
import pytest

from gateway_sessions import BusyMode, InboundMessage, InvalidInputError, Reply, TurnContext
from gateway_sessions.adapters import MessageKind
from gateway_sessions.errors import NotAcceptedError, UnansweredError
from gateway_sessions.runtime.gateway.unprompted.questions import TurnAnswer
from tests.integration.gateway.gateway_harness import GatewayHarness, busy_config, open_harness, quote_message
from tests.integration.gateway.restartable_gateway import RestartableGateway


def message(harness: GatewayHarness, text: str, message_id: str | None = None) -> InboundMessage:
    return InboundMessage(source=harness.platform.source("ann"), text=text, message_id=message_id)


async def test_the_answer_of_the_turn_is_returned_and_sent(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        answer = await harness.gateway.ask(message(harness, "hi"))
        assert answer == TurnAnswer(
            text="you said: hi",
            session_key=harness.key("ann"),
            session_id=answer.session_id,
            seq=1,
        )
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["you said: hi"]
        assert harness.platform.sent[0].target.reply_to is None, "no platform knows the id"


async def test_each_of_several_gets_its_own_answer(tmp_path: Path):
    answers: dict[int, str] = {}
    config = busy_config(BusyMode.QUEUE, debounce=timedelta())
    async with open_harness(tmp_path, config, agent=quote_message) as harness:

        async def ask(number: int) -> None:
            asked = message(harness, f"question {number}", f"a{number}")
            answers[number] = (await harness.gateway.ask(asked)).text

        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(ask, number)
    assert answers == {number: f"you said: question {number}" for number in range(5)}


async def test_messages_of_one_turn_share_its_answer(tmp_path: Path):
    gate = anyio.Event()

    async def waits(turn: TurnContext) -> str:
        if turn.text == "first":
            await gate.wait()
        return f"answer to {turn.text!r}"

    answers: list[str] = []
    async with open_harness(tmp_path, busy_config(BusyMode.COLLECT), agent=waits) as harness:

        async def ask(text: str) -> None:
            answers.append((await harness.gateway.ask(message(harness, text))).text)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "first")
            await harness.clock.advance(timedelta(minutes=1))
            tasks.start_soon(ask, "second")
            await harness.wait_until_idle()
            tasks.start_soon(ask, "third")
            await harness.wait_until_idle()
            gate.set()
            await harness.wait_until_idle()
            await harness.clock.advance(timedelta(minutes=1))
    assert sorted(answers) == ["answer to 'first'"] + 2 * ["answer to 'second\\nthird'"]


async def test_a_message_that_was_answered_before_gets_the_same_answer(restartable: RestartableGateway):
    async with restartable.run(agent=quote_message) as harness:
        first = await harness.gateway.ask(message(harness, "hi", "a1"))
        await harness.gateway.say(harness.platform.source("ann"), "by the way")
        await harness.gateway.ask(message(harness, "and now?", "a2"))
    async with restartable.run(agent=quote_message) as harness:
        again = await harness.gateway.ask(message(harness, "hi", "a1"))
        assert (again.text, again.duplicate) == (first.text, True)


async def test_a_message_whose_turn_runs_waits_for_the_same_answer(tmp_path: Path):
    gate = anyio.Event()

    async def waits(turn: TurnContext) -> str:
        await gate.wait()
        return "well"

    answers: list[TurnAnswer] = []
    async with open_harness(tmp_path, agent=waits) as harness:

        async def ask() -> None:
            answers.append(await harness.gateway.ask(message(harness, "hi", "a1")))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await harness.wait_until_idle()
            tasks.start_soon(ask)
            await harness.wait_until_idle()
            gate.set()
    assert [one.text for one in answers] == ["well", "well"]
    assert sorted(one.duplicate for one in answers) == [False, True]


async def test_a_silent_agent_answers_with_an_empty_text(tmp_path: Path):
    async def silent(turn: TurnContext) -> Reply:
        return Reply()

    async with open_harness(tmp_path, agent=silent) as harness:
        assert (await harness.gateway.ask(message(harness, "hi"))).text == ""


async def test_a_turn_that_fails_is_an_error_with_its_problem(tmp_path: Path):
    async def fails(turn: TurnContext) -> str:
        raise ValueError("no")

    async with open_harness(tmp_path, agent=fails) as harness:
        with pytest.raises(UnansweredError, match="ValueError: no") as failed:
            await harness.gateway.ask(message(harness, "hi"))
        assert failed.value.outcome == "dead"
        assert (failed.value.session_key, failed.value.seq) == (harness.key("ann"), 1)


async def test_a_message_that_is_taken_out_of_the_queue_is_an_error(tmp_path: Path):
    async def never(turn: TurnContext) -> str:
        await anyio.sleep_forever()
        return ""

    errors: list[str] = []
    config = busy_config(BusyMode.QUEUE, debounce=timedelta())
    async with open_harness(tmp_path, config, agent=never) as harness:

        async def ask(text: str) -> None:
            try:
                await harness.gateway.ask(message(harness, text))
            except UnansweredError as error:
                errors.append(error.outcome)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "one")
            await harness.wait_until_idle()
            tasks.start_soon(ask, "two")
            await harness.wait_until_idle()
            await harness.store.clear_queue(harness.key("ann"))
            await harness.clock.advance(timedelta(seconds=2))
            assert errors == ["cancelled"]
            await harness.gateway.command(harness.platform.source("ann"), "/stop")
            await harness.clock.advance(timedelta(seconds=2))
    assert errors == ["cancelled", "interrupted"]


async def test_a_refused_message_is_an_error_with_the_reason(tmp_path: Path):
    gate = anyio.Event()

    async def waits(turn: TurnContext) -> str:
        await gate.wait()
        return ""

    async with open_harness(tmp_path, busy_config(BusyMode.REJECT), agent=waits) as harness:
        await harness.platform.says("ann", "hi")
        await harness.wait_until_idle()
        with pytest.raises(NotAcceptedError) as refused:
            await harness.gateway.ask(message(harness, "and?"))
        assert refused.value.reason == "busy"
        gate.set()


async def test_it_waits_for_no_longer_than_asked_and_the_turn_goes_on(tmp_path: Path):
    gate = anyio.Event()

    async def waits(turn: TurnContext) -> str:
        await gate.wait()
        return "well"

    async with open_harness(tmp_path, agent=waits) as harness:
        timed_out: list[bool] = []

        async def ask() -> None:
            with pytest.raises(TimeoutError, match="goes on"):
                await harness.gateway.ask(message(harness, "hi"), timeout=timedelta(seconds=10))
            timed_out.append(True)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await harness.clock.advance(timedelta(seconds=11))
            assert timed_out == [True]
        gate.set()
        await harness.wait_until_idle()
        assert harness.platform.shown("ann") == ["well"]


async def test_an_error_within_the_time_is_the_error_itself(tmp_path: Path):
    async def fails(turn: TurnContext) -> str:
        raise ValueError("no")

    async with open_harness(tmp_path, agent=fails) as harness:
        with pytest.raises(UnansweredError):
            await harness.gateway.ask(message(harness, "hi"), timeout=timedelta(seconds=10))
        again = message(harness, "hi")
        with pytest.raises(InvalidInputError):
            await harness.gateway.ask(again, timeout=5)  # type: ignore[arg-type]


async def test_commands_edits_and_deletions_are_not_asked(tmp_path: Path):
    async with open_harness(tmp_path, agent=quote_message) as harness:
        with pytest.raises(InvalidInputError, match="is a command"):
            await harness.gateway.ask(message(harness, "/status"))
        edit = msgspec.structs.replace(message(harness, "x", "a1"), kind=MessageKind.EDIT)
        with pytest.raises(InvalidInputError, match="only a new message"):
            await harness.gateway.ask(edit)
