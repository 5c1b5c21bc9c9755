"""Many connections of MySQL do the same thing at once."""

import pytest

from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.storage.engines.mysql.connection import KINDS, OF_EACH_KIND
from gateway_sessions.storage.engines.mysql.engine import MySQLDriver
from gateway_sessions.storage.tables import meta
from tests.integration.servers.concurrent_transactions import (
    ConcurrentTransactions,
    admit_message,
    run_at_once,
)
from tests.mysql import open_connection


class TestMySQL(ConcurrentTransactions):
    async def test_no_lock_is_left(self, drivers: list[MySQLDriver], address: str):
        await run_at_once(drivers, lambda driver, number: admit_message(str(number), driver))
        async with open_connection(address) as link:
            _, rows = await link.run_texts("START TRANSACTION; SELECT lock_id FROM locks FOR UPDATE NOWAIT")
            await link.run_texts("ROLLBACK")
        assert sorted(row[0] for row in rows) == list(range(1 + len(KINDS) * OF_EACH_KIND))

    async def test_a_lock_that_is_not_there_is_no_lock(self, drivers: list[MySQLDriver], address: str):
        async with open_connection(address) as link:
            await link.run_texts("DELETE FROM locks")
        with pytest.raises(StorageCorruptError, match="table locks"):
            await drivers[0].write(lambda: admit_message("hello", drivers[0]))
        with pytest.raises(StorageCorruptError, match="table locks"):
            await drivers[0].write(lambda: meta.set_fact("fact", 1))
