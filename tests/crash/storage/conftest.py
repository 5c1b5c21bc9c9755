"""What the tests of a failing storage share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.crash.kills.store_workload import START
from tests.crash.storage.faulty_driver import ALONE, FaultyDriver
from tests.crash.stores import DrivenStore, SteppedClock, driven_store


@pytest.fixture
async def faulty_store(tmp_path: Path) -> AsyncIterator[tuple[DrivenStore, FaultyDriver, SteppedClock]]:
    drivers: list[FaultyDriver] = []

    def make_driver(path: Path) -> FaultyDriver:
        drivers.append(FaultyDriver(path))
        return drivers[0]

    clock = SteppedClock(START)
    async with driven_store(tmp_path, make_driver, ALONE, clock=clock) as store:
        yield store, drivers[0], clock
