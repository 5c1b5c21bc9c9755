"""A store whose policy resets nothing by itself, and the clock it lives by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.store_fixtures import open_store


@pytest.fixture
def clock(fake_clock: FakeClock) -> FakeClock:
    return fake_clock


@pytest.fixture
async def store(home: Path, clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(home, clock=clock) as opened:
        yield opened
