"""A database of its own for each test, made once and copied, and a session in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.lanes import open_store


@pytest.fixture
async def db(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionDB]:
    path = tmp_path / "home" / "sessions.db"
    async with SessionDB.open(path, clock=fake_clock, survives_power_cut=False) as opened:
        yield opened


@pytest.fixture
async def session(db: SessionDB) -> str:
    return await db.create_session("s", "cli", user_id="alice")


@pytest.fixture
async def store(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(tmp_path / "home", clock=fake_clock) as opened:
        yield opened
