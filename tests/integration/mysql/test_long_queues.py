"""The longer the queue of a lane, the longer it lasts; its turns take no longer."""

from collections.abc import AsyncIterator
from typing import TypeVar

import pytest

from gateway_sessions.ports import Transaction
from gateway_sessions.storage.engines.mysql.connection import MySQLConnection
from gateway_sessions.storage.engines.search_column import FULLTEXT
from gateway_sessions.storage.engines.server.executor import BegunTransaction, TransactionRun
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.integration.servers.long_queues import Bench, LongQueues
from tests.mysql import migrated_database_at, open_connection

T = TypeVar("T")

QUERIES = load_queries("mysql", "store", "search_column")
READ = "SHOW SESSION STATUS LIKE 'Handler_read%'"


class MySQLBench(Bench):
    """Counts the rows that the server has read."""

    def __init__(self, link: MySQLConnection) -> None:
        super().__init__()
        self._link = link

    async def run(self, transaction: Transaction[T]) -> T:
        return await TransactionRun(self._link, QUERIES, FULLTEXT).drive(BegunTransaction(transaction))

    async def read_so_far(self) -> int:
        return sum(int(row[1]) for row in await self._link.fetch(READ))

    async def analyze_tables(self) -> None:
        await self._link.fetch("ANALYZE TABLE inbox")


class TestMySQL(LongQueues):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[Bench]:
        async with migrated_database_at() as address, open_connection(address) as link:
            yield MySQLBench(link)
