"""A database of its own for each test, and drivers on it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from tests.integration.servers.running_drivers import DriverResource
from tests.postgresql import empty_database

DRIVERS = 4


@pytest.fixture
async def dsn() -> AsyncIterator[str]:
    async with empty_database() as dsn:
        yield dsn


@pytest.fixture
async def drivers(dsn: str) -> AsyncIterator[list[PostgresDriver]]:
    """Of several processes: nothing keeps them in order but the database."""
    async with AsyncExitStack() as stack:
        made = [PostgresDriver(dsn) for _ in range(DRIVERS)]
        for number, one in enumerate(made):
            await stack.enter_async_context(DriverResource(one))
            one.ids.begin_at((number + 1) << 40)
        yield made
