"""A short cluster run on MariaDB."""

from gateway_sessions.config import Provider
from tests.integration.servers.cluster_run import ClusterRun


class TestMySQL(ClusterRun):
    provider = Provider.MYSQL
