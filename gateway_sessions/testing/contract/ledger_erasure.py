"""What is forgotten of a person, and told to them, of what they sent and are owed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway_sessions import Accepted, SessionBusyError, SessionSource
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.lanes import (
    ALICE,
    BOB,
    OTHER_LANE,
    OpenStore,
    StoreContract,
    accept,
    begin,
    fates,
    in_line,
    owed,
    replies,
    reply,
    said,
)

ROOM = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice")


class ErasedLanesContract(StoreContract):
    """What is forgotten of a person, and told to them, of what they sent."""

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
            assert store.ledger.total_waiting == 2
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
