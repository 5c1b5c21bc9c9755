from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway_sessions.config import Provider
from tests.mysql import kept_database, wipe
from tests.property.database.server_machine import ServerDatabaseMachine, ServerLedgerMachine, lent
from tests.property.machines import tried


class MySQLDatabaseMachine(ServerDatabaseMachine):
    provider = Provider.MYSQL
    wipe = staticmethod(wipe)


class MySQLLedgerMachine(ServerLedgerMachine):
    provider = Provider.MYSQL
    wipe = staticmethod(wipe)


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    yield from lent(kept_database(), MySQLDatabaseMachine, MySQLLedgerMachine)


TestDatabase = tried(MySQLDatabaseMachine)
TestLedger = tried(MySQLLedgerMachine)
