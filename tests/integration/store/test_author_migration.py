"""Messages from before they had authors: whose they are where that is certain, else nobody says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import SessionSource, SessionStore
from gateway_sessions.storage.engines.sqlite.schema import prepare_file, split_statements
from gateway_sessions.storage.tables.sql_files import load_migrations
from gateway_sessions.testing import FakeClock
from tests.mysql import migrated_database_at, open_connection
from tests.postgresql import connected_migrated_database
from tests.raw_sql import execute_sql

BEFORE = 6
ANN, BOB = "main:telegram:user:7%3A1", "main:telegram:user:8"
ANNS, BOBS, ROOM = (
    "agent:main:telegram:dm:7%3A1",
    "agent:main:telegram:dm:8",
    "agent:main:telegram:group:g",
)
TERMINAL, ITS_LANE = "main:local:user:local", "agent:main:local:dm:local"
SESSIONS = {
    # owner, lane, whoever began it, the lanes it was on and when it came there
    "stays": (ANN, ANNS, "7:1", [(ANNS, 10)]),
    "taken": (TERMINAL, ITS_LANE, "7:1", [(ANNS, 10), (ITS_LANE, 30)]),
    "handed round": (TERMINAL, ITS_LANE, "7:1", [(ANNS, 10), (BOBS, 20), (ITS_LANE, 30)]),
    "from a room": (BOB, BOBS, "7:1", [(ROOM, 10), (BOBS, 30)]),
    "of nobody": (BOB, BOBS, None, [(ANNS, 10), (BOBS, 30)]),
}
SAID_AT = (15, 45)
EXPECTED = {
    (session_id, at): (ANN, ANNS) if (session_id, at) == ("taken", 15) else (None, None)
    for session_id in SESSIONS
    for at in SAID_AT
}


def rows() -> list[str]:
    """What an earlier version has left, as statements that every engine understands."""
    found: list[str] = []
    for number, (session_id, (owner, lane, user, lanes)) in enumerate(SESSIONS.items()):
        began = "NULL" if user is None else f"'{user}'"
        found.append(
            "INSERT INTO sessions (session_id, session_key, owner, source, user_id, started_at)"  # noqa: S608 -- ours
            f" VALUES ('{session_id}', '{lane}', '{owner}', 'telegram', {began}, 1)"
        )
        for nth, (key, at) in enumerate(lanes):
            found.append(
                "INSERT INTO transitions (change_id, session_key, session_id, at, event, to_state, actor)"  # noqa: S608 -- ours
                f" VALUES ({10 * number + nth}, '{key}', '{session_id}', {at}, 'x', 'active', 'person')"
            )
        found += [
            "INSERT INTO messages (message_id, session_id, seq, role, content, sent_at)"  # noqa: S608 -- ours
            f" VALUES ({100 * number + at}, '{session_id}', {seq}, 'user', 'x', {at})"
            for seq, at in enumerate(SAID_AT, start=1)
        ]
    return found


OF_SUB_AGENTS = {
    # owner, parent, whoever began it, and whose it is from now on
    "theirs": (ANN, None, "7:1", ANN),
    "work": ("main:telegram:local", "theirs", None, ANN),
    "work of it": ("main:telegram:local", "work", None, ANN),
    "of a person": (BOB, "theirs", "8", BOB),
    "of nobody": ("main:telegram:local", "gone", None, "main:telegram:local"),
}
OWNERS = {session_id: expected for session_id, (*_, expected) in OF_SUB_AGENTS.items()}


def work() -> list[str]:
    """What sub-agents did, as an earlier version has left it."""
    return [
        "INSERT INTO sessions (session_id, owner, source, user_id, parent_session_id, relation, started_at)"  # noqa: S608 -- ours
        f" VALUES ('{session_id}', '{owner}', 'telegram', {quoted(user)}, {quoted(parent)},"
        f" {quoted(parent and 'delegate')}, 1)"
        for session_id, (owner, parent, user, _) in OF_SUB_AGENTS.items()
    ]


def quoted(text: str | None) -> str:
    return "NULL" if text is None else f"'{text}'"


WHOSE = "SELECT session_id, owner FROM sessions"
READING = "SELECT session_id, sent_at, author, from_lane FROM messages"


def step(engine: str) -> str:
    """The statement that tells whose messages are."""
    (migration,) = [one for one in load_migrations(engine) if one.version == BEFORE + 1]
    (found,) = [one for one in split_statements(migration.script) if "    author = (SELECT" in one]
    return found


def steps(engine: str) -> list[str]:
    """The statements that tell for whom sub-agents have worked."""
    (migration,) = [one for one in load_migrations(engine) if one.version == BEFORE + 1]
    return [one for one in split_statements(migration.script) if "= 'delegate'" in one]


def read(found: list[tuple[object, ...]]) -> dict[tuple[object, object], tuple[object, object]]:
    return {(row[0], row[1]): (row[2], row[3]) for row in found}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database of the version before."""
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        prepare_file(connection, path, load_migrations("sqlite")[:BEFORE], synchronous="OFF")
        for statement in rows():
            connection.execute(statement)
        connection.execute(
            "INSERT INTO totals (session_id, last_active, last_seq, message_count, text_bytes)"
            " SELECT session_id, max(sent_at), max(seq), count(*), count(*) FROM messages GROUP BY session_id"
        )
    return path


async def test_a_file_of_the_version_before(path: Path):
    ann = SessionSource(platform="telegram", chat_id="7:1", user_id="7:1")
    async with SessionStore.open(path.parent, clock=FakeClock(), titler=None) as store:
        assert read(execute_sql(path, READING)) == EXPECTED
        assert await store.db.count_said_elsewhere(ANN) == 1
        await store.erase(ann)
        left = {row[:2] for row in execute_sql(path, READING)}
    assert left == {*EXPECTED} - {("taken", 15), ("stays", 15), ("stays", 45)}


async def test_the_same_on_postgresql():
    async with connected_migrated_database() as connection:
        for statement in rows():
            await connection.execute(statement)
        await connection.execute(step("postgresql"))
        assert read([tuple(row) for row in await connection.fetch(READING)]) == EXPECTED


async def test_the_same_on_mysql():
    async with migrated_database_at() as address, open_connection(address) as link:
        for statement in (*rows(), step("mysql")):
            await link.fetch(statement)
        await link.run_texts("COMMIT")
        assert read([tuple(row) for row in await link.fetch(READING)]) == EXPECTED


def test_the_work_of_sub_agents_in_a_file_belongs_to_those_for_whom_it_was_done(tmp_path: Path):
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        prepare_file(connection, path, load_migrations("sqlite")[:BEFORE], synchronous="OFF")
        for statement in work():
            connection.execute(statement)
        prepare_file(connection, path, load_migrations("sqlite"), synchronous="OFF")
        assert dict(connection.execute(WHOSE).fetchall()) == OWNERS


async def test_the_work_of_sub_agents_on_postgresql():
    async with connected_migrated_database() as connection:
        for statement in (*work(), *steps("postgresql")):
            await connection.execute(statement)
        assert dict(tuple(row) for row in await connection.fetch(WHOSE)) == OWNERS


async def test_the_work_of_sub_agents_on_mysql():
    async with migrated_database_at() as address, open_connection(address) as link:
        for statement in (*work(), *steps("mysql")):
            await link.fetch(statement)
        await link.run_texts("COMMIT")
        assert dict(tuple(row) for row in await link.fetch(WHOSE)) == OWNERS
