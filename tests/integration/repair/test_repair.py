"""A damaged store is looked over and mended: everything readable comes back, and what does not is told."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionDB, SessionStore, StoreBusyError
from gateway_sessions.errors import ForeignDatabaseError, StorageUnavailableError
from gateway_sessions.storage.engines.sqlite.backup import back_up
from gateway_sessions.storage.engines.sqlite.salvage import rebuild_database
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.maintenance.repair import check_store, repair_store
from gateway_sessions.storage.tables.sql_files import load_migrations
from gateway_sessions.testing import FakeClock
from tests.crash.kills.store_workload import key, source
from tests.raw_sql import execute_sql

PAGE = 4096
LANES = 40
EACH = 30
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPERATOR = Scope.operator()


@pytest.fixture(scope="module")
def talked_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with conversations in it."""
    home = tmp_path_factory.mktemp("talked_in") / "home"

    async def talk() -> None:
        async with SessionStore.open(home, clock=FakeClock()) as store:
            entries = [await store.get_or_create_session(source(f"lane-{n:02}")) for n in range(LANES)]
            for n, entry in enumerate(entries):
                said = [{"role": "user", "content": f"message {n} {m} " + "x" * 100} for m in range(EACH)]
                await store.db.append_messages(entry.session_id, said)

    asyncio.run(talk())
    return home


