"""A database of its own for each test, and drivers on it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from gateway_sessions.storage.engines.mysql.engine import MySQLDriver
from tests.integration.servers.running_drivers import DriverResource
from tests.mysql import empty_database

DRIVERS = 4


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with empty_database() as address:
        yield address


@pytest.fixture
async def drivers(address: str) -> AsyncIterator[list[MySQLDriver]]:
    """Of several processes: nothing keeps them in order but the database."""
    async with AsyncExitStack() as stack:
        made = [MySQLDriver(address) for _ in range(DRIVERS)]
        for number, one in enumerate(made):
            await stack.enter_async_context(DriverResource(one))
            one.ids.begin_at((number + 1) << 40)
        yield made
