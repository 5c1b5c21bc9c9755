"""Contract tests of claims and tries: one turn on a lane, in order, only its token may write.

The number of tries belongs to one turn, wherever the turn waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from gateway_sessions import (
    InvalidInputError,
    Message,
    ResetMode,
    Scope,
    SessionResetPolicy,
    SessionSource,
    SessionState,
    SessionStore,
    Turn,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.errors import FencedError, TurnEndedError
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    ALICE,
    BOB,
    COLLECTING,
    LANE,
    OTHER_LANE,
    OpenStore,
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
from gateway_sessions.testing.inside import QueueListener, make_usage, outbox, queue_of, status

OPERATOR: Final = Scope.operator()
OWNER: Final = "main:telegram:user:alice"


async def stop(store: SessionStore) -> object:
    """Do nothing more."""
    return await store.stop_turn(LANE)


async def reset(store: SessionStore) -> object:
    """Give the lane a new session."""
    return await store.reset_session(LANE)


async def undo(store: SessionStore) -> object:
    """Give the lane its former session."""
    return await store.undo_reset(LANE)


async def switch(store: SessionStore) -> object:
    """Give the lane a session that was on no lane."""
    target = await store.db.create_session("elsewhere", "telegram", user_id="alice")
    return await store.switch_session(LANE, target, scope=OPERATOR, move=True)


async def resume(store: SessionStore) -> object:
    """Give the lane that session by its title."""
    await store.db.create_session("elsewhere", "telegram", user_id="alice")
    return await store.resume_session(LANE, "elsewhere", scope=OPERATOR)


async def branch(store: SessionStore) -> object:
    """Give the lane a copy of its session."""
    return await store.branch_session(LANE)


OVERTAKING: Final = (stop, reset, undo, switch, resume, branch)
WRITES: Final[dict[str, Callable[[Turn], Awaitable[object]]]] = {
    "append": lambda turn: turn.append(reply("late")),
    "commit": lambda turn: turn.commit([reply("late")], replies=[owed("late")]),
    "commit and go on": lambda turn: turn.commit(go_on=True),
    "fail": lambda turn: turn.fail("it failed"),
    "interrupt": lambda turn: turn.interrupt("somebody"),
    "roll back": lambda turn: turn.roll_back("somebody"),
    "release": lambda turn: turn.release(),
    "owe": lambda turn: turn.owe(owed("late")),
    "steer": lambda turn: turn.steer(2),
}


class TurnsContract(StoreContract):
    """Tests claims, tokens, and the calls that a turn may make."""

    async def test_all_that_is_owed_is_listed_also_before_its_time(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "hello")
        async with await begin(store) as turn:
            await turn.commit(replies=[owed("one"), owed("two")])
        first, second = await store.db.read(partial(outbox.owed_replies, 10))
        assert (first.message.text, second.message.text) == ("one", "two")
        later = clock.now() + timedelta(hours=1)
        await queue_of(store).apply(lambda _: outbox.put_off_reply(first, later, "down", unclear=0))
        again, _ = await store.db.read(partial(outbox.owed_replies, 10, LANE))
        assert (again.attempts, again.due_at, again.problem) == (1, later, "down")
        assert [one.message.text for one in await store.db.read(partial(outbox.owed_replies, 1))] == ["one"]
        assert await store.db.read(partial(outbox.owed_replies, 10, OTHER_LANE)) == []

    async def test_turns_that_run_are_counted_by_who_runs_them(self, store: SessionStore) -> None:
        assert await store.db.read(status.count_running_turns) == {}
        await accept(store, "one")
        async with await begin(store):
            running = await store.db.read(status.count_running_turns)
            assert running == {store.db.ownership.opening.epoch: 1}

    async def test_a_lane_is_given_to_one_at_a_time_and_in_order(self, store: SessionStore) -> None:
        await accept(store, "one", "two", "three")
        for text in ("one", "two", "three"):
            claimed = await asyncio.gather(*(store.claim(LANE) for _ in range(8)))
            (turn,) = [one for one in claimed if one is not None]
            assert [one.text for one in turn.messages] == [text]
            await turn.commit([reply(f"well, {text}")])
        assert await store.claim(LANE) is None
        assert await fates(store) == {"turned": 3}
        assert await talk_of(store, turn.entry.session_id) == [
            (role, f"{before}{text}")
            for text in ("one", "two", "three")
            for role, before in (("user", ""), ("assistant", "well, "))
        ]

    async def test_whoever_asks_for_any_turn_gets_the_lane_that_waited_longest(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", source=BOB)
        clock.step(timedelta(seconds=1))
        await accept(store, "one", "two")
        turns = [await begin(store, None) for _ in range(2)]
        assert [one.session_key for one in turns] == [OTHER_LANE, LANE]
        assert await store.claim() is None

    async def test_many_who_ask_for_any_turn_get_all_that_are_ready(self, store: SessionStore) -> None:
        lanes = [f"{n}" for n in range(40)]
        for one in lanes:
            await store.enqueue(said("hello", source=ALICE.__class__(platform="telegram", chat_id=one)))
        claimed = await asyncio.gather(*(store.claim() for _ in lanes))
        assert len({one.session_key for one in claimed if one is not None}) == len(lanes)

    async def test_a_turn_knows_what_it_is_about(self, store: SessionStore, clock: FakeClock) -> None:
        admitted = clock.now()
        await accept(store, "zero")
        await answer(store)
        await accept(store, "one", rules=COLLECTING)
        await accept(store, "two", rules=COLLECTING)
        await accept(store, "three", solo=True)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        assert (turn.seq, turn.seqs, turn.attempt, turn.waiting) == (2, (2, 3), 1, 1)
        assert turn.admitted_at == admitted
        assert turn.token > 1
        assert not turn.ended
        said_before = [{"role": one["role"], "content": one["content"]} for one in await turn.transcript()]
        assert said_before == [
            {"role": "user", "content": "zero"},
            {"role": "assistant", "content": "well"},
            {"role": "user", "content": "one\ntwo"},
        ]
        assert (await turn.transcript(limit=1))[-1]["content"] == "one\ntwo"

    async def test_what_is_appended_stands_behind_the_message_that_it_is_about(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        (first,) = await turn.append(reply("let me see"))
        (second,) = await turn.append(Message("tool", "3", tool_call_id="c"))
        ended = await turn.commit([reply("three")], last_prompt_tokens=7)
        assert await talk_of(store, turn.entry.session_id) == [
            ("user", "one"),
            ("assistant", "let me see"),
            ("tool", "3"),
            ("assistant", "three"),
        ]
        stored = await store.db.get_messages(turn.entry.session_id)
        assert [one.message_id for one in stored][1:] == [first, second, *ended.message_ids]
        assert stored[0].platform_message_id == "one"
        assert ended.entry is not None
        assert (ended.entry.last_prompt_tokens, ended.waiting, ended.next) == (7, 0, None)
        assert ended.version != turn.version

    async def test_a_commit_is_all_or_nothing(self, store: SessionStore, clock: FakeClock) -> None:
        await accept(store, "one")
        turn = await begin(store)
        used = make_usage("event", clock.now(), input_tokens=5)
        nothing = [reply("x" * (17 << 20))]
        with pytest.raises(InvalidInputError):
            await turn.commit(nothing, usages=[used], replies=[owed("hi")], last_prompt_tokens=5)
        with pytest.raises(InvalidInputError):
            await turn.commit([reply("hi")], usages=[used], replies=[owed("x" * (17 << 20))])
        assert await talk_of(store, turn.entry.session_id) == []
        assert await replies(store, clock) == []
        assert (await store.db.usage_of_session(turn.entry.session_id)).total.input_tokens == 0
        assert [one.running for one in await store.list_queued(LANE)] == [True]
        ended = await turn.commit([reply("hi")], usages=[used], replies=[owed("hi"), owed("there")])
        assert await talk_of(store, turn.entry.session_id) == [("user", "one"), ("assistant", "hi")]
        assert [one.message.text for one in await replies(store, clock)] == ["hi"]
        assert len(ended.reply_ids) == 2
        assert (await store.db.usage_of_session(turn.entry.session_id)).total.input_tokens == 5
        assert await fates(store) == {"turned": 1}

    async def test_a_turn_ends_once(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        outcomes = await asyncio.gather(
            *(turn.commit([reply("hi")]) for _ in range(3)), return_exceptions=True
        )
        assert [type(one) for one in outcomes if isinstance(one, Exception)] == [FencedError] * 2
        assert turn.ended
        for write in WRITES.values():
            with pytest.raises(TurnEndedError):
                await write(turn)
        assert await talk_of(store, turn.entry.session_id) == [("user", "one"), ("assistant", "hi")]

    async def test_the_next_turn_can_begin_in_the_same_commit(self, store: SessionStore) -> None:
        await accept(store, "one", "two", source=ALICE)
        turn = await begin(store)
        following = (await turn.commit([reply("hi")], go_on=True)).next
        assert following is not None
        assert (following.seq, following.token, following.attempt) == (2, turn.token + 1, 1)
        assert await store.claim(LANE) is None
        assert (await following.commit(go_on=True)).next is None
        assert await fates(store) == {"turned": 2}

    async def test_the_turn_of_another_lane_can_have_the_place_of_one_that_ends(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", "two", source=ALICE)
        await accept(store, "three", source=BOB)
        turn = await begin(store)
        ended = await turn.commit([reply("hi")], go_on=OTHER_LANE)
        assert ended.waiting == 1
        # If other nodes use the database, the turn waits until one of them claims it.
        following = ended.next or await begin(store, OTHER_LANE)
        assert (following.session_key, following.attempt, following.messages[0].text) == (
            OTHER_LANE,
            1,
            "three",
        )
        assert await store.claim(OTHER_LANE) is None
        second = await begin(store)
        assert (second.seq, second.token) == (2, turn.token + 1)
        assert (await second.commit(go_on=OTHER_LANE)).next is None  # a turn runs there
        await following.commit([reply("hi")])
        assert await fates(store) == {"turned": 2}
        assert await fates(store, OTHER_LANE) == {"turned": 1}

    async def test_the_next_turn_does_not_begin_before_its_time(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await accept(store, "two", rules=COLLECTING)
        ended = await turn.commit(go_on=True)
        assert (ended.next, ended.waiting) == (None, 1)

    @pytest.mark.parametrize("overtakes", OVERTAKING)
    async def test_whoever_was_overtaken_can_write_nothing(
        self, store: SessionStore, clock: FakeClock, overtakes: Callable[[SessionStore], Awaitable[object]]
    ) -> None:
        await accept(store, "zero")
        await answer(store)
        await store.reset_session(LANE)
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        told: list[tuple[str, int]] = []

        class Listener(QueueListener):
            def hear_overtaken_turn(self, session_key: str, token: int) -> None:
                told.append((session_key, token))

        queue_of(store).attach_listener(Listener())
        await overtakes(store)
        assert told == [(LANE, turn.token)]
        assert await fates(store) == {"turned": 1, "interrupted": 1, "cancelled": 1}
        before = await talk_of(store, turn.entry.session_id)
        assert before[:2] == [("user", "one"), ("assistant", "let me see")]
        for write in WRITES.values():
            with pytest.raises(FencedError):
                await write(turn)
        assert await talk_of(store, turn.entry.session_id) == before
        assert await replies(store, clock) == []
        assert (await store.queue_depth(LANE), queue_of(store).total_waiting) == (0, 0)
        assert (await accept(store, "three")).disposition == "starts"
        assert (await begin(store)).token > turn.token

    async def test_to_stop_a_lane_on_which_nothing_happens_changes_nothing(self, store: SessionStore) -> None:
        await accept(store, "one")
        await answer(store)
        stopped = await store.stop_turn(LANE)
        assert (stopped.anything, stopped.stopped, stopped.cancelled) == (False, 0, 0)
        assert not (await store.stop_turn("agent:main:telegram:dm:nobody")).anything
        await accept(store, "two", "three")
        await begin(store)
        stopped = await store.stop_turn(LANE)
        assert (stopped.anything, stopped.stopped, stopped.cancelled) == (True, 1, 1)

    async def test_a_turn_that_outlives_its_session_writes_to_it_and_to_no_other(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        new = await store.get_or_create_session(ALICE, force_new=True)
        await turn.append(reply("let me see"))
        ended = await turn.commit([reply("hi")])
        assert await talk_of(store, new.session_id) == []
        assert await talk_of(store, turn.entry.session_id) == [
            ("user", "one"),
            ("assistant", "let me see"),
            ("assistant", "hi"),
        ]
        assert ended.entry is not None
        assert ended.entry.session_id == new.session_id

    async def test_a_turn_goes_on_in_the_session_that_its_own_was_compressed_into(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        for _ in range(2):
            entry = await store.get_session(LANE)
            assert entry is not None
            await store.split_session(LANE, entry.session_id, [reply("a summary")])
        await turn.commit([reply("hi")])
        session_id = await store.peek_session_id(LANE)
        assert session_id is not None
        assert await talk_of(store, session_id) == [("assistant", "a summary"), ("assistant", "hi")]

    @pytest.mark.parametrize("how", ["suspended", "expired"])
    async def test_a_message_whose_session_is_over_is_answered_in_a_new_one(
        self, open_store: OpenStore, clock: FakeClock, how: str
    ) -> None:
        idle = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
        async with open_store(session_reset=idle) as store:
            await accept(store, "one")
            old = await begin(store)
            await old.append(reply("let me see"))
            if how == "expired":
                await old.fail("no power")
            else:
                await old.release()
            if how == "suspended":
                await store.suspend_session(LANE)
            clock.step(timedelta(hours=2))
            await store.watcher.sweep()
            for letter in await store.dead_letters():
                await store.requeue(letter.item_id)
            turn = await begin(store)
            assert turn.entry.previous_session_id == old.entry.session_id
            assert turn.entry.state is SessionState.ACTIVE
            await turn.commit([reply("hi")])
            assert await talk_of(store, turn.entry.session_id) == [("user", "one"), ("assistant", "hi")]
            assert await talk_of(store, old.entry.session_id) == [("assistant", "let me see")]
            assert turn.attempt == 1

    async def test_a_lane_whose_sessions_never_end_goes_on_with_an_old_interruption(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(session_reset=SessionResetPolicy(mode=ResetMode.NONE)) as store:
            await accept(store, "one")
            await store.mark_resume_pending(LANE)
            session_id = await store.peek_session_id(LANE)
            clock.step(timedelta(days=2))
            async with await begin(store) as turn:
                assert turn.entry.session_id == session_id
                ended = await turn.commit()
                assert ended.entry is not None
                assert ended.entry.state is SessionState.ACTIVE

    async def test_messages_wait_for_their_lane_when_its_session_moves_elsewhere(
        self, store: SessionStore
    ) -> None:
        await accept(store, "hello", source=BOB)
        await answer(store, session_key=OTHER_LANE)
        await accept(store, "one", "two")
        moved = await store.peek_session_id(LANE)
        assert moved is not None
        await store.switch_session(OTHER_LANE, moved, scope=OPERATOR, move=True)
        assert await store.peek_session_id(LANE) is None
        assert await in_line(store) == [1, 2]
        turn = await begin(store)
        assert [one.text for one in turn.messages] == ["one"]
        assert (turn.entry.opened_by, turn.entry.previous_session_id) == ("moved", moved)
        await turn.commit([reply("hi")])
        assert await talk_of(store, turn.entry.session_id) == [("user", "one"), ("assistant", "hi")]
        assert await talk_of(store, moved) == []


async def cut_off(store: SessionStore, session_key: str = LANE, *, times: int = 1) -> None:
    """Let the next turn of a lane begin and be cut off."""
    for _ in range(times):
        await (await begin(store, session_key)).release(counted=True)


async def next_turn(store: SessionStore, session_key: str = LANE) -> tuple[tuple[int, ...], int]:
    """Complete the next turn; return its text and the number of its try."""
    async with await begin(store, session_key) as turn:
        await turn.commit()
    return turn.seqs, turn.attempt


class TriesContract(StoreContract):
    """Tests the number of tries when other turns are put before a turn, and when these end."""

    async def test_a_turn_that_is_put_before_one_that_was_cut_off_is_new(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        await cut_off(store, times=2)
        await store.move_queued(LANE, 2, 1)
        await cut_off(store)
        assert await next_turn(store) == ((2,), 2)
        assert await next_turn(store) == ((1,), 3)

    async def test_a_turn_that_is_put_back_to_where_it_was_keeps_its_count(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        await cut_off(store, times=2)
        await store.move_queued(LANE, 2, 1)
        await store.move_queued(LANE, 1, 1)
        assert await next_turn(store) == ((1,), 3)
        assert await next_turn(store) == ((2,), 1)

    @pytest.mark.parametrize("how", ["cancelled", "deleted", "given up"])
    async def test_a_turn_that_was_cut_off_keeps_its_count_when_what_was_put_before_it_goes(
        self, store: SessionStore, how: str
    ) -> None:
        await accept(store, "one", "two")
        await cut_off(store, times=2)
        await store.move_queued(LANE, 2, 1)
        if how == "cancelled":
            await store.cancel_queued(LANE, 2)
        elif how == "deleted":
            await store.enqueue(said("", message_id="two", kind=MessageKind.DELETE))
        else:
            await (await begin(store)).fail("no power")
        assert await next_turn(store) == ((1,), 3)

    async def test_what_is_left_of_a_turn_that_was_cut_off_keeps_its_count(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        await cut_off(store)
        await accept(store, "three")
        await store.move_queued(LANE, 3, 1)
        await store.enqueue(said("", message_id="one", kind=MessageKind.DELETE))
        assert await next_turn(store) == ((3,), 1)
        assert await next_turn(store) == ((2,), 2)

    async def test_what_is_said_into_another_turn_is_new_afterwards(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        await cut_off(store, times=2)
        await store.move_queued(LANE, 2, 1)
        turn = await begin(store)
        assert await turn.steer(1)
        await turn.release()
        assert await next_turn(store) == ((2,), 1)
        assert await next_turn(store) == ((1,), 1)

    async def test_nothing_joins_a_turn_that_was_cut_off_wherever_it_waits(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        await cut_off(store)
        await accept(store, "two")
        await store.move_queued(LANE, 1, 2)
        receipt = await accept(store, "three", rules=COLLECTING)
        assert receipt.merged_into is None
        assert await in_line(store) == [2, 1, 3]

    async def test_what_waits_behind_a_turn_that_is_tried_again_is_joined_as_ever(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one")
        await cut_off(store)
        turn = await begin(store)
        receipt = await accept(store, "two", "three", rules=COLLECTING)
        assert (turn.attempt, receipt.merged_into) == (2, 2)

    async def test_what_waits_behind_a_turn_of_somebody_who_is_erased_is_new(
        self, open_store: OpenStore
    ) -> None:
        room = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice")
        bobs = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="bob")
        async with open_store(group_sessions_per_user=False) as store:
            key = (await accept(store, "from alice", source=room)).session_key
            await accept(store, "from bob", source=bobs)
            await cut_off(store, key, times=2)
            await store.erase(ALICE)
            assert await next_turn(store, key) == ((2,), 1)

    async def test_a_count_is_known_after_a_restart(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await accept(store, "one", "two")
            await begin(store)
        async with open_store() as store:
            await store.move_queued(LANE, 2, 1)
        async with open_store() as store:
            await answer(store)
            assert await next_turn(store) == ((1,), 2)
