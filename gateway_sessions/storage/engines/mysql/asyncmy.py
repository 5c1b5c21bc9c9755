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


class Result(Protocol):
    """What asyncmy says a statement has done."""

    rows: Sequence[Row] | None
    affected_rows: int


class Prepared(Protocol):
    """A statement that the server knows."""

    async def execute(self, args: Sequence[object] = ()) -> Result:
        """Run it with these values."""
        ...

    async def execute_bulk(self, rows: Sequence[Sequence[object]]) -> Result:
        """Run it with each of these rows, in one message."""
        ...

    async def close(self) -> None:
        """Let the server forget it."""
        ...


class Cursor(Protocol):
    """Runs texts that may hold several statements."""

    async def execute(self, query: str) -> object:
        """Run the text up to the result of its first statement."""
        ...

    async def fetchall(self) -> Sequence[Row]:
        """The rows of the present result."""
        ...

    async def nextset(self) -> object:
        """Go on to the next result; nothing if there is none."""
        ...


class Connection(Protocol):
    """What we use of asyncmy's connections, which have no types of their own."""

    @property
    def connected(self) -> bool:
        """Whether it is open, as far as is known here."""
        ...

    async def prepare(self, query: str) -> Prepared:
        """Let the server know a statement."""
        ...

    def cursor(self) -> Cursor:
        """Runs texts."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...

    def thread_id(self) -> int:
        """What the server calls the connection; another number after it was made anew."""
        ...

    def character_set_name(self) -> str:
        """How texts are sent."""
        ...


class Pool(Protocol):
    """Connections that are lent; a pool of asyncmy."""

    def acquire(self) -> Awaitable[Any]:
        """Borrow a connection."""
        ...

    def release(self, conn: Any) -> object:
        """Give it back; one that was closed is replaced."""
        ...


class OwnPool(Pool, Protocol):
    """A pool that we close ourselves."""

    def close(self) -> object:
        """Lend nothing any more."""
        ...

    async def wait_closed(self) -> object:
        """Wait until all is given back, and hang up."""
        ...

    def terminate(self) -> object:
        """Hang up at once."""
        ...


async def make_pool(connections: int, seconds: float, arguments: Mapping[str, Any]) -> OwnPool:
    """A pool that connects when somebody needs it, to wherever the *arguments* say."""
    usual: dict[str, Any] = {
        "charset": CHARSET,
        "client_flag": CLIENT.FOUND_ROWS,
        "program_name": "gateway_sessions",
    }
    pool = await asyncmy.create_pool(  # pyright: ignore[reportUnknownMemberType] -- it has few types
        minsize=0, maxsize=connections, autocommit=True, connect_timeout=seconds, **usual | dict(arguments)
    )
    return cast("OwnPool", pool)
