"""A store is opened on a PostgreSQL server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from gateway_sessions.storage.engines.postgresql import schema
from gateway_sessions.storage.engines.postgresql.locks import MIGRATING, first_lock_queries
from tests.integration.postgresql.test_failing_server import HANG_UP
from tests.integration.servers.opening_on_server import OpeningOnServer


@asynccontextmanager
async def holding(address: str, lock: str) -> AsyncGenerator[int]:
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(f"BEGIN; {lock}")
        yield connection.get_server_pid()
    finally:
        await connection.close()


class TestPostgresql(OpeningOnServer):
    @pytest.fixture
    def address(self, dsn: str) -> str:
        return dsn

    @pytest.fixture
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schema, "LOCK_SECONDS", 1)

    async def cut_others(self, address: str) -> None:
        connection = await asyncpg.connect(address)
        await connection.execute(HANG_UP)
        await connection.close()

    @asynccontextmanager
    async def holding_store(self, address: str) -> AsyncGenerator[int]:
        async with holding(address, first_lock_queries(["lane of somebody"], None)) as number:
            yield number

    @asynccontextmanager
    async def upgrading(self, address: str) -> AsyncGenerator[int]:
        async with holding(address, f"SELECT pg_advisory_xact_lock({MIGRATING})") as number:
            yield number
