"""What was settled long ago is forgotten every hour, whatever the database said the last time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway_sessions import SessionStore
from gateway_sessions.errors import StorageUnavailableError, StoreStoppedError
from gateway_sessions.runtime.duties.expiry import QueueCleanup
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.queue.bench import accept, answer, fates
from tests.unit.runtime.store_fixtures import open_store


class FailingLedger:
    """Fails as it is told to, then not any more."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked = 0

    @property
    def writes_begun(self) -> int:
        return self.asked

    async def first_settled_at(self) -> datetime:
        return datetime(2020, 1, 1, tzinfo=UTC)

    async def forget_settled(self, _before: object) -> int:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return 0


@pytest.fixture
async def store(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(tmp_path / "home", clock=fake_clock) as opened:
        yield opened


async def test_an_open_store_forgets_once_the_window_of_duplicates_has_passed(
    store: SessionStore, fake_clock: FakeClock
):
    await accept(store, "one")
    await answer(store)
    fake_clock.step(timedelta(days=6, hours=22))
    await fake_clock.advance(hours=1)
    assert await fates(store) == {"turned": 1}
    await fake_clock.advance(hours=2)
    assert await fates(store) == {}


async def test_a_database_that_fails_is_asked_again_an_hour_later(
    fake_clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    ledger = FailingLedger(StorageUnavailableError("disk", "is gone"))
    with caplog.at_level(logging.ERROR):
        duty = asyncio.ensure_future(QueueCleanup(ledger, fake_clock, timedelta(days=7)).run())  # type: ignore[arg-type]
        await fake_clock.advance(hours=1)
        await fake_clock.advance(hours=1)
    assert ledger.asked == 2
    assert [getattr(one, "action", None) for one in caplog.records] == ["forget_failed"]
    duty.cancel()
    await asyncio.wait({duty})


async def test_it_ends_with_its_store(fake_clock: FakeClock):
    ledger = FailingLedger(StoreStoppedError("database"))
    duty = asyncio.ensure_future(QueueCleanup(ledger, fake_clock, timedelta(days=7)).run())  # type: ignore[arg-type]
    await fake_clock.advance(hours=1)
    await asyncio.wait({duty})
    assert duty.result() is None
