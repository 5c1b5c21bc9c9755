"""A person is erased after all that can become of what they said: no file of the store has a byte of it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import Message, Scope, SessionSource, SessionStore
from gateway_sessions.config import Durability, SessionDBConfig
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.authors import OTHER_LANE, WAYS, WORD, conversation, turn
from gateway_sessions.testing.contract.queue.authors import Path as Way
from gateway_sessions.testing.contract.queue.bench import ALICE, BOB, LANE, accept
from gateway_sessions.testing.faults import crash_at, raising
from tests.crash.kills.invariants import check_database
from tests.integration.transfer.hermes import CHAT, TIP, change_hermes, hermes_home
from tests.integration.transfer.test_hermes_home import SAY
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import open_store, quick_config

OPERATOR = Scope.operator()
PERSON = "main:telegram:user:alice"


def traces(home: Path, *marks: str) -> dict[str, list[str]]:
    """The marks in every byte of every file."""
    found: dict[str, list[str]] = {}
    for path in sorted(one for one in home.rglob("*") if one.is_file()):
        content = path.read_bytes()
        if hits := [one for one in marks if one.encode() in content]:
            found[str(path.relative_to(home))] = hits
    return found


async def leave_copies(store: SessionStore, home: Path) -> None:
    """Copies of what is in the store, as they come to be in its directory."""
    await store.db.back_up()
    for name in ("exports", "quarantine"):
        (home / name).mkdir(exist_ok=True)
        await store.db.write_export(home / name / "all.jsonl", scope=OPERATOR)
    await store.flush()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
async def test_no_byte_is_left_in_any_file(tmp_path: Path, fake_clock: FakeClock, way: Way):
    home = tmp_path / "home"
    async with open_store(home, quick_config(), clock=fake_clock, titler=None) as store:
        session_id = await conversation(store)
        fake_clock.step(timedelta(minutes=1))
        await way(store, session_id)
        await store.db.catch_up_search_index()
        await leave_copies(store, home)
        before = await asyncio.to_thread(traces, home, WORD, PERSON)
        assert {"exports/all.jsonl", "quarantine/all.jsonl"} < {*before}
        assert any(name.startswith("backups/") for name in before)
        fake_clock.step(timedelta(minutes=1))
        receipt = await store.erase(ALICE)
        assert await asyncio.to_thread(traces, home, WORD, PERSON) == {}
        assert {Path(one).parent.name for one in receipt.removed} >= {"backups", "exports", "quarantine"}
        assert [one.what for one in receipt.kept] == [
            f"what agents and others said of {PERSON} in rooms that are shared with others"
        ]
        with closing(sqlite3.connect(home / "sessions.db")) as connection:
            check_database(connection)
    assert await asyncio.to_thread(traces, home, WORD, PERSON) == {}


async def test_copies_that_shall_be_kept_are_named_in_the_receipt(tmp_path: Path, fake_clock: FakeClock):
    home = tmp_path / "home"
    async with open_store(home, quick_config(), clock=fake_clock, titler=None) as store:
        await conversation(store)
        await leave_copies(store, home)
        fake_clock.step(timedelta(minutes=1))
        receipt = await store.erase(ALICE, keep_copies=True)
        left = {str(home / name) for name in await asyncio.to_thread(traces, home, WORD)}
        assert left
        assert left <= {one.what for one in receipt.kept}


@pytest.mark.parametrize("name", ["elsewhere/sessions.db", "elsewhere/sess[i]ons.db"])
async def test_copies_in_the_home_go_also_where_the_database_is_elsewhere(
    tmp_path: Path, fake_clock: FakeClock, name: str
):
    home, database = tmp_path / "home", tmp_path / name
    database.parent.mkdir()
    config = quick_config(sessiondb=SessionDBConfig(url=f"sqlite:///{database}", durability=Durability.OS))
    async with open_store(home, config, clock=fake_clock, titler=None) as store:
        await conversation(store)
        for folder in (home, database.parent):
            await leave_copies(store, folder)
        # What is left of a database that stood in the home before.
        for left in ("sessions.db.v2.bak", "search.db", "search.db-wal", "search.db.aside", "backups/old.db"):
            await asyncio.to_thread(leave, home / left)
        await asyncio.to_thread(leave, database.with_name(f"{database.name}.v2.bak"))
        await asyncio.to_thread(leave, bystander := home / "notes.txt")
        fake_clock.step(timedelta(minutes=1))
        receipt = await store.erase(ALICE)
        assert await asyncio.to_thread(traces, tmp_path, WORD, PERSON) == {"home/notes.txt": [WORD]}
        assert str(home / "exports" / "all.jsonl") in receipt.removed
        assert str(bystander) not in receipt.removed


def leave(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(WORD)


async def test_what_came_from_hermes_is_erased_wherever_it_went(tmp_path: Path, fake_clock: FakeClock):
    fake_clock.step(timedelta(days=365))  # behind all that Hermes has written
    hermes = hermes_home(tmp_path / "hermes")
    await asyncio.to_thread(change_hermes, hermes, SAY, 99, TIP, f"said to Hermes: {WORD}")
    alice = SessionSource(platform="telegram", chat_id="4711", user_id="4711", user_name="Alice")
    home = tmp_path / "home"
    async with open_store(home, quick_config(), clock=fake_clock, titler=None) as store:
        await store.import_hermes(hermes)
        assert await store.peek_session_id(CHAT) == TIP
        await store.get_or_create_session(BOB)
        await store.switch_session(OTHER_LANE, TIP, scope=OPERATOR)
        await turn(store, BOB, "a copy of it", OTHER_LANE)
        await store.switch_session(OTHER_LANE, TIP, scope=OPERATOR, move=True)
        await turn(store, BOB, "and all of it", OTHER_LANE)
        await leave_copies(store, home)
        fake_clock.step(timedelta(minutes=1))
        assert [
            hit.role for hit in (await store.db.search_messages(WORD, scope=await store.scope_of(alice))).hits
        ]
        told = [one async for one in store.export_person(alice) if "said_in" in one]
        assert str(told).count(WORD) == 2
        await store.erase(alice)
        assert await asyncio.to_thread(traces, home, WORD, "main:telegram:user:4711") == {}
        moved = [one.text for one in await store.db.get_messages(TIP) if one.role == "user"]
        assert moved == ["and all of it"]


async def test_what_was_said_in_a_room_before_messages_had_authors_goes_while_the_queue_knows_it(
    tmp_path: Path, fake_clock: FakeClock
):
    home = tmp_path / "home"
    room = SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id="alice")
    async with open_store(
        home, quick_config(group_sessions_per_user=False), clock=fake_clock, titler=None
    ) as store:
        key = store.key_for(room)
        await turn(store, room, f"in the room {WORD}", key)
        session_id = await store.peek_session_id(key)
        assert session_id is not None
        await asyncio.to_thread(forget_authors, home)
        await store.db.rewind_session(session_id)
        await store.db.archive_and_compact(session_id, [Message("user", "a summary")])
        fake_clock.step(timedelta(minutes=1))
        await store.erase(PERSON)
        left = await store.db.get_messages(session_id, include_hidden=True)
        assert [(one.role, one.text) for one in left] == [
            ("assistant", f"noted: in the room {WORD}"),
            ("user", "a summary"),
        ]


async def test_what_they_sent_to_rooms_by_another_account_is_another_owners(
    tmp_path: Path, fake_clock: FakeClock
):
    named = {
        account: SessionSource(
            platform="telegram", chat_type="group", chat_id="room", user_id="alice", account=account
        )
        for account in ("", "support")
    }
    home = tmp_path / "home"
    shared = quick_config(group_sessions_per_user=False)
    async with open_store(home, shared, clock=fake_clock, titler=None) as store:
        for account, source in named.items():
            await turn(store, source, f"said to {account}", store.key_for(source))
            await accept(store, f"waiting at {account}", source=source)
        fake_clock.step(timedelta(minutes=1))
        support, unnamed = (store.key_for(named[account]) for account in ("support", ""))
        await store.erase(PERSON)
        assert [one.message.text for one in await store.list_queued(support)] == ["waiting at support"]
        assert await store.list_queued(unnamed) == []
        texts = str(await store.db.get_messages(await store.peek_session_id(support) or ""))
        assert ("said to support" in texts, "main:telegram:user:%account:support:alice" in texts) == (
            True,
            True,
        )
        await store.erase("main:telegram:user:%account:support:alice")
        assert await asyncio.to_thread(traces, home, "waiting at", "user:%account") == {}


def forget_authors(home: Path) -> None:
    execute_sql(home / "sessions.db", "UPDATE messages SET author = NULL, from_lane = NULL")


async def test_an_erasure_that_is_cut_off_is_finished_in_sessions_of_others_as_well(
    tmp_path: Path, fake_clock: FakeClock
):
    home = tmp_path / "home"
    for nth in range(1, 9):
        async with open_store(home, quick_config(), clock=fake_clock, titler=None) as store:
            session_id = await conversation(store)
            await store.get_or_create_session(BOB)
            await store.switch_session(OTHER_LANE, session_id, scope=OPERATOR, move=True)
            fake_clock.step(timedelta(minutes=1))
            fault = raising(StorageUnavailableError("disk", "is gone"))
            try:
                with crash_at("before_commit", nth=nth, action=fault):
                    await store.erase(ALICE)
            except StorageUnavailableError:
                await store.db.finish_erasures()
            if await store.db.unfinished_erasures() or nth == 1:
                await store.erase(ALICE)
            assert await asyncio.to_thread(traces, home, WORD, PERSON) == {}
            await store.reset_session(LANE)
            fake_clock.step(timedelta(minutes=1))
