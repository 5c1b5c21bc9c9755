"""A store is opened on a MySQL or MariaDB server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from gateway_sessions.storage.engines.mysql import schema
from gateway_sessions.storage.engines.mysql.asyncmy_types import MySQLError
from gateway_sessions.storage.engines.mysql.connection import first_lock_queries
from tests.integration.mysql.test_gateway import OTHERS
from tests.integration.servers.opening_on_server import OpeningOnServer
from tests.mysql import open_connection

FOREVER = "SET SESSION autocommit = 1 /*M! , idle_write_transaction_timeout = 0 */"
NUMBER = "SELECT connection_id()"


class TestMySQL(OpeningOnServer):
    @pytest.fixture
    def impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schema, "_WAIT_SECONDS", 1)

    async def cut_others(self, address: str) -> None:
        async with open_connection(address) as link:
            for (other,) in await link.fetch(OTHERS):
                with suppress(MySQLError):  # gone already
                    await link.run_texts(f"KILL {other}")

    @asynccontextmanager
    async def holding_store(self, address: str) -> AsyncGenerator[int]:
        async with open_connection(address) as link:
            await link.run_texts("; ".join([FOREVER, "BEGIN", *first_lock_queries("lane x")]))
            yield int((await link.fetch(NUMBER))[0][0])

    @asynccontextmanager
    async def upgrading(self, address: str) -> AsyncGenerator[int]:
        async with open_connection(address) as link:
            assert (await link.fetch(f"SELECT GET_LOCK({schema._LOCK}, 0)"))[0][0] == 1  # noqa: SLF001 -- its name
            yield int((await link.fetch(NUMBER))[0][0])
