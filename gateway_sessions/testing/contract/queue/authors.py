"""Contract tests of authors: each message keeps its author, and erasure and search follow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from gateway_sessions import Message, Scope, SessionBusyError, SessionSource, SessionStore
from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.errors import SentBeforeErasureError
from gateway_sessions.queue import Owed
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bench import (
    ALICE,
    BOB,
    LANE,
    OTHER_LANE,
    OpenStore,
    StoreContract,
    accept,
    begin,
    reply,
    talk_of,
)
from gateway_sessions.testing.inside import copy_store

WORD: Final = "xyzzymarker"
PERSON: Final = "main:telegram:user:alice"
OTHER: Final = "main:telegram:user:bob"
OPERATOR: Final = Scope.operator()
ROOM: Final = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice")
FURTHER: Final = SessionSource(platform="telegram", chat_id="3", user_id="alice")

Path = Callable[[SessionStore, str], Awaitable[None]]


async def everything_in(store: SessionStore) -> str:
    """Return all rows of all tables, as text."""
    found: list[Any] = [await store.db.read(copy_store.load_facts)]
    for table, after in copy_store.BEGINNINGS.items():
        page = await store.db.read(partial(copy_store.load_table_page, table, after, 10_000))
        found += [(table, *row) for row in page.rows]
    return "\n".join(map(str, found))


async def turn(store: SessionStore, source: SessionSource, text: str, key: str) -> None:
    """Accept a message and answer it."""
    await accept(store, text, source=source)
    async with await begin(store, key) as one:
        await one.commit([reply(f"noted: {text}")])


async def conversation(store: SessionStore) -> str:
    """Let Alice tell a secret and end the session; return its id."""
    await turn(store, ALICE, f"my secret is {WORD}", LANE)
    entry = await store.get_session(LANE)
    assert entry is not None
    return entry.session_id


async def repeat(store: SessionStore, text: str) -> None:
    """Let Bob write, and the agent repeat what it was told first."""
    await accept(store, text, source=BOB)
    async with await begin(store, OTHER_LANE) as one:
        await one.commit([reply(f"{text}; before that: {WORD}")])


async def bobs(store: SessionStore) -> str:
    """Return the session that Bob has now."""
    return (await store.get_or_create_session(BOB)).session_id


async def _here(_: SessionStore, __: str) -> None:
    """Expect that nothing more happens."""


async def _ended(store: SessionStore, _: str) -> None:
    await store.reset_session(LANE)


async def _resumed_elsewhere(store: SessionStore, session_id: str) -> None:
    await store.reset_session(LANE)
    further = await store.get_or_create_session(FURTHER)
    mine = await store.scope_of(FURTHER)
    await store.resume_session(further.session_key, session_id, scope=mine)
    await turn(store, FURTHER, f"again {WORD}", further.session_key)


async def _forked(store: SessionStore, session_id: str) -> None:
    await bobs(store)
    await store.switch_session(OTHER_LANE, session_id, scope=OPERATOR)
    await repeat(store, "I go on with it")


async def _moved(store: SessionStore, session_id: str) -> None:
    await bobs(store)
    await store.switch_session(OTHER_LANE, session_id, scope=OPERATOR, move=True)
    await repeat(store, "I have it")


async def _moved_and_forked_on(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    await store.branch_session(OTHER_LANE)
    await repeat(store, "and a copy of it")


async def _branched(store: SessionStore, _: str) -> None:
    await store.branch_session(LANE)
    await turn(store, ALICE, f"in the copy {WORD}", LANE)


async def _compressed(store: SessionStore, session_id: str) -> None:
    await store.split_session(LANE, session_id, [Message("user", f"summary: {WORD}")])


async def _moved_and_compressed(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    await store.split_session(OTHER_LANE, session_id, [Message("assistant", f"summary: {WORD}")])
    await repeat(store, "and on")


async def _moved_and_compacted(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    await store.db.archive_and_compact(session_id, [Message("user", f"summary: {WORD}")])


async def _moved_and_rewritten(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    said = await store.db.get_messages(session_id)
    kept = [{"role": one.role, "content": one.content} for one in said]
    await store.rewrite_transcript(session_id, [*kept, {"role": "assistant", "content": f"so: {WORD}"}])


async def _moved_and_rewound(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    await store.db.rewind_session(session_id, 2)


async def _moved_and_owed(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    await accept(store, "what did she say?", source=BOB)
    async with await begin(store, OTHER_LANE) as one:
        told = OutboundMessage(text=f"she said {WORD}")
        await one.commit(
            [reply("this")], replies=[Owed(target=ReplyTarget.at(BOB), message=told, owner=OTHER)]
        )


async def _moved_and_failed(store: SessionStore, session_id: str) -> None:
    await _moved(store, session_id)
    await accept(store, "what did she say?", source=BOB)
    await (await begin(store, OTHER_LANE)).fail(f"ValueError: cannot say {WORD}")


async def _edited_and_moved(store: SessionStore, session_id: str) -> None:
    await store.db.edit_message(session_id, f"my secret is {WORD}", f"it was {WORD}")
    await _moved(store, session_id)


async def _retracted_and_moved(store: SessionStore, session_id: str) -> None:
    await store.db.retract_message(session_id, f"my secret is {WORD}")
    await _moved(store, session_id)


async def _titled_and_moved(store: SessionStore, session_id: str) -> None:
    await store.db.set_session_title(session_id, f"About {WORD}")
    await _moved(store, session_id)


async def _titled_and_forked(store: SessionStore, session_id: str) -> None:
    await store.db.set_session_title(session_id, f"About {WORD}")
    await _forked(store, session_id)


async def _dead(store: SessionStore, _: str) -> None:
    await accept(store, f"dead {WORD}")
    await (await begin(store)).fail(f"no power for {WORD}")


async def _waiting(store: SessionStore, _: str) -> None:
    await accept(store, f"waiting {WORD}", f"also waiting {WORD}")


async def _imported_as_somebodys(store: SessionStore, session_id: str) -> None:
    exported = await store.db.export_session(session_id, scope=OPERATOR)
    await store.reset_session(LANE)
    await store.db.delete_session(session_id)
    report = await store.db.import_sessions([exported], owner=OTHER)
    assert report.imported == 1


async def _delegated_and_moved(store: SessionStore, session_id: str) -> None:
    parent = session_id
    for name in ("sub-agent", "sub-agent-of-it"):
        await store.db.create_session(name, "telegram", parent_session_id=parent, relation="delegate")
        await store.db.append_message(name, "user", f"find out about {WORD}")
        parent = name
    await _moved(store, session_id)


WAYS: Final[tuple[Path, ...]] = (
    _here, _ended, _resumed_elsewhere, _forked, _moved, _moved_and_forked_on, _branched, _compressed,
    _moved_and_compressed, _moved_and_compacted, _moved_and_rewritten, _moved_and_rewound, _edited_and_moved,
    _retracted_and_moved, _titled_and_moved, _titled_and_forked, _dead, _waiting, _imported_as_somebodys,
    _delegated_and_moved, _moved_and_owed, _moved_and_failed,
)  # fmt: skip


class AuthorsContract(StoreContract):
    """Tests that each message keeps its author, and what follows for erasure and search."""

    async def test_each_message_of_a_turn_tells_who_said_it_and_where(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            session_id = await conversation(store)
            room = (await accept(store, "to all", source=ROOM)).session_key
            async with await begin(store, room) as one:
                await one.commit([reply("hello all")])
            told = [(one.role, one.author, one.from_lane) for one in await store.db.get_messages(session_id)]
            assert told == [("user", PERSON, LANE), ("assistant", None, None)]
            entry = await store.get_session(room)
            assert entry is not None
            in_room = [(one.role, one.author) for one in await store.db.get_messages(entry.session_id)]
            assert in_room == [("user", PERSON), ("assistant", None)]

    async def test_what_a_program_appends_is_whose_it_says(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            room = await store.get_or_create_session(ROOM)
            said = {"role": "user", "content": "seen in the room", "observed": True}
            await store.append_to_transcript(room.session_id, said, source=ROOM)
            (stored,) = await store.db.get_messages(room.session_id)
            assert (stored.author, stored.from_lane, stored.observed) == (PERSON, room.session_key, True)

    async def test_what_belongs_to_somebody_is_gone_on_with_in_a_fork(self, store: SessionStore) -> None:
        session_id = await conversation(store)
        before = await talk_of(store, session_id)
        await bobs(store)
        entry = await store.switch_session(OTHER_LANE, session_id, scope=OPERATOR)
        assert entry is not None
        record = await store.db.get_session(entry.session_id)
        assert record is not None
        assert (record.owner, record.parent_session_id, entry.owner) == (OTHER, session_id, OTHER)
        assert await talk_of(store, entry.session_id) == before
        assert await store.peek_session_id(LANE) == session_id
        assert {one.author for one in await store.db.get_messages(entry.session_id)} == {PERSON}
        assert await store.switch_session(OTHER_LANE, entry.session_id, scope=OPERATOR) == entry

    async def test_what_is_moved_keeps_its_authors(self, store: SessionStore) -> None:
        session_id = await conversation(store)
        await _moved(store, session_id)
        record = await store.db.get_session(session_id)
        assert record is not None
        assert record.owner == OTHER
        told = [(one.role, one.author, one.from_lane) for one in await store.db.get_messages(session_id)]
        assert told == [
            ("user", PERSON, LANE),
            ("assistant", PERSON, LANE),
            ("user", OTHER, OTHER_LANE),
            ("assistant", None, None),
        ]

    async def test_a_person_finds_what_they_said_and_nothing_else_of_a_session_that_went_away(
        self, store: SessionStore
    ) -> None:
        session_id = await conversation(store)
        await store.db.set_session_title(session_id, "Secrets")
        await store.db.catch_up_search_index()
        await _moved(store, session_id)
        await turn(store, BOB, "is it a secret?", OTHER_LANE)
        for _ in range(2):
            mine = await store.db.search_messages("secret", scope=await store.scope_of(ALICE))
            assert sorted((one.role, one.session_key, one.title) for one in mine.hits) == [
                ("assistant", LANE, None),
                ("user", LANE, None),
            ]
            assert "secret?" not in str(mine)
            assert all(len(one.context) == 1 for one in mine.hits)
            theirs = await store.db.search_messages("secret", scope=await store.scope_of(BOB))
            assert len(theirs.hits) == 4
            await store.db.catch_up_search_index()

    async def test_a_person_is_told_what_they_said_in_sessions_of_others(self, open_store: OpenStore) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            session_id = await conversation(store)
            await store.db.edit_message(session_id, f"my secret is {WORD}", "it is out")
            await _moved(store, session_id)
            bob = replace(ROOM, user_id="bob")
            for source, text in ((ROOM, "Alice in the room"), (bob, "Bob in the room")):
                room = (await accept(store, text, source=source)).session_key
                async with await begin(store, room) as one:
                    await one.commit([reply("so")])
            told = [one async for one in store.export_person(ALICE)]
            elsewhere = {one["said_in"]: one["messages"] for one in told if "said_in" in one}
            assert [one["content"] for one in elsewhere[session_id]] == [
                "it is out",
                f"noted: my secret is {WORD}",
            ]
            assert [one["content"] for one in elsewhere[session_id][0]["versions"]] == [
                f"my secret is {WORD}"
            ]
            assert "Alice in the room" in str(told)
            assert ("Bob in the room" in str(told), "I have it" in str(told)) == (False, False)
            assert await store.db.count_said_elsewhere(PERSON) == 3

    async def test_the_work_of_a_sub_agent_belongs_to_whom_it_was_done_for(self, store: SessionStore) -> None:
        await _delegated_and_moved(store, await conversation(store))
        for name in ("sub-agent", "sub-agent-of-it"):
            record = await store.db.get_session(name)
            assert record is not None
            assert record.owner == PERSON
        told = {one.get("id") async for one in store.export_person(ALICE)}
        assert {"sub-agent", "sub-agent-of-it"} <= told
        mine = await store.db.search_messages("find", scope=await store.scope_of(ALICE))
        theirs = await store.db.search_messages("find", scope=await store.scope_of(BOB))
        assert (len(mine.hits), len(theirs.hits)) == (2, 0)

    @pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
    async def test_nothing_that_an_erased_person_said_is_left(
        self, open_store: OpenStore, clock: FakeClock, way: Path
    ) -> None:
        async with open_store() as store:
            session_id = await conversation(store)
            clock.step(timedelta(minutes=1))
            await way(store, session_id)
            await store.db.catch_up_search_index()
            assert WORD in await everything_in(store)
            clock.step(timedelta(minutes=1))
            receipt = await store.erase(ALICE)
            left = await everything_in(store)
            assert WORD not in left
            assert (PERSON in left, f"{LANE}\n" in left or f"'{LANE}'" in left) == (False, False)
            assert receipt.rows["messages"] >= 1
            assert not (await store.db.search_messages(WORD, scope=OPERATOR)).hits
            assert [one async for one in store.export_person(ALICE)] == []
            if await store.peek_session_id(OTHER_LANE) is not None:
                await turn(store, BOB, "still here", OTHER_LANE)
                assert ("user", "still here") in await talk_of(store, await bobs(store))
            assert (await store.erase(ALICE)).rows == {}

    async def test_others_keep_what_they_said_in_a_session_that_was_theirs_together(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        session_id = await conversation(store)
        await _moved(store, session_id)
        clock.step(timedelta(minutes=1))
        await store.erase(ALICE)
        left = await store.db.get_messages(session_id)
        # The agent's answers may repeat earlier messages.
        assert [(one.seq, one.role, one.text) for one in left] == [(1, "user", "I have it")]
        record = await store.db.get_session(session_id)
        assert record is not None
        assert (record.message_count, record.last_seq, record.preview) == (1, 1, "I have it")

    async def test_a_summary_of_what_several_said_goes_with_each_of_them(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            bob = replace(ROOM, user_id="bob")
            for source in (ROOM, bob):
                room = (await accept(store, f"{source.user_id} speaks", source=source)).session_key
                async with await begin(store, room) as one:
                    await one.commit([reply("so")])
            entry = await store.get_session(room)
            assert entry is not None
            summed = [Message("user", f"they spoke of {WORD}"), Message("assistant", "so")]
            await store.split_session(room, entry.session_id, summed)
            told = await store.db.get_messages(await store.peek_session_id(room) or "")
            assert [one.people for one in told] == [(PERSON, OTHER), None]
            known = str([one async for one in store.export_person(BOB)])
            assert ("bob speaks" in known, "alice speaks" in known, WORD in known) == (True, False, False)
            clock.step(timedelta(minutes=1))
            await store.erase(BOB)
            assert WORD not in await everything_in(store)
            assert "alice speaks" in await everything_in(store)

    async def test_what_somebody_called_a_room_goes_with_them(
        self, open_store: OpenStore, clock: FakeClock
    ) -> None:
        async with open_store(group_sessions_per_user=False) as store:
            room = await store.get_or_create_session(ROOM)
            await store.db.set_session_title(room.session_id, f"About {WORD}", author=PERSON)
            told = [one async for one in store.export_person(ALICE)]
            assert told == [
                {"titled": room.session_id, "platform": "telegram", "title": f"About {WORD}"},
            ]
            assert [one async for one in store.export_person(BOB)] == []
            clock.step(timedelta(minutes=1))
            assert (await store.erase(ALICE)).rows["titles"] == 1
            assert await store.db.get_session_title(room.session_id) is None
            assert WORD not in await everything_in(store)

    async def test_nobody_is_erased_in_the_middle_of_a_turn_and_others_go_on_meanwhile(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        session_id = await conversation(store)
        await _moved(store, session_id)
        await accept(store, "and now", source=BOB)
        running = await begin(store, OTHER_LANE)
        clock.step(timedelta(minutes=1))
        with pytest.raises(SessionBusyError):
            await store.erase(BOB)
        await store.erase(ALICE)
        await running.commit([reply("done")])
        assert (await talk_of(store, session_id))[-2:] == [
            ("user", "and now"),
            ("assistant", "done"),
        ]
        assert WORD not in await everything_in(store)

    async def test_what_they_sent_before_is_refused_in_sessions_of_others_as_well(
        self, store: SessionStore, clock: FakeClock
    ) -> None:
        await conversation(store)
        theirs = await bobs(store)
        sent = clock.now()
        clock.step(timedelta(minutes=1))
        await store.erase(ALICE)
        late = Message("user", "late", sent_at=sent, author=PERSON)
        with pytest.raises(SentBeforeErasureError):
            await store.db.append_messages(
                theirs, [Message("user", "mine", sent_at=sent, author=OTHER), late]
            )
        assert await talk_of(store, theirs) == []
        exported = {
            "id": "old",
            "format": "gateway-sessions/1",
            "source": "telegram",
            "owner": OTHER,
            "started_at": sent.timestamp(),
            "messages": [
                {"seq": 1, "role": "user", "content": "x", "timestamp": sent.timestamp(), "author": PERSON}
            ],
        }
        report = await store.db.import_sessions([exported])
        assert (report.imported, "before they were erased" in str(report.clashes)) == (0, True)
