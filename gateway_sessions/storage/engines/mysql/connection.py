"""A MySQL connection: its settings, prepared statements, bulk inserts and row locks.

The server prepares the statements and gets their values apart. Nothing is quoted or escaped here, so the
server's settings for quotes do not matter. Where a server takes several rows for one statement, they are
sent in one message.

**Locks.** A named lock of MySQL belongs to a connection, not to a transaction of the database: we would have
to release it, and after a lost answer nobody could tell whether it was released. So our locks are rows of
the table `locks`. A transaction of the database that has locked a row has it until its end, whatever ends
it; that writes nothing, and a lane that has no row yet has a lock as well. A hash chooses the row of a name:
two names with the same row merely wait for each other.

The first row is the lock of the whole store. A transaction that names its locks shares it; any other one has
it alone. Each kind of lock has a range of rows. All transactions take the kinds in the same order, so lanes
and sessions do not wait for each other in a circle. Where others do, the server ends one of them, which is
run afresh.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, cast

import anyio

from gateway_sessions.errors import (
    InvalidInputError,
    NodeSilentError,
    StorageCorruptError,
    StorageUnavailableError,
)
from gateway_sessions.ports import Row
from gateway_sessions.storage.engines.mysql.asyncmy_types import (
    CHARSET,
    Connection,
    MySQLError,
    NotSupportedError,
    Pool,
    PreparedStatement,
    StatementResult,
)
from gateway_sessions.storage.engines.mysql.errors import FOREIGN, ONE_AT_A_TIME, WHAT, ends_connection
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.engines.server.executor import DECLARED_DEAD

MOST_CHARACTERS: Final = 1 << 20
"""The most characters in one message, well below the usual `max_allowed_packet`. A single longer row is sent
alone."""


def portions_of_rows(rows: Sequence[Sequence[object]]) -> Iterator[Sequence[Sequence[object]]]:
    """Yield the rows in their order, each time as many as one message should hold."""
    first = size = 0
    for number, row in enumerate(rows):
        length = sum(len(value) for value in row if isinstance(value, str))
        if number > first and size + length > MOST_CHARACTERS:
            yield rows[first:number]
            first, size = number, 0
        size += length
    if first < len(rows):
        yield rows[first:]


def without_null_columns(sql: str, rows: Sequence[Sequence[object]]) -> tuple[str, list[tuple[object, ...]]]:
    """Return the statement and the rows without the columns that are null in all rows.

    In a bulk insert the server has to be told the type of each column, and a null has none.
    """
    used = [any(value is not None for value in column) for column in zip(*rows, strict=True)]
    before, *behind = sql.split("?")
    said = "".join(f"{'?' if use else 'NULL'}{text}" for use, text in zip(used, behind, strict=True))
    return before + said, [tuple(value for value, use in zip(row, used, strict=True) if use) for row in rows]


MARIADB: Final = "MariaDB"
MYSQL: Final = "MySQL"
SQL_MODE: Final = (
    "STRICT_ALL_TABLES,ONLY_FULL_GROUP_BY,NO_ENGINE_SUBSTITUTION,"
    "NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO"
)
"""Strict, so that a value which does not fit is refused and never cut: half of a key would be the key of
another lane. The last three matter to nothing here; without them MySQL warns on every connection."""
_WRITE: Final = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE"
_READ: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
)
"""A writing transaction sees all that is committed; a reading one sees one snapshot."""


@dataclass(frozen=True, slots=True)
class TransactionTexts:
    """Holds the texts that begin and end a transaction of the database."""

    write: str = _WRITE
    read: str = _READ
    commit: str = "COMMIT"
    roll_back: str = "ROLLBACK"


def connection_settings(limits: ServerLimits) -> str:
    """Return the text that sets up a connection; its last answer is the version of the server.

    Settings that only one of MySQL and MariaDB knows stand in comments that only that server reads.
    """
    locks = max(1, math.ceil(limits.lock_seconds))
    idle, idle_view = _idle_seconds(limits)
    return (
        f"SET SESSION sql_mode = '{SQL_MODE}', collation_connection = utf8mb4_bin, autocommit = 1, "
        f"innodb_lock_wait_timeout = {locks}, lock_wait_timeout = {locks} "
        f"/*M! , max_statement_time = {limits.statement_seconds}, idle_write_transaction_timeout = {idle}, "
        f"idle_readonly_transaction_timeout = {idle_view} */ "
        f"/*!50708 , max_execution_time = {round(limits.statement_seconds * 1000)} */; SELECT version()"
    )


def transaction_texts(limits: ServerLimits, version: str) -> TransactionTexts:
    """Return the texts that begin and end transactions on a server of that version.

    MySQL has no time limit for an idle transaction, only one for an idle connection. So each transaction
    sets the limit of its connection when it begins, and sets it back when it ends, in the same messages.
    """
    if server_kind(version) == MARIADB:
        return TransactionTexts()
    idle, idle_view = _idle_seconds(limits)
    ended = "; SET SESSION wait_timeout = DEFAULT"
    return TransactionTexts(
        f"SET SESSION wait_timeout = {idle}; {_WRITE}",
        f"SET SESSION wait_timeout = {idle_view}; {_READ}",
        f"COMMIT{ended}",
        f"ROLLBACK{ended}",
    )


def server_kind(version: str) -> str:
    """Return which of MySQL and MariaDB reports that version."""
    return MARIADB if "mariadb" in version.lower() else MYSQL


def _idle_seconds(limits: ServerLimits) -> tuple[int, int]:
    """Return the seconds for which a writing and a reading transaction may be idle."""
    return max(1, math.ceil(limits.idle_seconds)), max(1, math.ceil(limits.view_idle_seconds))


STORE: Final = 0
"""The row of the lock of the whole store."""
KINDS: Final = ("lane", "session", "reply", "index")
"""The first words of lock names that have rows of their own."""
GUESTS: Final = {"mail": "index"}
"""Kinds of locks without rows of their own, and the kind whose rows they use. A transaction with such a lock
has no other one, so nobody waits in a circle."""
OF_EACH_KIND: Final = 1024
"""The number of rows for each kind of lock, which the schema creates. More rows mean that fewer names share
one."""
TAKE: Final = "SELECT lock_id FROM locks WHERE lock_id = ? FOR UPDATE"
ALONE: Final = "FOR UPDATE"
SHARED: Final = "LOCK IN SHARE MODE"
"""The form of a shared lock that both MySQL and MariaDB understand."""


def lock_row_of(lock: str) -> int:
    """Return the number of the row that stands for a lock."""
    word = lock.partition(" ")[0]
    kind = KINDS.index(GUESTS.get(word, word))
    digest = blake2b(lock.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + kind * OF_EACH_KIND + int.from_bytes(digest) % OF_EACH_KIND


def first_lock_queries(first_lock: str | None) -> tuple[str, ...]:
    """Return the statements that take the first locks of a writing transaction."""
    if first_lock is None:
        return (f"{_lock_row_query(STORE)} {ALONE}",)
    return (f"{_lock_row_query(STORE)} {SHARED}", f"{_lock_row_query(lock_row_of(first_lock))} {ALONE}")


def living_node_query(epoch: int) -> str:
    """Return the query that finds nothing once the node was declared dead.

    It runs after the first locks. The node that declares another one dead has the lock of the store alone,
    so none of the dead node's earlier changes is still running then.
    """
    return f"SELECT epoch FROM nodes WHERE epoch = {epoch}"  # noqa: S608 -- a number


def _lock_row_query(number: int) -> str:
    return f"SELECT lock_id FROM locks WHERE lock_id = {number}"  # noqa: S608 -- a number


_ROLL_BACK_SECONDS: Final = 2.0
"""A connection that does not roll back in that time is closed, which rolls back as well."""
_UPSERT: Final = "ON DUPLICATE KEY"
_UNPROTECTED: Final = "a login with a password needs ssl-mode=REQUIRED, a socket, or the package cryptography"


class MySQLConnection:
    """Runs statements on one connection, and keeps them prepared there."""

    def __init__(
        self, connection: Connection, seconds: float, most_statements: int, phrases: TransactionTexts
    ) -> None:
        self._connection = connection
        self._seconds = seconds
        self._most_statements = most_statements
        self._phrases = phrases
        self._prepared: dict[str, PreparedStatement] = {}
        self._takes_many = True
        """True until the server says that it takes one row at a time."""

    def with_time_limit(self, seconds: float) -> MySQLConnection:
        """Return the same connection with another time limit for answers."""
        return MySQLConnection(self._connection, seconds, self._most_statements, self._phrases)

    async def run_texts(self, text: str) -> list[Sequence[Row]]:
        """Run statements without values in one message; return the rows that each of them finds."""
        return await _run_texts_within(self._connection, text, self._seconds)

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin to write under this lock; raise `NodeSilentError` if the node was declared dead."""
        entrance = first_lock_queries(lock)
        asked = () if epoch is None else (living_node_query(epoch),)
        answers = await self.run_texts("; ".join((self._phrases.write, *entrance, *asked)))
        found = answers[-len(entrance) - len(asked) :]
        for locked in found[: len(entrance)]:
            _require_lock_row(locked)
        if asked and not found[-1]:
            raise NodeSilentError(WHAT, DECLARED_DEAD)

    async def begin_without_locks(self) -> None:
        """Begin to write without any of our locks."""
        await self.run_texts(self._phrases.write)

    async def begin_reading(self, *, view: bool) -> None:
        """Begin to read one snapshot. The time limits were set with the connection."""
        del view
        await self.run_texts(self._phrases.read)

    async def take_lock(self, lock: str) -> None:
        """Wait until no other transaction has the lock, and take it. Its changes are visible then."""
        _require_lock_row(await self.fetch(TAKE, (lock_row_of(lock),)))

    async def fetch(self, sql: str, params: Sequence[object] = ()) -> Sequence[Row]:
        """Return the rows that a query finds, with keys, which are compared as bytes, as texts."""
        rows = (await self._run_prepared(sql, params)).rows or ()
        return [tuple(map(_decode_bytes, row)) if bytes in map(type, row) else row for row in rows]

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """Run a statement with each of these rows; return how many rows of the table it has changed."""
        changed = 0
        for some in portions_of_rows(rows):
            at_once = await self._change_at_once(sql, some)
            changed += await self._change_one_by_one(sql, some) if at_once is None else at_once
        return changed

    async def commit(self) -> None:
        """Commit the transaction of the database."""
        await self.run_texts(self._phrases.commit)

    async def roll_back_after(self, error: BaseException) -> None:
        """Roll back after *error*; close the connection if it cannot do that, or its state is unknown."""
        if _ends_connection(error):
            self.close()
            return
        try:
            with anyio.CancelScope(shield=True):
                await _run_texts_within(self._connection, self._phrases.roll_back, _ROLL_BACK_SECONDS)
        except FOREIGN:
            self.close()

    def close(self) -> None:
        """Close the connection: the server rolls back what was not committed."""
        self._prepared.clear()
        self._connection.close()

    async def _change_at_once(self, sql: str, rows: Sequence[Sequence[object]]) -> int | None:
        """Send all rows in one message, as MariaDB can; return None if nothing was changed by that."""
        if not self._takes_many or len(rows) == 1:
            return None
        said, values = without_null_columns(sql, rows)
        try:
            result = await self._with_prepared(said, lambda statement: statement.execute_bulk(values))
        except NotSupportedError:
            self._takes_many = False
            return None
        except MySQLError as error:
            if error.args[0] != ONE_AT_A_TIME:
                raise
            return None
        except (OverflowError, UnicodeEncodeError):
            # A column has values of several types, or a bad value: row by row, the error is the right one.
            return None
        return min(result.affected_rows, len(rows)) if _UPSERT in sql else result.affected_rows

    async def _change_one_by_one(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        changed = 0
        for params in rows:
            affected = (await self._run_prepared(sql, params)).affected_rows
            # MySQL counts an upsert that changes a present row as two.
            changed += min(affected, 1) if _UPSERT in sql else affected
        return changed

    async def _run_prepared(self, sql: str, params: Sequence[object]) -> StatementResult:
        return await self._with_prepared(sql, lambda statement: statement.execute(tuple(params)))

    async def _with_prepared(
        self, sql: str, ask: Callable[[PreparedStatement], Awaitable[StatementResult]]
    ) -> StatementResult:
        try:
            async with asyncio.timeout(self._seconds):
                statement = self._prepared.pop(sql, None) or await self._connection.prepare(sql)
                self._prepared[sql] = (
                    statement  # put back at the end: the least recently used one is forgotten first
                )
                if len(self._prepared) > self._most_statements:
                    await self._close_oldest_prepared()
                return await ask(statement)
        except UnicodeEncodeError:
            raise
        except ValueError as error:
            problem = "a number has more than 64 bits"
            raise OverflowError(problem) from error

    async def _close_oldest_prepared(self) -> None:
        oldest = next(iter(self._prepared))
        await self._prepared.pop(oldest).close()


class ConnectionLender:
    """Lends the connections of a pool, each of which is set up once."""

    def __init__(self, pool: Pool, limits: ServerLimits, most_statements: int) -> None:
        self._pool = pool
        self._limits = limits
        self._most_statements = max(most_statements, 1)
        self._links: dict[tuple[Connection, int], MySQLConnection] = {}
        """The key has the server's number of the connection: after a reconnect the settings are gone."""

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[MySQLConnection]:
        """Lend a connection to the caller alone until the end of the block."""
        connection = await borrow_connection(self._pool, self._limits)
        try:
            key = (connection, connection.thread_id())
            if key not in self._links:
                self._forget_closed_connections()
                self._links[key] = await self._configure(connection)
            yield self._links[key]
        finally:
            self._pool.release(connection)  # the pool replaces a closed one

    def _forget_closed_connections(self) -> None:
        self._links = {key: link for key, link in self._links.items() if key[0].connected}

    async def _configure(self, connection: Connection) -> MySQLConnection:
        if connection.character_set_name() != CHARSET:
            problem = f"the connections of the pool must be made with charset={CHARSET!r}"
            raise InvalidInputError(problem)
        seconds = self._limits.answer_seconds
        try:
            *_, found = await _run_texts_within(connection, connection_settings(self._limits), seconds)
        except BaseException:
            connection.close()
            raise
        return MySQLConnection(
            connection, seconds, self._most_statements, transaction_texts(self._limits, str(found[0][0]))
        )


async def borrow_connection(pool: Pool, limits: ServerLimits) -> Connection:
    """Return a connection of the pool, within the time that one may be waited for."""
    try:
        # While it connects, asyncmy may swallow a cancellation; this scope cancels again at every pause.
        with anyio.fail_after(limits.acquire_seconds):
            return cast("Connection", await pool.acquire())
    except RuntimeError as error:  # the pool is closed, or the login needs a package
        problem = _UNPROTECTED if "cryptography" in str(error) else str(error)
        raise StorageUnavailableError(WHAT, problem) from error


async def _run_texts_within(connection: Connection, text: str, seconds: float) -> list[Sequence[Row]]:
    async with asyncio.timeout(seconds):
        cursor = connection.cursor()
        await cursor.execute(text)
        answers = [await cursor.fetchall()]
        while await cursor.nextset():
            answers.append(await cursor.fetchall())
    return answers


def _ends_connection(error: BaseException) -> bool:
    """Return True if a connection cannot be used again after that error.

    After a cancellation an answer may still be on its way, and the next query would take it for its own.
    """
    return isinstance(error, asyncio.CancelledError) or ends_connection(error)


def _require_lock_row(found: Sequence[Row]) -> None:
    if not found:  # without its row nothing was locked
        raise StorageCorruptError(WHAT, "table locks lacks rows; bring them back from a copy of the database")


def _decode_bytes(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value
