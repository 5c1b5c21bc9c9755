"""A program knows which databases it may open, changes them in one step, and keeps a copy first."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import SessionDB, SessionStore, StorageError
from gateway_sessions.errors import SchemaTooNewError, StorageCorruptError
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import Migration, load_migrations
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.faults import crash_at, raising
from tests.crash.kills.store_workload import NEXT, key, source
from tests.raw_sql import execute_sql

SHIPPED = load_migrations("sqlite")
VERSION = SHIPPED[-1].version
AFTER_NEXT = Migration(VERSION + 2, "after_next", "ALTER TABLE next_a ADD COLUMN y;\n")


def database(home: Path, migrations: Sequence[Migration] = ()) -> SessionDB:
    path = home / "sessions.db"
    driver = SqliteEngine(path, migrations=migrations)
    return SessionDB(driver, FakeClock(), wait=0)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A store of the present version with a session in it."""
    async with SessionStore.open(tmp_path, clock=FakeClock()) as store:
        await store.get_or_create_session(source("a"))
    return tmp_path


def facts(home: Path, name: str = "sessions.db") -> dict[str, int]:
    with closing(sqlite3.connect(home / name)) as connection:
        return dict(connection.execute("SELECT name, value FROM meta WHERE name LIKE '%v_r%'")) | dict(
            connection.execute(
                "SELECT name, value FROM meta WHERE name IN ('schema_version', 'readable_from')"
            )
        )


def write_facts(home: Path, **values: int) -> None:
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        connection.executemany(
            "UPDATE meta SET value = ? WHERE name = ?", [(v, n) for n, v in values.items()]
        )
        connection.commit()


NEWER = SHIPPED[-1].version + 1
"""A schema that this program does not know."""


def tables(home: Path, name: str = "sessions.db") -> set[str]:
    return {row[0] for row in execute_sql(home / name, "SELECT name FROM sqlite_master WHERE type = 'table'")}


async def test_a_newer_database_that_we_cannot_read_is_left_byte_for_byte(home: Path):
    write_facts(home, schema_version=NEWER + 1, readable_from=NEWER)
    before = (home / "sessions.db").read_bytes()
    with pytest.raises(SchemaTooNewError, match="install a newer gateway_sessions") as refused:
        async with SessionStore.open(home):
            pass
    assert (refused.value.readable_from, refused.value.ours) == (NEWER, SHIPPED[-1].version)
    assert (home / "sessions.db").read_bytes() == before
    assert not list(home.glob("*.bak.*"))
    assert not (home / f"sessions.db.v{NEWER + 1}.bak").exists()


async def test_a_newer_database_that_we_can_read_is_used_and_not_taken_back(home: Path):
    write_facts(home, schema_version=9)
    async with SessionStore.open(home, clock=FakeClock()) as store:
        assert await store.peek_session_id(key("a")) is not None
        await store.get_or_create_session(source("b"))
    assert facts(home)["schema_version"] == 9
    assert not (home / f"sessions.db.v{NEWER + 1}.bak").exists()


async def test_a_new_database_takes_all_steps_and_needs_no_copy(tmp_path: Path):
    async with database(tmp_path, (*SHIPPED, NEXT, AFTER_NEXT)):
        pass
    assert facts(tmp_path)["schema_version"] == AFTER_NEXT.version
    assert {"next_a", "next_b"} <= tables(tmp_path)
    assert not list(tmp_path.glob("*.bak"))


async def test_the_steps_that_are_due_are_taken_after_a_copy_was_kept(home: Path):
    async with database(home, (*SHIPPED, NEXT, AFTER_NEXT)) as db:
        assert await db.read(meta.stored_generation) > 0
    assert facts(home)["schema_version"] == AFTER_NEXT.version
    backup = f"sessions.db.v{VERSION}.bak"
    assert facts(home, backup)["schema_version"] == VERSION
    assert "next_a" not in tables(home, backup)
    assert (home / backup).stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(home / backup)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT session_key FROM entries").fetchall() == [(key("a"),)]


@pytest.mark.parametrize("nth", [1, 2])
async def test_a_step_that_fails_takes_all_steps_back(home: Path, nth: int):
    steps = (*SHIPPED, NEXT, AFTER_NEXT)
    fault = raising(sqlite3.OperationalError("disk I/O error"))
    told = pytest.raises(StorageError, match="disk I/O error")
    with crash_at("during_migration", nth=nth, action=fault), told:
        async with database(home, steps):
            pass
    assert facts(home)["schema_version"] == VERSION
    assert "next_a" not in tables(home)
    async with database(home, steps):
        pass
    assert facts(home)["schema_version"] == AFTER_NEXT.version


async def test_a_step_that_is_wrong_is_a_typed_error_and_changes_nothing(home: Path):
    wrong = Migration(VERSION + 1, "wrong", "CREATE TABLE fine (x);\nCREATE TABLE lanes (x);\n")
    with pytest.raises(StorageError, match="already exists"):
        async with database(home, (*SHIPPED, wrong)):
            pass
    assert "fine" not in tables(home)
    async with SessionStore.open(home, clock=FakeClock()) as store:
        assert await store.peek_session_id(key("a")) is not None


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM meta WHERE name = 'schema_version'",
        "UPDATE meta SET value = 'x' WHERE name = 'readable_from'",
        "UPDATE meta SET value = 'x' WHERE name = 'epoch'",
        "UPDATE meta SET value = x'ff' WHERE name = 'generation'",
    ],
)
async def test_a_database_that_does_not_know_itself_any_more_is_refused_and_left_alone(
    home: Path, damage: str
):
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        connection.execute("INSERT OR IGNORE INTO meta (name, value) VALUES ('generation', 1)")
        connection.execute(damage)
        connection.commit()
    with pytest.raises(StorageCorruptError, match=r"repair it|is damaged"):
        async with SessionStore.open(home, clock=FakeClock()):
            pass
