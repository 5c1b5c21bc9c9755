"""One database for all tests of a module, emptied for each: opening one takes longer than most tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock
from tests.unit.storage.sessions.session_fixtures import delete_all_rows, open_database


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, clock: FakeClock) -> AsyncIterator[SessionDB]:
    async with open_database(tmp_path_factory.mktemp("sessions"), clock) as database:
        yield database


@pytest.fixture
def db(shared: SessionDB) -> SessionDB:
    delete_all_rows(shared)
    return shared
