"""Many nodes have one PostgreSQL database open."""

import pytest

from gateway_sessions.storage.engines.postgresql import schema as postgresql_schema
from gateway_sessions.storage.tables.sql_files import load_migrations
from tests.integration.gateway.unprompted.cluster_schedules import ClusterSchedules
from tests.integration.servers.cluster_agents_and_duties import LeaderDuties, WarmAgents
from tests.integration.servers.cluster_replies import ClusterReplies
from tests.integration.servers.cluster_turns import ClusterTurns
from tests.integration.servers.rolling_updates import RollingUpdates


@pytest.fixture
def address(dsn: str) -> str:
    return dsn


class TestNodes(ClusterTurns):
    calls = True


class TestWarmAgents(WarmAgents):
    pass


class TestSchedules(ClusterSchedules):
    pass


class TestDuties(LeaderDuties):
    pass


class TestReplies(ClusterReplies):
    pass


class TestUpdates(RollingUpdates):
    schema = postgresql_schema
    shipped = load_migrations("postgresql")
