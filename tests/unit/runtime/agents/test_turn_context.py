"""What an agent sees of its turn, and what becomes of its wishes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec import structs

from gateway_sessions import Message
from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.usage.usage_events import Usage, make_usage
from gateway_sessions.errors import FencedError, InvalidInputError
from gateway_sessions.runtime.agents.turn_context import TurnContext, TurnPorts, control_of
from tests.unit.runtime.turn_contexts import (
    RecordedTurn,
    empty_history,
    entry_of,
    make_turn_context,
    message_saying,
)


@pytest.fixture
def noted() -> RecordedTurn:
    return RecordedTurn()


@pytest.fixture
def turn(noted, fake_clock) -> TurnContext:
    return make_turn_context(noted=noted, clock=fake_clock)


class TestWhatItSees:
    def test_who_said_what_in_which_session(self):
        turn = make_turn_context(message_saying("one"), message_saying("two"), entry=entry_of("lane", "s9"))
        assert (turn.session_key, turn.session_id, turn.text) == ("lane", "s9", "one\ntwo")
        assert turn.source.user_id == "alice"

    def test_the_model_is_the_one_that_a_person_chose(self):
        chosen = {"model": "m", "provider": "p"}
        turn = make_turn_context(entry=entry_of(model_override=chosen))
        assert (turn.model, turn.model_override) == ("m", chosen)

    def test_without_a_choice_the_model_is_the_agent_s_own(self, turn):
        assert (turn.model, turn.model_override) == (None, None)

    def test_the_prompt_is_made_for_those_who_ask_for_it(self):
        made: list[str] = []

        def make() -> str:
            made.append("## Where you are")
            return made[0]

        turn = make_turn_context(ports=structs.replace(RecordedTurn().ports(), prompt=make))
        assert made == []
        assert turn.prompt == "## Where you are"
        assert make_turn_context().prompt == ""

    def test_each_try_of_each_turn_has_a_key_of_its_own(self):
        keys = {make_turn_context(seq=seq, token=token).idempotency_key for seq in (1, 2) for token in (1, 2)}
        assert "s1:1:2" in keys
        assert len(keys) == 4

    def test_its_description_shows_no_text_of_anybody(self):
        turn = make_turn_context(message_saying("my password is 1234"))
        assert repr(turn) == "<turn 3 of lane, session s1, attempt 1>"


class TestAppend:
    async def test_rows_go_to_the_transcript_as_messages(self, turn, noted):
        await turn.append({"role": "tool", "content": "42", "tool_call_id": "c"}, Message("assistant", "so"))
        assert noted.rows == [Message("tool", "42", tool_call_id="c"), Message("assistant", "so")]

    async def test_what_is_no_message_is_refused_before_anything_is_stored(self, turn, noted):
        with pytest.raises(InvalidInputError):
            await turn.append(Message("assistant", "so"), "not a row")
        assert noted.rows == []


class TestSay:
    async def test_something_is_said_before_the_reply(self, turn, noted):
        await turn.say("a moment")
        await turn.say(Reply("and a photo"))
        assert noted.said == [Reply("a moment"), Reply("and a photo")]

    @pytest.mark.parametrize("nothing", ["", "  ", Reply("hush", silent=True)])
    async def test_nothing_is_not_said(self, turn, noted, nothing):
        await turn.say(nothing)
        assert (noted.said, control_of(turn).said) == ([], [])


class TestHistory:
    async def test_it_is_read_when_it_is_asked_for(self, noted):
        asked: list[int | None] = []

        async def read(limit):
            asked.append(limit)
            return [{"role": "user", "content": "hello"}]

        turn = make_turn_context(ports=TurnPorts(append=noted.append, say=noted.say, read=read))
        assert await turn.history() == await turn.history(limit=5) == [{"role": "user", "content": "hello"}]
        assert asked == [None, 5]

    async def test_it_has_what_endpoints_accept_and_the_rest_if_that_is_asked_for(self, noted):
        told = {"timestamp": 5.0, "message_id": "m1", "name": "Ann Lee", "display_content": "hi"}
        row = {"role": "user", "content": "[Ann Lee] hi", **told}

        async def read(_):
            return [row]

        turn = make_turn_context(ports=TurnPorts(append=noted.append, say=noted.say, read=read))
        assert await turn.history() == [{"role": "user", "content": "[Ann Lee] hi"}]
        assert await turn.history(details=True) == [row]

    async def test_a_turn_that_is_over_has_none(self, turn):
        control_of(turn).end()
        with pytest.raises(FencedError):
            await turn.history()


class TestShow:
    async def test_a_reply_grows_piece_by_piece(self, turn, noted):
        stream = turn.stream()
        assert stream.text == ""
        for piece in ("He", "llo", "!"):
            await stream.write(piece)
        assert (noted.shown, stream.text, control_of(turn).shown) == (
            ["He", "Hello", "Hello!"],
            "Hello!",
            "Hello!",
        )

    async def test_where_nothing_can_be_changed_a_growing_reply_is_remembered_all_the_same(self, noted):
        turn = make_turn_context(ports=TurnPorts(append=noted.append, say=noted.say, read=empty_history))
        await turn.show("so far")
        turn.report_usage(model="m")
        assert (control_of(turn).shown, noted.shown, noted.used) == ("so far", [], [])


class TestUsage:
    def test_each_use_of_a_model_is_an_event_of_its_own(self, turn, noted, fake_clock):
        for tokens in (10, 20):
            turn.report_usage(model="m", input_tokens=tokens)
        assert noted.used == [
            make_usage("s1:3:7:1", fake_clock.now(), model="m", input_tokens=10),
            make_usage("s1:3:7:2", fake_clock.now(), model="m", input_tokens=20),
        ]

    def test_an_event_that_was_made_elsewhere_is_passed_on_as_it_is(self, turn, noted, fake_clock):
        usage = make_usage("theirs", fake_clock.now(), model="m")
        turn.report_usage(usage)
        assert noted.used == [usage]

    def test_what_cannot_be_is_refused(self, turn, noted, fake_clock):
        with pytest.raises(InvalidInputError, match="input_tokens"):
            turn.report_usage(input_tokens=-1)
        with pytest.raises(InvalidInputError, match="output_tokens"):
            turn.report_usage(Usage(event_id="theirs", at=fake_clock.now(), output_tokens="many"))
        assert noted.used == []

    def test_whoever_has_lost_the_lane_can_still_tell_what_was_spent(self, turn, noted):
        control_of(turn).fence()
        turn.report_usage(model="m")
        assert (len(noted.used), turn.is_over) == (1, True)

    def test_whoever_is_over_is_counted_by_nobody(self, turn, noted):
        control_of(turn).end()
        with pytest.raises(FencedError):
            turn.report_usage(model="m")
        assert noted.used == []


class TestSignsOfLife:
    async def test_everything_that_an_agent_does_is_one(self, turn):
        deeds = [
            lambda: turn.append(Message("assistant", "x")),
            lambda: turn.say("x"),
            lambda: turn.show("x"),
            lambda: turn.report_usage(model="m"),
            turn.progress,
        ]
        for count, deed in enumerate(deeds, 1):
            if (waiting := deed()) is not None:
                await waiting
            assert control_of(turn).progress_count == count

    def test_there_is_none_at_the_beginning(self, turn):
        assert control_of(turn).progress_count == 0

    def test_setting_the_clock_back_loses_none(self, turn, fake_clock):
        turn.progress()
        fake_clock.step(timedelta(days=-1))
        turn.progress()
        assert control_of(turn).progress_count == 2

    def test_what_is_being_done_stays_until_something_else_is(self, turn):
        turn.progress("searching")
        turn.progress()
        assert control_of(turn).doing == "searching"
        turn.progress("writing")
        assert control_of(turn).doing == "writing"


class TestSubWork:
    def test_it_counts_until_the_last_of_it_has_ended(self, turn):
        with turn.sub_work():
            with turn.sub_work():
                assert control_of(turn).side_work
            assert control_of(turn).side_work
        assert not control_of(turn).side_work

    def test_it_ends_by_a_failure_as_well(self, turn):
        with pytest.raises(LookupError), turn.sub_work():
            raise LookupError
        assert not control_of(turn).side_work


class TestTheEnd:
    async def test_a_task_that_outlives_its_turn_can_do_nothing_with_it(self, turn, noted):
        control_of(turn).end()
        assert turn.is_over
        stream = turn.stream()
        for deed in (
            lambda: turn.append(Message("assistant", "late")),
            lambda: turn.say("late"),
            lambda: turn.show("late"),
            lambda: stream.write("late"),
        ):
            with pytest.raises(FencedError) as caught:
                await deed()
            assert (caught.value.session_key, caught.value.token) == ("lane", 7)
        with pytest.raises(FencedError):
            turn.report_usage(model="m")
        assert noted == RecordedTurn()

    async def test_a_fence_that_the_store_puts_up_reaches_the_agent(self, noted):
        async def fenced(rows):
            raise FencedError("lane", 7)

        turn = make_turn_context(ports=structs.replace(noted.ports(), append=fenced))
        with pytest.raises(FencedError):
            await turn.append(Message("assistant", "x"))
        assert control_of(turn).progress_count == 0
