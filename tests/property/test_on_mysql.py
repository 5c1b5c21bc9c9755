"""No sequence of calls and restarts makes a database on MySQL differ from the models either."""

from __future__ import annotations

import pytest

from gateway_sessions.config import Provider
from tests.mysql import empty_database
from tests.property.server_machine import FEW, ServerDatabaseMachine, ServerLedgerMachine


class MySQLDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.MYSQL
    new_database = staticmethod(empty_database)


class MySQLLedgerMachine(ServerLedgerMachine):
    provider = Provider.MYSQL
    new_database = staticmethod(empty_database)


for machine in (MySQLDatabaseMachine, MySQLLedgerMachine):
    machine.TestCase.settings = FEW

patient = pytest.mark.timeout(300)
TestDatabase = patient(MySQLDatabaseMachine.TestCase)
TestLedger = patient(MySQLLedgerMachine.TestCase)
