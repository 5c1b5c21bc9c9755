"""A whole gateway on a MySQL server."""

from contextlib import suppress

import pytest

from gateway_sessions.config import Provider
from gateway_sessions.storage.engines.mysql.asyncmy_types import MySQLError
from tests.integration.servers.gateway_on_server import Address, GatewayOnServer
from tests.mysql import open_connection

OTHERS = "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> CONNECTION_ID()"


class TestMySQL(GatewayOnServer):
    @pytest.fixture
    def server(self, address: str) -> Address:
        return Address(Provider.MYSQL, address)

    async def cut_others(self, url: str) -> None:
        async with open_connection(url) as admin:
            for (other,) in await admin.fetch(OTHERS):
                with suppress(MySQLError):  # gone already
                    await admin.run_texts(f"KILL {other}")
