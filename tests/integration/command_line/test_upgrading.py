"""A database is brought up to date by a command, which says what it did."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.storage.engines.mysql.engine import MySQLDriver
from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from gateway_sessions.storage.engines.sqlite.schema import prepare_file
from gateway_sessions.storage.tables.sql_files import load_migrations
from tests import mysql, postgresql
from tests.integration.command_line.conftest import Gsess
from tests.integration.servers.running_drivers import running_driver

SERVERS = {
    "postgresql": (postgresql.empty_database, PostgresDriver),
    "mysql": (mysql.empty_database, MySQLDriver),
}
Place = tuple[list[str], int, Callable[[], None]]
"""How the command line names it, its newest schema, and what makes it an older one."""


@pytest.fixture(params=["sqlite", *SERVERS])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A store that is empty as yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    known = load_migrations(request.param)
    if request.param == "sqlite":

        def make_file() -> None:
            path = tmp_path / "home" / "sessions.db"
            path.parent.mkdir(mode=0o700)
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                prepare_file(connection, path, known[:-1], synchronous="FULL")

        yield ["--home", str(tmp_path / "home")], known[-1].version, make_file
        return
    databases, kind = SERVERS[request.param]
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        address = runner.run(stack.enter_async_context(databases()))

        async def make_tables() -> None:
            async with running_driver(kind(address, migrations=known[:-1])):
                pass

        yield ["--home", address], known[-1].version, lambda: runner.run(make_tables())
        runner.run(stack.aclose())


def test_tables_are_brought_up_to_date_once(gsess: Gsess, place: Place):
    arguments, newest, make_older = place
    make_older()
    steps = f"from schema {newest - 1} to {newest}.\n"
    refused = gsess(*arguments, "sessions", "list")
    assert (refused.code, "sessiondb upgrade" in refused.err) == (Exit.FAILED, True)
    (database,) = [
        one
        for one in gsess(*arguments, "doctor", "--json").json_answer["results"]
        if one["what"] == "Database"
    ]
    assert "sessiondb upgrade" in database["what_next"]
    for _ in range(2):
        would = gsess(*arguments, "sessiondb", "upgrade", "--dry-run")
        assert (would.code, would.out) == (Exit.DONE, f"Would bring the tables up to date: {steps}")
    assert gsess(*arguments, "sessiondb", "upgrade").out == f"Brought the tables up to date: {steps}"
    assert gsess(*arguments, "sessiondb", "upgrade").out == f"Up to date: schema {newest}.\n"
    assert gsess(*arguments, "sessions", "list").code == Exit.DONE


def test_tables_are_made_where_there_are_none(gsess: Gsess, place: Place):
    arguments, newest, _ = place
    assert gsess(*arguments, "sessiondb", "upgrade", "--dry-run").out == "Would make the tables.\n"
    assert gsess(*arguments, "sessions", "list").code == Exit.NOT_FOUND
    answer = gsess(*arguments, "sessiondb", "upgrade", "--json").json_answer["results"][0]
    assert (answer["before"], answer["after"]) == (None, newest)
    assert gsess(*arguments, "sessiondb", "check").code == Exit.DONE


def test_a_file_that_is_open_and_up_to_date_is_told_so(gsess: Gsess, owned: Path):
    assert gsess("--home", owned, "sessiondb", "upgrade").out.startswith("Up to date")
