"""A short cluster run on PostgreSQL."""

import pytest

from gateway_sessions.config import Provider
from tests.integration.servers.cluster_run import ClusterRun


class TestPostgresql(ClusterRun):
    provider = Provider.POSTGRESQL

    @pytest.fixture
    def address(self, dsn: str) -> str:
        return dsn
