from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway_sessions.config import Provider
from tests.postgresql import delete_all_rows, kept_database
from tests.property.database.server_machine import (
    ServerDatabaseMachine,
    ServerLedgerMachine,
    lending_database,
)
from tests.property.machines import machine_test


class PostgresDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.POSTGRESQL
    wipe = staticmethod(delete_all_rows)


class PostgresLedgerMachine(ServerLedgerMachine):
    provider = Provider.POSTGRESQL
    wipe = staticmethod(delete_all_rows)


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    yield from lending_database(kept_database(), PostgresDatabaseMachine, PostgresLedgerMachine)


TestDatabase = machine_test(PostgresDatabaseMachine)
TestLedger = machine_test(PostgresLedgerMachine)
