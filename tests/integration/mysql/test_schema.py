"""Bringing a MySQL or MariaDB database up to date, which no transaction holds together."""

from collections.abc import AsyncIterator, Callable

import pytest

from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.errors import ForeignDatabaseError, SchemaTooNewError, UnsupportedStorageError
from gateway_sessions.storage.engines.migrations import SchemaVersion
from gateway_sessions.storage.engines.mysql import schema
from gateway_sessions.storage.engines.mysql.connection import MySQLConnection
from gateway_sessions.storage.engines.mysql.schema import migrate_database, read_schema_state
from gateway_sessions.storage.tables.sql_files import Migration
from tests.mysql import MIGRATIONS, empty_database, open_connection

NEWEST = SchemaVersion(MIGRATIONS[-1].version, schema.READABLE_FROM)
TABLES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY table_name"
)
ROWS = Migration(2, "0002_rows", "INSERT INTO meta (name, value) VALUES ('moved', '1');\n")


class CrashError(Exception):
    """The end of the process."""


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with empty_database() as address:
        yield address


def crash_at(wanted: int) -> Callable[[str], None]:
    """The process ends when a migration comes to its point of that number."""
    passed = 0

    def count(point: str) -> None:
        nonlocal passed
        passed += point == "during_migration"
        if passed == wanted:
            raise CrashError

    return count


async def definitions(link: MySQLConnection) -> list[str]:
    return [
        str((await link.fetch(f"SHOW CREATE TABLE {name}"))[0][1]) for (name,) in await link.fetch(TABLES)
    ]


@pytest.mark.parametrize("points", [5, 8])
async def test_a_migration_goes_on_where_the_process_before_came_to_its_end(address: str, points: int):
    crashes = 0
    while True:
        async with open_connection(address) as link:
            arm_failpoints(crash_at(points))
            try:
                await migrate_database(link, MIGRATIONS)
                break
            except CrashError:
                crashes += 1
            finally:
                arm_failpoints(None)
    assert crashes > 10
    async with open_connection(address) as link, empty_database() as other, open_connection(other) as fresh:
        await migrate_database(fresh, MIGRATIONS)
        assert (await read_schema_state(link)).version == NEWEST
        assert await definitions(link) == await definitions(fresh)
        assert await link.fetch("SELECT name FROM meta WHERE name = 'migrating'") == []


@pytest.mark.parametrize("point", [1, 2])
async def test_what_a_step_does_to_rows_is_done_once(address: str, point: int):
    known = [MIGRATIONS[0], ROWS]
    async with open_connection(address) as link:
        await migrate_database(link, known[:1])
    arm_failpoints(crash_at(point))
    try:
        with pytest.raises(CrashError):
            async with open_connection(address) as link:
                await migrate_database(link, known)
    finally:
        arm_failpoints(None)
    async with open_connection(address) as link:
        await migrate_database(link, known)
        assert await link.fetch("SELECT count(*) FROM meta WHERE name = 'moved'") == [(1,)]


async def test_a_database_that_is_up_to_date_is_left_as_it_is(address: str):
    async with open_connection(address) as link:
        assert (await read_schema_state(link)).version is None
        await migrate_database(link, MIGRATIONS)
    async with open_connection(address) as link:
        arm_failpoints(crash_at(1))
        try:
            await migrate_database(link, MIGRATIONS)
        finally:
            arm_failpoints(None)


@pytest.mark.parametrize(
    "table",
    ["meta (name VARCHAR(10), value TEXT)", "anything (number INT)", "meta (a INT) COMMENT = 'gateway'"],
)
async def test_a_database_of_another_program_is_left_alone(address: str, table: str):
    async with open_connection(address) as link:
        await link.run_texts(f"CREATE TABLE {table}")
        before = await definitions(link)
        with pytest.raises(ForeignDatabaseError):
            await migrate_database(link, MIGRATIONS)
        assert await definitions(link) == before


async def test_a_database_that_does_not_know_its_version_any_more_is_left_alone(address: str):
    async with open_connection(address) as link:
        await migrate_database(link, MIGRATIONS)
        await link.run_texts("DELETE FROM meta WHERE name = 'schema_version'")
        with pytest.raises(ForeignDatabaseError):
            await migrate_database(link, MIGRATIONS)


async def test_a_newer_schema_is_used_if_it_can_be_read(address: str):
    async with open_connection(address) as link:
        await migrate_database(link, MIGRATIONS)
        await link.run_texts("UPDATE meta SET value = '2' WHERE name = 'readable_from'")
        await migrate_database(link, MIGRATIONS[:2])
        await link.run_texts("UPDATE meta SET value = '3' WHERE name = 'readable_from'")
        with pytest.raises(SchemaTooNewError):
            await migrate_database(link, MIGRATIONS[:2])


async def test_a_server_that_is_too_old_is_refused(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schema, "OLDEST_SERVERS", {"MySQL": (99, 0), "MariaDB": (99, 0)})
    async with open_connection(address) as link:
        with pytest.raises(UnsupportedStorageError, match=r"too old, 99\.0 or newer"):
            await migrate_database(link, MIGRATIONS)
        assert await definitions(link) == []
