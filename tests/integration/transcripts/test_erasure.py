"""Forgetting a person: canaries are planted wherever they can get to, and looked for in every byte."""

import asyncio
import itertools
import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import (
    InvalidInputError,
    Scope,
    SessionBusyError,
    SessionDB,
    SessionSource,
    SessionStore,
)
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.errors import SentBeforeErasureError, StorageUnavailableError
from gateway_sessions.ports import TransactionFactory
from gateway_sessions.sessions import Relation
from gateway_sessions.storage.api import erasure as methods
from gateway_sessions.storage.engines.sqlite.engine import FileUpkeep
from gateway_sessions.storage.transactions.sessions import remove as transactions
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import lease_lane, open_store, quick_config, release_lane

WORD, USER, CHAT, NAME = "xyzzycanary", "4242424242", "9797979797", "Plugh Canary"
CANARIES = (WORD, USER, CHAT, NAME)
PERSON = "main:telegram:user:4242424242"
OPERATOR = Scope.operator()


def dm() -> SessionSource:
    return SessionSource(platform="telegram", chat_id=CHAT, user_id=USER, user_name=NAME)


def room(user: str = USER, name: str = NAME) -> SessionSource:
    return SessionSource(platform="telegram", chat_type="group", chat_id="room", user_id=user, user_name=name)


def other() -> SessionSource:
    return SessionSource(platform="telegram", chat_id="88", user_id="bob", user_name="Bob")


def opened(home: Path, clock: FakeClock, **options: object) -> SessionStore:
    config = quick_config(
        group_sessions_per_user=False,
        sessions_json=SessionsJsonConfig(mode=SnapshotMode.COALESCED, interval=timedelta(seconds=1)),
    )
    return open_store(home, config, clock=clock, **options)


def traces(home: Path) -> dict[str, list[str]]:
    """The canaries in every byte of every file."""
    found: dict[str, list[str]] = {}
    for path in sorted(home.rglob("*")):
        with suppress(FileNotFoundError):  # a copy gets its own name when it is whole
            if path.is_file() and (hits := hits_in(path.read_bytes())):
                found[str(path.relative_to(home))] = hits
    return found


def hits_in(content: bytes) -> list[str]:
    return [one for one in CANARIES if one.encode() in content]


async def talk(store: SessionStore, source: SessionSource, *texts: str) -> str:
    entry = await store.get_or_create_session(source)
    for text in texts:
        await store.db.append_message(entry.session_id, "user", text, platform_message_id=f"p{len(text)}")
        await store.db.append_message(entry.session_id, "assistant", f"you said: {text}")
    return entry.session_id


async def plant(store: SessionStore) -> None:
    """Leave traces in every table and file."""
    session_id = await talk(store, dm(), f"my secret is {WORD}", f"and again {WORD}")
    await store.db.edit_message(session_id, f"p{len(f'my secret is {WORD}')}", f"edited {WORD}")
    await store.db.set_session_title(session_id, f"About {WORD}")
    await store.db.update_system_prompt(session_id, f"you talk to {NAME}")
    await store.db.record_usage(session_id, f"event-{WORD}", model="m", input_tokens=3)
    await store.db.create_session(
        "helper", "telegram", user_id=USER, parent_session_id=session_id, relation=Relation.DELEGATE
    )
    await store.db.append_message("helper", "user", f"look up {WORD}")
    key = (await store.get_or_create_session(dm())).session_key
    await store.reset_session(key)
    await talk(store, dm(), f"once more {WORD}")
    assert await store.suspend_recently_active() == 1
    await store.db.create_session("terminal", "telegram", user_id=USER)
    await store.db.append_message("terminal", "user", f"typed {WORD}")
    await store.flush()
    await store.set_zone(key, "Europe/Berlin")
    await store.flush()
    await store.db.back_up()
    await store.db.catch_up_search_index()


