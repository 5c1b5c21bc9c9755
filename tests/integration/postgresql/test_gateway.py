"""A whole gateway on a PostgreSQL server."""

import asyncpg
import pytest

from gateway_sessions.config import Provider
from tests.integration.servers.gateway_on_server import Address, GatewayOnServer

CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class TestPostgresql(GatewayOnServer):
    @pytest.fixture
    def server(self, dsn: str) -> Address:
        return Address(Provider.POSTGRESQL, dsn)

    async def cut_others(self, url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(CUT)
        await connection.close()
