"""Contract tests of turns that fail, are stopped, rolled back, released or steered."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import pytest

from gateway_sessions import InvalidInputError, SessionSource, SessionState, SessionStore
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    COLLECTING,
    LANE,
    StoreContract,
    accept,
    answer,
    begin,
    fates,
    in_line,
    owed,
    replies,
    reply,
    said,
    talk_of,
)
from gateway_sessions.testing.inside import make_usage
from gateway_sessions.transcripts import Hidden

STARTED: Final = [("user", "one"), ("assistant", "let me see")]
"""The rows that a turn has added to the transcript when `begun` returns."""


class EndingsContract(StoreContract):
    """Tests all ways to end a turn but a plain commit."""

    async def test_what_fails_for_good_is_kept_and_can_be_tried_again(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        clock.step(timedelta(seconds=3))
        await turn.fail("no power", replies=[owed("sorry")])
        (letter,) = await store.dead_letters()
        assert (letter.seq, letter.session_key, letter.message) == (1, LANE, said("one"))
        assert (letter.problem, letter.given_up_at) == ("no power", clock.now())
        assert letter.given_up_at - letter.admitted_at == timedelta(seconds=3)
        assert [one.message.text for one in await replies(store, clock)] == ["sorry"]
        assert await fates(store) == {"dead": 1, "open": 1}
        assert await talk_of(store, turn.entry.session_id) == STARTED

        assert await store.requeue(letter.item_id) == LANE
        assert await in_line(store) == [2, 1]
        assert await store.dead_letters() == []
        await answer(store)
        turn = await begin(store)
        assert ([one.text for one in turn.messages], turn.attempt) == (["one"], 1)
        await turn.commit([reply("hi")])
        assert await talk_of(store, turn.entry.session_id) == [
            ("assistant", "let me see"),
            ("user", "two"),
            ("assistant", "well"),
            ("user", "one"),
            ("assistant", "hi"),
        ]
        with pytest.raises(InvalidInputError, match="no dead letter"):
            await store.requeue(letter.item_id)

    async def test_what_failed_has_cost_what_it_used(self, store: SessionStore, clock: FakeClock) -> None:
        await accept(store, "one")
        turn = await begin(store)
        used = make_usage("call", clock.now(), model="m", input_tokens=5)
        await turn.fail("no power", usages=[used])
        (letter,) = await store.dead_letters()
        await store.requeue(letter.item_id)
        await (await begin(store)).commit([reply("hi")], usages=[used])
        usage = await store.db.usage_of_session(turn.entry.session_id)
        assert (usage.total.events, usage.total.input_tokens) == (1, 5)

    async def test_what_was_counted_for_another_session_keeps_nobody_from_an_answer(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        used = make_usage("call", clock.now(), model="m", input_tokens=5)
        other = await store.get_or_create_session(SessionSource(platform="cli", user_id="eve"))
        await store.db.record_usage(other.session_id, "call", model="m", input_tokens=5)
        await accept(store, "one")
        turn = await begin(store)
        await turn.commit([reply("hi")], usages=[used])
        assert (await store.db.usage_of_session(turn.entry.session_id)).total.events == 0
        assert (await store.db.usage_of_session(other.session_id)).total.events == 1

    async def test_all_that_failed_together_is_tried_again_together(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        async with await begin(store) as turn:
            await turn.fail("no power")
        newest, oldest = await store.dead_letters()
        assert (newest.seq, oldest.seq) == (2, 1)
        await store.requeue(newest.item_id)
        turn = await begin(store)
        assert [one.text for one in turn.messages] == ["one", "two"]

    async def test_dead_letters_come_in_pages_the_newest_first(self, store: SessionStore) -> None:
        for n in range(5):
            await accept(store, str(n))
            await (await begin(store)).fail("no power")
        seen: list[int] = []
        before: int | None = None
        while page := await store.dead_letters(limit=2, before=before):
            assert len(page) <= 2
            seen += [one.seq for one in page]
            before = page[-1].item_id
        assert seen == [5, 4, 3, 2, 1]

    async def test_several_that_are_tried_again_keep_the_order_in_which_that_was_asked_for(
        self, store: SessionStore
    ) -> None:
        for text in ("one", "two", "three"):
            await accept(store, text)
            await (await begin(store)).fail("no power")
        await accept(store, "four")
        letters = {one.seq: one.item_id for one in await store.dead_letters()}
        for seq in (2, 3, 1):
            await store.requeue(letters[seq])
        await accept(store, "five")
        assert await in_line(store) == [4, 2, 3, 1, 5]
        assert await store.move_queued(LANE, 1, 2) == [4, 1, 2, 3, 5]
        turns = [(await begin(store)) for _ in range(1)]
        await accept(store, "six")
        await turns[0].release()
        assert await in_line(store) == [4, 1, 2, 3, 5, 6]

    async def test_a_problem_may_hold_whatever_a_program_says(self, store: SessionStore) -> None:
        for text in ("a\ud800\x00b", "x" * (10 << 20), ""):
            await accept(store, str(len(text)))
            await (await begin(store)).fail(text)
        empty, long, odd = await store.dead_letters()
        assert empty.problem == ""
        assert len(long.problem) <= 2000
        assert odd.problem == "a\ufffd\ufffdb"

    async def test_a_reply_may_hold_whatever_a_model_says(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one")
        await (await begin(store)).commit([reply("a\ud800\x00b")], replies=[owed("a\ud800\x00b")])
        assert [one.message.text for one in await replies(store, clock)] == ["a\ufffd\ufffdb"]

    async def test_a_turn_that_is_given_back_waits_in_its_old_place(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        await turn.release(retry_at=clock.now() + timedelta(seconds=5), counted=True)
        assert await in_line(store) == [1, 2]
        assert await store.claim(LANE) is None
        clock.step(timedelta(seconds=5))
        again = await begin(store)
        assert ([one.text for one in again.messages], again.attempt) == (["one"], 2)
        await again.release()
        again = await begin(store)
        assert again.attempt == 2
        await again.commit([reply("hi")])
        assert await talk_of(store, turn.entry.session_id) == [*STARTED, ("assistant", "hi")]
        assert (await begin(store)).attempt == 1

    async def test_whoever_cancels_a_turn_that_failed_before_takes_its_attempts_with_it(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", "two")
        await (await begin(store)).release(counted=True)
        await store.cancel_queued(LANE, 1)
        turn = await begin(store)
        assert (turn.seq, turn.attempt) == (2, 1)
        await turn.release(counted=True)
        await store.clear_queue(LANE)
        await accept(store, "three")
        assert (await begin(store)).attempt == 1

    async def test_leaving_a_turn_gives_it_back_and_a_failure_gives_it_up(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        async with await begin(store):
            pass
        assert await in_line(store) == [1, 2]
        with pytest.raises(ZeroDivisionError):
            async with await begin(store):
                raise ZeroDivisionError(1)
        assert [one.problem for one in await store.dead_letters()] == ["ZeroDivisionError: 1"]
        turn = await begin(store)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0), turn:
                await asyncio.Event().wait()
        assert await in_line(store) == [2]
        async with await begin(store):
            await store.stop_turn(LANE)
        assert await fates(store) == {"dead": 1, "interrupted": 1}

    async def test_a_cancellation_that_nobody_asked_for_is_a_failure(self, store: SessionStore) -> None:
        await accept(store, "one")
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with await begin(store):
                await gone
        assert [one.problem for one in await store.dead_letters()] == ["the work on a turn cancelled itself"]

    async def test_what_a_stopped_turn_has_done_stands(self, store: SessionStore, clock: FakeClock) -> None:
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        used = make_usage("event", clock.now(), input_tokens=5)
        ended = await turn.interrupt(
            "a message", [reply("as far as")], usages=[used], replies=[owed("stopped")], go_on=True
        )
        assert await talk_of(store, turn.entry.session_id) == [*STARTED, ("assistant", "as far as")]
        assert [one.message.text for one in await replies(store, clock)] == ["stopped"]
        assert (await store.db.usage_of_session(turn.entry.session_id)).total.input_tokens == 5
        assert ended.next is not None
        assert ended.next.seq == 2
        assert await fates(store) == {"interrupted": 1, "open": 1}

    async def test_nothing_is_left_to_see_of_a_turn_that_is_taken_back(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "zero")
        await answer(store)
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        await turn.append(reply("and more"))
        used = make_usage("event", clock.now(), input_tokens=5)
        ended = await turn.roll_back("a message", usages=[used], replies=[owed("taken back")])
        session_id = turn.entry.session_id
        assert await talk_of(store, session_id) == [("user", "zero"), ("assistant", "well")]
        hidden = [
            one for one in await store.db.get_messages(session_id, include_hidden=True) if not one.active
        ]
        assert [(one.text, one.hidden_because) for one in hidden] == [
            ("one", Hidden.REWOUND),
            ("let me see", Hidden.REWOUND),
            ("and more", Hidden.REWOUND),
        ]
        assert await store.db.message_count(session_id) == 2
        assert (await store.db.usage_of_session(session_id)).total.input_tokens == 5
        assert [one.message.text for one in await replies(store, clock)] == ["taken back"]
        assert ended.version != turn.version
        assert await fates(store) == {"turned": 1, "rolled_back": 1, "open": 1}
        following = await begin(store)
        assert [one["content"] for one in await following.transcript()] == ["zero", "well", "two"]

    async def test_a_turn_that_has_written_nothing_can_be_taken_back(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await turn.roll_back("a message")
        assert await talk_of(store, turn.entry.session_id, include_hidden=True) == []

    async def test_all_tries_of_a_turn_are_taken_back(self, store: SessionStore) -> None:
        await accept(store, "one")
        first = await begin(store)
        await first.append(reply("let me see"))
        await first.release(counted=True)
        second = await begin(store)
        await second.append(reply("again"))
        await second.roll_back("a message")
        assert await talk_of(store, first.entry.session_id) == []

    async def test_a_session_whose_resumed_turn_was_stopped_or_given_up_does_not_wait_any_more(
        self, store: SessionStore
    ) -> None:
        for how in ("interrupt", "fail", "roll_back", "stop"):
            await accept(store, how)
            turn = await begin(store)
            await store.mark_resume_pending(LANE)
            if how == "stop":
                await store.stop_turn(LANE)
            else:
                await getattr(turn, how)("somebody")
            entry = await store.get_session(LANE)
            assert entry is not None
            assert entry.state is SessionState.ACTIVE, how


class SteeringContract(StoreContract):
    """Tests messages that reach a turn while it runs."""

    async def test_what_led_a_burst_comes_before_the_rest_of_it_if_its_turn_dies(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await accept(store, "two", "three", "four", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        assert await turn.steer(2)
        assert await turn.steer(3)
        await turn.release()
        assert await in_line(store) == [1, 2, 3, 4]
        order: list[tuple[int, ...]] = []
        following = await begin(store)
        while following is not None:
            order.append(following.seqs)
            following = (await following.commit(go_on=True)).next  # type: ignore[assignment]  # it may be the last
        assert order == [(1,), (2,), (3,), (4,)]

    async def test_what_is_said_into_a_turn_is_part_of_it(self, store: SessionStore) -> None:
        await accept(store, "one", "two", "three")
        turn = await begin(store)
        assert await turn.steer(2)
        await turn.append(reply("let me see"))
        assert await in_line(store) == [3]
        assert await store.queue_depth(LANE) == 1
        assert not await turn.steer(2)
        assert not await turn.steer(7)
        await turn.commit([reply("hi")])
        stored = await store.db.get_messages(turn.entry.session_id)
        assert [(one.text, bool(one.extra.get("steered"))) for one in stored] == [
            ("one", False),
            ("two", True),
            ("let me see", False),
            ("hi", False),
        ]
        assert await fates(store) == {"turned": 2, "open": 1}

    async def test_what_joined_a_message_waits_on_when_only_that_is_said_into_the_turn(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await accept(store, "two", "three", "four", rules=COLLECTING)
        assert await turn.steer(2)
        assert await in_line(store) == [3]
        clock.step(timedelta(seconds=5))
        following = (await turn.commit(go_on=True)).next
        assert following is not None
        assert following.seqs == (3, 4)
        await following.commit()
        assert [text for _, text in await talk_of(store, turn.entry.session_id)] == [
            "one",
            "two",
            "three\nfour",
        ]
        assert await fates(store) == {"turned": 4}

    async def test_a_message_that_overtook_another_one_can_be_told_of_it(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        await store.move_queued(LANE, 2, 1)
        turn = await begin(store)
        assert await turn.steer(1)
        await turn.commit()
        assert await talk_of(store, turn.entry.session_id) == [("user", "two"), ("user", "one")]

    @pytest.mark.parametrize("how", ["release", "fail"])
    async def test_what_was_said_into_a_turn_that_dies_is_next(self, store: SessionStore, how: str) -> None:
        await accept(store, "one", "two", "three")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        await turn.steer(2)
        await (turn.release() if how == "release" else turn.fail("no power"))
        assert await in_line(store) == ([1, 2, 3] if how == "release" else [2, 3])
        assert await talk_of(store, turn.entry.session_id) == STARTED
        while (turn_now := await store.claim(LANE)) is not None:
            await turn_now.commit([reply("well")])
        texts = [text for _, text in await talk_of(store, turn.entry.session_id)]
        first = ["one", "let me see"] + (["well"] if how == "release" else [])
        assert texts == [*first, "two", "well", "three", "well"]

    async def test_turns_that_are_tried_again_keep_their_order_when_one_loses_what_leads_it(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "later")
        await (await begin(store)).fail("no power")
        await accept(store, "lead", "rest", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        await (await begin(store)).fail("no power")
        await accept(store, "now")
        turn = await begin(store)
        letters = {one.seq: one.item_id for one in await store.dead_letters()}
        for seq in (2, 1):
            await store.requeue(letters[seq])
        assert await in_line(store) == [2, 1]
        assert await turn.steer(2)
        assert await in_line(store) == [3, 1]
        await turn.release()
        assert await in_line(store) == [4, 2, 3, 1]
        assert await store.move_queued(LANE, 1, 2) == [4, 1, 2, 3]
        assert await in_line(store) == [4, 1, 2, 3]

    @pytest.mark.parametrize("how", ["release", "fail"])
    async def test_what_was_said_into_a_former_turn_is_what_its_own_turn_begins_with(
        self, store: SessionStore, how: str
    ) -> None:
        await accept(store, "one", "two")
        former = await begin(store)
        assert await former.steer(2)
        await (former.release() if how == "release" else former.fail("no power"))
        if how == "release":
            await answer(store)
        turn = await begin(store)
        assert (turn.seqs, turn.attempt) == ((2,), 1)
        await accept(store, "three")
        assert await turn.steer(3)
        await turn.fail("no power")
        assert 2 in [one.seq for one in await store.dead_letters()]
        assert await in_line(store) == [3]
        following = await begin(store)
        assert (following.seqs, following.attempt) == ((3,), 1)

    async def test_what_was_said_into_a_turn_ends_with_it(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.steer(2)
        await turn.roll_back("a message")
        assert await talk_of(store, turn.entry.session_id) == []
        assert await fates(store) == {"rolled_back": 2}

    @pytest.mark.parametrize("how", ["commit", "append", "usage", "fail", "interrupt", "roll_back", "next"])
    async def test_what_a_program_says_itself_moves_no_interaction_clock(
        self, store: SessionStore, clock: FakeClock, how: str
    ) -> None:
        await accept(store, "hello")
        await answer(store)
        before = await store.get_session(LANE)
        assert before is not None
        clock.step(timedelta(minutes=5))
        await accept(store, "beat", internal=True)
        turn = await begin(store)
        clock.step(timedelta(minutes=5))
        match how:
            case "commit" | "next":
                await turn.commit([reply("ok")], go_on=how == "next")
            case "append":
                await turn.append(reply("let me see"))
                await turn.commit([reply("ok")], last_prompt_tokens=7)
            case "usage":
                await turn.commit([reply("ok")], usages=[make_usage("beat", clock.now(), input_tokens=3)])
            case "fail":
                await turn.fail("no power")
            case "interrupt":
                await turn.interrupt("message", [reply("ok")])
            case _:
                await turn.roll_back("message")
        after = await store.get_session(LANE)
        assert after is not None
        assert (after.session_id, after.last_interaction_at) == (
            before.session_id,
            before.last_interaction_at,
        )
        assert after.last_prompt_tokens == (7 if how == "append" else 0)

    async def test_a_person_who_joins_a_turn_of_the_program_is_answered_by_it(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "beat", internal=True)
        turn = await begin(store)
        await accept(store, "hello")
        await turn.steer(2)
        clock.step(timedelta(minutes=5))
        ended = await turn.commit([reply("ok")])
        assert ended.entry is not None
        assert ended.entry.last_interaction_at == clock.now()
