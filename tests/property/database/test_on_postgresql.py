from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway_sessions.config import Provider
from tests.postgresql import kept_database, wipe
from tests.property.database.server_machine import ServerDatabaseMachine, ServerLedgerMachine, lent
from tests.property.machines import tried


class PostgresDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.POSTGRESQL
    wipe = staticmethod(wipe)


class PostgresLedgerMachine(ServerLedgerMachine):
    provider = Provider.POSTGRESQL
    wipe = staticmethod(wipe)


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    yield from lent(kept_database(), PostgresDatabaseMachine, PostgresLedgerMachine)


TestDatabase = tried(PostgresDatabaseMachine)
TestLedger = tried(PostgresLedgerMachine)
