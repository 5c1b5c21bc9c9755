"""Migrations of a MySQL or MariaDB database, step by step, because definitions cannot be rolled back.

These servers commit a definition (DDL) at once, whatever stands before or behind it. So each statement of a
migration is noted when it has run, and an interrupted migration goes on after the last noted statement.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.errors import (
    ForeignDatabaseError,
    MissingRightError,
    StorageLockedError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.engines.mysql.asyncmy_types import MySQLError
from gateway_sessions.storage.engines.mysql.connection import MARIADB, MYSQL, MySQLConnection, server_kind
from gateway_sessions.storage.engines.mysql.errors import WHAT, translate_error
from gateway_sessions.storage.engines.sqlite.schema import split_statements
from gateway_sessions.storage.tables.sql_files import Migration

OLDEST_SERVERS: Final = {MYSQL: (8, 0), MARIADB: (10, 6)}
"""The first versions with SKIP LOCKED and JSON_TABLE."""
READABLE_FROM: Final = 5
"""The oldest schema that a program must know to work with this one: earlier programs know no nodes."""
MARK: Final = "gateway_sessions"
"""The comment of our first table. Without the comment, the tables belong to another program."""
UNLIMITED: Final = (
    "SET SESSION autocommit = 1, lock_wait_timeout = 10 /*M! , max_statement_time = 0 */ "
    "/*!50708 , max_execution_time = 0 */"
)
"""A migration may rewrite a large table, so it has no time limit. It waits only briefly for locks: other
transactions queue up behind it meanwhile."""
_LOCK: Final = "concat('gateway_sessions.', left(sha2(database(), 256), 32))"
"""The server-wide lock under which one process migrates; the others wait, and find that nothing is due."""
_WAIT_SECONDS: Final = 10
"""The time for which the lock of migrations is waited for at once; an opener with more time tries again."""
_THERE_ALREADY: Final = frozenset({1050, 1060, 1061})
"""The table, column or index exists already."""
_TABLES: Final = (
    "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = database()"
)
_FACTS: Final = "SELECT name, value FROM meta WHERE name IN ('schema_version', 'readable_from', 'migrating')"
_NOTE: Final = "REPLACE INTO meta (name, value) VALUES (?, ?)"
_FORGET: Final = "DELETE FROM meta WHERE name = ?"


@dataclass(frozen=True, slots=True)
class SchemaState:
    """States how far a database was migrated."""

    version: SchemaVersion | None = None
    step: str = ""
    """The migration that was begun and has not ended."""
    done: int = 0
    """The number of its statements that were noted; one more may have run."""


async def migrate_database(link: MySQLConnection, known: Sequence[Migration]) -> None:
    """Check that the database is ours or empty, and run the migrations that are due.

    The caller closes the connection afterwards, which frees the lock and forgets the settings.
    """
    await _check_server_version(link)
    if await _is_up_to_date(link, known):
        return  # without the lock: a process that hangs in its migration must not stop those that need none
    await link.run_texts(UNLIMITED)
    if not (await link.fetch(f"SELECT GET_LOCK({_LOCK}, {_WAIT_SECONDS})"))[0][0]:
        raise StorageLockedError(WHAT, f"is being brought up to date {await _who_migrates(link)}")
    found = await read_schema_state(link)
    try:
        for step in plan_migrations(WHAT, found.version, known):
            await _run_migration(link, step, found.done if step.name == found.step else 0)
    except MySQLError as error:
        ours = translate_error(error)
        if not isinstance(ours, MissingRightError):
            raise
        raise MissingRightError.at_opening(ours.what, ours.problem) from error


async def _is_up_to_date(link: MySQLConnection, known: Sequence[Migration]) -> bool:
    try:
        found = await read_schema_state(link)
    except (
        ForeignDatabaseError
    ):  # or its first table is just being created; under the lock the answer is certain
        return False
    return found.version is not None and not plan_migrations(WHAT, found.version, known)


async def _who_migrates(link: MySQLConnection) -> str:
    holder = (await link.fetch(f"SELECT IS_USED_LOCK({_LOCK})"))[0][0]
    return "by another process" if holder is None else f"by connection {holder}"


async def read_schema_state(link: MySQLConnection) -> SchemaState:
    """Return how far the database was migrated; raise `ForeignDatabaseError` if it is not ours."""
    tables = {str(name): comment for name, comment in await link.fetch(_TABLES)}
    if not tables:
        return SchemaState()
    facts = await link.fetch(_FACTS) if tables.get("meta") == MARK else ()
    values: dict[str, str] = {row[0]: row[1] for row in facts}
    step, _, done = values.get("migrating", "").rpartition(" ")
    version = None
    if {"schema_version", "readable_from"} <= values.keys():
        version = SchemaVersion(int(values["schema_version"]), int(values["readable_from"]))
    elif not step and tables != {"meta": MARK}:
        raise ForeignDatabaseError(WHAT, f"{len(tables)} tables of another program")
    return SchemaState(version, step, int(done or 0))


async def _run_migration(link: MySQLConnection, step: Migration, done: int) -> None:
    for number, statement in enumerate(split_statements(step.script)):
        if number < done:
            continue
        # A definition commits at once; changes of rows are committed together with the note.
        await link.run_texts("START TRANSACTION")
        try:
            await link.fetch(statement)  # not `say`: there the driver logs the server's warnings
        except MySQLError as error:
            if number != done or error.args[0] not in _THERE_ALREADY:
                raise
        failpoint("during_migration")
        await link.change(_NOTE, [("migrating", f"{step.name} {number + 1}")])
        await link.run_texts("COMMIT")
        failpoint("during_migration")
    readable_from = min(step.version, READABLE_FROM)  # this step may stay the last one for a while
    versions = (("schema_version", str(step.version)), ("readable_from", str(readable_from)))
    await link.run_texts("START TRANSACTION")
    await link.change(_NOTE, versions)
    await link.change(_FORGET, [("migrating",)])
    await link.run_texts("COMMIT")


async def _check_server_version(link: MySQLConnection) -> None:
    said = str((await link.fetch("SELECT version()"))[0][0])
    name = server_kind(said)
    numbers = tuple(int(number) for number in re.findall(r"\d+", said)[:2])
    oldest = OLDEST_SERVERS[name]
    if numbers < oldest:
        wanted = ".".join(map(str, oldest))
        raise UnsupportedStorageError(WHAT, f"{name} {said} is too old, {wanted} or newer is needed")
