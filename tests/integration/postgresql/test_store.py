"""A store on a PostgreSQL server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway_sessions.config import Provider
from tests.integration.servers.store_on_server import StoreOnServer


class TestStore(StoreOnServer):
    provider, package, extra = Provider.POSTGRESQL, "asyncpg", "postgres"
    wrong = ("postgresql://me:hunter2@127.0.0.1:1/x", "postgres://me:hunter2@[/x")
    two_of_the_same = ("a:x@h/db", "b:y@h/db?sslmode=require")
    others = ("h/other", "h2/db", "/db?host=h3", "/db?host=h4")

    @pytest.fixture
    def address(self, dsn: str) -> str:
        return dsn

    @asynccontextmanager
    async def with_password(self, address: str) -> AsyncIterator[str]:
        yield address.replace("postgres@", "postgres:hunter2@")
