"""Many nodes have one MySQL or MariaDB database open."""

import pytest

from gateway_sessions.storage.engines.mysql import schema as mysql_schema
from gateway_sessions.storage.tables.queries import load_migrations
from tests.integration.many_nodes import ManyNodes
from tests.integration.one_of_many import DutiesOfOne, WarmAgents
from tests.integration.replies_on_nodes import RepliesOnNodes
from tests.integration.rolling_updates import RollingUpdates
from tests.mysql import fresh_address, shared_address

__all__ = ["fresh_address", "shared_address"]


class TestNodes(ManyNodes):
    calls = False

    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestWarmAgents(WarmAgents):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestDuties(DutiesOfOne):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestReplies(RepliesOnNodes):
    @pytest.fixture
    def address(self, fresh_address: str) -> str:
        return fresh_address


class TestUpdates(RollingUpdates):
    schema = mysql_schema
    shipped = load_migrations("mysql")
