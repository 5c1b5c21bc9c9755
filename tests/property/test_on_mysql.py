"""No sequence of calls and restarts makes a database on MySQL differ from the models either."""

from __future__ import annotations

from gateway_sessions.config import Provider
from tests.mysql import empty_database
from tests.property.server_machine import ServerDatabaseMachine, ServerLedgerMachine, tried


class MySQLDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.MYSQL
    new_database = staticmethod(empty_database)


class MySQLLedgerMachine(ServerLedgerMachine):
    provider = Provider.MYSQL
    new_database = staticmethod(empty_database)


TestDatabase = tried(MySQLDatabaseMachine)
TestLedger = tried(MySQLLedgerMachine)
