"""A database to write from and to read into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.testing import FakeClock


@pytest.fixture
async def db(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionDB]:
    path = tmp_path / "one" / "sessions.db"
    async with SessionDB.open(path, clock=fake_clock, survives_power_cut=False) as opened:
        yield opened
