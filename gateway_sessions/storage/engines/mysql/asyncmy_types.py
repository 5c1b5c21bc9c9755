"""Typed declarations for the parts of asyncmy that the engine uses, and the pool it makes."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

import asyncmy
from asyncmy.constants import CLIENT
from asyncmy.errors import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    MySQLError,
    NotSupportedError,
    ProgrammingError,
)

from gateway_sessions.ports import Row

__all__ = [
    "CHARSET",
    "DataError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "MySQLError",
    "NotSupportedError",
    "ProgrammingError",
    "make_pool",
]

CHARSET: Final = "utf8mb4"


class StatementResult(Protocol):
    """Holds what asyncmy returns for a statement."""

    rows: Sequence[Row] | None
    affected_rows: int


class PreparedStatement(Protocol):
    """A statement that is prepared on the server."""

    async def execute(self, args: Sequence[object] = ()) -> StatementResult:
        """Run the statement with these values."""
        ...

    async def execute_bulk(self, rows: Sequence[Sequence[object]]) -> StatementResult:
        """Run the statement with each of these rows, in one message."""
        ...

    async def close(self) -> None:
        """Deallocate the statement on the server."""
        ...


class Cursor(Protocol):
    """Runs texts that may hold several statements."""

    async def execute(self, query: str) -> object:
        """Run the text up to the result of its first statement."""
        ...

    async def fetchall(self) -> Sequence[Row]:
        """Return the rows of the current result."""
        ...

    async def nextset(self) -> object:
        """Go on to the next result; return None if there is none."""
        ...


class Connection(Protocol):
    """Declares the part of asyncmy's connections that we use; they have no types of their own."""

    @property
    def connected(self) -> bool:
        """Return False once the driver has noticed that the connection is closed."""
        ...

    async def prepare(self, query: str) -> PreparedStatement:
        """Prepare a statement on the server."""
        ...

    def cursor(self) -> Cursor:
        """Return a cursor."""
        ...

    def close(self) -> None:
        """Close the connection without waiting for the server."""
        ...

    def thread_id(self) -> int:
        """Return the server's number of the connection; it changes when the driver reconnects."""
        ...

    def character_set_name(self) -> str:
        """Return the character set in which texts are sent."""
        ...


class Pool(Protocol):
    """Lends connections, as a pool of asyncmy does."""

    def acquire(self) -> Awaitable[Any]:
        """Borrow a connection."""
        ...

    def release(self, conn: Any) -> object:
        """Return a connection to the pool, which replaces one that was closed."""
        ...


class ClosablePool(Pool, Protocol):
    """A pool that the engine closes itself."""

    def close(self) -> object:
        """Lend no more connections."""
        ...

    async def wait_closed(self) -> object:
        """Wait until all connections are returned, and close them."""
        ...

    def terminate(self) -> object:
        """Close all connections at once."""
        ...


async def make_pool(connections: int, seconds: float, arguments: Mapping[str, Any]) -> ClosablePool:
    """Return a pool that opens a connection when one is needed, with these *arguments*."""
    usual: dict[str, Any] = {
        "charset": CHARSET,
        "client_flag": CLIENT.FOUND_ROWS,  # a change counts rows that it finds, as on the other engines
        "program_name": "gateway_sessions",
    }
    pool = await asyncmy.create_pool(  # pyright: ignore[reportUnknownMemberType] -- it has few types
        minsize=0, maxsize=connections, autocommit=True, connect_timeout=seconds, **usual | dict(arguments)
    )
    return cast("ClosablePool", pool)
