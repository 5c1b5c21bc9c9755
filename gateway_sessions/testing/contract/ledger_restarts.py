"""What the next process finds of the queue, when the one before it has ended somehow."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from gateway_sessions import EndReason, ResetMode, SessionResetPolicy, SessionState
from gateway_sessions.config import AgentConfig
from gateway_sessions.core.inbound import MessageKind
from gateway_sessions.core.queue import ItemKind
from gateway_sessions.core.receipts import Duplicate
from gateway_sessions.storage.verbs.ledger import Noted
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.lanes import (
    BOB,
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

SELDOM: Final = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=100_000)
"""Sessions end, but not in any of these tests because of that."""


class LedgerRestartsContract(StoreContract):
    """Exactly what was under way is taken up again."""

    async def test_what_waits_waits_on_and_what_ran_is_next(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await accept(store, "one", "two", "three")
            await accept(store, "one", source=BOB)
            await answer(store)
            turn = await begin(store)
            await turn.append(reply("let me see"))
        async with open_store() as store:
            assert (store.started.resumed, store.started.suspended) == ((LANE,), ())
            assert store.ledger.total_waiting == 3
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

    async def test_a_turn_that_was_cut_off_long_ago_has_a_new_session(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """However soon it is found after the start: what counts is when it was last known to live."""
        async with open_store(session_reset=SELDOM) as store:
            await accept(store, "one", "two")
            first = await begin(store)
            await first.append(reply("let me see"))
            clock.step(timedelta(minutes=50))
            await accept(store, "three")  # so its process lived until then
            clock.step(timedelta(minutes=50))
        async with open_store(session_reset=SELDOM) as store:
            again = await begin(store)
            assert (again.entry.session_id, again.attempt) == (first.entry.session_id, 2)
            clock.step(timedelta(minutes=61))
        async with open_store(session_reset=SELDOM) as store:
            assert store.started.resumed == (LANE,)
            last = await begin(store)
            assert last.entry.previous_session_id == first.entry.session_id
            assert last.entry.opened_by is EndReason.RESUME_PENDING_EXPIRED
            assert [one.text for one in last.messages] == ["one"]
            await last.commit([reply("well")])
            talk = await talk_of(store, last.entry.session_id)
            assert talk == [("user", "one"), ("assistant", "well")]
            assert await in_line(store) == [2, 3]

    async def test_a_turn_that_works_for_long_is_as_young_as_its_process(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        """Nothing is written while an agent thinks, and yet nobody may take it for dead."""
        async with open_store(session_reset=SELDOM) as store:
            await accept(store, "one")
            first = await begin(store)
            await clock.advance(hours=3)
        clock.step(timedelta(minutes=50))
        async with open_store(session_reset=SELDOM) as store:
            assert (await begin(store)).entry.session_id == first.entry.session_id

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
        """In a new session each time: it is the same message that was tried again."""
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
        assert len(sessions) == 3

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
            held = (await begin(store)).held
        async with open_store() as store:
            again = await begin(store)
            assert again.token > held.token

    async def test_commands_of_which_nobody_knows_whether_they_were_carried_out_are_told(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store() as store:
            await store.ledger.note(said("/restart"), ItemKind.COMMAND)
        async with open_store() as store:
            assert [(one.session_key, one.message.text) for one in store.started.abandoned] == [
                (LANE, "/restart")
            ]
            assert await fates(store) == {"cancelled": 1}
            assert ["/restart" in one.message.text for one in await replies(store, clock)] == [True]
            assert isinstance(await store.ledger.note(said("/restart"), ItemKind.COMMAND), Duplicate)
        async with open_store() as store:
            assert store.started.abandoned == ()

    async def test_a_change_that_was_not_carried_out_is_news_when_it_comes_again(
        self, open_store: OpenStore
    ) -> None:
        edit = said("edited", kind=MessageKind.EDIT)
        async with open_store() as store:
            await store.ledger.note(edit, ItemKind.CHANGE)
        async with open_store() as store:
            assert store.started.abandoned == ()
            assert await fates(store) == {"cancelled": 1}
            again = await store.ledger.note(edit, ItemKind.CHANGE)
            assert isinstance(again, Noted)
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
        """An orderly end is no crash: nothing is held back then."""
        for attempt in (1, 2):
            async with open_store() as store:
                if attempt == 1:
                    await accept(store, "one")
                assert store.started.held_until is None
                assert (await begin(store)).attempt == attempt
            clock.step(timedelta(seconds=1))
