"""No sequence of calls and restarts makes a database on PostgreSQL differ from the models either."""

from __future__ import annotations

from gateway_sessions.config import Provider
from tests.postgresql import empty_database
from tests.property.server_machine import ServerDatabaseMachine, ServerLedgerMachine, tried


class PostgresDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.POSTGRESQL
    new_database = staticmethod(empty_database)


class PostgresLedgerMachine(ServerLedgerMachine):
    provider = Provider.POSTGRESQL
    new_database = staticmethod(empty_database)


TestDatabase = tried(PostgresDatabaseMachine)
TestLedger = tried(PostgresLedgerMachine)
