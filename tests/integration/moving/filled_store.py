"""A store that is filled with something in every table, and what a database holds, to compare."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg

from gateway_sessions import Config, InboundMessage, Scope, SessionSource, SessionStore
from gateway_sessions.config import Durability, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.storage.transactions.upkeep.copy_store import BEGINNINGS

QUICK = Config(
    timezone="UTC",
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
    sessiondb=SessionDBConfig(durability=Durability.OS),
)
TABLES = ("meta", *BEGINNINGS)
OWN_FACTS = ("schema_version", "readable_from", "moved_from")
OF_THE_SERVER = {"tokens"}
"""Columns that a server fills by itself."""
OF_A_PROCESS = shutil.ignore_patterns("*.sock", "*.lock", "*.owner.json")
PEOPLE = 6
MESSAGES = 3 * PEOPLE + 2
LONG = "ü中文😀 and some more " * 400


def source_of_person(number: int) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=str(number), user_id=f"user{number}", user_name="Ann")


def message_from(number: int, text: str) -> InboundMessage:
    return InboundMessage(source=source_of_person(number), text=text, message_id=f"{number}-{text}")


@asynccontextmanager
async def open_quick_store(home: Path) -> AsyncIterator[SessionStore]:
    async with SessionStore.open(home, QUICK) as store:
        yield store


async def fill_store(home: Path) -> None:
    """A store whose last owner was killed in the middle of a turn."""
    before = home.with_name("before the kill")
    async with open_quick_store(before) as store:
        for number in range(PEOPLE):
            entry = await store.get_or_create_session(source_of_person(number))
            rows = [{"role": "user", "content": f"{text} {LONG}"} for text in ("one", "two", "three")]
            await store.db.append_messages(entry.session_id, rows)
        first = await store.get_or_create_session(source_of_person(0))
        await store.db.set_session_title(first.session_id, "Über 中文")
        await store.reset_session(first.session_key)
        await store.db.record_usage(first.session_id, "e", model="m", input_tokens=7, output_tokens=3)
        for text in ("a", "b", "c"):
            await store.enqueue(message_from(1, text), solo=True)
        async with await store.claim(store.key_for(source_of_person(1))) as turn:  # type: ignore[union-attr]
            await turn.append({"role": "assistant", "content": "as far as it came"})
            shutil.copytree(
                before, home, ignore=OF_A_PROCESS
            )  # what is on the disk is what a kill would leave
            await turn.release()
    with closing(sqlite3.connect(home / "sessions.db")) as connection, connection:
        fill_empty_tables(connection)


def fill_empty_tables(connection: sqlite3.Connection) -> None:
    """Rows of every kind of value in the tables that have none yet."""
    for table in BEGINNINGS:
        if connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]:  # noqa: S608 -- ours
            continue
        kinds = [
            (kind, filled or key)
            for _, _, kind, filled, _, key in connection.execute(f"PRAGMA table_info({table})")
        ]
        for number in range(3):
            row = [value_of(kind, number, needed=bool(needed)) for kind, needed in kinds]
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608


def value_of(kind: str, number: int, *, needed: bool) -> Any:
    if not needed and number == 1:
        return None
    return {"TEXT": f"text '{number}' 中\\n", "REAL": number / 3, "INTEGER": (number << 40) - 5}[kind]


def rows_in_file(path: Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """All rows of all tables; facts as text, without those about the database itself."""
    with closing(sqlite3.connect(path)) as connection:
        rows = {
            table: connection.execute(f"SELECT {columns_of(connection, table)} FROM {table}").fetchall()  # noqa: S608
            for table in TABLES
        }
    return without_own_facts(rows)


async def rows_on_server(dsn: str) -> dict[str, Counter[tuple[Any, ...]]]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = {}
        for table in TABLES:
            names = await connection.fetch(
                "SELECT column_name FROM information_schema.columns WHERE table_name = $1"
                " AND column_name <> 'tokens'",  # these are made from the rest
                table,
            )
            columns = ", ".join(sorted({one[0] for one in names} - OF_THE_SERVER))
            found = await connection.fetch(f"SELECT {columns} FROM {table}")  # noqa: S608 -- ours
            rows[table] = [tuple(one) for one in found]
        return without_own_facts(rows)
    finally:
        await connection.close()


def columns_of(connection: sqlite3.Connection, table: str) -> str:
    return ", ".join(sorted(row[1] for row in connection.execute(f"PRAGMA table_info({table})")))


def without_own_facts(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, Counter[tuple[Any, ...]]]:
    rows["meta"] = [(name, str(value)) for name, value in rows["meta"] if name not in OWN_FACTS]
    return {table: Counter(found) for table, found in rows.items()}


async def search(store: SessionStore, text: str) -> int:
    return (await store.db.search_messages(text, scope=Scope.operator())).matches
