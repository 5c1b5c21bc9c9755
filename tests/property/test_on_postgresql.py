"""No sequence of calls and restarts makes a database on PostgreSQL differ from the models either."""

from __future__ import annotations

import pytest

from gateway_sessions.config import Provider
from tests.postgresql import empty_database
from tests.property.server_machine import FEW, ServerDatabaseMachine, ServerLedgerMachine


class PostgresDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.POSTGRESQL
    new_database = staticmethod(empty_database)


class PostgresLedgerMachine(ServerLedgerMachine):
    provider = Provider.POSTGRESQL
    new_database = staticmethod(empty_database)


for machine in (PostgresDatabaseMachine, PostgresLedgerMachine):
    machine.TestCase.settings = FEW

patient = pytest.mark.timeout(300)
TestDatabase = patient(PostgresDatabaseMachine.TestCase)
TestLedger = patient(PostgresLedgerMachine.TestCase)
