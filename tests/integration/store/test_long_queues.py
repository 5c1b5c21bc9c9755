"""The longer the queue of a lane, the longer it lasts; its turns in a file take no longer."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TypeVar

import pytest

from gateway_sessions.ports import Transaction
from gateway_sessions.storage.engines.sqlite.worker import run_transaction
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.integration.servers.long_queues import Bench, LongQueues
from tests.raw_sql import migrated_in_memory

T = TypeVar("T")


class SqliteBench(Bench):
    """Counts the steps of the machine that SQLite is."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._queries = load_queries("sqlite")
        self._steps = 0
        connection.set_progress_handler(self._step, 1)

    async def run(self, transaction: Transaction[T]) -> T:
        return await in_thread(partial(run_transaction, self._connection, self._queries, transaction))

    async def read_so_far(self) -> int:
        return self._steps

    async def analyze_tables(self) -> None:
        await in_thread(partial(self._connection.execute, "ANALYZE"))

    def _step(self) -> None:
        self._steps += 1


class TestSqlite(LongQueues):
    @pytest.fixture
    def bench(self) -> Iterator[Bench]:
        with closing(migrated_in_memory()) as connection:
            yield SqliteBench(connection)
