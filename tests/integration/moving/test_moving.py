"""A whole store moves from one database to another one, and is the same there."""

import signal
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway_sessions import (
    Config,
    InvalidInputError,
    SessionDB,
    SessionStore,
    StoreBusyError,
    SystemClock,
)
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.errors import HermesDatabaseError, MigrationError, NoStoreError
from gateway_sessions.operator import MigrationProgress, migrate_store
from gateway_sessions.storage.engines import registry
from gateway_sessions.storage.engines.server.driver import USUAL
from gateway_sessions.storage.engines.sqlite.engine import FileUpkeep
from gateway_sessions.storage.maintenance import copy_store
from gateway_sessions.storage.tables.sql_files import load_queries
from gateway_sessions.storage.transactions.upkeep.copy_store import BEGINNINGS
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.agents import ScriptedAgent
from gateway_sessions.testing.faults import crash_at, raising
from tests import mysql
from tests.crash.store_calls import hermes_home
from tests.integration.gateway.gateway_harness import open_harness
from tests.integration.moving.filled_store import (
    MESSAGES,
    PEOPLE,
    QUICK,
    open_quick_store,
    rows_in_file,
    rows_on_server,
    search,
    source_of_person,
)
from tests.pooler import REAL, running_pooler
from tests.programs import WarmPython
from tests.raw_sql import change_rows, migrated_in_memory

SLOWLY = """
    ALTER TABLE tombstones RENAME TO many_tombstones;
    CREATE VIEW tombstones AS SELECT many_tombstones.* FROM many_tombstones, pg_sleep(0.5);
"""
"""A table that takes its time, as a large one does."""


async def test_everything_arrives_on_a_server_and_comes_back_as_it_was(
    source: Path, dsn: str, tmp_path: Path
):
    before = rows_in_file(source)
    assert all(before.values())
    there = await migrate_store(source, dsn)
    assert await rows_on_server(dsn) == before
    back = await migrate_store(dsn, tmp_path / "back" / "sessions.db")
    assert rows_in_file(tmp_path / "back" / "sessions.db") == before
    assert there.rows == back.rows == {name: rows.total() for name, rows in before.items() if name != "meta"}
    assert (there.resumed, there.already, there.dry_run) == (False, False, False)
    assert rows_in_file(source) == before


async def test_it_goes_round_all_engines_and_is_the_same(source: Path, dsn: str, tmp_path: Path):
    before = rows_in_file(source)
    async with mysql.empty_database() as url:
        await migrate_store(source, url)
        again = await migrate_store(source, url)
        assert again.already
        await migrate_store(url, dsn)
    await migrate_store(dsn, tmp_path / "back" / "sessions.db")
    assert rows_in_file(tmp_path / "back" / "sessions.db") == before


@pytest.mark.skipif(REAL is not None, reason="a real pooler may know prepared statements")
async def test_it_goes_through_a_pooler_that_knows_no_prepared_statements(
    source: Path, dsn: str, tmp_path: Path
):
    before = rows_in_file(source)
    async with running_pooler(dsn) as address:
        await migrate_store(source, address, dry_run=True, prepared_statements=False)
        await migrate_store(source, address, prepared_statements=False)
        assert await rows_on_server(dsn) == before
        await migrate_store(address, tmp_path / "back" / "sessions.db", prepared_statements=False)
    assert rows_in_file(tmp_path / "back" / "sessions.db") == before


