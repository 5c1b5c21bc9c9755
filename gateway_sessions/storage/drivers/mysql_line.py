"""A connection beside the pool, for what must wait for nobody: saying that one lives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Final, TypeVar, cast

from gateway_sessions.ports import VerbFactory
from gateway_sessions.storage.drivers.limits import Limits
from gateway_sessions.storage.drivers.mysql import hang_up
from gateway_sessions.storage.drivers.mysql_asyncmy import Connection, OwnPool, Pool
from gateway_sessions.storage.drivers.mysql_errors import FOREIGN, translate
from gateway_sessions.storage.drivers.mysql_link import Link, Links
from gateway_sessions.storage.drivers.run import Begun, Run
from gateway_sessions.storage.queries import Query
from gateway_sessions.storage.search_column.languages import Language

T = TypeVar("T")

CACHED_STATEMENTS: Final = 8
"""Room for what a node asks when it says that it lives."""


class OneOfPool:
    """Keeps one connection of a pool that somebody else closes, so that nobody else has it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._kept: Connection | None = None

    async def acquire(self) -> Connection:
        """The connection; another one if it was lost."""
        if self._kept is not None and not self._kept.connected:
            self.close()
        if self._kept is None:
            self._kept = cast("Connection", await self._pool.acquire())
        return self._kept

    def release(self, conn: Connection) -> None:
        """It stays where it is."""

    def close(self) -> None:
        """Let the pool have it back."""
        kept, self._kept = self._kept, None
        if kept is not None:
            self._pool.release(kept)

    async def wait_closed(self) -> None:
        """Nothing is under way on it."""

    def terminate(self) -> None:
        """It is not ours to hang up."""


class Line:
    """One connection, made again whenever it was lost. One thing at a time happens on it."""

    calls: bool = False
    """A server of this kind tells a connection nothing unasked."""

    def __init__(self, connect: Callable[[], Awaitable[OwnPool]], limits: Limits) -> None:
        """*connect* makes a pool of one connection."""
        self._connect = connect
        self._limits = limits
        self._pool: OwnPool | None = None
        self._links: Links | None = None
        self._turn = asyncio.Lock()

    async def run(self, queries: Mapping[str, Query], language: Language, verb: VerbFactory[T]) -> T:
        """Run a verb in a transaction that takes no locks by name."""
        async with self._turn:
            try:
                async with self._lent() as link:
                    await link.begin_aside()
                    result = await Run(link, queries, language).drive(Begun(verb()))
                    await link.commit()
                    return result
            except FOREIGN as error:
                raise translate(error) from error

    async def call(self, epochs: frozenset[int]) -> None:
        """Nobody can be called: whoever is meant looks by itself."""

    async def close(self) -> None:
        """End in order."""
        pool, self._pool, self._links = self._pool, None, None
        if pool is not None:
            await hang_up(pool)

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[Link]:
        """The connection. Whatever does not come to its end ends with it."""
        if self._links is None:
            self._pool = await self._connect()
            self._links = Links(self._pool, self._limits, CACHED_STATEMENTS)
        async with self._links.lent() as link:
            with ExitStack() as hanging_up:
                hanging_up.callback(link.close)
                yield link
                hanging_up.pop_all()
