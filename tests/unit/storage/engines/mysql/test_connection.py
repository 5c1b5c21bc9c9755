"""Nobody waits for a connection for longer than it was said, whatever the pool makes of that."""

import asyncio
from dataclasses import replace
from typing import NoReturn

import pytest

from gateway_sessions.storage.engines.mysql.connection import ConnectionLender
from gateway_sessions.storage.engines.server.driver import USUAL


class HardOfHearing:
    """A pool that does not notice that it is cancelled, the first time, and waits for a server."""

    async def acquire(self) -> NoReturn:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # As `asyncio.wait_for` does up to Python 3.11, if what it waits for ends at that moment.
            await asyncio.Event().wait()
        raise AssertionError

    def release(self, conn: object) -> None:
        raise AssertionError


async def test_a_pool_that_is_hard_of_hearing_keeps_nobody_for_longer():
    links = ConnectionLender(HardOfHearing(), replace(USUAL, acquire_seconds=0.05), 1)
    async with asyncio.timeout(15) as too_long:
        with pytest.raises(TimeoutError):
            async with links.lend():
                raise AssertionError
    assert not too_long.expired()
