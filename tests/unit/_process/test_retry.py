"""Retries: how long is waited between tries, and what ends them."""

from __future__ import annotations

from collections import deque
from datetime import timedelta

import pytest

from gateway_sessions._process.retry import Backoff, retry
from gateway_sessions.errors import (
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageUnavailableError,
    StoreStoppedError,
)

BACKOFF = Backoff(timedelta(seconds=1), timedelta(seconds=5))
PASSING = (StorageUnavailableError, StorageFullError)


def unavailable() -> StorageError:
    return StorageUnavailableError("the database", "is away")


class Bench:
    """Work that fails as often as errors were given."""

    def __init__(self, *errors: StorageError) -> None:
        self.errors = deque(errors)
        self.slept: list[float] = []
        self.failures: list[StorageError] = []

    async def work(self) -> str:
        if self.errors:
            raise self.errors.popleft()
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def result(self, passing: tuple[type[StorageError], ...] = PASSING) -> str:
        return await retry(self.work, passing, backoff=BACKOFF, sleep=self.sleep, failed=self.failures.append)


@pytest.mark.parametrize(("failures", "seconds"), [(0, 1), (1, 2), (2, 4), (3, 5), (10**9, 5)])
def test_a_pause_doubles_with_each_failure_up_to_the_longest(failures: int, seconds: int):
    assert BACKOFF.after(failures) == timedelta(seconds=seconds)


def test_a_pause_that_is_the_longest_from_the_beginning_stays_the_same():
    always = Backoff(timedelta(seconds=2), timedelta(seconds=2))
    assert {always.after(failures) for failures in range(5)} == {timedelta(seconds=2)}


async def test_what_succeeds_is_done_once_without_any_pause():
    bench = Bench()
    assert await bench.result() == "done"
    assert (bench.slept, bench.failures) == ([], [])


async def test_what_fails_for_a_while_is_tried_until_it_is_done():
    errors = [unavailable() for _ in range(5)]
    bench = Bench(*errors)
    assert await bench.result() == "done"
    assert bench.slept == [1, 2, 4, 5, 5]
    assert bench.failures == errors


@pytest.mark.parametrize(
    "error", [StoreStoppedError("store"), StorageCorruptError("a row", "is damaged"), ValueError("x")]
)
async def test_an_error_that_does_not_pass_ends_the_tries(error: StorageError):
    bench = Bench(unavailable(), error)
    with pytest.raises(type(error)):
        await bench.result()
    assert bench.slept == [1]


async def test_a_store_that_has_stopped_ends_the_tries_even_where_every_storage_error_passes():
    bench = Bench(StoreStoppedError("store"))
    with pytest.raises(StoreStoppedError):
        await bench.result((StorageError,))
    assert (bench.slept, bench.failures) == ([], [])


async def test_whatever_is_raised_on_a_failure_ends_the_tries():
    bench = Bench(unavailable())

    def give_up(error: StorageError) -> None:
        raise error

    with pytest.raises(StorageUnavailableError):
        await retry(bench.work, PASSING, backoff=BACKOFF, sleep=bench.sleep, failed=give_up)
    assert bench.slept == []