async def test_a_server_may_take_as_long_as_it_likes_to_count_what_it_has(
    source: Path, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    await migrate_store(source, dsn)
    connection = await asyncpg.connect(dsn)
    await connection.execute(SLOWLY)
    await connection.close()
    monkeypatch.setattr(registry, "USUAL", replace(USUAL, statement_seconds=0.2))
    await migrate_store(dsn, tmp_path / "back" / "sessions.db")
    assert rows_in_file(tmp_path / "back" / "sessions.db") == rows_in_file(source)


async def test_a_file_can_move_to_another_file(source: Path, tmp_path: Path):
    await migrate_store(source, f"sqlite:///{tmp_path}/new/other.db")
    assert rows_in_file(tmp_path / "new" / "other.db") == rows_in_file(source)


async def test_the_report_says_what_was_moved(source: Path, tmp_path: Path):
    report = await migrate_store(source, tmp_path / "new" / "sessions.db")
    assert (report.sessions, report.messages) == (PEOPLE + 1, MESSAGES)
    assert str(report).startswith(f"Migrated {report.sessions} sessions, {report.messages} messages, ")
    assert (report.source, report.target) == (str(source), str(tmp_path / "new" / "sessions.db"))


async def test_a_rehearsal_changes_nothing(source: Path, dsn: str, tmp_path: Path):
    target = tmp_path / "new" / "sessions.db"
    reports = [await migrate_store(source, place, dry_run=True) for place in (target, dsn)]
    assert [str(one).split()[:2] for one in reports] == [["Would", "migrate"]] * 2
    assert reports[0].rows == {
        name: rows.total() for name, rows in rows_in_file(source).items() if name != "meta"
    }
    assert not target.parent.exists()
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0
    await connection.close()


async def test_a_rehearsal_finds_what_would_be_refused(source: Path, tmp_path: Path):
    async with SessionDB.open(tmp_path / "new" / "sessions.db"):
        pass
    with pytest.raises(MigrationError, match="something else"):
        await migrate_store(source, tmp_path / "new" / "sessions.db", dry_run=True)


async def test_a_target_with_a_store_of_its_own_is_left_alone(source: Path, tmp_path: Path):
    target = tmp_path / "new" / "sessions.db"
    async with SessionDB.open(target) as db:
        await db.create_session("theirs", "cli")
    before = rows_in_file(target)
    with pytest.raises(MigrationError, match="something else"):
        await migrate_store(source, target)
    assert rows_in_file(target) == before


@pytest.mark.parametrize("busy", ["source", "target"])
async def test_nobody_may_have_either_side_open(source: Path, tmp_path: Path, busy: str):
    target = tmp_path / "new" / "sessions.db"
    async with SessionDB.open(source if busy == "source" else target):
        with pytest.raises(StoreBusyError):
            await migrate_store(source, target)


async def test_nobody_may_have_a_server_open(dsn: str, tmp_path: Path):
    async with SessionDB.open(dsn, home=tmp_path / "elsewhere"):
        with pytest.raises(StoreBusyError):
            await migrate_store(dsn, tmp_path / "sessions.db")


async def test_a_source_that_is_not_there_is_not_made(tmp_path: Path):
    with pytest.raises(NoStoreError):
        await migrate_store(tmp_path / "no" / "sessions.db", tmp_path / "new" / "sessions.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", ["{}", "sqlite:///{}"])
async def test_a_store_does_not_move_to_where_it_is(source: Path, other: str):
    with pytest.raises(InvalidInputError, match="both source and target"):
        await migrate_store(source, other.format(source))


# Cut off


class StoppedHereError(Exception):
    """The test has seen enough."""


async def cut_off(source: Path, target: Path | str, *, after_pages: int) -> None:
    with (
        crash_at("before_commit", nth=after_pages, action=raising(StoppedHereError())),
        suppress(StoppedHereError),
    ):
        await migrate_store(source, target)


async def test_what_has_come_only_in_part_cannot_be_opened(source: Path, tmp_path: Path):
    target = tmp_path / "new" / "sessions.db"
    await cut_off(source, target, after_pages=8)
    for opened in (SessionDB.open(target), SessionDB.open_reader(target), SessionStore.open(target.parent)):
        with pytest.raises(MigrationError, match="run the migration again"):
            await opened.__aenter__()
    with pytest.raises(MigrationError, match="only a part"):
        await migrate_store(target, tmp_path / "third" / "sessions.db")
    assert (await migrate_store(source, target)).resumed
    assert rows_in_file(target) == rows_in_file(source)


async def test_what_has_come_only_in_part_to_a_server_cannot_be_opened(
    source: Path, dsn: str, tmp_path: Path
):
    await cut_off(source, dsn, after_pages=8)
    for opened in (
        SessionDB.open(dsn, home=tmp_path / "one"),
        SessionDB.open_reader(dsn, home=tmp_path / "two"),
    ):
        with pytest.raises(MigrationError, match="run the migration again"):
            await opened.__aenter__()
    assert (await migrate_store(source, dsn)).resumed
    assert await rows_on_server(dsn) == rows_in_file(source)


@pytest.mark.usefixtures("blocking_allowed")
async def test_a_server_that_is_opened_while_it_is_moved_is_noticed(source: Path, dsn: str, tmp_path: Path):
    """Many nodes may have it open, and no lock of a directory keeps one from coming."""
    await migrate_store(source, dsn)
    seen: list[str] = []

    def open_meanwhile(progress: MigrationProgress) -> None:
        if progress.table == "messages" and not seen:
            seen.append(progress.table)
            ended = subprocess.run(
                [sys.executable, "-c", OPENS, dsn, tmp_path / "node"], check=False, timeout=60
            )
            assert ended.returncode == 0

    with pytest.raises(MigrationError, match="not what it should be"):
        await migrate_store(dsn, tmp_path / "back" / "sessions.db", progress=open_meanwhile)


@pytest.mark.parametrize("stays", [True, False])
async def test_one_that_comes_when_all_was_checked_is_noticed(
    source: Path, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: bool
):
    """Or what it writes would be on one side only, and nobody would be told."""
    await migrate_store(source, dsn)
    target = tmp_path / "back" / "sessions.db"
    node = SessionDB.open(dsn, home=tmp_path / "node")
    optimise = FileUpkeep.optimise

    async def when_all_was_checked(upkeep: FileUpkeep) -> None:
        await optimise(upkeep)
        await node.__aenter__()
        await node.create_session("meanwhile", "cli")
        if not stays:
            await node.__aexit__(None, None, None)

    monkeypatch.setattr(FileUpkeep, "optimise", when_all_was_checked)
    error, told = (StoreBusyError, "in use by") if stays else (MigrationError, "was opened by somebody")
    with pytest.raises(error, match=told):
        await migrate_store(dsn, target)
    await node.__aexit__(None, None, None)
    with pytest.raises(MigrationError, match="run the migration again"):
        await SessionDB.open(target).__aenter__()


async def test_a_source_that_was_used_meanwhile_begins_anew(source: Path, tmp_path: Path):
    target = tmp_path / "new" / "sessions.db"
    await cut_off(source, target, after_pages=8)
    async with SessionDB.open(source) as db:
        await db.create_session("later", "cli")
    with pytest.raises(MigrationError, match="used again"):
        await migrate_store(source, target)


async def test_a_move_that_was_done_is_checked_once_more(source: Path, tmp_path: Path):
    target = tmp_path / "new" / "sessions.db"
    await migrate_store(source, target)
    again = await migrate_store(source, target)
    assert again.already
    assert str(again).startswith("Checked")
    async with SessionDB.open(target):
        pass
    with pytest.raises(MigrationError, match="something else"):
        await migrate_store(source, target)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE messages SET content = 'forged' WHERE message_id = (SELECT max(message_id) FROM messages)",
        "DELETE FROM inbox WHERE item_id = (SELECT min(item_id) FROM inbox)",
        "UPDATE usage_events SET at = at + 1",
        "UPDATE meta SET value = '00' WHERE name = 'install_secret'",
    ],
)
@pytest.mark.usefixtures("blocking_allowed")
async def test_a_target_that_was_damaged_on_the_way_is_noticed(source: Path, tmp_path: Path, damage: str):
    target = tmp_path / "new" / "sessions.db"

    def spoil(progress: MigrationProgress) -> None:
        if progress.checking and not spoilt:
            spoilt.append(damage)
            change_rows(target, damage)

    spoilt: list[str] = []
    with pytest.raises(MigrationError, match="not what it should be"):
        await migrate_store(source, target, progress=spoil)
    with pytest.raises(MigrationError):
        await SessionDB.open(target).__aenter__()


