"""PostgreSQL keeps the contract."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import Capability, OpenDB, SessionDBContract
from tests.postgresql import delete_all_rows


class TestPostgresql(SessionDBContract):
    capabilities = frozenset[Capability]()

    @pytest_asyncio.fixture
    async def dsn(self, kept: str) -> str:
        await delete_all_rows(kept)
        return kept

    @pytest.fixture
    def open_db(self, tmp_path: Path, dsn: str, clock: FakeClock) -> OpenDB:
        homes = count()
        return lambda: SessionDB.open(dsn, clock=clock, home=tmp_path / str(next(homes)))
