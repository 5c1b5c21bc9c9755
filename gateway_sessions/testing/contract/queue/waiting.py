"""Contract tests of changes to waiting messages: list, cancel, move, edit, forget."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from functools import partial

import msgspec
import pytest

from gateway_sessions import (
    Accepted,
    Duplicate,
    InboundMessage,
    InvalidInputError,
    Rejected,
    SessionSource,
    SessionStore,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.queue import Disposition, RejectReason
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    APART,
    BOB,
    COLLECTING,
    LANE,
    OTHER_LANE,
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
    EditResult,
    ItemKind,
    NotedItem,
    Outcome,
    admit,
    edits,
    outbox,
    queue_of,
)

ROOM = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice")


async def reword(store: SessionStore, which: InboundMessage, text: str | None) -> EditResult | None:
    """Edit a message, or delete it."""
    kind = MessageKind.DELETE if text is None else MessageKind.EDIT
    new = msgspec.structs.replace(which, text=text or "", kind=kind)
    return await queue_of(store).apply(partial(edits.reapply_edit, new, LANE, "person"))


class WaitingContract(StoreContract):
    """Tests the changes that people make to the queue of a lane."""

    async def test_a_waiting_turn_can_be_taken_out_and_a_running_one_cannot(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", "two", solo=True)
        await accept(store, "three", "four", "five", rules=COLLECTING)
        turn = await begin(store)
        assert await store.cancel_queued(LANE, 1) == 0
        assert await store.cancel_queued(LANE, 3) == 3
        assert await store.cancel_queued(LANE, 3) == 0
        assert await in_line(store) == [2]
        assert queue_of(store).total_waiting == 1
        await turn.commit(go_on=True)
        assert await fates(store) == {"turned": 1, "open": 1, "cancelled": 3}

    async def test_what_waits_and_is_owed_is_found_for_some_lanes_alone(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        due = partial(outbox.due_replies, "telegram", "", limit=1)
        await accept(store, "one", source=BOB)
        await answer(store, session_key=OTHER_LANE)
        await accept(store, "two", source=BOB)
        await accept(store, "one")
        async with await begin(store) as turn:
            await turn.commit([reply("well")], replies=[owed("well")])
        clock.step(timedelta(seconds=1))
        await accept(store, "three", rules=COLLECTING)
        found = await queue_of(store).find_waiting_among([LANE, OTHER_LANE, "nothing"])
        assert [(one.session_key, one.owner) for one in found] == [
            (OTHER_LANE, "main:telegram:user:bob"),
            (LANE, "main:telegram:user:alice"),
        ]
        assert [one.session_key for one in await queue_of(store).find_waiting_among([LANE])] == [LANE]
        assert found[1].since > clock.now() > found[0].since
        assert await queue_of(store).find_waiting_among([]) == []
        now = clock.now()
        for lanes, count in (([LANE, "nothing"], 1), ([OTHER_LANE], 0), ([], 0), (None, 1)):
            found_replies, _ = await store.db.read(partial(due, now=now, lanes=lanes))
            assert len(found_replies) == count
            sent = [one.reply_id for one in found_replies]
            assert not (await store.db.read(partial(due, now=now, lanes=lanes, but_not=sent))).replies
        before = now - timedelta(minutes=1)
        for lanes, is_due in (([LANE], True), ([OTHER_LANE], False), ([], False), (None, True)):
            _, later = await store.db.read(partial(due, now=before, lanes=lanes))
            assert (later is not None) == is_due

    async def test_a_message_that_is_part_of_a_waiting_turn_can_be_taken_out_alone(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two", "three", rules=COLLECTING)
        assert await store.cancel_queued(LANE, 2) == 1
        assert await store.queue_depth(LANE) == 1
        clock.step(timedelta(seconds=5))
        turn = await begin(store)
        assert turn.seqs == (1, 3)

    async def test_all_that_waits_can_be_taken_out_and_the_running_turn_goes_on(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", "two", "three")
        turn = await begin(store)
        assert await store.clear_queue(LANE) == 2
        assert await store.clear_queue(LANE) == 0
        assert (await turn.commit([reply("hi")])).waiting == 0
        assert queue_of(store).total_waiting == 0
        assert await fates(store) == {"turned": 1, "cancelled": 2}

    async def test_turns_begin_in_the_order_that_people_give_them(self, store: SessionStore) -> None:
        await accept(store, "one", "two", "three", "four")
        assert await store.move_queued(LANE, 3, 1) == [3, 1, 2, 4]
        assert await store.move_queued(LANE, 1, 99) == [3, 2, 4, 1]
        assert await store.move_queued(LANE, 2, -5) == [2, 3, 4, 1]
        assert await in_line(store) == [2, 3, 4, 1]
        with pytest.raises(InvalidInputError, match="no message 9 waits"):
            await store.move_queued(LANE, 9, 1)
        turn = await begin(store)
        with pytest.raises(InvalidInputError, match="no message 2 waits"):
            await store.move_queued(LANE, 2, 1)
        await turn.release()
        await accept(store, "five")
        begun: list[int] = []
        while (turn_now := await store.claim(LANE)) is not None:
            begun.append(turn_now.seq)
            await turn_now.commit()
        assert begun == [2, 3, 4, 1, 5]

    async def test_what_joined_a_turn_moves_with_it(self, store: SessionStore, clock: FakeClock) -> None:
        await accept(store, "one", "two", rules=COLLECTING)
        await accept(store, "three", solo=True)
        assert await store.move_queued(LANE, 3, 1) == [3, 1]
        clock.step(timedelta(seconds=5))
        await answer(store)
        turn = await begin(store)
        assert turn.seqs == (1, 2)
        await turn.steer(3)
        await turn.release()
        assert (await begin(store)).seqs == (1, 2)

    async def test_what_was_moved_is_found_where_it_waits_now(self, store: SessionStore) -> None:
        pairs = replace(COLLECTING, merge_limit=2)
        await accept(store, "one", "two", rules=pairs)
        await accept(store, "three", solo=True)
        await store.move_queued(LANE, 1, 2)
        await reword(store, said("two"), None)
        assert (await accept(store, "four", rules=pairs)).merged_into == 1
        await accept(store, "five", solo=True)
        await store.move_queued(LANE, 5, 1)
        turn = await begin(store)
        assert turn.seqs == (5,)
        assert await turn.steer(3)
        queued = await store.list_queued(LANE)
        assert [(one.seq, one.running) for one in queued] == [(5, True), (3, True), (1, False), (4, False)]

    async def test_a_waiting_message_can_say_something_else(self, store: SessionStore) -> None:
        await accept(store, "one", "two")
        assert await reword(store, said("two"), "two, better") == EditResult(LANE, 2, running=False)
        turn = await begin(store)
        await turn.commit()
        assert await reword(store, said("one"), "one, later") == EditResult(LANE, 1)
        assert await reword(store, said("one"), "one, later") == EditResult(LANE, 1, stands=True)
        assert await reword(store, said("never seen"), "?") is None
        await answer(store)
        texts = [text for _, text in await talk_of(store, turn.entry.session_id)]
        assert texts == ["one, later", "two, better", "well"]

    async def test_a_message_that_was_tried_before_says_what_it_says_now(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        await turn.release()
        await reword(store, said("one"), "one, better")
        await answer(store)
        assert await talk_of(store, turn.entry.session_id) == [
            ("assistant", "let me see"),
            ("user", "one, better"),
            ("assistant", "well"),
        ]

    async def test_a_message_that_was_tried_before_can_be_taken_back(self, store: SessionStore) -> None:
        await accept(store, "one")
        turn = await begin(store)
        await turn.append(reply("let me see"))
        await turn.release(counted=True)
        await reword(store, said("one"), None)
        assert await talk_of(store, turn.entry.session_id) == [("assistant", "let me see")]
        await accept(store, "two")
        assert (await begin(store)).attempt == 1

    @pytest.mark.parametrize(
        ("gone", "left"), [("one", "two\nthree"), ("two", "one\nthree"), ("three", "one\ntwo")]
    )
    async def test_what_is_taken_back_leaves_the_rest_of_its_turn(
        self, store: SessionStore, clock: FakeClock, gone: str, left: str
    ) -> None:
        await accept(store, "one", "two", "three", rules=COLLECTING)
        seq = ["one", "two", "three"].index(gone) + 1
        assert await reword(store, said(gone), None) == EditResult(LANE, seq, running=False)
        assert await store.queue_depth(LANE) == 1
        assert isinstance(await store.enqueue(said(gone)), Duplicate)
        await accept(store, "four", rules=COLLECTING)
        clock.step(timedelta(seconds=5))
        await answer(store)
        session_id = await store.peek_session_id(LANE)
        assert session_id is not None
        assert await talk_of(store, session_id) == [("user", f"{left}\nfour"), ("assistant", "well")]
        assert await fates(store) == {"turned": 3, "cancelled": 1}

    async def test_the_last_message_of_a_turn_that_is_taken_back_takes_the_turn_away(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", "two", rules=COLLECTING)
        await reword(store, said("one"), None)
        await reword(store, said("two"), None)
        assert await store.queue_depth(LANE) == 0
        clock.step(timedelta(seconds=5))
        assert await store.claim(LANE) is None

    async def test_what_is_carried_out_at_once_is_noted_and_is_no_turn(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one")
        for seq, kind in ((2, ItemKind.COMMAND), (3, ItemKind.CHANGE)):
            message = said("/stop", message_id=str(kind))
            noted = await queue_of(store).record_arrival(message, kind)
            assert isinstance(noted, NotedItem)
            assert (noted.seq, noted.session_key) == (seq, LANE)
            assert await queue_of(store).record_arrival(message, kind) == Duplicate(seq=seq, session_key=LANE)
            assert (await in_line(store), await store.queue_depth(LANE)) == ([1], 1)
            done = partial(
                admit.settle_noted, noted, Outcome(str(kind) if seq == 2 else "applied"), "gateway"
            )
            await store.db.write(partial(done, clock.now()))
        turn = await begin(store)
        assert (await turn.commit(go_on=True)).next is None
        assert await fates(store) == {"turned": 1, "command": 1, "applied": 1}
        assert (await accept(store, "two")).seq == 4

    async def test_an_edit_and_a_deletion_reach_what_waits_and_what_was_said(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", "two", "three", solo=True)
        async with await begin(store) as turn:
            await turn.commit([reply("answered")])
        for text, change in (
            ("one", {"text": "one, better", "kind": MessageKind.EDIT, "revision": 1}),
            ("two", {"text": "two, better", "kind": MessageKind.EDIT, "revision": 1}),
            ("three", {"text": "", "kind": MessageKind.DELETE}),
        ):
            message = msgspec.structs.replace(said(text), **change)
            receipt = await store.enqueue(message)
            assert isinstance(receipt, Accepted)
            assert receipt.disposition is Disposition.APPLIED
            assert await store.enqueue(message) == Duplicate(seq=receipt.seq, session_key=LANE)
        turn = await begin(store)
        assert [one.text for one in turn.messages] == ["two, better"]
        assert await talk_of(store, turn.entry.session_id) == [
            ("user", "one, better"),
            ("assistant", "answered"),
        ]
        assert await in_line(store) == []

    async def test_a_change_of_what_nobody_knows_is_refused(self, store: SessionStore) -> None:
        receipt = await store.enqueue(said("never said", kind=MessageKind.DELETE))
        assert isinstance(receipt, Rejected)
        assert receipt.reason is RejectReason.UNKNOWN
        assert await store.claim() is None

    async def test_what_was_noted_is_taken_out_by_nobody(self, store: SessionStore) -> None:
        await accept(store, "one")
        await queue_of(store).record_arrival(said("/help"), ItemKind.COMMAND)
        await queue_of(store).record_arrival(said("edited", kind=MessageKind.EDIT), ItemKind.CHANGE)
        await begin(store)
        await accept(store, "two")
        await store.reset_session(LANE)
        await store.clear_queue(LANE)
        assert await fates(store) == {"interrupted": 1, "cancelled": 1, "open": 2}

    async def test_what_is_settled_is_forgotten_later_and_all_else_is_kept(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "turned")
        async with await begin(store) as turn:
            await turn.commit([reply("hi")], replies=[owed("sent"), owed("late")])
        (sent,) = await replies(store, clock)
        await store.db.write(partial(outbox.mark_sent, [outbox.SentReply(sent, "m1", clock.now())]))
        await accept(store, "dead")
        await (await begin(store)).fail("no power")
        await accept(store, "cancelled", "open")
        await store.cancel_queued(LANE, 3)
        assert await queue_of(store).forget_settled(clock.now()) == 0
        clock.step(timedelta(days=8))
        assert await queue_of(store).forget_settled(clock.now() - timedelta(days=7)) == 3
        assert await fates(store) == {"dead": 1, "open": 1}
        assert [one.message.text for one in await replies(store, clock)] == ["late"]
        for text in ("dead", "open"):
            assert isinstance(await store.enqueue(said(text), rules=APART), Duplicate)
        again = await store.enqueue(said("turned"), rules=APART)
        assert isinstance(again, Accepted)
        assert again.seq == 5

    async def test_much_is_forgotten_in_pieces(self, store: SessionStore, clock: FakeClock) -> None:
        await asyncio.gather(*(store.enqueue(said(str(n)), rules=COLLECTING) for n in range(501)))
        await store.clear_queue(LANE)
        clock.step(timedelta(days=8))
        assert await queue_of(store).forget_settled(clock.now()) == 501
        assert await fates(store) == {}