async def test_no_byte_of_a_person_is_left(home: Path, fake_clock: FakeClock):
    async def down(_event: object) -> None:
        raise ConnectionError(NAME)

    async with opened(home, fake_clock, hooks=[down]) as store:
        await plant(store)
        kept = await talk(store, other(), "what Bob said")
        (home / "quarantine").mkdir(exist_ok=True)
        (home / "quarantine" / "sessions.json.old").write_text(f'{{"{WORD}": 1}}')
        (home / "sessions.db.v1.bak").write_bytes(b"SQLite format 3\x00" + WORD.encode())
        before = await asyncio.to_thread(traces, home)
        assert {"sessions.json", "sessions.json.bak", "sessions.db.v1.bak", "restart_counts.json"} < set(
            before
        )

        receipt = await store.erase(dm())
        assert await asyncio.to_thread(traces, home) == {}
        assert receipt.owner == PERSON
        assert set(receipt.rows) >= {
            "entries",
            "lanes",
            "sessions",
            "totals",
            "messages",
            "usage_events",
            "transitions",
            "hook_calls",
        }
        assert receipt.rows["messages"] == 8
        assert {Path(one).name for one in receipt.removed} >= {
            "sessions.json.bak",
            "sessions.db.v1.bak",
            "sessions.json.old",
        }
        assert {"sessions.db", "sessions.json"} < set(receipt.rewritten)
        assert ["rooms" in one.what for one in receipt.kept] == [True]
        assert (await store.db.get_messages(kept))[0].content == "what Bob said"
        await store.db.catch_up_search_index()
        found = await store.db.search_messages("Bob", scope=OPERATOR)
        assert found.hits
        assert not (await store.db.search_messages(WORD, scope=OPERATOR)).hits
    assert await asyncio.to_thread(traces, home) == {}
    assert execute_sql(home / "sessions.db", "PRAGMA integrity_check") == [("ok",)]


async def test_a_person_is_forgotten_in_rooms_as_far_as_they_can_be_told(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        first = await store.get_or_create_session(room())
        await store.reset_session(first.session_key)
        await talk(store, room("bob", "Bob"), "in the room")
        receipt = await store.erase(room())
        assert receipt.owner == PERSON
        assert receipt.rows["scrubbed"] >= 2
        assert await asyncio.to_thread(traces, home) == {}
        again = await store.get_or_create_session(room("bob", "Bob"))
        assert again.session_key == first.session_key
        assert len(await store.db.get_messages(again.session_id)) == 2


async def test_what_was_sent_before_is_refused_and_who_comes_back_is_welcome(
    home: Path, fake_clock: FakeClock
):
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), "before")
        sent = fake_clock.now() - timedelta(minutes=1)
        receipt = await store.erase(PERSON)
        assert await store.was_erased(dm(), sent)
        assert not await store.was_erased(other(), sent)
        fake_clock.step(seconds=10)
        assert not await store.was_erased(dm(), fake_clock.now())

        entry = await store.get_or_create_session(dm())
        assert entry.previous_session_id is None
        with pytest.raises(SentBeforeErasureError) as late:
            await store.db.append_message(entry.session_id, "user", "late", timestamp=sent)
        assert (late.value.session_id, late.value.erased_at) == (entry.session_id, receipt.erased_at)
        await store.db.append_message(entry.session_id, "user", "new", timestamp=fake_clock.now())
        bob = await store.get_or_create_session(other())
        await store.db.append_message(bob.session_id, "user", "late as well", timestamp=sent)
    async with opened(home, fake_clock) as store:
        with pytest.raises(SentBeforeErasureError):
            await store.db.append_message(entry.session_id, "user", "late", timestamp=sent)
        assert [one.content for one in await store.db.get_messages(entry.session_id)] == ["new"]


async def test_the_tombstone_does_not_name_anybody(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        await store.erase(PERSON)
        ((subject,),) = execute_sql(home / "sessions.db", "SELECT subject FROM tombstones")
        assert isinstance(subject, str)
        assert len(subject) == 64
        assert "4242" not in subject


async def test_a_person_is_not_forgotten_in_the_middle_of_their_turn(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        session_id = await talk(store, dm(), "hello")
        key = (await store.get_or_create_session(dm())).session_key
        lease_lane(home, key)
        with pytest.raises(SessionBusyError):
            await store.erase(dm())
        assert await store.db.message_count(session_id) == 2
        release_lane(home, key)
        await store.erase(dm())
        assert await store.db.get_session(session_id) is None


async def test_erasing_again_does_no_harm(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), "hello")
        await store.erase(dm())
        again = await store.erase(dm())
        assert again.rows == {}


async def test_a_session_that_begins_meanwhile_stays(
    home: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), "hello")
        plain = FileUpkeep.vacuum
        back: list[str] = []

        async def come_back(upkeep: FileUpkeep) -> object:
            if not back:
                fake_clock.step(seconds=1)
                back.append(await talk(store, dm(), "here I am again"))
            return await plain(upkeep)

        monkeypatch.setattr(FileUpkeep, "vacuum", come_back)
        await store.erase(dm())
        assert await store.db.message_count(back[0]) == 2
        assert (await store.get_or_create_session(dm())).session_id == back[0]


async def test_copies_can_be_kept_and_are_listed(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), WORD)
        copy = await store.db.back_up()
        receipt = await store.erase(dm(), keep_copies=True)
        assert copy.exists()
        assert receipt.removed == ()
        assert str(copy) in [one.what for one in receipt.kept]
        assert set(await asyncio.to_thread(traces, home)) <= {
            str(copy.relative_to(home)),
            "sessions.json.bak",
        }


