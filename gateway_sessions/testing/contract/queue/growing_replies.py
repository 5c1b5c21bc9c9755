"""Contract tests of growing replies across tries of a turn."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

import pytest

from gateway_sessions import Accepted, BusyRules, SessionStore
from gateway_sessions.adapters import MessageKind
from gateway_sessions.config import AgentConfig
from gateway_sessions.errors import FencedError
from gateway_sessions.queue import DropPolicy
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    COLLECTING,
    LANE,
    OpenStore,
    StoreContract,
    accept,
    begin,
    owed,
    replies,
    reply,
    said,
)
from gateway_sessions.testing.inside import GIVEN_UP, UNFINISHED, Growing, SentReply, mark_sent, queue_of

SHOWN: Final = Growing(number=1, message_id="shown-1")
ROOM_FOR_ONE: Final = BusyRules(max_queued=1, debounce=timedelta(), drop=DropPolicy.DROP_OLDEST)


async def half_answered(store: SessionStore) -> None:
    """Let the lane's next turn show a part of its reply, and then wait for another try."""
    turn = await begin(store)
    await turn.note_growing(SHOWN)
    await turn.release()


async def told(store: SessionStore, clock: FakeClock) -> list[tuple[str, str | None]]:
    """Return the reply that is owed next, and the message that it replaces."""
    return [(one.message.text, one.message.replaces) for one in await replies(store, clock)]


class GrowingContract(StoreContract):
    """Tests that the next try of a turn goes on with the message in which its reply grows."""

    async def test_the_next_try_knows_where_the_reply_has_grown_and_another_turn_does_not(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", "two")
        assert (await begin(store)).growing is None
        await queue_of(store).stop_turn(LANE, by="test")
        await accept(store, "three", "four")
        await half_answered(store)
        turn = await begin(store)
        assert turn.growing == SHOWN
        ended = await turn.commit([reply("well")], go_on=True)
        assert ended.next is not None
        assert ended.next.growing is None

    @pytest.mark.parametrize("with_rows", [False, True])
    async def test_so_does_the_next_process(self, open_store: OpenStore, *, with_rows: bool) -> None:
        async with open_store() as store:
            await accept(store, "one")
            turn = await begin(store)
            await turn.note_growing(SHOWN)
            if with_rows:
                await turn.append(reply("let me see"))
        async with open_store() as store:
            assert (await begin(store)).growing == SHOWN

    async def test_what_is_said_in_its_place_is_owed_and_known_at_once(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store() as store:
            await accept(store, "one")
            turn = await begin(store)
            await turn.note_growing(SHOWN)
            await turn.owe(owed("said", replaces="shown-1"), growing=Growing(number=1))
        async with open_store() as store:
            assert (await begin(store)).growing == Growing(number=1)
            assert await told(store, clock) == [("said", "shown-1")]

    async def test_a_turn_that_has_lost_its_lane_writes_nothing_down(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await queue_of(store).stop_turn(LANE, by="test")
        await accept(store, "two")
        with pytest.raises(FencedError):
            await turn.note_growing(SHOWN)
        with pytest.raises(FencedError):
            await turn.owe(owed("said"), growing=SHOWN)
        assert (await begin(store)).growing is None

    @pytest.mark.parametrize("while_it", ["runs", "waits"])
    async def test_it_goes_with_the_turn_when_the_message_is_deleted_that_led_it(
        self, store: SessionStore, clock: FakeClock, while_it: str
    ) -> None:
        for number in range(3):
            await store.enqueue(said(f"part {number}", message_id=f"m{number}"), rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        await turn.note_growing(SHOWN)
        if while_it == "waits":
            await turn.release()
        await store.enqueue(said(message_id="m0", text="", kind=MessageKind.DELETE))
        if while_it == "runs":
            await turn.note_growing(Growing(number=2, message_id="shown-2"))
            await turn.release()
        again = await begin(store)
        assert [one.text for one in again.messages] == ["part 1", "part 2"]
        assert again.growing == (SHOWN if while_it == "waits" else Growing(number=2, message_id="shown-2"))
        assert await told(store, clock) == []

    async def test_what_is_said_into_the_turn_takes_none_of_it_along(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        turn = await begin(store)
        assert await turn.steer(2)
        await turn.note_growing(SHOWN)
        await turn.release()
        again = await begin(store)
        assert (again.seqs, again.growing) == ((1,), SHOWN)
        await again.commit([reply("well")])
        other = await begin(store)
        assert (other.seqs, other.growing) == ((2,), None)

    async def test_a_reply_that_failed_grows_anew_when_it_is_tried_again(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await turn.note_growing(SHOWN)
        await turn.fail("no power")
        (letter,) = await store.dead_letters()
        await store.requeue(letter.item_id)
        assert (await begin(store)).growing == Growing(number=1)

    async def test_one_that_is_given_up_after_a_restart_says_so_and_grows_anew(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        config = AgentConfig(max_restart_attempts=1)
        async with open_store(agent=config) as store:
            await accept(store, "one")
            await (await begin(store)).note_growing(SHOWN)
        async with open_store(agent=config) as store:
            assert await told(store, clock) == [(UNFINISHED, "shown-1")]
            sent = [SentReply(one, one.message.replaces, clock.now()) for one in await replies(store, clock)]
            await store.db.write(partial(mark_sent, sent))
            assert await told(store, clock) == [(GIVEN_UP, None)]
            (letter,) = await store.dead_letters()
            await store.requeue(letter.item_id)
            assert (await begin(store)).growing == Growing(number=1)

    @pytest.mark.parametrize("how", ["cancelled", "cleared", "stopped", "reset", "deleted", "dropped"])
    async def test_one_that_is_taken_out_of_the_queue_says_so(
        self, store: SessionStore, clock: FakeClock, how: str
    ) -> None:
        receipt = await store.enqueue(said("one", message_id="m1"), rules=ROOM_FOR_ONE)
        assert isinstance(receipt, Accepted)
        await half_answered(store)
        match how:
            case "cancelled":
                assert await store.cancel_queued(LANE, receipt.seq) == 1
            case "cleared":
                assert await store.clear_queue(LANE) == 1
            case "stopped":
                assert (await queue_of(store).stop_turn(LANE, by="test")).cancelled == 1
            case "reset":
                await store.reset_session(LANE)
            case "deleted":
                await store.enqueue(said(message_id="m1", text="", kind=MessageKind.DELETE))
            case _:
                (dropped,) = (await accept(store, "two", rules=ROOM_FOR_ONE)).dropped
                assert dropped == receipt.seq
        assert await told(store, clock) == [(UNFINISHED, "shown-1")]

    async def test_what_was_not_shown_is_taken_out_without_a_word(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two")
        turn = await begin(store)
        await turn.owe(owed("said", replaces="shown-1"), growing=Growing(number=1))
        await turn.release()
        assert await store.clear_queue(LANE) == 2
        assert await told(store, clock) == [("said", "shown-1")]
