"""Contract tests of observed talk: what people say to each other in a room is kept for the next turn."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import pytest

from gateway_sessions import (
    Accepted,
    Duplicate,
    InboundMessage,
    ResetMode,
    SessionResetPolicy,
    SessionSource,
    SessionStore,
    Turn,
)
from gateway_sessions.adapters import MessageKind
from gateway_sessions.queue import Disposition, RejectReason
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    APART,
    OpenStore,
    StoreContract,
    accept,
    begin,
    fates,
    in_line,
    refuse,
    reply,
    said,
    talk_of,
)
from gateway_sessions.testing.contract.queue.edits import ENDS, deletes, edits
from gateway_sessions.testing.inside import consistency

ANN: Final = SessionSource(
    platform="telegram", chat_type="group", chat_id="room", user_id="alice", user_name="Ann"
)
BEN: Final = SessionSource(
    platform="telegram", chat_type="group", chat_id="room", user_id="bob", user_name="Ben"
)
IDLE: Final = SessionResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
SHARED: Final[dict[str, Any]] = {"group_sessions_per_user": False}


def overheard(text: str, *, source: SessionSource = BEN, **members: Any) -> InboundMessage:
    """Return a message that is said to others in the room."""
    return said(text, source=source, observed=True, **members)


async def observe(store: SessionStore, *texts: str, source: SessionSource = BEN) -> Accepted:
    """Observe messages one after another; return the last receipt."""
    receipt: object = None
    for text in texts:
        receipt = await store.enqueue(overheard(text, source=source))
    assert isinstance(receipt, Accepted), receipt
    assert receipt.disposition is Disposition.OBSERVED
    return receipt


async def ask(store: SessionStore, text: str = "well?") -> Turn:
    """Let Ann ask the agent, and begin the turn."""
    receipt = await accept(store, text, source=ANN)
    return await begin(store, receipt.session_key)


async def asked(turn: Turn) -> str:
    """Return the last message of a person, as the agent of a turn reads it."""
    chat = await turn.transcript()
    return str(next(one["content"] for one in reversed(chat) if one["role"] == "user"))


class ObservedContract(StoreContract):
    """Tests that observed messages are kept in order, once, and begin nothing."""

    async def test_it_is_kept_with_its_speaker_and_begins_no_turn(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            receipt = await observe(store, "the train is late")
            assert await store.claim() is None
            assert await store.queue_depth(receipt.session_key) == 0
            assert await fates(store, receipt.session_key) == {"observed": 1}
            assert receipt.session_id is not None
            (row,) = await store.db.get_messages(receipt.session_id)
            told = (row.role, row.text, row.observed, row.author, row.extra["name"], row.platform_message_id)
            person = "main:telegram:user:bob"
            assert told == ("user", "the train is late", True, person, "Ben", "the train is late")
            assert await store.db.read(consistency.find_all) == []

    async def test_the_next_turn_reads_who_said_what_before_it(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            await observe(store, "the train is late")
            await observe(store, "by an hour", source=ANN)
            turn = await ask(store, "what now?")
            words = await asked(turn)
            assert [words.index(one) for one in ("Ben", "the train is late", "by an hour", "what now?")] == (
                sorted(words.index(one) for one in ("Ben", "the train is late", "by an hour", "what now?"))
            )
            assert [one.text for one in turn.messages] == ["what now?"]
            await turn.commit([reply("take the bus")])
            following = await ask(store, "and then?")
            assert "the train" not in await asked(following)
            assert await store.db.read(consistency.find_all) == []

    async def test_a_second_delivery_is_known_also_after_a_restart(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            first = await observe(store, "one")
            again = await store.enqueue(overheard("one"))
            assert again == Duplicate(seq=first.seq, session_key=first.session_key)
        async with open_store(**SHARED) as store:
            assert isinstance(await store.enqueue(overheard("one")), Duplicate)
            assert isinstance(await store.enqueue(said("one", source=BEN)), Duplicate)
            assert first.session_id is not None
            assert await talk_of(store, first.session_id) == [("user", "one")]

    async def test_its_place_is_one_of_all_that_the_lane_ever_took(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            seqs = [(await observe(store, "one")).seq]
            seqs.append((await accept(store, "two", source=ANN)).seq)
            seqs.append((await observe(store, "three")).seq)
            seqs.append((await accept(store, "four", source=ANN)).seq)
            assert seqs == [1, 2, 3, 4]

    @pytest.mark.parametrize("appends", [False, True])
    @pytest.mark.parametrize("end", sorted(ENDS))
    async def test_it_stands_behind_the_running_turn_and_stays_however_that_ends(
        self, open_store: OpenStore, end: str, *, appends: bool
    ) -> None:
        async with open_store(**SHARED) as store:
            turn = await ask(store, "one")
            if appends:
                await turn.append(reply("let me see"))
            receipt = await observe(store, "hm", "aha")
            assert receipt.session_id == turn.entry.session_id
            assert [one.text for one in turn.messages] == ["one"]
            await ENDS[end](turn)
            stored = await store.db.get_messages(turn.entry.session_id)
            assert [one.text for one in stored if one.observed] == ["hm", "aha"]
            spoken = [one.text for one in stored if one.role == "user" and not one.observed]
            assert spoken == ["one"] * (end != "roll back")
            if spoken:
                assert [one.text for one in stored].index("one") < [one.text for one in stored].index("hm")
            assert await store.db.read(consistency.find_all) == []

    async def test_it_is_read_by_the_turn_after_the_one_that_ran(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            turn = await ask(store, "one")
            await observe(store, "hm")
            assert "hm" not in await asked(turn)
            await turn.commit([reply("well")])
            following = await ask(store, "two")
            words = await asked(following)
            assert words.index("hm") < words.index("two")
            assert sum("hm" in str(one["content"]) for one in await following.transcript()) == 1

    async def test_it_leaves_the_queue_as_it_is(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            lane = (await accept(store, "one", "two", source=ANN)).session_key
            await observe(store, "hm")
            assert await in_line(store, lane) == [1, 2]
            turn = await begin(store, lane)
            assert [one.text for one in turn.messages] == ["one"]
            await turn.commit([reply("well")])
            assert await in_line(store, lane) == [2]

    async def test_it_keeps_no_session_alive(self, open_store: OpenStore, clock: FakeClock) -> None:
        async with open_store(**SHARED, session_reset=IDLE) as store:
            turn = await ask(store)
            await turn.commit([reply("well")])
            before = await store.get_session(turn.session_key)
            clock.step(timedelta(minutes=50))
            receipt = await observe(store, "hm")
            after = await store.get_session(turn.session_key)
            assert before is not None
            assert after is not None
            assert after.last_interaction_at == before.last_interaction_at
            clock.step(timedelta(minutes=20))
            following = await ask(store, "still there?")
            assert following.entry.session_id != receipt.session_id

    async def test_a_session_that_is_due_ends_before_it(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(**SHARED, session_reset=IDLE) as store:
            turn = await ask(store)
            await turn.commit([reply("well")])
            clock.step(timedelta(minutes=70))
            receipt = await observe(store, "good morning")
            assert receipt.session_id != turn.entry.session_id
            following = await ask(store, "good morning!")
            assert following.entry.session_id == receipt.session_id
            assert following.entry.opened_by is not None
            assert "Ben" in await asked(following)

    async def test_an_edit_and_a_deletion_reach_it(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            receipt = await observe(store, "the train is late", "by an hour")
            await edits(store, "the train is late", "the train is on time", BEN)
            await deletes(store, "by an hour", BEN)
            assert receipt.session_id is not None
            assert await talk_of(store, receipt.session_id) == [("user", "the train is on time")]
            words = await asked(await ask(store))
            assert "on time" in words
            assert "an hour" not in words
            late = said("?", source=BEN, message_id="never seen", kind=MessageKind.EDIT, revision=1)
            assert (await refuse(store, late)).reason is RejectReason.UNKNOWN

    async def test_what_is_taken_back_is_the_turn_and_not_what_others_said(
        self, open_store: OpenStore
    ) -> None:
        async with open_store(**SHARED) as store:
            turn = await ask(store, "one")
            await observe(store, "hm")
            await turn.commit([reply("well")])
            session_id = turn.entry.session_id
            await store.rewind_session(session_id)
            assert await talk_of(store, session_id) == [("user", "hm")]
            assert "hm" in await asked(await ask(store, "two"))

    async def test_what_says_nothing_or_was_erased_is_refused(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(**SHARED) as store:
            assert (await refuse(store, overheard(" ", message_id="1"))).reason is RejectReason.EMPTY
            before = clock.now()
            receipt = await observe(store, "my name is Ben")
            clock.step(timedelta(seconds=1))
            await store.erase(BEN)
            assert receipt.session_id is not None
            assert await talk_of(store, receipt.session_id) == []
            late = overheard("so it is", sent_at=before)
            assert (await refuse(store, late)).reason is RejectReason.ERASED

    async def test_a_slash_begins_no_command(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            receipt = await observe(store, "/new")
            assert receipt.session_id is not None
            assert await talk_of(store, receipt.session_id) == [("user", "/new")]
            assert await in_line(store, receipt.session_key) == []

    async def test_many_at_once_are_kept_each_once(self, open_store: OpenStore) -> None:
        async with open_store(**SHARED) as store:
            turn = await ask(store, "one")
            texts = [f"talk {number}" for number in range(8)]
            receipts = await _together(store, [overheard(text) for text in texts * 2])
            assert sorted(one.seq for one in receipts if isinstance(one, Accepted)) == list(range(2, 10))
            assert sum(isinstance(one, Duplicate) for one in receipts) == len(texts)
            await turn.commit([reply("well")])
            stored = await store.db.get_messages(turn.entry.session_id)
            assert sorted(one.text for one in stored if one.observed) == texts
            assert stored[0].text == "one"
            assert await store.db.read(consistency.find_all) == []


async def _together(store: SessionStore, messages: list[InboundMessage]) -> list[object]:
    """Enqueue messages at the same time; return their receipts."""
    return list(await asyncio.gather(*(store.enqueue(one, rules=APART) for one in messages)))
