"""SQLite keeps the contract of the queue."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.bench import OpenStore
from gateway_sessions.testing.contract.queue.contract import LedgerContract
from tests.unit.runtime.store_fixtures import open_store as opened
from tests.unit.runtime.store_fixtures import quick_config

UNWRITTEN = SessionsJsonConfig(mode=SnapshotMode.OFF)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without anything in it: to copy one takes a fraction of what it takes to make it."""
    home = tmp_path_factory.mktemp("empty")
    asyncio.run(open_once(home))
    return home / "sessions.db"


async def open_once(home: Path) -> None:
    async with opened(home):
        pass


class TestSqlite(LedgerContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path, empty: Path, clock: FakeClock) -> OpenStore:
        home = tmp_path / "home"
        home.mkdir()
        shutil.copy(empty, home)

        def make(**options: Any) -> SessionStore:
            return opened(
                home, quick_config(**({"sessions_json": UNWRITTEN} | options)), clock=clock, titler=None
            )

        return make