@pytest.fixture
def home(talked_in: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(talked_in, tmp_path / "home")


def spoil(home: Path, mark: bytes, *, skip: int = 0) -> None:
    """Overwrite one of the pages in which the mark stands."""
    path = home / "sessions.db"
    content = bytearray(path.read_bytes())
    pages = [start for start in range(PAGE, len(content), PAGE) if mark in content[start : start + PAGE]]
    start = pages[skip]
    content[start : start + PAGE] = random.Random(start).randbytes(PAGE)
    path.write_bytes(content)


async def messages_in(home: Path) -> set[str]:
    async with SessionStore.open(home, clock=FakeClock()) as store:
        found: set[str] = set()
        for entry in await store.list_sessions(scope=OPERATOR, limit=1000):
            found |= {str(one.content) for one in await store.db.get_messages(entry.session_id)}
        return found


async def test_a_healthy_store_is_left_as_it_is(home: Path):
    before = (home / "sessions.db").read_bytes()
    assert (await check_store(home)).healthy
    report = await repair_store(home, clock=FakeClock())
    assert (report.found, report.done, report.lost, report.quarantine) == ((), (), (), ())
    assert (home / "sessions.db").read_bytes() == before


async def test_a_store_in_use_can_be_checked_and_not_repaired(home: Path):
    async with SessionStore.open(home, clock=FakeClock()):
        assert (await check_store(home)).healthy
        with pytest.raises(StoreBusyError):
            await repair_store(home, clock=FakeClock())


async def test_what_can_be_read_of_damaged_messages_comes_back_and_the_rest_is_counted(home: Path):
    whole = await messages_in(home)
    spoil(home, b"message 2", skip=3)
    assert (await check_store(home)).damaged
    report = await repair_store(home, clock=FakeClock())
    left = await messages_in(home)
    missing = len(whole) - len(left)
    assert left < whole
    assert 0 < missing < EACH * 2
    assert f"messages: {missing} rows could not be read" in report.lost
    assert any("in which messages are missing" in one for one in report.lost)
    assert (await check_store(home)).damaged is False
    assert report.quarantine
    assert all(path.is_relative_to(home / "quarantine") for path in report.quarantine)


async def test_a_backup_fills_what_could_not_be_read(home: Path):
    whole = await messages_in(home)
    await in_thread(partial(back_up, home / "sessions.db", home / "backups", NOON))
    spoil(home, b"message 2", skip=3)
    report = await repair_store(home, clock=FakeClock())
    assert await messages_in(home) == whole
    assert not report.lost
    assert any("rows from sessions-20260301T120000Z.db" in one for one in report.done)


async def test_a_damaged_backup_is_not_used(home: Path):
    copy = await in_thread(partial(back_up, home / "sessions.db", home / "backups", NOON))
    copy.write_bytes(copy.read_bytes()[: PAGE * 5])
    spoil(home, b"message 2", skip=3)
    report = await repair_store(home, clock=FakeClock())
    assert report.lost
    assert not any(copy.name in one for one in report.done)


async def test_a_database_without_its_first_page_comes_back_from_the_backup(home: Path):
    whole = await messages_in(home)
    await in_thread(partial(back_up, home / "sessions.db", home / "backups", NOON))
    database = home / "sessions.db"
    database.write_bytes(bytes(PAGE) + database.read_bytes()[PAGE:])
    assert (await check_store(home)).damaged
    await repair_store(home, clock=FakeClock())
    assert await messages_in(home) == whole


async def test_without_any_backup_the_lanes_come_back_from_the_index(home: Path):
    database = home / "sessions.db"
    database.write_bytes(bytes(PAGE) + database.read_bytes()[PAGE:])
    report = await repair_store(home, clock=FakeClock())
    assert any("nobody knows how many" in one for one in report.lost)
    async with SessionStore.open(home, clock=FakeClock()) as store:
        assert len(await store.list_sessions(scope=OPERATOR, limit=1000)) == LANES


DISAGREEMENTS = {
    "DELETE FROM sessions WHERE session_id IN (SELECT session_id FROM entries LIMIT 2)": "no row",
    "UPDATE sessions SET session_key = NULL; DELETE FROM entries; DELETE FROM sessions": "there are messages",
    "DELETE FROM totals": "without counts",
    "UPDATE totals SET message_count = 7, last_seq = 3": "counts are not those",
    "INSERT INTO totals (session_id, last_active) VALUES ('gone', 0)": "there are counts",
    "DELETE FROM clocks": "when they were used",
    "INSERT INTO clocks (entry_id, version, updated_at) VALUES (1, 1, 1)": "clock of a lane that is gone",
    "INSERT INTO usage_events SELECT 'e', 'gone', 5, 'turn', NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 1, NULL, "
    "NULL, 'unknown', NULL, NULL": "there are bills",
}


@pytest.mark.parametrize(("script", "words"), DISAGREEMENTS.items(), ids=list(DISAGREEMENTS.values()))
async def test_tables_that_disagree_are_made_to_agree_and_no_message_is_lost(
    home: Path, script: str, words: str
):
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        connection.executescript(script)
    before = execute_sql(home / "sessions.db", "SELECT count(*) FROM messages")
    report = await check_store(home)
    assert not report.damaged
    assert any(words in one for one in report.found)
    repaired = await repair_store(home, clock=FakeClock())
    assert any(words in one for one in repaired.done)
    assert (await check_store(home)).healthy
    assert execute_sql(home / "sessions.db", "SELECT count(*) FROM messages") == before
    async with SessionDB.open(home / "sessions.db", survives_power_cut=False) as db:
        for (session_id,) in execute_sql(home / "sessions.db", "SELECT session_id FROM sessions"):
            await db.append_message(str(session_id), "user", "goes on")


async def test_a_missing_message_is_told_and_stays_missing(home: Path):
    execute_sql(home / "sessions.db", "DELETE FROM messages WHERE seq = 5")
    repaired = await repair_store(home, clock=FakeClock())
    assert any("messages are missing" in one for one in repaired.lost)


Cut = Callable[[Path], None]


def before_anything_moved(home: Path) -> None:
    assert (home / "sessions.db").exists()


def after_the_damaged_file_moved(home: Path) -> None:
    (home / "sessions.db").rename(home / "sessions.db.damaged")


@pytest.mark.parametrize("cut", [before_anything_moved, after_the_damaged_file_moved])
async def test_a_repair_that_was_cut_off_is_finished_before_the_store_opens_again(home: Path, cut: Cut):
    whole = await messages_in(home)
    unfinished, rebuilt = home / "sessions.db.rebuilding", home / "sessions.db.rebuilt"
    await in_thread(
        partial(rebuild_database, home / "sessions.db", unfinished, None, load_migrations("sqlite"))
    )
    unfinished.rename(rebuilt)
    cut(home)
    with pytest.raises(StorageUnavailableError, match="run the repair again"):
        async with SessionStore.open(home, clock=FakeClock()):
            pass
    report = await repair_store(home, clock=FakeClock())
    assert "a repair that was cut off has been finished" in report.done
    assert await messages_in(home) == whole


async def test_a_foreign_database_is_refused_and_left_alone(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection:
        connection.execute("PRAGMA application_id = 5")
        connection.execute("CREATE TABLE theirs (x)")
    for work in (check_store, repair_store):
        with pytest.raises(ForeignDatabaseError):
            await work(tmp_path)
    assert not (tmp_path / "quarantine").exists()


async def test_where_there_is_nothing_that_is_said(tmp_path: Path):
    with pytest.raises(StorageUnavailableError, match="no store here yet"):
        await check_store(tmp_path)
    with pytest.raises(StorageUnavailableError, match="no store here yet"):
        await repair_store(tmp_path / "nowhere")


async def test_the_lanes_keep_their_sessions(home: Path):
    async with SessionStore.open(home, clock=FakeClock()) as store:
        before = await store.peek_session_id(key("lane-07"))
    spoil(home, b"message 3", skip=1)
    await repair_store(home, clock=FakeClock())
    async with SessionStore.open(home, clock=FakeClock()) as store:
        assert await store.peek_session_id(key("lane-07")) == before
