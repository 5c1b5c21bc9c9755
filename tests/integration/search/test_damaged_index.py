"""Whatever becomes of the index: nothing said is lost, no writer notices, and searches tell the truth."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import IndexPosition
from gateway_sessions.core.search.query import parse_query
from gateway_sessions.errors import StorageCorruptError, StoreStoppedError
from gateway_sessions.storage.search import sqlite_index as index_module
from gateway_sessions.storage.search.sqlite_file import IndexFault, IndexFile, UnusableIndexError
from gateway_sessions.storage.search.sqlite_index import IndexState
from gateway_sessions.storage.search.sqlite_match import Fts5Match
from tests.integration.search.conftest import (
    EVERYTHING,
    FaultListener,
    append_words,
    found_snippets,
    open_database,
)
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import open_store

TEXTS = [f"docker {n} " + " ".join(f"word{n}x{m}" for m in range(30)) for n in range(300)]


async def filled(home: Path) -> None:
    async with open_database(home) as db:
        await append_words(db, "s", *TEXTS)
        await db.catch_up_search_index()


async def still_right(db: SessionDB) -> None:
    """Each search is right or says that something may be missing; in the end all are right."""
    for query in ("word7x3", "word250x20"):
        result = await db.search_messages(query, scope=EVERYTHING)
        assert len(result.hits) == 1 or result.degraded
    await db.append_message("s", "user", "said afterwards")
    assert len(await db.get_messages("s")) == len(TEXTS) + 1
    await db.catch_up_search_index()
    for query in ("word7x3", "word250x20", "afterwards"):
        result = await db.search_messages(query, scope=EVERYTHING)
        assert (len(result.hits), result.degraded) == (1, False)
    assert db.search_index.state is IndexState.READY


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def scribble(path: Path) -> None:
    content = bytearray(path.read_bytes())
    chance = random.Random(4)
    for at in range(4096, len(content), 64):
        content[at] = chance.randrange(256)
    path.write_bytes(content)


def scribble_over_the_header(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:100] = b"x" * 100
    path.write_bytes(content)


def remove(path: Path) -> None:
    path.unlink()


def of_another_version(path: Path) -> None:
    execute_sql(path, "PRAGMA user_version = 99")


def of_another_tokeniser(path: Path) -> None:
    execute_sql(path, "UPDATE state SET value = 'another' WHERE name = 'identity'")


def without_its_state(path: Path) -> None:
    execute_sql(path, "DELETE FROM state")


def ahead_of_the_truth(path: Path) -> None:
    execute_sql(path, "UPDATE state SET value = value + 1 WHERE name = 'watermark'")


def behind_cleared_changes(path: Path) -> None:
    execute_sql(path, "UPDATE state SET value = 0 WHERE name = 'changes'")
    truth = path.with_name("sessions.db")
    execute_sql(
        truth, "INSERT INTO meta VALUES ('index_changes_cleared', (SELECT max(message_id) FROM messages))"
    )


def of_another_program(path: Path) -> None:
    path.unlink()
    execute_sql(path, "CREATE TABLE theirs (a)")


@pytest.mark.parametrize(
    "harm",
    [
        truncate,
        empty,
        scribble_over_the_header,
        remove,
        of_another_version,
        of_another_tokeniser,
        without_its_state,
        ahead_of_the_truth,
        behind_cleared_changes,
        of_another_program,
    ],
)
async def test_an_index_that_was_harmed_while_it_was_closed_is_made_anew(tmp_path: Path, harm):
    await filled(tmp_path)
    harm(tmp_path / "search.db")
    async with open_database(tmp_path) as db:
        await still_right(db)
        assert db.search_index.rebuilt <= 1


async def test_a_harmed_index_is_reported_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    await filled(tmp_path)
    truncate(tmp_path / "search.db")
    async with open_database(tmp_path) as db:
        await db.catch_up_search_index()
        await db.check_search_index()
        await still_right(db)
        assert db.search_index.rebuilt == 1
        assert db.search_index.problem is not None
        assert "damaged" in db.search_index.problem
    records = [
        record for record in caplog.records if getattr(record, "action", "") == "search_index_set_aside"
    ]
    assert [record.levelno for record in records] == [logging.WARNING]
    assert (tmp_path / "search.db.aside").exists()


async def test_a_database_of_somebody_else_is_kept_for_ever(tmp_path: Path):
    await filled(tmp_path)
    of_another_program(tmp_path / "search.db")
    async with open_database(tmp_path) as db:
        await db.catch_up_search_index()
    (kept,) = (tmp_path / "quarantine").iterdir()
    assert execute_sql(kept, "SELECT count(*) FROM theirs")[0] == (0,)


@pytest.mark.parametrize("harm", [scribble, truncate, remove])
async def test_an_index_that_is_harmed_while_it_is_open_is_made_anew(tmp_path: Path, harm):
    await filled(tmp_path)
    async with open_database(tmp_path) as db:
        await found_snippets(db, "word7x3")
        harm(tmp_path / "search.db")
        for query in ("word9x9", "docker", "word280x1"):
            await db.search_messages(query, scope=EVERYTHING)
        await db.check_search_index()
        await still_right(db)
        assert (tmp_path / "search.db").exists()


async def test_damage_that_no_error_tells_of_is_found_by_asking_for_known_messages(tmp_path: Path):
    await filled(tmp_path)
    execute_sql(tmp_path / "search.db", "INSERT INTO documents (documents) VALUES ('delete-all')")
    async with open_database(tmp_path) as db:
        report = await db.check_search_index()
        assert report.problem is not None
        assert "are not found" in report.problem
        await still_right(db)


async def test_a_sound_index_stays(tmp_path: Path):
    await filled(tmp_path)
    async with open_database(tmp_path) as db:
        await db.append_message("s", "user", "edited", platform_message_id="p")
        await db.catch_up_search_index()
        await db.edit_message("s", "p", "edited again")
        await db.catch_up_search_index()
        report = await db.check_search_index()
        assert (report.state, report.problem, report.rebuilt) == (IndexState.READY, None, 0)


async def test_damage_of_the_truth_is_not_blamed_on_the_index(tmp_path: Path):
    await filled(tmp_path)
    async with open_database(tmp_path) as db:
        execute_sql(
            tmp_path / "sessions.db", "UPDATE messages SET hidden_because = 'unknown to us' WHERE seq = 8"
        )
        with pytest.raises(StorageCorruptError):
            await db.search_messages("word7x3", scope=EVERYTHING, include_hidden=True)
        await db.catch_up_search_index()
        assert (db.search_index.problem, db.search_index.rebuilt) == (None, 0)


async def test_an_older_truth_gets_a_new_index(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker one")
        await db.catch_up_search_index()
    shutil.copytree(tmp_path, tmp_path / "kept")
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker two")
        await db.catch_up_search_index()
    shutil.copy(tmp_path / "kept" / "sessions.db", tmp_path / "sessions.db")
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker three")
        assert set(await found_snippets(db, "docker")) == {"docker one", "docker three"}
        await db.catch_up_search_index()
        assert set(await found_snippets(db, "docker")) == {"docker one", "docker three"}
        assert db.search_index.rebuilt == 1


async def test_an_index_that_missed_changes_is_made_anew(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await append_words(db, "s")
        await db.append_message("s", "user", "docker", platform_message_id="p")
        await db.catch_up_search_index()
    for name in ("search.db", "search.db-wal"):
        if (tmp_path / name).exists():
            shutil.copy(tmp_path / name, tmp_path / f"old-{name}")
    async with open_database(tmp_path) as db:
        await db.edit_message("s", "p", "kubernetes")
        await db.catch_up_search_index()
        await db.catch_up_search_index()
    shutil.copy(tmp_path / "old-search.db", tmp_path / "search.db")
    async with open_database(tmp_path) as db:
        assert await found_snippets(db, "docker") == []
        assert await found_snippets(db, "kubernetes") == ["kubernetes"]


async def test_a_library_without_full_text_search_looks_at_messages_themselves(tmp_path: Path, monkeypatch):
    class Connection(sqlite3.Connection):
        def execute(self, sql, *args):
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *args)

    connect = sqlite3.connect

    def without_fts5(where: str, **options):
        return connect(where, **options, **({"factory": Connection} if "search.db" in str(where) else {}))

    monkeypatch.setattr("sqlite3.connect", without_fts5)
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker one", "nothing")
        result = await db.search_messages("docker", scope=EVERYTHING)
        assert [hit.snippet for hit in result.hits] == [">>>docker<<< one"]
        with pytest.raises(Exception, match="no such module"):
            await db.catch_up_search_index()
        result = await db.search_messages("docker", scope=EVERYTHING)
        assert [hit.snippet for hit in result.hits] == [">>>docker<<< one"]
        assert not result.degraded, "all messages were looked at"
        assert db.search_index.state is IndexState.UNAVAILABLE


async def test_a_search_that_would_have_to_look_at_too_much_says_so(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.search.MOST_SCANNED", 1_000)
    async with open_database(tmp_path) as db:
        await append_words(db, "s", *("docker?!" for _ in range(1_200)), *("nothing" for _ in range(900)))
        await db.catch_up_search_index()
        for narrowed in ({}, {"role_filter": "user"}):
            result = await db.search_messages("?!", scope=EVERYTHING, mode="substring", **narrowed)
            assert result.degraded
            assert result.problem is not None
            assert "newest messages" in result.problem
            assert 0 < result.matches < 1_200


async def test_an_index_made_anew_on_demand_leaves_nothing_of_the_old_one(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker canary")
        await db.catch_up_search_index()
        (tmp_path / "search.db.aside").write_bytes(b"canary")
        await db.clear_messages("s")
        await db.rebuild_search_index()
        assert all(b"canary" not in path.read_bytes() for path in tmp_path.glob("search.db*"))
        await db.append_message("s", "user", "docker")
        await db.catch_up_search_index()
        assert await found_snippets(db, "docker") == ["docker"]
        assert db.search_index.state is IndexState.READY


async def test_searches_and_writers_that_are_cancelled_leave_everything_usable(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", *TEXTS)
        for turns in range(1, 40):
            search = asyncio.create_task(db.search_messages("docker", scope=EVERYTHING))
            wait = asyncio.create_task(db.catch_up_search_index())
            for _ in range(turns):
                await asyncio.sleep(0)
            search.cancel()
            wait.cancel()
            await asyncio.gather(search, wait, return_exceptions=True)
        await still_right(db)


async def test_a_closed_database_is_not_searched(tmp_path: Path):
    db = open_database(tmp_path)
    for _ in range(2):
        with pytest.raises(StoreStoppedError):
            await db.search_messages("docker", scope=EVERYTHING)
        with pytest.raises(StoreStoppedError):
            await db.catch_up_search_index()
        if db.path.exists():
            break
        async with db:
            await append_words(db, "s", "docker")


async def test_the_index_is_taken_up_where_it_was_left(tmp_path: Path):
    await filled(tmp_path)
    inode = (tmp_path / "search.db").stat().st_ino
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker afterwards")
        await db.catch_up_search_index()
        assert len((await db.search_messages("afterwards", scope=EVERYTHING)).hits) == 1
        assert (db.search_index.rebuilt, (tmp_path / "search.db").stat().st_ino) == (0, inode)


async def test_an_index_of_which_little_is_left_is_made_anew(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_file.FEW_DEAD", 4)
    async with open_database(tmp_path) as db:
        await append_words(db, "s", *(f"docker {n}" for n in range(10)))
        await db.catch_up_search_index()
        await db.clear_messages("s")
        await db.append_message("s", "user", "docker again")
        await db.catch_up_search_index()
        assert await found_snippets(db, "docker") == ["docker again"]
        assert db.search_index.rebuilt == 1


async def test_a_store_in_which_nothing_was_said_has_no_index(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await db.catch_up_search_index()
        assert db.search_index.state is IndexState.EMPTY
        assert await found_snippets(db, "docker") == []
        assert (await db.check_search_index()).problem is None
    assert not (tmp_path / "search.db").exists()


def test_a_closed_file_is_not_read(tmp_path: Path):
    file = IndexFile(tmp_path / "search.db")
    file.connect("x", IndexPosition())
    file.close()
    with pytest.raises(UnusableIndexError) as raised:
        file.find_candidates(Fts5Match(CertainTerms(parse_query("x"))), None, 1)
    assert raised.value.fault is IndexFault.GONE
    with pytest.raises(sqlite3.OperationalError):
        IndexFile(tmp_path / "nowhere.db", read_only=True).connect("x", IndexPosition())
    assert index_module.INDEX_FILE == "search.db"


@pytest.mark.parametrize("orderly", [True, False])
async def test_the_whole_index_is_looked_at_from_time_to_time(tmp_path: Path, monkeypatch, orderly: bool):
    await filled(tmp_path)
    execute_sql(tmp_path / "search.db", "INSERT INTO documents (documents) VALUES ('delete-all')")
    if not orderly:
        execute_sql(tmp_path / "sessions.db", "UPDATE meta SET value = -1 WHERE name = 'settled_epoch'")
    monkeypatch.setattr(index_module, "CHECK_SECONDS" if orderly else "SOON_SECONDS", 0.01)
    listener = FaultListener()
    async with open_database(tmp_path, listener) as db:
        problem, place = await listener.faults.get()
        assert "are not found" in problem
        assert place == tmp_path / "search.db.aside"
        await still_right(db)


async def test_an_index_that_is_merely_outdated_is_no_fault(tmp_path: Path):
    await filled(tmp_path)
    of_another_tokeniser(tmp_path / "search.db")
    listener = FaultListener()
    async with open_database(tmp_path, listener) as db:
        await db.catch_up_search_index()
        assert (listener.faults.qsize(), db.search_index.rebuilt) == (0, 1)


async def test_a_store_reports_that_its_index_was_lost(tmp_path: Path):
    async with open_store(tmp_path) as store:
        await append_words(store.db, "s", "docker")
        await store.db.catch_up_search_index()
    truncate(tmp_path / "search.db")
    async with open_store(tmp_path) as store:
        await store.db.catch_up_search_index()
        (incident,) = store.incidents
        assert incident.action == "search_index_lost"
        assert incident.path == str(tmp_path / "search.db.aside")
        assert "damaged" in incident.detail
