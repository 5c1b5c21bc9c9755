"""SQLite keeps the contract."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract import Capability, OpenDB, SessionDBContract


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without anything in it: to copy one takes a fraction of what it takes to make it."""
    path = tmp_path_factory.mktemp("empty") / "sessions.db"
    asyncio.run(open_once(path))
    return path


async def open_once(path: Path) -> None:
    async with SessionDB.open(path):
        pass


class TestSqlite(SessionDBContract):
    capabilities = frozenset(Capability)

    @pytest.fixture
    def open_db(self, tmp_path: Path, empty: Path, clock: FakeClock) -> OpenDB:
        path = tmp_path / "home" / "sessions.db"
        path.parent.mkdir()
        shutil.copy(empty, path)
        return partial(SessionDB.open, path, clock=clock, survives_power_cut=False)
