"""Many nodes have one MySQL or MariaDB database open."""

import pytest

from gateway_sessions.storage.engines.mysql import schema as mysql_schema
from gateway_sessions.storage.tables.sql_files import load_migrations
from tests.integration.gateway.unprompted.cluster_schedules import ClusterSchedules
from tests.integration.servers.cluster_agents_and_duties import LeaderDuties, WarmAgents
from tests.integration.servers.cluster_replies import ClusterReplies
from tests.integration.servers.cluster_turns import ClusterTurns
from tests.integration.servers.rolling_updates import RollingUpdates
from tests.mysql import fresh_address, shared_address

__all__ = ["fresh_address", "shared_address"]


class TestNodes(ClusterTurns):
    calls = False

    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestWarmAgents(WarmAgents):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestSchedules(ClusterSchedules):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestDuties(LeaderDuties):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestReplies(ClusterReplies):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestUpdates(RollingUpdates):
    schema = mysql_schema
    shipped = load_migrations("mysql")
