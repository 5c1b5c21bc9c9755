"""How often a turn was cut off counts for that turn, wherever it waits, and for no other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway_sessions import SessionSource, SessionStore
from gateway_sessions.core.inbound import MessageKind
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.lanes import (
    ALICE,
    COLLECTING,
    LANE,
    OpenStore,
    StoreContract,
    accept,
    answer,
    begin,
    in_line,
    said,
)


async def cut_off(store: SessionStore, session_key: str = LANE, *, times: int = 1) -> None:
    """Let the next turn of a lane begin and not come to an end."""
    for _ in range(times):
        await (await begin(store, session_key)).release(counted=True)


async def next_turn(store: SessionStore, session_key: str = LANE) -> tuple[tuple[int, ...], int]:
    """What the next turn is about and which try that is, after which it has ended."""
    async with await begin(store, session_key) as turn:
        await turn.commit()
    return turn.seqs, turn.attempt


class TriesContract(StoreContract):
    """The tries of a turn when others are put before it, and when those go."""

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
