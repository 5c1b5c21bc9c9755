"""The loop of a duty: what it does between sweeps, and what ends it."""

from __future__ import annotations

import logging
from collections import deque

import pytest

from gateway_sessions.errors import (
    SessionBusyError,
    StorageError,
    StorageUnavailableError,
    StoreStoppedError,
)
from gateway_sessions.runtime.duty import failure_reporter, repeat_sweep

UNAVAILABLE = StorageUnavailableError("the database", "is away")
STOPPED = StoreStoppedError("store")


class Bench:
    """Sweeps with these outcomes, one after the other."""

    def __init__(self, *outcomes: str | Exception) -> None:
        self.outcomes = deque(outcomes)
        self.rests: list[str] = []

    async def sweep(self) -> str:
        outcome = self.outcomes.popleft()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def rest(self, outcome: str) -> None:
        self.rests.append(outcome)


async def test_a_duty_rests_after_each_sweep_by_what_the_sweep_returned():
    bench = Bench("one", "two", STOPPED)
    await repeat_sweep(bench.sweep, bench.rest, failed=str)
    assert bench.rests == ["one", "two"]


async def test_a_store_that_has_stopped_ends_a_duty_in_silence():
    bench, failures = Bench(STOPPED, "never"), list[str]()

    def failed(error: Exception) -> str:
        failures.append(str(error))
        return ""

    await repeat_sweep(bench.sweep, bench.rest, failed=failed)
    assert (bench.rests, failures, list(bench.outcomes)) == ([], [], ["never"])


async def test_a_duty_goes_on_after_a_storage_error_by_what_was_made_of_it():
    bench = Bench("one", UNAVAILABLE, "two", STOPPED)
    await repeat_sweep(bench.sweep, bench.rest, failed=lambda error: type(error).__name__)
    assert bench.rests == ["one", "StorageUnavailableError", "two"]


@pytest.mark.parametrize("error", [ValueError("x"), SessionBusyError("key", "abc")])
async def test_any_other_error_ends_a_duty_and_is_seen(error: Exception):
    bench = Bench("one", error)
    with pytest.raises(type(error)):
        await repeat_sweep(bench.sweep, bench.rest, failed=str)


async def test_a_duty_names_what_else_passes():
    bench = Bench(SessionBusyError("key", "abc"), UNAVAILABLE, STOPPED)
    passing = (StorageError, SessionBusyError)
    await repeat_sweep(bench.sweep, bench.rest, failed=lambda _: "later", passing=passing)
    assert bench.rests == ["later", "later"]


def test_a_failed_sweep_is_reported_with_its_error_and_action(caplog: pytest.LogCaptureFixture):
    logger = logging.getLogger("test_duty")
    failure_reporter(logger, "it could not be swept", {"action": "sweep_failed"}, logging.WARNING)(
        UNAVAILABLE
    )
    (record,) = caplog.records
    assert record.exc_info is not None
    assert (record.getMessage(), record.levelno, record.exc_info[1]) == (
        "it could not be swept",
        logging.WARNING,
        UNAVAILABLE,
    )
    assert record.__dict__["action"] == "sweep_failed"