async def test_a_server_that_was_damaged_on_the_way_is_noticed(source: Path, dsn: str):
    await cut_off(source, dsn, after_pages=30)
    connection = await asyncpg.connect(dsn)
    await connection.execute("UPDATE totals SET last_seq = last_seq + 1")
    await connection.close()
    with pytest.raises(MigrationError, match="table totals"):
        await migrate_store(source, dsn)


OPENS = """
import asyncio, sys
from gateway_sessions import SessionDB

async def main():
    async with SessionDB.open(sys.argv[1], home=sys.argv[2]) as db:
        await db.create_session("meanwhile", "cli")

asyncio.run(main())
"""
DIES = """
    import asyncio, sys
    from gateway_sessions.operator import migrate_store
    from gateway_sessions.testing.faults import crash_at

    with crash_at(sys.argv[3], nth=int(sys.argv[4])):
        asyncio.run(migrate_store(sys.argv[1], sys.argv[2]))
"""


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_killed_again_and_again_it_comes_to_its_end(
    source: Path, dsn: str, tmp_path: Path, warm_python: WarmPython, point: str
):
    back = tmp_path / "back" / "sessions.db"
    for one, other in ((source, dsn), (dsn, back)):
        ends = [warm_python.run(DIES, one, other, point, 5).returncode]
        while ends[-1] == -signal.SIGKILL:
            ends.append(warm_python.run(DIES, one, other, point, 5).returncode)
        assert ends[-1] == 0
        assert len(ends) > 3
    assert await rows_on_server(dsn) == rows_in_file(source) == rows_in_file(back)


