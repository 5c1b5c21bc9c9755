"""Migrations of a MySQL or MariaDB database, step by step, because definitions cannot be rolled back.

These servers cannot undo a definition: it is committed at once, whatever stands before or behind it. So each
statement is noted when it has been carried out, and one that was broken off is gone on with where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway_sessions._failpoints import failpoint
from gateway_sessions.errors import (
    ForeignDatabaseError,
    MissingRightError,
    StorageLockedError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.engines.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.engines.mysql.asyncmy import MySQLError
from gateway_sessions.storage.engines.mysql.connection import MARIADB, MYSQL, MySQLConnection, kind_of
from gateway_sessions.storage.engines.mysql.errors import WHAT, translate
from gateway_sessions.storage.engines.sqlite.schema import statements
from gateway_sessions.storage.tables.queries import Migration

OLDEST_SERVERS: Final = {MYSQL: (8, 0), MARIADB: (10, 6)}
"""The first that skip locked rows and read JSON as a table."""
READABLE_FROM: Final = 5
"""The oldest schema a program must know to work with what this one writes: earlier ones know no nodes."""
MARK: Final = "gateway_sessions"
"""The comment of our first table: without it, tables belong to another program."""
UNLIMITED: Final = (
    "SET SESSION autocommit = 1, lock_wait_timeout = 10 /*M! , max_statement_time = 0 */ "
    "/*!50708 , max_execution_time = 0 */"
)
"""A definition may have to write a large table anew. While it waits for one, all others wait behind it."""
_LOCK: Final = "concat('gateway_sessions.', left(sha2(database(), 256), 32))"
"""Who holds this lock brings the database up to date; the others wait and find it done."""
_WAIT_SECONDS: Final = 10
_THERE_ALREADY: Final = frozenset({1050, 1060, 1061})
"""A table, a column, an index."""
_TABLES: Final = (
    "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = database()"
)
_FACTS: Final = "SELECT name, value FROM meta WHERE name IN ('schema_version', 'readable_from', 'migrating')"
_NOTE: Final = "REPLACE INTO meta (name, value) VALUES (?, ?)"
_FORGET: Final = "DELETE FROM meta WHERE name = ?"


@dataclass(frozen=True, slots=True)
class SchemaState:
    """How far a database has been brought."""

    version: SchemaVersion | None = None
    step: str = ""
    """The step that was begun last and has not come to its end."""
    done: int = 0
    """How many of its statements have been carried out, or one more that was not noted."""


async def prepare(link: MySQLConnection, known: Sequence[Migration]) -> None:
    """Check that the database can be ours, and take the migrations that are due. Then hang up."""
    await _check_server(link)
    if await _is_up_to_date(link, known):
        return  # nobody who hangs while it does the same keeps this one waiting
    await link.say(UNLIMITED)
    if not (await link.fetch(f"SELECT GET_LOCK({_LOCK}, {_WAIT_SECONDS})"))[0][0]:
        raise StorageLockedError(WHAT, f"is being brought up to date {await _by_whom(link)}")
    found = await inspect(link)
    try:
        for step in plan_migrations(WHAT, found.version, known):
            await _take(link, step, found.done if step.name == found.step else 0)
    except MySQLError as error:
        ours = translate(error)
        if not isinstance(ours, MissingRightError):
            raise
        raise MissingRightError.at_opening(ours.what, ours.problem) from error


async def _is_up_to_date(link: MySQLConnection, known: Sequence[Migration]) -> bool:
    try:
        found = await inspect(link)
    except ForeignDatabaseError:  # or one whose first table is just being made: whoever has the lock can tell
        return False
    return found.version is not None and not plan_migrations(WHAT, found.version, known)


async def _by_whom(link: MySQLConnection) -> str:
    holder = (await link.fetch(f"SELECT IS_USED_LOCK({_LOCK})"))[0][0]
    return "by another process" if holder is None else f"by connection {holder}"


async def inspect(link: MySQLConnection) -> SchemaState:
    """What the database says about itself; `ForeignDatabaseError` if it is not ours."""
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


async def _take(link: MySQLConnection, step: Migration, done: int) -> None:
    for number, statement in enumerate(statements(step.script)):
        if number < done:
            continue
        # A definition ends the transaction, rows become part of it.
        await link.say("START TRANSACTION")
        try:
            await link.fetch(statement)  # of what is merely said, the driver logs what the server warns of
        except MySQLError as error:
            if number != done or error.args[0] not in _THERE_ALREADY:
                raise
        failpoint("during_migration")
        await link.change(_NOTE, [("migrating", f"{step.name} {number + 1}")])
        await link.say("COMMIT")
        failpoint("during_migration")
    readable_from = min(step.version, READABLE_FROM)  # a step may be the last for a while
    versions = (("schema_version", str(step.version)), ("readable_from", str(readable_from)))
    await link.say("START TRANSACTION")
    await link.change(_NOTE, versions)
    await link.change(_FORGET, [("migrating",)])
    await link.say("COMMIT")


async def _check_server(link: MySQLConnection) -> None:
    said = str((await link.fetch("SELECT version()"))[0][0])
    name = kind_of(said)
    numbers = tuple(int(number) for number in re.findall(r"\d+", said)[:2])
    oldest = OLDEST_SERVERS[name]
    if numbers < oldest:
        wanted = ".".join(map(str, oldest))
        raise UnsupportedStorageError(WHAT, f"{name} {said} is too old, {wanted} or newer is needed")
