"""A driver that lets one statement fail as SQLite does, and a store that runs on it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import TypeVar

from gateway_sessions import Config, StorageError
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.errors import (
    StorageCorruptError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.ports import Transaction, TransactionFactory
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine

T = TypeVar("T")

ALONE = Config(timezone="UTC", sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF))
"""Nothing but the call itself runs statements."""

FAULTS: dict[str, tuple[type[sqlite3.Error], int, type[StorageError]]] = {
    "busy": (sqlite3.OperationalError, sqlite3.SQLITE_BUSY, StorageLockedError),
    "read_error": (sqlite3.OperationalError, sqlite3.SQLITE_IOERR_READ, StorageUnavailableError),
    "full": (sqlite3.OperationalError, sqlite3.SQLITE_FULL, StorageFullError),
    "corrupt": (sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT, StorageCorruptError),
    "no_database": (sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB, StorageCorruptError),
    "cannot_open": (sqlite3.OperationalError, sqlite3.SQLITE_CANTOPEN, StorageUnavailableError),
    "read_only": (sqlite3.OperationalError, sqlite3.SQLITE_READONLY, StorageUnavailableError),
    "interrupted": (sqlite3.OperationalError, sqlite3.SQLITE_INTERRUPT, StorageUnavailableError),
    "anything_else": (sqlite3.OperationalError, sqlite3.SQLITE_ERROR, StorageError),
}


def fault(name: str) -> sqlite3.Error:
    kind, code, _ = FAULTS[name]
    error = kind(name)
    error.sqlite_errorcode = code
    return error


class FaultyDriver(SqliteEngine):
    """Lets the n-th statement from now on fail; those of a duty of the store do not count."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.left = 0
        self.error: sqlite3.Error | None = None
        self.task: asyncio.Task[object] | None = None

    def arm(self, nth: int, error: sqlite3.Error) -> None:
        self.left, self.error, self.task = nth, error, asyncio.current_task()

    @property
    def fired(self) -> bool:
        return self.left <= 0

    async def write(self, transaction: TransactionFactory[T]) -> T:
        return await super().write(self._armed(transaction))

    async def read(self, transaction: TransactionFactory[T]) -> T:
        return await super().read(self._armed(transaction))

    def _armed(self, transaction: TransactionFactory[T]) -> TransactionFactory[T]:
        return transaction if asyncio.current_task() is not self.task else lambda: self._faulty(transaction())

    def _faulty(self, transaction: Transaction[T]) -> Transaction[T]:
        try:
            statement = next(transaction)
            while True:
                self.left -= 1
                if self.left == 0 and self.error is not None:
                    raise self.error
                statement = transaction.send((yield statement))
        except StopIteration as stop:
            return stop.value
        finally:
            transaction.close()
