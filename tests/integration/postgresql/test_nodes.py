"""Many nodes have one PostgreSQL database open."""

import pytest

from gateway_sessions.storage.drivers import postgresql_schema
from gateway_sessions.storage.queries import load_migrations
from tests.integration.many_nodes import ManyNodes
from tests.integration.rolling_updates import RollingUpdates


@pytest.fixture
def address(dsn: str) -> str:
    return dsn


class TestNodes(ManyNodes):
    calls = True


class TestUpdates(RollingUpdates):
    schema = postgresql_schema
    shipped = load_migrations("postgresql")
