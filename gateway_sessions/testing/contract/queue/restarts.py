"""Contract tests of recovery after a restart, and of the erasure of queued messages."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from gateway_sessions import (
    Accepted,
    Duplicate,
    ResetMode,
    SessionBusyError,
    SessionResetPolicy,
    SessionSource,
    SessionState,
    SessionStore,
    build_session_key,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.config import AgentConfig
from gateway_sessions.errors import FencedError
from gateway_sessions.sessions import ResumeReason
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
from gateway_sessions.testing.inside import (
    ItemKind,
    NotedItem,
    clock_set_back,
    cut_off_notice,
    outbox,
    queue_of,
)

SELDOM: Final = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=100_000)
"""Sessions expire, but none of these tests lasts that long."""
CAROL: Final = SessionSource(platform="telegram", chat_id="3", user_id="carol")
THIRD_LANE: Final = build_session_key(CAROL)


async def waits_for_the_rest(store: SessionStore, clock: FakeClock) -> None:
    """Check that a message from ahead of the clock begins, and that a burst waits for its pause alone."""
    assert (await begin(store, OTHER_LANE)).seq == 1
    assert [one.text for one in (await begin(store, THIRD_LANE)).messages] == ["ahead"]
    clock.step(timedelta(seconds=0.3))
    assert await store.claim() is None
    clock.step(timedelta(seconds=0.05))
    assert (await begin(store)).seq == 1


class LedgerRestartsContract(StoreContract):
    """Tests that a restart takes up the turns that were running, and no others."""

    async def test_what_waits_waits_on_and_what_ran_is_next(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await accept(store, "one", "two", "three")
            await accept(store, "one", source=BOB)
            await answer(store)
            turn = await begin(store)
            await turn.append(reply("let me see"))
        async with open_store() as store:
            assert (store.started.resumed, store.started.suspended) == ((LANE,), ())
            assert queue_of(store).total_waiting == 3
            assert await in_line(store) == [2, 3]
            assert await in_line(store, OTHER_LANE) == [1]
            entry = await store.get_session(LANE)
            assert entry is not None
            assert entry.state is SessionState.RESUME_PENDING
            again = await begin(store)
            assert (again.seq, again.attempt, again.entry.session_id) == (2, 2, turn.entry.session_id)
            ended = await again.commit([reply("hi")])
            assert ended.entry is not None
            assert ended.entry.state is SessionState.ACTIVE
            assert await talk_of(store, turn.entry.session_id) == [
                ("user", "one"),
                ("assistant", "well"),
                ("user", "two"),
                ("assistant", "let me see"),
                ("assistant", "hi"),
            ]
        async with open_store() as store:
            assert (store.started.resumed, store.started.suspended) == ((), ())
            assert (await begin(store)).attempt == 1

    async def test_what_the_dead_process_said_into_its_turn_is_next_behind_it(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await accept(store, "one", "two", "three")
            turn = await begin(store)
            await turn.steer(2)
        async with open_store() as store:
            assert await in_line(store) == [1, 2, 3]
            for _ in range(3):
                await answer(store)
            texts = [text for _, text in await talk_of(store, turn.entry.session_id)]
            assert texts == ["one", "well", "two", "well", "three", "well"]

    async def test_a_turn_that_keeps_ending_the_process_is_given_up(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        agent = AgentConfig(max_restart_attempts=2)
        async with open_store(agent=agent) as store:
            await accept(store, "one", "two", "three")
            turn = await begin(store)
            await turn.steer(2)
        async with open_store(agent=agent) as store:
            assert store.started.resumed == (LANE,)
            assert (await begin(store)).attempt == 2
        async with open_store(agent=agent) as store:
            (given_up,) = store.started.given_up
            assert (given_up.session_key, given_up.attempts) == (LANE, 2)
            assert [one.text for one in given_up.buried] == ["one"]
            assert store.started.suspended == (LANE,)
            assert [one.seq for one in await store.dead_letters()] == [1]
            following = await begin(store)
            assert (following.seq, following.attempt) == (2, 1)
            assert following.entry.previous_session_id == turn.entry.session_id

    async def test_a_turn_that_was_cut_off_long_ago_is_put_aside_when_somebody_asks_for_that(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """The age of a turn counts from the last sign of life, not from the time at which it is found."""
        async with open_store(session_reset=SELDOM) as store:
            await accept(store, "one", "two")
            first = await begin(store)
            await first.append(reply("let me see"))
            clock.step(timedelta(minutes=50))
            await accept(store, "three")  # a sign of life of its process
            clock.step(timedelta(minutes=50))
        async with open_store(session_reset=SELDOM) as store:
            assert await queue_of(store).put_stale_turns_aside(None) == 0
            again = await begin(store)
            assert (again.entry.session_id, again.attempt) == (first.entry.session_id, 2)
            clock.step(timedelta(minutes=61))
        async with open_store(session_reset=SELDOM) as store:
            assert store.started.resumed == (LANE,)
            assert await queue_of(store).put_stale_turns_aside([OTHER_LANE]) == 0
            assert await queue_of(store).put_stale_turns_aside(None) == 1
            assert await queue_of(store).put_stale_turns_aside(None) == 0
            assert queue_of(store).total_waiting == 2
            assert await in_line(store) == [2, 3]
            assert [one.seq for one in await store.dead_letters()] == [1]
            (notice,) = await replies(store, clock)
            assert notice.message.text == cut_off_notice(clock.now() - timedelta(minutes=61), clock.now())
            following = await begin(store)
            assert (following.seq, following.attempt) == (2, 1)
            assert following.entry.session_id == first.entry.session_id
            talk = await talk_of(store, first.entry.session_id)
            assert talk == [("user", "one"), ("assistant", "let me see")]

    async def test_what_was_moved_before_a_turn_that_was_cut_off_long_ago_is_not_put_aside_for_it(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(session_reset=SELDOM) as store:
            await accept(store, "one", "two")
            await begin(store)
        async with open_store(session_reset=SELDOM) as store:
            await store.move_queued(LANE, 2, 1)
            clock.step(timedelta(hours=2))
            assert await queue_of(store).put_stale_turns_aside(None) == 0
            assert (await begin(store)).seq == 2

    async def test_a_turn_without_a_gateway_goes_on_in_its_session_however_long_ago_it_was_cut_off(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(session_reset=SELDOM) as store:
            await accept(store, "one")
            first = await begin(store)
            clock.step(timedelta(days=3))
        async with open_store(session_reset=SELDOM) as store:
            again = await begin(store)
            assert (again.attempt, again.entry.session_id) == (2, first.entry.session_id)

    async def test_a_turn_that_works_for_long_is_as_young_as_its_process(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """Nothing is written while an agent thinks, so the age counts from the last sign of life."""
        async with open_store(session_reset=SELDOM) as store:
            await accept(store, "one")
            first = await begin(store)
            await clock.advance(hours=3)
        clock.step(timedelta(minutes=50))
        async with open_store(session_reset=SELDOM) as store:
            assert (await begin(store)).entry.session_id == first.entry.session_id

    @pytest.mark.parametrize("restarts", [False, True])
    async def test_nothing_waits_for_a_clock_that_was_ahead(
        self, open_store: OpenStore, clock: FakeClock, *, restarts: bool
    ) -> None:
        async with open_store() as store:
            clock.step(timedelta(days=1))
            await accept(store, "one", rules=COLLECTING)
            await accept(store, "one", source=BOB)
            async with await begin(store, OTHER_LANE) as turn:
                await turn.commit(replies=[owed("well")])
            (owed_reply,) = await replies(store, clock)
            await store.db.write(lambda: outbox.put_off_reply(owed_reply, clock.now(), "no power", unclear=0))
            clock.step(timedelta(days=-1))
            assert await store.claim() is None
            assert await replies(store, clock) == []
            if not restarts:
                await queue_of(store).pull_turns_forward()
                await store.db.write(lambda: clock_set_back.pull_replies_forward(clock.now()))
                assert (await begin(store)).seq == 1
                assert len(await replies(store, clock)) == 1
        if restarts:
            async with open_store() as store:
                assert (await begin(store)).seq == 1
                assert len(await replies(store, clock)) == 1

    @pytest.mark.parametrize("restarts", [False, True])
    @pytest.mark.parametrize("how", ["put off", "tried again", "damaged"])
    async def test_a_burst_that_came_since_a_clock_was_set_back_is_waited_for(
        self, open_store: OpenStore, clock: FakeClock, how: str, *, restarts: bool
    ) -> None:
        async with open_store() as store:
            await accept(store, "one", source=BOB)
            clock.step(timedelta(days=1))
            await accept(store, "ahead", source=CAROL)
            if how == "damaged":
                await queue_of(store).put_turn_off(OTHER_LANE, timedelta(minutes=5))
            else:
                turn = await begin(store, OTHER_LANE)
                if how == "put off":
                    await turn.release(retry_at=clock.now() + timedelta(seconds=30))
                else:
                    await turn.fail("no power")
                    (letter,) = await store.dead_letters()
                    await store.requeue(letter.item_id)
            clock.step(timedelta(days=-1) + timedelta(seconds=1))
            await accept(store, "one", rules=COLLECTING)
            assert await store.claim() is None
            if not restarts:
                for _ in range(2):  # each node has to notice the death by itself
                    await queue_of(store).pull_turns_forward()
                await waits_for_the_rest(store, clock)
        if restarts:
            async with open_store() as store:
                await waits_for_the_rest(store, clock)

    async def test_a_clock_that_was_set_back_makes_no_turn_older(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store() as store:
            await accept(store, "one")
            first = await begin(store)
            clock.step(timedelta(days=-1))
        async with open_store() as store:
            assert (await begin(store)).entry.session_id == first.entry.session_id

    @pytest.mark.parametrize("message", [False, True])
    async def test_a_turn_that_keeps_ending_the_process_is_given_up_however_long_that_takes(
        self, open_store: OpenStore, clock: FakeClock, *, message: bool
    ) -> None:
        sessions: set[str] = set()
        for attempt in (1, 2, 3):
            async with open_store(session_reset=SELDOM) as store:
                if attempt == 1 or message:
                    await accept(store, "deadly" if attempt == 1 else f"hello {attempt}")
                turn = await begin(store)
                assert ([one.text for one in turn.messages], turn.attempt) == (["deadly"], attempt)
                sessions.add(turn.entry.session_id)
                clock.step(timedelta(hours=2))
        async with open_store(session_reset=SELDOM) as store:
            assert store.started.suspended == (LANE,)
            assert [one.message.text for one in await store.dead_letters() if one.message] == ["deadly"]
            await accept(store, "and now?")
            assert (await begin(store)).attempt == 1
        assert len(sessions) == 1

    @pytest.mark.parametrize("reason", [ResumeReason.SHUTDOWN_TIMEOUT, ResumeReason.RESTART_TIMEOUT])
    async def test_a_turn_that_a_drain_cuts_off_was_tried_and_goes_on_in_its_session(
        self, open_store: OpenStore, reason: ResumeReason
    ) -> None:
        async with open_store() as store:
            await accept(store, "one", "two", "three")
            turn = await begin(store)
            await turn.append(reply("let me see"))
            await turn.steer(2)
            cut = await turn.cut_short(reason, [owed("given up")])
            assert (cut.attempts, cut.given_up, cut.notice_ids) == (1, False, ())
            assert turn.ended
            entry = await store.get_session(LANE)
            assert entry is not None
            assert (entry.state, entry.state_reason) == (SessionState.RESUME_PENDING, reason)
            assert await in_line(store) == [1, 2, 3]
            assert queue_of(store).total_waiting == 3
        async with open_store() as store:
            assert store.started.resumed == ()
            again = await begin(store)
            assert (again.seq, again.attempt, again.recorded) == (1, 2, True)
            assert again.entry.session_id == turn.entry.session_id
            await again.commit([reply("well")])
            assert (await begin(store)).attempt == 1

    async def test_a_turn_that_drains_cut_off_too_often_is_given_up_in_the_last_of_them(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        agent = AgentConfig(max_restart_attempts=2)
        async with open_store(agent=agent) as store:
            await accept(store, "one", "two")
            await (await begin(store)).cut_short(ResumeReason.SHUTDOWN_TIMEOUT)
        async with open_store(agent=agent) as store:
            last = await begin(store)
            assert last.attempt == 2
            cut = await last.cut_short(ResumeReason.SHUTDOWN_TIMEOUT, [owed("given up")])
            assert (cut.attempts, cut.given_up) == (2, True)
            assert [one.text for one in cut.buried] == ["one"]
            assert [one.message.text for one in await replies(store, clock)] == ["given up"]
            (dead,) = await store.dead_letters()
            assert (dead.seq, dead.problem) == (1, "its turn was cut off 2 times")
            entry = await store.get_session(LANE)
            assert entry is not None
            assert entry.suspended
            following = await begin(store)
            assert (following.seq, following.attempt) == (2, 1)
            assert following.entry.previous_session_id == last.entry.session_id

    async def test_a_drain_cuts_off_nothing_on_a_lane_that_is_somebody_elses_by_now(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await store.stop_turn(LANE)
        with pytest.raises(FencedError):
            await turn.cut_short(ResumeReason.SHUTDOWN_TIMEOUT, [owed("given up")])
        assert await fates(store) == {"interrupted": 1}

    async def test_a_turn_of_which_everything_was_taken_back_was_never_tried(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one")
        turn = await begin(store)
        deleted = await store.enqueue(said("", message_id="one", kind=MessageKind.DELETE))
        assert isinstance(deleted, Accepted)
        cut = await turn.cut_short(ResumeReason.SHUTDOWN_TIMEOUT)
        assert not cut.interrupted
        await accept(store, "two")
        assert (await begin(store)).attempt == 1

    async def test_what_was_turned_is_not_turned_again(self, open_store: OpenStore, clock: FakeClock) -> None:
        async with open_store() as store:
            await accept(store, "one")
            async with await begin(store) as turn:
                await turn.commit([reply("hi")], replies=[owed("hi")])
        async with open_store() as store:
            assert await store.claim() is None
            assert [one.message.text for one in await replies(store, clock)] == ["hi"]

    async def test_the_turns_of_the_dead_process_can_write_nothing(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await accept(store, "one")
            before = await begin(store)
        async with open_store() as store:
            again = await begin(store)
            assert again.token > before.token

    async def test_commands_of_which_nobody_knows_whether_they_were_carried_out_are_told(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store() as store:
            await queue_of(store).record_arrival(said("/restart"), ItemKind.COMMAND)
        async with open_store() as store:
            assert [(one.session_key, one.message.text) for one in store.started.abandoned] == [
                (LANE, "/restart")
            ]
            assert await fates(store) == {"cancelled": 1}
            assert ["/restart" in one.message.text for one in await replies(store, clock)] == [True]
            assert isinstance(
                await queue_of(store).record_arrival(said("/restart"), ItemKind.COMMAND), Duplicate
            )
        async with open_store() as store:
            assert store.started.abandoned == ()

    async def test_a_change_that_was_not_carried_out_is_news_when_it_comes_again(
        self, open_store: OpenStore
    ) -> None:
        edit = said("edited", kind=MessageKind.EDIT)
        async with open_store() as store:
            await queue_of(store).record_arrival(edit, ItemKind.CHANGE)
        async with open_store() as store:
            assert store.started.abandoned == ()
            assert await fates(store) == {"cancelled": 1}
            again = await queue_of(store).record_arrival(edit, ItemKind.CHANGE)
            assert isinstance(again, NotedItem)
            assert again.seq == 2

    async def test_a_reply_that_was_being_sent_is_doubtful(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store() as store:
            await accept(store, "one", source=BOB)
            async with await begin(store, None) as turn:
                sending = owed("sending")
                sending = type(sending)(
                    target=sending.target, message=sending.message, owner=sending.owner, under_way=True
                )
                await turn.commit(replies=[sending])
            await accept(store, "one")
            async with await begin(store) as turn:
                await turn.commit(replies=[owed("owed")])
        async with open_store() as store:
            assert store.started.doubted == 1
            found = {one.message.text: one.maybe_duplicate for one in await replies(store, clock)}
            assert found == {"sending": True, "owed": False}

    async def test_turns_that_may_have_ended_the_process_too_often_wait_for_a_while(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """An orderly end is no crash, and delays no turn."""
        for attempt in (1, 2):
            async with open_store() as store:
                if attempt == 1:
                    await accept(store, "one")
                assert store.started.held_until is None
                assert (await begin(store)).attempt == attempt
            clock.step(timedelta(seconds=1))


ROOM = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice")


class ErasedLanesContract(StoreContract):
    """Tests the erasure of queued messages and of replies that are owed."""

    async def test_nothing_that_an_erased_person_sent_or_is_owed_is_left(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            await accept(store, "turned")
            async with await begin(store) as turn:
                await turn.commit([reply("hi")], replies=[owed("owed to Alice")])
            await accept(store, "dead")
            await (await begin(store)).fail("no power")
            await accept(store, "waiting", "also waiting")
            room = (await accept(store, "of Alice in a room", source=ROOM)).session_key
            bobs = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="bob")
            await accept(store, "of Bob in a room", source=bobs)
            await accept(store, "of Bob", source=BOB)
            clock.step(timedelta(minutes=1))
            receipt = await store.erase(ALICE)
            assert receipt.rows["inbox"] == 5
            assert receipt.rows["outbox"] == 1
            assert await fates(store) == {}
            assert await store.dead_letters() == []
            assert await replies(store, clock) == []
            assert [one.message.text for one in await store.list_queued(room)] == ["of Bob in a room"]
            assert await store.queue_depth(room) == 1
            assert await in_line(store, OTHER_LANE) == [1]
            assert queue_of(store).total_waiting == 2
            assert [one.text for one in (await begin(store, room)).messages] == ["of Bob in a room"]
            clock.step(timedelta(minutes=1))
            assert isinstance(await store.enqueue(said("turned", sent_at=clock.now())), Accepted)

    async def test_what_an_erased_person_said_in_a_room_goes_and_what_others_said_stays(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            for person in ("alice", "bob"):
                named = replace(ROOM, user_id=person, user_name=person.title())
                room = (await accept(store, f"of {person}", source=named)).session_key
                async with await begin(store, room) as turn:
                    await turn.append(reply("let me see"))
                    await turn.commit([reply("hi")])
            named = replace(ROOM, user_name="Alice")
            await accept(store, "given up", source=named)
            await (await begin(store, room)).fail("no power")
            clock.step(timedelta(minutes=1))
            receipt = await store.erase(ALICE)
            entry = await store.get_session(room)
            assert entry is not None
            told = await store.db.get_messages_as_conversation(entry.session_id)
            names = [(one["content"], one.get("name")) for one in told if one["role"] == "user"]
            assert names[1:] == [("[Bob] of bob", "Bob")]
            left = await store.db.get_messages(entry.session_id, include_hidden=True)
            assert "lice" not in str(left)
            assert [one.seq for one in left] == list(range(1, len(left) + 1))
            assert (receipt.rows["inbox"], receipt.rows["messages"]) == (2, 2)

    async def test_nobody_is_erased_whose_message_is_being_answered(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            await accept(store, "of Alice in a room", source=ROOM)
            turn = await begin(store, None)
            with pytest.raises(SessionBusyError):
                await store.erase(ALICE)
            await turn.commit()
            await accept(store, "one")
            turn = await begin(store)
            with pytest.raises(SessionBusyError):
                await store.erase(ALICE)
            await turn.release()
            await store.erase(ALICE)
            assert await fates(store) == {}

    async def test_a_person_is_told_what_waits(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            await accept(store, "one")
            async with await begin(store) as turn:
                await turn.commit([reply("hi")], replies=[owed("owed to Alice")])
            await accept(store, "dead")
            await (await begin(store)).fail("no power")
            await accept(store, "waiting")
            await accept(store, "of Alice in a room", source=ROOM)
            await accept(store, "of Bob", source=BOB)
            told = [one async for one in store.export_person(ALICE)]
            queued = [one for lane in told for one in lane.get("queue", [])]
            assert [(one["state"], one["message"]["text"]) for one in queued] == [
                ("dead", "dead"),
                ("waiting", "waiting"),
                ("waiting", "of Alice in a room"),
            ]
            owing = [one for lane in told for one in lane.get("replies", [])]
            assert [one["message"]["text"] for one in owing] == ["owed to Alice"]
