"""The connection beside the pool that sends heartbeats and notifies other nodes by LISTEN/NOTIFY."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, Union, cast

import asyncpg

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.ports import TransactionFactory
from gateway_sessions.storage.engines.postgresql.errors import FOREIGN, translate_error
from gateway_sessions.storage.engines.postgresql.transaction import PostgresConnection
from gateway_sessions.storage.engines.search_column import TokenLanguage
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.engines.server.executor import BegunTransaction, TransactionRun
from gateway_sessions.storage.tables.sql_files import Query

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

T = TypeVar("T")

AnyConnection: TypeAlias = Union[asyncpg.Connection, "PoolConnectionProxy"]
NO_ADDRESS: Final = "this is no address of a PostgreSQL database: postgresql://user@host:5432/name"
CHANNEL: Final = "gateway_sessions"
_CALL: Final = f"SELECT pg_notify('{CHANNEL}', $1)"
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED;SET LOCAL statement_timeout = 5000;SET LOCAL lock_timeout = 2000;"
    "SET LOCAL idle_in_transaction_session_timeout = 5000"
)
"""A node that stops in the middle of a heartbeat keeps its row locked, and other nodes want to remove that
row. So the server ends its transaction after seconds."""
CLOSE_SECONDS: Final = 2.0
"""Seconds to close the connection in order, so that a dead server does not keep a store from closing."""
_PROGRAM: Final = "gateway_sessions"
"""The application name of our connections, unless the address gives another one."""


def program_name_setting(address: str) -> dict[str, str]:
    """Return the server settings of a connection that its address does not give."""
    return {} if "application_name" in address else {"application_name": _PROGRAM}


class Connector(Protocol):
    """Opens and closes the connection beside the pool."""

    async def connect(self) -> AnyConnection:
        """Return a connection that nobody else uses."""
        ...

    async def disconnect(self, connection: AnyConnection) -> None:
        """Close the connection, or return it to its pool."""
        ...


class OwnConnector:
    """Opens a connection of our own beside the pool."""

    def __init__(self, address: str, limits: ServerLimits) -> None:
        self._address = address
        self._limits = limits

    async def connect(self) -> AnyConnection:
        """Return a new connection."""
        try:
            return await asyncpg.connect(
                self._address,
                timeout=self._limits.acquire_seconds,
                command_timeout=self._limits.answer_seconds,
                statement_cache_size=0,
                server_settings=program_name_setting(self._address),
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            raise InvalidInputError(NO_ADDRESS) from None

    async def disconnect(self, connection: AnyConnection) -> None:
        """Close the connection."""
        await connection.close(timeout=CLOSE_SECONDS)


class PoolConnector:
    """Takes the connection from a pool that its maker closes, and keeps it until the engine stops."""

    def __init__(self, pool: asyncpg.Pool, limits: ServerLimits) -> None:
        self._pool = pool
        self._limits = limits

    async def connect(self) -> AnyConnection:
        """Return a connection of the pool."""
        return await self._pool.acquire(timeout=self._limits.acquire_seconds)

    async def disconnect(self, connection: AnyConnection) -> None:
        """Return the connection to the pool."""
        await self._pool.release(cast("PoolConnectionProxy", connection), timeout=CLOSE_SECONDS)


class ListeningConnection:
    """Sends heartbeats and notifications, and listens, on a connection that is reopened when lost."""

    def __init__(
        self,
        wire: Connector,
        limits: ServerLimits,
        hear: Callable[[frozenset[int]], object] | None,
    ) -> None:
        """*hear* gets the epochs of the nodes that are called; None: do not listen, as behind a pooler."""
        self._wire = wire
        self._limits = limits
        self._hear = hear
        self._connection: AnyConnection | None = None
        # A connection can run one query at a time.
        self._turn = asyncio.Lock()

    @property
    def notifies_at_once(self) -> bool:
        """Return True if this node listens for notifications."""
        return self._hear is not None

    async def run_transaction(
        self, queries: Mapping[str, Query], language: TokenLanguage, transaction: TransactionFactory[T]
    ) -> T:
        """Run a transaction that takes none of our locks."""
        async with self._turn:
            try:
                with self._closing_on_failure():
                    connection = await self._ensure_connection()
                    await connection.execute(_BEGIN)
                    run = TransactionRun(PostgresConnection(connection, self._limits), queries, language)
                    result = await run.drive(BegunTransaction(transaction()))
                    await connection.execute("COMMIT")
                    return result
            except FOREIGN as error:
                raise translate_error(error) from error

    async def notify_nodes(self, epochs: frozenset[int]) -> None:
        """Notify other nodes. A lost notification costs one poll, so errors are ignored."""
        if self._hear is None:
            return
        async with self._turn:
            with suppress(*FOREIGN), self._closing_on_failure():
                connection = await self._ensure_connection()
                await connection.execute(_CALL, ",".join(map(str, sorted(epochs))))

    async def close(self) -> None:
        """Stop to listen, and close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*FOREIGN):
                if self._hear is not None:
                    await connection.remove_listener(CHANNEL, self._pass_on_call)
                await self._wire.disconnect(connection)

    async def _ensure_connection(self) -> AnyConnection:
        if self._connection is None or _is_lost(self._connection):
            self._connection = None
            connection = await self._wire.connect()
            self._connection = connection
            if self._hear is not None:
                await connection.add_listener(CHANNEL, self._pass_on_call)
        return self._connection

    def _pass_on_call(self, *call: object) -> None:
        named = [one for one in str(call[-1]).split(",") if one.isdecimal()]
        if self._hear is not None:
            self._hear(frozenset(map(int, named)))

    @contextmanager
    def _closing_on_failure(self) -> Generator[None]:
        """Close the connection if the block fails: its state is unknown then."""
        done = False
        try:
            yield
            done = True
        finally:
            if not done and self._connection is not None:
                with suppress(asyncpg.InterfaceError):  # its pool may have it back already
                    self._connection.terminate()
                self._connection = None


def _is_lost(connection: AnyConnection) -> bool:
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:  # a connection that its pool has back raises instead
        return True
