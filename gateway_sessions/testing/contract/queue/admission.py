"""Contract tests of admission: each message once, in order, or refused with a reason.

A process may remember the state of a lane, which saves it a query and must prove nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from gateway_sessions import (
    Accepted,
    Attachment,
    AttachmentKind,
    BusyMode,
    BusyRules,
    Duplicate,
    InboundMessage,
    InvalidInputError,
    Message,
    SessionSource,
    SessionStore,
    Turn,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.config import GatewayConfig
from gateway_sessions.errors import FencedError, UnidentifiedSourceError
from gateway_sessions.queue import Disposition, DropPolicy, RejectReason
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.database.unstorable_values import CIRCLE, nested
from gateway_sessions.testing.contract.queue.bench import (
    ALICE,
    APART,
    BEGINS_HERE,
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
    refuse,
    reply,
    said,
    talk_of,
)
from gateway_sessions.testing.inside import (
    ItemKind,
    NotedItem,
    RunningTurnFacts,
    Transaction,
    load_lane,
    put_lane,
    queue_of,
)

ANOTHER = SessionSource(platform="telegram", chat_id="1", user_id="alice", thread_id="7")
ROOM = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice", thread_id="7")
TASKS = 16
MIB = 1 << 20
IMPOSSIBLE = ((1 << 63) - 1, 1 << 62, -(1 << 62), -1)
"""Numbers of turns that a lane with a few messages cannot have."""


class AdmissionContract(StoreContract):
    """Tests the receipt and the place of each message."""

    async def test_messages_are_taken_in_one_after_another(self, store: SessionStore) -> None:
        first = await accept(store, "one")
        assert (first.seq, first.session_key, first.disposition, first.depth) == (1, LANE, "starts", 1)
        assert first.session_id == await store.peek_session_id(LANE)
        second = await accept(store, "two")
        assert (second.seq, second.disposition, second.depth) == (2, "queued", 2)
        assert (await accept(store, "three", source=BOB)).seq == 1
        listed = await store.list_queued(LANE)
        assert [(one.seq, one.message) for one in listed] == [(1, said("one")), (2, said("two"))]
        assert await store.queue_depth(LANE) == 2
        assert queue_of(store).total_waiting == 3

    async def test_what_is_delivered_again_is_known_whatever_became_of_it(
        self, open_store: OpenStore
    ) -> None:
        known = Duplicate(seq=1, session_key=LANE)
        async with open_store() as store:
            await accept(store, "one")
            assert await store.enqueue(said("one")) == known
            turn = await begin(store)
            assert await store.enqueue(said("one")) == known
            await turn.commit()
            assert await store.enqueue(said("one")) == known
            await accept(store, "two")
            await store.cancel_queued(LANE, 2)
            assert await store.enqueue(said("two")) == Duplicate(seq=2, session_key=LANE)
            await store.reset_session(LANE)
        async with open_store() as store:
            assert await store.enqueue(said("one")) == known
            assert await store.claim() is None

    async def test_an_event_is_known_by_its_id_and_by_where_it_happened(self, store: SessionStore) -> None:
        events = [
            said("one"),
            said("one", account="second"),
            said("one", kind=MessageKind.EDIT, revision=1),
            said("one", kind=MessageKind.EDIT, revision=2),
            said("one", source=BOB),
        ]
        for again in (False, True):
            receipts = [await store.enqueue(one, rules=APART) for one in events]
            assert all(isinstance(one, Duplicate) == again for one in receipts)
        assert isinstance(await store.enqueue(said("one", source=ANOTHER), rules=APART), Duplicate)

    async def test_what_has_no_id_is_new_every_time(self, store: SessionStore) -> None:
        for seq in (1, 2, 3):
            receipt = await store.enqueue(said("one", message_id=None), rules=APART)
            assert isinstance(receipt, Accepted)
            assert receipt.seq == seq

    async def test_of_many_deliveries_at_once_one_is_accepted(self, store: SessionStore) -> None:
        messages = [said(str(n), source=source) for n in range(8) for source in (ALICE, BOB)]

        async def deliver() -> list[Any]:
            return [await store.enqueue(one, rules=APART) for one in messages]

        delivered = await asyncio.gather(*(deliver() for _ in range(TASKS)))
        for lane in (LANE, OTHER_LANE):
            accepted = [
                one.seq
                for receipts in delivered
                for one in receipts
                if isinstance(one, Accepted) and one.session_key == lane
            ]
            assert sorted(accepted) == list(range(1, 9))
            assert await store.queue_depth(lane) == 8
        kinds = Counter(isinstance(one, Accepted) for receipts in delivered for one in receipts)
        assert kinds == {True: 16, False: 16 * (TASKS - 1)}
        for place, receipts in enumerate(zip(*delivered, strict=True)):
            assert len({one.seq for one in receipts}) == 1, messages[place]

    async def test_what_is_refused_leaves_no_trace(self, open_store: OpenStore) -> None:
        limits = GatewayConfig(max_waiting=2, max_message_bytes=1000)
        async with open_store(gateway=limits) as store:
            empty = await refuse(store, said("  ", message_id="1"))
            assert (empty.reason, empty.retry_after) == (RejectReason.EMPTY, None)
            for long in ("x" * 1000, "ä" * 500, "x" * (17 * MIB)):
                assert (await refuse(store, said(long, message_id="2"))).reason is RejectReason.TOO_LARGE
            with pytest.raises(UnidentifiedSourceError):
                await store.enqueue(said("who?", source=SessionSource(platform="telegram")))
            assert await store.peek_session_id(LANE) is None
            assert (await accept(store, "one", "two")).seq == 2
            over = await refuse(store, said("three", source=BOB))
            assert over.reason is RejectReason.OVERLOADED
            assert over.retry_after
            assert await store.peek_session_id(OTHER_LANE) is None
            assert isinstance(await store.enqueue(said("two")), Duplicate)
            await answer(store)
            assert (await accept(store, "three")).seq == 3

    async def test_one_person_leaves_room_for_others_on_however_many_lanes(
        self, open_store: OpenStore
    ) -> None:
        limits = GatewayConfig(max_waiting=10, max_waiting_per_owner=2)
        rooms = [
            SessionSource(platform="telegram", chat_type="group", chat_id=chat, user_id=ALICE.user_id)
            for chat in ("r1", "r2", "r3")
        ]
        async with open_store(gateway=limits) as store:
            await accept(store, "one", source=rooms[0])
            await accept(store, "two", source=rooms[1])
        async with open_store(gateway=limits) as store:
            over = await refuse(store, said("three", source=rooms[2]))
            assert over.reason is RejectReason.OVERLOADED
            assert over.retry_after
            assert isinstance(await store.enqueue(said("two", source=rooms[1])), Duplicate)
            await accept(store, "mine", source=BOB)
            await answer(store, session_key=store.key_for(rooms[0]))
            await accept(store, "three", source=rooms[2])

    @pytest.mark.parametrize("wrong", IMPOSSIBLE)
    async def test_a_count_that_cannot_be_true_turns_nobody_away(
        self, open_store: OpenStore, wrong: int
    ) -> None:
        limits = GatewayConfig(max_waiting=5)
        async with open_store(gateway=limits) as store:
            await accept(store, "one", "two")
            await store.db.write(partial(_miscount, wrong))
            await accept(store, "hello", source=BOB)
            assert (await accept(store, "three")).depth == 3
            assert queue_of(store).total_waiting == 4
            await store.db.write(partial(_miscount, wrong))
            await answer(store)
            assert queue_of(store).total_waiting == 3
            await store.db.write(partial(_miscount, wrong))
        async with open_store(gateway=limits) as store:
            assert queue_of(store).total_waiting == 3
            await accept(store, "hello again", source=BOB)
            assert (await accept(store, "four")).depth == 3
            assert (await refuse(store, said("five"))).reason is RejectReason.OVERLOADED
            for _ in range(3):
                await answer(store)
            assert (queue_of(store).total_waiting, await store.queue_depth(LANE)) == (2, 0)

    async def test_one_lane_leaves_room_for_others_whatever_it_says_of_itself(
        self, open_store: OpenStore
    ) -> None:
        limits = GatewayConfig(max_waiting=20, max_waiting_per_owner=10)
        async with open_store(gateway=limits) as store:
            await accept(store, "one")
            await store.db.write(partial(_miscount, 1000, of=2000))
        async with open_store(gateway=limits) as store:
            await accept(store, "hello", source=BOB)
            assert (await refuse(store, said("two"))).reason is RejectReason.OVERLOADED

    async def test_a_full_queue_refuses_the_newcomer_or_drops_the_oldest(self, store: SessionStore) -> None:
        strict = BusyRules(debounce=timedelta(0), max_queued=2)
        yielding = BusyRules(debounce=timedelta(0), max_queued=2, drop=DropPolicy.DROP_OLDEST)
        await accept(store, "one", "two", rules=strict)
        refused = await refuse(store, said("three"), rules=strict)
        assert (refused.reason, refused.session_key) == (RejectReason.QUEUE_FULL, LANE)
        taken = await accept(store, "three", rules=yielding)
        assert (taken.seq, taken.dropped, taken.depth) == (3, (1,), 2)
        assert await in_line(store) == [2, 3]
        assert await fates(store) == {"open": 2, "dropped": 1}
        await store.clear_queue(LANE)
        await accept(store, "four", "five", solo=True, rules=yielding)
        assert (await refuse(store, said("six"), rules=yielding)).reason is RejectReason.QUEUE_FULL

    async def test_a_lane_may_refuse_while_it_is_busy(self, store: SessionStore) -> None:
        rules = BusyRules(mode=BusyMode.REJECT)
        await accept(store, "one", rules=rules)
        await begin(store)
        assert (await refuse(store, said("two"), rules=rules)).reason is RejectReason.BUSY
        assert (await accept(store, "three", internal=True, rules=rules)).seq == 2
        assert (await accept(store, "four", solo=True, rules=rules)).disposition is Disposition.QUEUED

    async def test_a_burst_of_one_person_becomes_one_turn(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "zero")
        await begin(store)
        first = await accept(store, "one", rules=BusyRules())
        merged = await accept(store, "two", rules=BusyRules())
        assert (merged.seq, merged.merged_into, merged.disposition) == (3, first.seq, Disposition.MERGED)
        clock.step(timedelta(seconds=5))
        late = await accept(store, "three", rules=BusyRules())
        assert (late.merged_into, late.depth) == (None, 2)
        assert [one.merged_into for one in await store.list_queued(LANE)] == [None, None, 2, None]

    async def test_nobody_s_words_join_those_of_somebody_else(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            rooms = [
                SessionSource(platform="telegram", chat_type="group", chat_id="r", user_id=one)
                for one in ("alice", "bob")
            ]
            for n in range(4):
                await accept(store, str(n), source=rooms[n % 2], rules=COLLECTING)
            (key,) = {
                (await accept(store, "4", source=one, rules=COLLECTING)).session_key for one in rooms[:1]
            }
            listed = await store.list_queued(key)
            assert [(one.seq, one.merged_into) for one in listed] == [(n, None) for n in range(1, 6)]

    async def test_what_wants_a_turn_of_its_own_joins_nothing_and_is_joined_by_nothing(
        self, store: SessionStore
    ) -> None:
        await accept(store, "one", rules=COLLECTING)
        await accept(store, "two", rules=COLLECTING, solo=True)
        await accept(store, "three", rules=COLLECTING)
        await accept(store, "four", rules=COLLECTING, internal=True)
        await accept(store, "five", "six", rules=COLLECTING)
        listed = await store.list_queued(LANE)
        assert [one.merged_into for one in listed] == [None, None, None, None, None, 5]
        assert [one.solo for one in listed] == [False, True, False, False, False, False]

    async def test_a_turn_waits_until_the_rest_of_a_burst_had_time_to_come(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await accept(store, "one", rules=COLLECTING)
        assert await store.claim() is None
        assert await queue_of(store).time_until_ready() == timedelta(seconds=0.35)
        clock.step(timedelta(seconds=0.3))
        await accept(store, "two", rules=COLLECTING)
        clock.step(timedelta(seconds=0.3))
        assert await store.claim() is None
        clock.step(timedelta(seconds=0.3))
        turn = await begin(store)
        assert [one.text for one in turn.messages] == ["one", "two"]

    async def test_a_running_turn_is_reached_only_if_it_listens(self, store: SessionStore) -> None:
        rules = BusyRules(mode=BusyMode.STEER)
        await accept(store, "one", rules=rules)
        turn = await begin(store)
        deaf = await accept(store, "two", rules=rules)
        assert (deaf.disposition, deaf.demoted) == (Disposition.QUEUED, "cannot_steer")
        await store.clear_queue(LANE)
        heard = await accept(store, "three", rules=rules, running=RunningTurnFacts(can_steer=True))
        assert heard.disposition is Disposition.STEERS
        assert await turn.steer(heard.seq)

    async def test_all_that_came_with_a_message_comes_back(self, open_store: OpenStore) -> None:
        message = InboundMessage(
            source=SessionSource(
                platform="telegram", chat_id="1", user_id="alice", user_name="Alice \U0001f600"
            ),
            text="a\u2028b \U0001f600",
            message_id="1",
            attachments=(Attachment(kind=AttachmentKind.PHOTO, url="https://x/1", size=1 << 40),),
            metadata={"big": 1 << 70, "nested": {"a": [1.5, None, True]}},
        )
        async with open_store() as store:
            await store.enqueue(message, rules=APART)
        async with open_store() as store:
            assert (await begin(store)).messages == (message,)

    async def test_what_cannot_be_stored_is_replaced_or_refused(self, store: SessionStore) -> None:
        broken = said("a\x00b\ud800", message_id="1", metadata={"k\x00": ["\udfff"]})
        await store.enqueue(broken, rules=APART)
        turn = await begin(store)
        assert turn.messages[0].text == "a\ufffdb\ufffd"
        assert turn.messages[0].metadata == {"k\ufffd": ["\ufffd"]}
        for value in (float("nan"), CIRCLE, nested(70), object()):
            with pytest.raises(InvalidInputError):
                await store.enqueue(said("two", metadata={"x": value}), rules=APART)
        assert (await accept(store, "two")).seq == 2

    async def test_a_large_message_is_taken_if_the_configuration_says_so(self, open_store: OpenStore) -> None:
        text = "x" * (10 * MIB)
        async with open_store() as store:
            assert (await refuse(store, said(text, message_id="1"))).reason is RejectReason.TOO_LARGE
        async with open_store(gateway=GatewayConfig(max_message_bytes=12 * MIB)) as store:
            await store.enqueue(said(text, message_id="1"))
            async with await begin(store) as turn:
                assert turn.messages[0].text == text
                await turn.commit()

    async def test_what_was_sent_before_an_erasure_is_refused_and_what_comes_later_is_not(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        sent = clock.now()
        async with open_store(group_sessions_per_user=False) as store:
            clock.step(timedelta(minutes=1))
            await store.erase("main:telegram:user:alice")
            clock.step(timedelta(minutes=1))
            for source in (ALICE, ROOM):
                late = await refuse(store, said("one", source=source, sent_at=sent))
                assert late.reason is RejectReason.ERASED
            assert not await store.has_any_sessions()
            assert (await accept(store, "one", sent_at=clock.now())).seq == 1


def _miscount(wrong: int, of: int | None = None) -> Transaction[None]:
    """Let the row of a lane count so many waiting turns, *of* so many messages in all."""
    lane = yield from load_lane(LANE, locked=True)
    lane.waiting, lane.next_seq = wrong, of or lane.next_seq
    yield from put_lane(lane)


WELL = [("user", "one"), ("assistant", "yes"), ("user", "two"), ("assistant", "yes")]


async def start(store: SessionStore, text: str, **members: Any) -> Turn | None:
    """Accept a message, and let its turn begin in the same commit if it may."""
    _, turn = await queue_of(store).enqueue(said(text, **members), APART, here=BEGINS_HERE)
    return turn


async def exchange(store: SessionStore, *texts: str) -> Turn:
    """Accept messages and answer each; return the last turn."""
    last: Turn | None = None
    for text in texts:
        last = await start(store, text)
        assert last is not None, text
        await last.commit([reply("yes")])
    assert last is not None
    return last


class KnownLanesContract(StoreContract):
    """Tests changes of a lane between two messages whose turns begin at once."""

    async def test_turns_of_a_lane_that_nobody_else_touches(self, store: SessionStore) -> None:
        turns = [await exchange(store, text) for text in ("one", "two", "three")]
        assert [(one.seq, one.token, one.attempt) for one in turns] == [(1, 1, 1), (2, 2, 1), (3, 3, 1)]
        assert await talk_of(store, turns[0].entry.session_id) == [
            *WELL,
            ("user", "three"),
            ("assistant", "yes"),
        ]
        assert await fates(store) == {"turned": 3}
        assert await store.queue_depth(LANE) == 0

    async def test_a_message_that_is_known_begins_nothing(self, store: SessionStore) -> None:
        await exchange(store, "one", "two")
        receipt, turn = await queue_of(store).enqueue(said("one"), APART, here=BEGINS_HERE)
        assert (receipt, turn) == (Duplicate(seq=1, session_key=LANE), None)
        assert (await exchange(store, "three")).seq == 3

    async def test_a_command_between_them_counts(self, store: SessionStore) -> None:
        await exchange(store, "one")
        noted = await queue_of(store).record_arrival(said("/status"), ItemKind.COMMAND)
        assert isinstance(noted, NotedItem)
        assert noted.seq == 2
        assert (await exchange(store, "two")).seq == 3

    async def test_what_waits_comes_first(self, store: SessionStore) -> None:
        turn = await exchange(store, "one")
        await accept(store, "two")
        assert await store.queue_depth(LANE) == 1
        begun = await start(store, "three")
        assert begun is not None
        assert begun.messages[0].text == "two"
        await begun.commit([reply("yes")])
        await answer(store)
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for role, text in talk if role == "user"] == ["one", "two", "three"]

    async def test_a_turn_between_them_is_waited_for(self, store: SessionStore) -> None:
        await exchange(store, "one")
        await accept(store, "two")
        async with await begin(store) as turn:
            assert await start(store, "three") is None
            await turn.commit([reply("yes")])
        assert await store.queue_depth(LANE) == 1

    async def test_a_session_that_may_not_go_on_does_not(self, store: SessionStore) -> None:
        first = await exchange(store, "one")
        await store.suspend_session(LANE)
        second = await exchange(store, "two")
        assert second.entry.session_id != first.entry.session_id
        assert await talk_of(store, second.entry.session_id) == WELL[2:]

    async def test_a_reset_between_them(self, store: SessionStore) -> None:
        first = await exchange(store, "one")
        await store.reset_session(LANE)
        second = await exchange(store, "two", "three")
        assert second.entry.session_id != first.entry.session_id
        assert await store.get_session(LANE) is not None
        assert (second.seq, second.attempt) == (3, 1)

    async def test_what_a_turn_has_appended_stands_there_once(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        await turn.append(Message("tool", "found it"))
        await turn.commit([reply("yes")])
        await exchange(store, "two")
        talk = await talk_of(store, turn.entry.session_id)
        assert talk == [WELL[0], ("tool", "found it"), *WELL[1:]]

    async def test_what_was_said_into_a_turn_is_part_of_it(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        await accept(store, "and two")
        assert await turn.steer(2)
        await turn.commit([reply("yes")])
        assert [text for _, text in await talk_of(store, turn.entry.session_id)] == ["one", "and two", "yes"]
        assert await fates(store) == {"turned": 2}
        assert (await exchange(store, "three")).seq == 3

    async def test_a_message_that_comes_meanwhile_is_next(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        assert await start(store, "two") is None
        assert (await turn.commit([reply("yes")])).waiting == 1
        await answer(store, "yes")
        assert await talk_of(store, turn.entry.session_id) == WELL

    async def test_who_goes_on_takes_it_along(self, store: SessionStore) -> None:
        turn = await start(store, "one")
        assert turn is not None
        assert await start(store, "two") is None
        following = (await turn.commit([reply("yes")], go_on=True)).next
        assert following is not None
        assert (following.seq, following.token) == (2, 2)
        await following.commit([reply("yes")])
        assert await talk_of(store, turn.entry.session_id) == WELL

    @pytest.mark.parametrize("way", ["commit", "fail", "interrupt", "roll_back"])
    async def test_a_turn_that_was_stopped_writes_nothing(self, store: SessionStore, way: str) -> None:
        turn = await start(store, "one")
        assert turn is not None
        await store.stop_turn(LANE)
        ends: dict[str, Callable[[], Awaitable[object]]] = {
            "commit": lambda: turn.commit([reply("yes")]),
            "fail": lambda: turn.fail("broken"),
            "interrupt": lambda: turn.interrupt("message"),
            "roll_back": lambda: turn.roll_back("message"),
        }
        with pytest.raises(FencedError):
            await ends[way]()
        assert (await exchange(store, "two")).seq == 2
        assert ("assistant", "yes") not in (await talk_of(store, turn.entry.session_id))[:-1]

    @pytest.mark.parametrize(
        ("way", "stands"),
        [("fail", ["one"]), ("interrupt", ["one"]), ("roll_back", []), ("release", ["one"])],
    )
    async def test_however_a_turn_ends_the_next_one_begins(
        self, store: SessionStore, way: str, stands: list[str]
    ) -> None:
        turn = await start(store, "one")
        assert turn is not None
        ends: dict[str, Callable[[], Awaitable[object]]] = {
            "fail": lambda: turn.fail("broken"),
            "interrupt": lambda: turn.interrupt("message"),
            "roll_back": lambda: turn.roll_back("message"),
            "release": turn.release,
        }
        await ends[way]()
        if way == "release":
            await answer(store, "yes")
        last = await exchange(store, "two")
        assert (last.seq, last.attempt) == (2, 1)
        talk = await talk_of(store, turn.entry.session_id)
        assert [text for role, text in talk if role == "user"] == [*stands, "two"]

    async def test_a_message_is_read_as_it_is_stored(self, store: SessionStore) -> None:
        """Values that a database cannot hold are replaced at once, so each try of the turn sees the same."""
        odd = said("a\x00b", message_id="1", metadata={"thread": (1, 2)})
        _, turn = await queue_of(store).enqueue(odd, APART, here=BEGINS_HERE)
        assert turn is not None
        seen = turn.messages[0]
        await turn.release()
        again = await begin(store)
        assert again.messages[0] == seen
        assert (seen.text, seen.metadata) == ("a\ufffdb", {"thread": [1, 2]})
        await again.commit([reply("yes")])
