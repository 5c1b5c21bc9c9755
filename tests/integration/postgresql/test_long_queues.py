"""The longer the queue of a lane, the longer it lasts; its turns take no longer."""

from collections.abc import AsyncIterator
from typing import TypeVar

import asyncpg
import pytest

from gateway_sessions.ports import Transaction
from gateway_sessions.storage.engines.postgresql.transaction import PostgresConnection
from gateway_sessions.storage.engines.search_column import TSVECTOR
from gateway_sessions.storage.engines.server.driver import USUAL
from gateway_sessions.storage.engines.server.executor import BegunTransaction, TransactionRun
from gateway_sessions.storage.tables.sql_files import load_queries
from tests.integration.servers.long_queues import Bench, LongQueues
from tests.postgresql import connected_migrated_database

T = TypeVar("T")

QUERIES = load_queries("postgresql", "store", "search_column")
READ = """
    SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::bigint
    FROM pg_class WHERE relname LIKE 'inbox%'
"""


class PostgresBench(Bench):
    """Counts the rows of the inbox that the server has read, and the places in its indexes."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        super().__init__()
        self._connection = connection

    async def run(self, transaction: Transaction[T]) -> T:
        return await TransactionRun(PostgresConnection(self._connection, USUAL), QUERIES, TSVECTOR).drive(
            BegunTransaction(transaction)
        )

    async def read_so_far(self) -> int:
        read: int = await self._connection.fetchval(READ)
        return read

    async def analyze_tables(self) -> None:
        await self._connection.execute("ANALYZE inbox")


class TestPostgres(LongQueues):
    @pytest.fixture
    async def bench(self) -> AsyncIterator[Bench]:
        async with connected_migrated_database() as connection:
            await connection.execute("BEGIN")
            yield PostgresBench(connection)
            await connection.execute("ROLLBACK")
