"""A MySQL connection: its settings, prepared statements, bulk inserts and row locks.

Connections to MySQL and MariaDB: what is set on them, and the statements that the server knows there.

Statements are prepared by the server and get their values apart: nothing is ever quoted or escaped here, so
it does not matter what the server takes for a quote.

Many rows for one statement: as much in one message as a server takes, and says that it understands.

What is set on connections to MySQL and MariaDB, and what begins and ends a transaction there.

How transactions on a MySQL server keep out of each other's way.

A lock that has a name belongs to a connection there, not to a transaction: it would have to be given back,
and after a lost answer nobody could tell whether it was. So locks are the rows of a table of their own. Who
has locked one has it until the end of the transaction, however that comes; it costs no write, and what is not
there yet has a lock as well. Names come to the rows by chance: two that meet in one merely wait for each
other.

The first row is the store as a whole: shared by transactions that name what they decide on, alone for all
others. Each kind of lock has rows of its own. So, as all transactions take the kinds in the same order, lanes
and sessions that meet do not wait for each other in a circle; where others do, the server ends one, which is
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
from gateway_sessions.storage.engines.mysql.asyncmy import (
    CHARSET,
    Connection,
    MySQLError,
    NotSupportedError,
    Pool,
    Prepared,
    Result,
)
from gateway_sessions.storage.engines.mysql.errors import FOREIGN, ONE_AT_A_TIME, WHAT, is_end
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.engines.server.executor import DECLARED_DEAD

MOST_CHARACTERS: Final = 1 << 20
"""In one message. A single row may have more: then it is alone in its message."""


def portions(rows: Sequence[Sequence[object]]) -> Iterator[Sequence[Sequence[object]]]:
    """The rows in their order, each time as many as one message should hold."""
    first = size = 0
    for number, row in enumerate(rows):
        length = sum(len(value) for value in row if isinstance(value, str))
        if number > first and size + length > MOST_CHARACTERS:
            yield rows[first:number]
            first, size = number, 0
        size += length
    if first < len(rows):
        yield rows[first:]


def filled(sql: str, rows: Sequence[Sequence[object]]) -> tuple[str, list[tuple[object, ...]]]:
    """The same statement and rows without the columns that are empty in all of them.

    A server wants to know of what kind the values of a column are; of nothing, nobody can tell.
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
"""A value that does not fit is refused, never cut: half a key would be somebody else's. Of strictness without
the last three, which matter to nothing here, MySQL warns every connection."""
_WRITE: Final = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE"
_READ: Final = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
)
"""How transactions see the work of others: writers all that is committed, readers one moment."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a server is told where a transaction begins and ends."""

    write: str = _WRITE
    read: str = _READ
    commit: str = "COMMIT"
    roll_back: str = "ROLLBACK"


def settings(limits: ServerLimits) -> str:
    """What is set on every connection; the last answer says the version of the server.

    What only one of the servers knows stands in a comment of its kind.
    """
    locks = max(1, math.ceil(limits.lock_seconds))
    idle, idle_view = _idle(limits)
    return (
        f"SET SESSION sql_mode = '{SQL_MODE}', collation_connection = utf8mb4_bin, autocommit = 1, "
        f"innodb_lock_wait_timeout = {locks}, lock_wait_timeout = {locks} "
        f"/*M! , max_statement_time = {limits.statement_seconds}, idle_write_transaction_timeout = {idle}, "
        f"idle_readonly_transaction_timeout = {idle_view} */ "
        f"/*!50708 , max_execution_time = {round(limits.statement_seconds * 1000)} */; SELECT version()"
    )


def phrases(limits: ServerLimits, version: str) -> Phrases:
    """What begins and ends transactions on a server of that version.

    MySQL breaks off no transaction that does nothing, only a connection: so the time that it gives to a
    connection is that of the transaction for as long as one lasts. It comes and goes in the same messages.
    """
    if kind_of(version) == MARIADB:
        return Phrases()
    idle, idle_view = _idle(limits)
    ended = "; SET SESSION wait_timeout = DEFAULT"
    return Phrases(
        f"SET SESSION wait_timeout = {idle}; {_WRITE}",
        f"SET SESSION wait_timeout = {idle_view}; {_READ}",
        f"COMMIT{ended}",
        f"ROLLBACK{ended}",
    )


def kind_of(version: str) -> str:
    """Which of the two says of itself that it has that version."""
    return MARIADB if "mariadb" in version.lower() else MYSQL


def _idle(limits: ServerLimits) -> tuple[int, int]:
    """How many seconds a transaction may do nothing: one that writes, and one that reads."""
    return max(1, math.ceil(limits.idle_seconds)), max(1, math.ceil(limits.view_idle_seconds))


