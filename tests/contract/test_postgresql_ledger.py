"""PostgreSQL keeps the contract of the queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway_sessions import SessionStore
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import LedgerContract, OpenStore
from tests.postgresql import delete_all_rows
from tests.unit.runtime.store_fixtures import open_store as opened
from tests.unit.runtime.store_fixtures import quick_config


class TestPostgresql(LedgerContract):
    @pytest_asyncio.fixture
    async def dsn(self, kept: str) -> str:
        await delete_all_rows(kept)
        return kept

    @pytest.fixture
    def open_store(self, tmp_path: Path, dsn: str, clock: FakeClock) -> OpenStore:
        settings = SessionDBConfig(provider=Provider.POSTGRESQL, url=dsn)

        def make(**options: Any) -> SessionStore:
            return opened(
                tmp_path, quick_config(**({"sessiondb": settings} | options)), clock=clock, titler=None
            )

        return make
