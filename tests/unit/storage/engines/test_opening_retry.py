"""What is tried again while a store is opened, and for how long."""

from datetime import timedelta

import pytest

from gateway_sessions._process.retry import Backoff
from gateway_sessions.errors import (
    MissingRightError,
    NodeSilentError,
    StorageCorruptError,
    StorageError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.storage.engines import opening_retry
from gateway_sessions.storage.engines.opening_retry import OpeningRetry

AWAY = StorageUnavailableError("PostgreSQL", "cannot be reached")
LOCKED = StorageLockedError("PostgreSQL", "a lock was not free in time")
SILENT = NodeSilentError("PostgreSQL", "not heard")


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FOR_LOCKS", "WHILE_AWAY"):
        brief = Backoff(timedelta(milliseconds=1), timedelta(milliseconds=2))
        monkeypatch.setattr(opening_retry, name, brief)
    monkeypatch.setattr(opening_retry, "LEAST_SECONDS", 0.0)


class Failing:
    """Fails so often, and then does not."""

    def __init__(self, error: Exception, times: int) -> None:
        self.error = error
        self.left = times
        self.tries = 0

    async def __call__(self) -> str:
        self.tries += 1
        if self.left:
            self.left -= 1
            raise self.error
        return "opened"


async def nobody() -> str:
    return ""


async def somebody() -> str:
    return "connection 7 holds the lock of the store"


@pytest.mark.parametrize("error", [AWAY, LOCKED, SILENT])
async def test_what_may_pass_is_tried_again_while_a_store_is_opened(error: StorageError):
    retry, failing = OpeningRetry(10, nobody), Failing(error, 5)
    with retry.while_opening():
        assert await retry.run_with_retries(failing) == "opened"
    assert failing.tries == 6


@pytest.mark.parametrize(
    "error",
    [
        MissingRightError("PostgreSQL", "permission denied"),
        StorageCorruptError("PostgreSQL", "damaged"),
        ValueError("a fault of ours"),
    ],
)
async def test_nothing_else_is(error: Exception):
    retry, failing = OpeningRetry(10, nobody), Failing(error, 1)
    with retry.while_opening(), pytest.raises(type(error)):
        await retry.run_with_retries(failing)
    assert failing.tries == 1


async def test_nothing_is_tried_again_of_a_store_that_is_open():
    retry, failing = OpeningRetry(10, nobody), Failing(AWAY, 1)
    with retry.while_opening():
        pass
    with pytest.raises(StorageUnavailableError):
        await retry.run_with_retries(failing)
    assert failing.tries == 1


async def test_nor_of_a_store_that_is_on_no_server():
    retry, failing = OpeningRetry(10, None), Failing(LOCKED, 1)
    with retry.while_opening(), pytest.raises(StorageLockedError):
        await retry.run_with_retries(failing)
    assert failing.tries == 1


async def test_the_wait_is_one_for_all_that_opening_takes():
    retry = OpeningRetry(0.05, nobody)
    with retry.while_opening():
        with pytest.raises(StorageUnavailableError):
            await retry.run_with_retries(Failing(AWAY, 1000))
        late = Failing(AWAY, 1)
        with retry.while_opening(), pytest.raises(StorageUnavailableError):
            await retry.run_with_retries(late)
    assert late.tries == 1


async def test_who_waits_for_nothing_waits_for_the_locks_of_others_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(opening_retry, "LEAST_SECONDS", 10.0)
    for error, tries in ((LOCKED, 3), (SILENT, 3), (AWAY, 1)):
        retry, failing = OpeningRetry(0, nobody), Failing(error, 2)
        with retry.while_opening():
            if error is AWAY:
                with pytest.raises(StorageUnavailableError):
                    await retry.run_with_retries(failing)
            else:
                assert await retry.run_with_retries(failing) == "opened"
        assert failing.tries == tries


async def test_who_holds_a_lock_is_told_in_the_end():
    retry = OpeningRetry(0, somebody)
    with retry.while_opening(), pytest.raises(StorageLockedError, match="in time; connection 7 holds"):
        await retry.run_with_retries(Failing(LOCKED, 1))


async def test_of_a_server_that_is_away_nobody_is_asked_who_holds_it():
    retry = OpeningRetry(0, somebody)
    with retry.while_opening(), pytest.raises(StorageUnavailableError) as refused:
        await retry.run_with_retries(Failing(AWAY, 1))
    assert "connection 7" not in str(refused.value)


async def test_if_nobody_can_tell_who_it_is_the_error_is_told_as_it_was():
    async def cannot_tell() -> str:
        raise AWAY

    for blockers in (cannot_tell, nobody):
        retry = OpeningRetry(0, blockers)
        with retry.while_opening(), pytest.raises(StorageLockedError, match=r"in time$"):
            await retry.run_with_retries(Failing(LOCKED, 1))