STORE: Final = 0
KINDS: Final = ("lane", "session", "reply", "index")
"""The first words of names that have rows of their own."""
GUESTS: Final = {"mail": "index"}
"""Others, and whose rows they share: who has one of these has no other lock, so nobody waits in a circle."""
OF_EACH_KIND: Final = 1024
"""How many rows it has; the schema makes them."""
TAKE: Final = "SELECT lock_id FROM locks WHERE lock_id = ? FOR UPDATE"
ALONE: Final = "FOR UPDATE"
SHARED: Final = "LOCK IN SHARE MODE"
"""What both kinds of servers understand."""


def number_of(lock: str) -> int:
    """The row that stands for a lock."""
    word = lock.partition(" ")[0]
    kind = KINDS.index(GUESTS.get(word, word))
    digest = blake2b(lock.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + kind * OF_EACH_KIND + int.from_bytes(digest) % OF_EACH_KIND


def entrance_locks(first_lock: str | None) -> tuple[str, ...]:
    """What a changing transaction does before all else: get its first locks."""
    if first_lock is None:
        return (f"{_row(STORE)} {ALONE}",)
    return (f"{_row(STORE)} {SHARED}", f"{_row(number_of(first_lock))} {ALONE}")


def living(epoch: int) -> str:
    """What it asks behind them: nothing is found once its node was declared dead.

    Whoever declares it dead has the first row alone: no earlier change is under way any more.
    """
    return f"SELECT epoch FROM nodes WHERE epoch = {epoch}"  # noqa: S608 -- a number


def _row(number: int) -> str:
    return f"SELECT lock_id FROM locks WHERE lock_id = {number}"  # noqa: S608 -- a number


_ROLL_BACK_SECONDS: Final = 2.0
_UPSERT: Final = "ON DUPLICATE KEY"
_UNPROTECTED: Final = "a login with a password needs ssl-mode=REQUIRED, a socket, or the package cryptography"


class MySQLConnection:
    """A connection with the statements that the server knows there."""

    def __init__(
        self, connection: Connection, seconds: float, most_statements: int, phrases: Phrases
    ) -> None:
        self._connection = connection
        self._seconds = seconds
        self._most_statements = most_statements
        self._phrases = phrases
        self._known: dict[str, Prepared] = {}
        self._takes_many = True
        """Whether the server has not said yet that it takes one row at a time."""

    def patient(self, seconds: float) -> MySQLConnection:
        """The same connection for what may take long."""
        return MySQLConnection(self._connection, seconds, self._most_statements, self._phrases)

    async def say(self, text: str) -> list[Sequence[Row]]:
        """Run statements without values, all at once; the rows that each of them finds."""
        return await _said(self._connection, text, self._seconds)

    async def begin_writing(self, lock: str | None, epoch: int | None) -> None:
        """Begin a transaction that has this lock; `NodeSilentError` if the node was declared dead."""
        entrance = entrance_locks(lock)
        asked = () if epoch is None else (living(epoch),)
        answers = await self.say("; ".join((self._phrases.write, *entrance, *asked)))
        found = answers[-len(entrance) - len(asked) :]
        for locked in found[: len(entrance)]:
            _must_exist(locked)
        if asked and not found[-1]:
            raise NodeSilentError(WHAT, DECLARED_DEAD)

    async def begin_aside(self) -> None:
        """Begin a transaction that waits for no lock by name."""
        await self.say(self._phrases.write)

    async def begin_reading(self, *, view: bool) -> None:
        """Begin a transaction that sees this moment until it ends. How long that may be is set already."""
        del view
        await self.say(self._phrases.read)

    async def take(self, lock: str) -> None:
        """Wait until nobody else has the lock. By then all that was done under it can be seen."""
        _must_exist(await self.fetch(TAKE, (number_of(lock),)))

    async def fetch(self, sql: str, params: Sequence[object] = ()) -> Sequence[Row]:
        """The rows that a query finds. Whatever is stored is text: a key is merely compared as bytes."""
        rows = (await self._run(sql, params)).rows or ()
        return [tuple(map(_as_text, row)) if bytes in map(type, row) else row for row in rows]

    async def change(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        """How many rows a statement has changed, run with each of these rows of values."""
        changed = 0
        for some in portions(rows):
            at_once = await self._change_at_once(sql, some)
            changed += await self._change_one_by_one(sql, some) if at_once is None else at_once
        return changed

    async def commit(self) -> None:
        """End the transaction: what it has done stands."""
        await self.say(self._phrases.commit)

    async def undo(self, error: BaseException) -> None:
        """Roll back; a connection that cannot do that, or of which nobody knows where it is, is closed."""
        if _ends(error):
            self.close()
            return
        try:
            with anyio.CancelScope(shield=True):
                await _said(self._connection, self._phrases.roll_back, _ROLL_BACK_SECONDS)
        except FOREIGN:
            self.close()

    def close(self) -> None:
        """Hang up: the server undoes what was not committed."""
        self._known.clear()
        self._connection.close()

    async def _change_at_once(self, sql: str, rows: Sequence[Sequence[object]]) -> int | None:
        """The same in one message, which MariaDB takes; None if it cannot be done so, and was not."""
        if not self._takes_many or len(rows) == 1:
            return None
        said, values = filled(sql, rows)
        try:
            result = await self._use(said, lambda statement: statement.execute_bulk(values))
        except NotSupportedError:
            self._takes_many = False
            return None
        except MySQLError as error:
            if error.args[0] != ONE_AT_A_TIME:
                raise
            return None
        except (
            OverflowError,
            UnicodeEncodeError,
        ):  # values of several kinds; or which one is wrong, is told below
            return None
        return min(result.affected_rows, len(rows)) if _UPSERT in sql else result.affected_rows

    async def _change_one_by_one(self, sql: str, rows: Sequence[Sequence[object]]) -> int:
        changed = 0
        for params in rows:
            affected = (await self._run(sql, params)).affected_rows
            # A row that was there already is counted twice.
            changed += min(affected, 1) if _UPSERT in sql else affected
        return changed

    async def _run(self, sql: str, params: Sequence[object]) -> Result:
        return await self._use(sql, lambda statement: statement.execute(tuple(params)))

    async def _use(self, sql: str, ask: Callable[[Prepared], Awaitable[Result]]) -> Result:
        try:
            async with asyncio.timeout(self._seconds):
                statement = self._known.pop(sql, None) or await self._connection.prepare(sql)
                self._known[sql] = statement  # the last that may be forgotten
                if len(self._known) > self._most_statements:
                    await self._forget_one()
                return await ask(statement)
        except UnicodeEncodeError:
            raise
        except ValueError as error:
            problem = "a number has more than 64 bits"
            raise OverflowError(problem) from error

    async def _forget_one(self) -> None:
        oldest = next(iter(self._known))
        await self._known.pop(oldest).close()


class Links:
    """Lends the connections of a pool, each set up once."""

    def __init__(self, pool: Pool, limits: ServerLimits, most_statements: int) -> None:
        self._pool = pool
        self._limits = limits
        self._most_statements = max(most_statements, 1)
        self._links: dict[tuple[Connection, int], MySQLConnection] = {}
        """By the connection, and by what the server calls it: somebody may have made it anew."""

    @asynccontextmanager
    async def lent(self) -> AsyncGenerator[MySQLConnection]:
        """A connection that is ours alone until the end of the block."""
        connection = await borrowed(self._pool, self._limits)
        try:
            key = (connection, connection.thread_id())
            if key not in self._links:
                self._forget_the_closed()
                self._links[key] = await self._set_up(connection)
            yield self._links[key]
        finally:
            self._pool.release(connection)  # one that was closed is replaced

    def _forget_the_closed(self) -> None:
        self._links = {key: link for key, link in self._links.items() if key[0].connected}

    async def _set_up(self, connection: Connection) -> MySQLConnection:
        if connection.character_set_name() != CHARSET:
            problem = f"the connections of the pool must be made with charset={CHARSET!r}"
            raise InvalidInputError(problem)
        seconds = self._limits.answer_seconds
        try:
            *_, found = await _said(connection, settings(self._limits), seconds)
        except BaseException:
            connection.close()
            raise
        return MySQLConnection(
            connection, seconds, self._most_statements, phrases(self._limits, str(found[0][0]))
        )


async def borrowed(pool: Pool, limits: ServerLimits) -> Connection:
    """A connection of a pool, in time."""
    try:
        # Cancelled again at every pause: while it connects, asyncmy may fail to notice that it was once.
        with anyio.fail_after(limits.acquire_seconds):
            return cast("Connection", await pool.acquire())
    except RuntimeError as error:  # the pool is closed, or a way to log in needs a package
        problem = _UNPROTECTED if "cryptography" in str(error) else str(error)
        raise StorageUnavailableError(WHAT, problem) from error


async def _said(connection: Connection, text: str, seconds: float) -> list[Sequence[Row]]:
    async with asyncio.timeout(seconds):
        cursor = connection.cursor()
        await cursor.execute(text)
        answers = [await cursor.fetchall()]
        while await cursor.nextset():
            answers.append(await cursor.fetchall())
    return answers


def _ends(error: BaseException) -> bool:
    """Whether a connection on which this happened cannot be used again.

    Somebody was cancelled: perhaps while an answer was on its way, which nobody would read.
    """
    return isinstance(error, asyncio.CancelledError) or is_end(error)


def _must_exist(found: Sequence[Row]) -> None:
    if not found:  # whoever finds nothing to lock has locked nothing
        raise StorageCorruptError(WHAT, "table locks lacks rows; bring them back from a copy of the database")


def _as_text(value: object) -> object:
    return value.decode() if isinstance(value, bytes) else value
