"""Many connections of PostgreSQL do the same thing at once."""

import asyncpg

from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from tests.integration.servers.concurrent_transactions import (
    ConcurrentTransactions,
    admit_message,
    run_at_once,
)

HELD = """
    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class TestPostgresql(ConcurrentTransactions):
    async def test_no_lock_is_left(self, drivers: list[PostgresDriver], dsn: str):
        await run_at_once(drivers, lambda driver, number: admit_message(str(number), driver))
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval(HELD) == 0
        await connection.close()
