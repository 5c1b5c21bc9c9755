"""A database on a server as the whole database of a store, for those that only read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn, TypeVar

from gateway_sessions.errors import StorageError
from gateway_sessions.ports import Clock, Statement, VerbFactory
from gateway_sessions.storage.drivers.server import ServerDriver
from gateway_sessions.storage.engine import Upkeep

T = TypeVar("T")


class ReadServer(ServerDriver):
    """Runs reading verbs. It makes no table, and takes no lock that anybody would wait for."""

    upkeep: Upkeep | None = None
    place: str
    path: Path

    @asynccontextmanager
    async def owned(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Readers own nothing."""
        del clock, wait
        yield

    async def write(self, verb: VerbFactory[T]) -> T:
        """Nothing can be written here."""
        self._refuse()

    async def change(self, statement: Statement) -> int:
        """Nothing can be changed here."""
        self._refuse()

    @property
    def shared(self) -> None:
        """Whoever only reads is no node."""

    def begin_epoch(self, epoch: int, first_id: int) -> Iterator[int]:
        """Nobody takes an id here."""
        del epoch, first_id
        return self.ids

    def end_with(self, verb: VerbFactory[None]) -> None:
        """There is nothing to settle."""

    def _refuse(self) -> NoReturn:
        raise StorageError(self.place, "was opened for reading; ask its owner to change something")
