"""A connection beside the pool, for what must wait for nobody: saying that one lives, and calling others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import asyncpg

from gateway_sessions.ports import VerbFactory
from gateway_sessions.storage.drivers.limits import Limits
from gateway_sessions.storage.drivers.postgresql_errors import FOREIGN, translate
from gateway_sessions.storage.drivers.postgresql_link import PostgresLink
from gateway_sessions.storage.drivers.run import Begun, Run
from gateway_sessions.storage.queries import Query
from gateway_sessions.storage.search_column.languages import Language

T = TypeVar("T")

CHANNEL: Final = "gateway_sessions"
_CALL: Final = f"SELECT pg_notify('{CHANNEL}', $1)"
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED;SET LOCAL statement_timeout = 5000;SET LOCAL lock_timeout = 2000;"
    "SET LOCAL idle_in_transaction_session_timeout = 5000"
)
"""Whoever stops in the middle keeps its row, which others want to remove."""
_CLOSE_SECONDS: Final = 2.0


class Line:
    """One connection, made again whenever it was lost. One thing at a time happens on it."""

    def __init__(
        self,
        connect: Callable[[], Coroutine[Any, Any, asyncpg.Connection]],
        limits: Limits,
        hear: Callable[[frozenset[int]], object] | None,
    ) -> None:
        """*hear* is told who was called; None: nobody listens, as behind a pooler."""
        self._connect = connect
        self._limits = limits
        self._hear = hear
        self._connection: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    @property
    def calls(self) -> bool:
        """Whether a node hears when another one calls it."""
        return self._hear is not None

    async def run(self, queries: Mapping[str, Query], language: Language, verb: VerbFactory[T]) -> T:
        """Run a verb in a transaction that takes no locks by name."""
        async with self._turn:
            try:
                with self._hanging_up():
                    connection = await self._connected()
                    await connection.execute(_BEGIN)
                    run = Run(PostgresLink(connection, self._limits), queries, language)
                    result = await run.drive(Begun(verb()))
                    await connection.execute("COMMIT")
                    return result
            except FOREIGN as error:
                raise translate(error) from error

    async def call(self, epochs: frozenset[int]) -> None:
        """Call others. Nothing is lost if nobody hears it."""
        if self._hear is None:
            return
        async with self._turn:
            with suppress(*FOREIGN), self._hanging_up():
                connection = await self._connected()
                await connection.execute(_CALL, ",".join(map(str, sorted(epochs))))

    async def close(self) -> None:
        """End in order."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*FOREIGN):
                await connection.close(timeout=_CLOSE_SECONDS)

    async def _connected(self) -> asyncpg.Connection:
        if self._connection is None or self._connection.is_closed():
            connection = await self._connect()
            self._connection = connection
            if self._hear is not None:
                await connection.add_listener(CHANNEL, self._heard)
        return self._connection

    def _heard(self, *call: object) -> None:
        named = [one for one in str(call[-1]).split(",") if one.isdecimal()]
        if self._hear is not None:
            self._hear(frozenset(map(int, named)))

    @contextmanager
    def _hanging_up(self) -> Generator[None]:
        """Whatever does not come to its end ends with the connection."""
        done = False
        try:
            yield
            done = True
        finally:
            if not done and self._connection is not None:
                self._connection.terminate()
                self._connection = None