# Afterwards


async def test_a_gateway_goes_on_with_its_queue_and_the_turn_that_was_cut_off(
    source: Path, dsn: str, tmp_path: Path
):
    await migrate_store(source, dsn)
    config = Config(
        timezone="UTC",
        sessions_json=QUICK.sessions_json,
        sessiondb=SessionDBConfig(provider=Provider.POSTGRESQL, url=dsn),
    )
    async with SessionStore.open(tmp_path / "server", config) as store:
        key = store.key_for(source_of_person(1))
        assert list(store.started.resumed) == [key]
        assert [one.message.text for one in await store.list_queued(key)] == ["a", "b", "c"]
        assert await search(store, "three") == PEOPLE
        fresh = await store.get_or_create_session(source_of_person(99))
        assert fresh.session_id
    clock = FakeClock(SystemClock().now() + timedelta(minutes=1))
    async with open_harness(tmp_path / "server", config, agent=ScriptedAgent(), clock=clock) as harness:
        await harness.platform.says("somebody", "hello")
        await harness.wait_until_idle()
        assert ("user", "hello") in await harness.transcript("somebody")
    async with SessionStore.open(tmp_path / "server", config) as store:
        texts = [row["content"] for row in await store.load_transcript(await session_of(store, 1))]
        assert [one for one in texts if one in ("a", "b", "c")] == ["a", "b", "c"]


async def session_of(store: SessionStore, number: int) -> str:
    session_id = await store.peek_session_id(store.key_for(source_of_person(number)))
    assert session_id is not None
    return session_id


async def test_new_entries_get_other_ids_than_those_that_came_along(source: Path, tmp_path: Path):
    """They are counted from the epoch on, so the epoch has to come along."""
    target = tmp_path / "new" / "sessions.db"
    await migrate_store(source, target)
    async with open_quick_store(target.parent) as store:
        for number in range(100, 110):
            await store.get_or_create_session(source_of_person(number))
        await store.get_or_create_session(source_of_person(0))


# Pages


async def test_pages_are_small_where_rows_are_large(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copy_store, "PAGE_BYTES", 20_000)
    seen: list[Any] = []
    await migrate_store(source, tmp_path / "new" / "sessions.db", progress=seen.append)
    rows = [one.rows for one in seen if one.table == "messages" and not one.checking]
    assert (
        max(after - before for before, after in zip([0, *rows], rows, strict=False)) <= copy_store.FIRST_ROWS
    )
    assert rows[-1] == MESSAGES
    assert len(rows) == 3
    assert rows_in_file(tmp_path / "new" / "sessions.db") == rows_in_file(source)


def test_every_table_and_column_moves():
    with closing(migrated_in_memory()) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {"meta", "nodes", "mail", *BEGINNINGS}
        queries = load_queries("sqlite")
        for table in BEGINNINGS:
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            read = connection.execute(queries[f"move_out_{table}"].sql, (*BEGINNINGS[table], 1)).description
            assert {one[0] for one in read} == columns, table
            written = queries[f"move_in_{table}"].sql.partition("(")[2].partition(")")[0]
            assert {one.strip() for one in written.split(",")} == columns, table


async def test_a_database_of_hermes_is_told_by_its_name(tmp_path: Path):
    home = hermes_home(tmp_path / "hermes")
    with pytest.raises(HermesDatabaseError, match="import hermes"):
        await migrate_store(home / "state.db", tmp_path / "new" / "sessions.db")
    assert not (tmp_path / "new" / "sessions.db").exists()
