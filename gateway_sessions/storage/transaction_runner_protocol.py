"""The protocol behind the methods of `SessionDB`: run a transaction, read the clock, make ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from gateway_sessions.ports import Clock, Reader, TransactionFactory

T = TypeVar("T")


class TransactionRunner(Protocol):
    """Runs transactions on the database. Only `SessionDB` implements it."""

    path: Path
    """The database file. For a server, a path without a file, beside this machine's own files."""
    place: str
    """The name of the database in errors and for people. It never holds a password."""
    _clock: Clock

    @property
    def _change_ids(self) -> Iterator[int]:
        """Return ids for rows. Writing transactions take them, so that they rise in the order of commits."""
        ...

    def _check_running(self) -> None:
        """Raise `StoreStoppedError` unless the database is open."""
        ...

    async def write(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction; when this returns, its commit is durable."""
        ...

    async def read(self, transaction: TransactionFactory[T]) -> T:
        """Run a transaction that changes nothing; it sees everything acknowledged before."""
        ...

    def view(self) -> AbstractAsyncContextManager[Reader]:
        """Return a reader of its own, whose transactions all see the same moment."""
        ...