async def test_a_log_that_somebody_reads_is_told_of(
    home: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(methods, "TRIES", 1)
    monkeypatch.setattr(methods, "PAUSE_SECONDS", 0)
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), WORD)
        async with store.db.view():
            receipt = await store.erase(dm())
        assert "sessions.db-wal" in [one.what for one in receipt.kept]


async def test_a_store_that_writes_no_index_leaves_no_old_one(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        await talk(store, dm(), "hello")
    silent = quick_config(sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF))
    async with open_store(home, silent, clock=fake_clock) as store:
        receipt = await store.erase(dm())
        assert "sessions.json" in {Path(one).name for one in receipt.removed}
    assert await asyncio.to_thread(traces, home) == {}


async def test_a_large_history_goes_piece_by_piece(
    home: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transactions, "PIECE", 10)
    async with opened(home, fake_clock) as store:
        entry = await store.get_or_create_session(dm())
        await store.db.append_messages(
            entry.session_id, [{"role": "user", "content": f"{WORD} {n}"} for n in range(35)]
        )
        receipt = await store.erase(dm())
        assert receipt.rows["messages"] == 35
    assert await asyncio.to_thread(traces, home) == {}


async def test_a_person_learns_what_is_known_of_them(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        await plant(store)
        await talk(store, other(), "what Bob said")
        told = [one async for one in store.export_person(dm())]
        text = json.dumps(told, default=str)
        assert all(canary in text for canary in CANARIES)
        assert "Bob" not in text
        lanes = [one for one in told if "lane" in one]
        assert [one["entry"]["session_id"] for one in lanes if one["entry"]]
        assert lanes[0]["history"]


@pytest.mark.parametrize("wrong", ["", "alice", "main::user:x", "main:telegram"])
async def test_what_is_no_owner_is_refused(home: Path, fake_clock: FakeClock, wrong: str):
    async with opened(home, fake_clock) as store:
        with pytest.raises(InvalidInputError, match="no owner"):
            await store.erase(wrong)


async def test_a_source_that_names_no_person_is_refused(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        with pytest.raises(InvalidInputError, match="names no person"):
            await store.erase(SessionSource(platform="telegram", chat_type="group", chat_id="room"))
        await talk(store, room("bob", "Bob"), WORD)
        receipt = await store.erase("main:telegram:room:group:room")
        assert receipt.rows["messages"] == 2
        assert receipt.kept == ()
    assert await asyncio.to_thread(traces, home) == {}


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
async def test_an_erasure_that_was_cut_off_is_finished_by_the_next(
    home: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, nth: int
):
    plain, passes, caller = SessionDB.write, itertools.count(1), asyncio.current_task()

    async def failing(db: SessionDB, transaction: TransactionFactory[Any]) -> Any:
        if asyncio.current_task() is caller and next(passes) == nth:
            raise StorageUnavailableError("disk", "gone for a moment")
        return await plain(db, transaction)

    async with opened(home, fake_clock) as store:
        await plant(store)
        with monkeypatch.context() as patch:
            patch.setattr(SessionDB, "write", failing)
            with pytest.raises(StorageUnavailableError):
                await store.erase(dm())
    async with opened(home, fake_clock) as store:
        await store.erase(dm())
        assert await asyncio.to_thread(traces, home) == {}


async def test_a_session_that_is_resumed_meanwhile_goes_all_the_same(
    home: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    async with opened(home, fake_clock) as store:
        old = await talk(store, dm(), WORD)
        key = (await store.get_or_create_session(dm())).session_key
        plain, begun, caller = SessionDB.write, asyncio.Event(), asyncio.current_task()

        async def resumed_after_the_first_step(db: SessionDB, transaction: TransactionFactory[Any]) -> Any:
            outcome = await plain(db, transaction)
            if asyncio.current_task() is caller and not begun.is_set():
                begun.set()
                fake_clock.step(seconds=1)
                await store.get_or_create_session(dm())
                await store.switch_session(key, old, scope=OPERATOR, move=True)
            return outcome

        monkeypatch.setattr(SessionDB, "write", resumed_after_the_first_step)
        await store.erase(dm())
        assert await store.db.get_session(old) is None
        assert await store.get_session(key) is None
        assert (await store.get_or_create_session(dm())).previous_session_id is None


async def test_an_id_that_others_merely_contain_is_left_alone(home: Path, fake_clock: FakeClock):
    async with opened(home, fake_clock) as store:
        theirs = SessionSource(platform="telegram", chat_type="group", chat_id=USER, user_id="bob")
        entry = await store.get_or_create_session(theirs)
        await store.reset_session(entry.session_key)
        before = await store.get_session(entry.session_key)
        receipt = await store.erase(dm())
        assert "scrubbed" not in receipt.rows
        assert await store.get_session(entry.session_key) == before
        assert await store.undo_reset(entry.session_key)
