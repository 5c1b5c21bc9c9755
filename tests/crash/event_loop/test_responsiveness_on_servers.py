"""The event loop goes on while the server stands still: it keeps all connections, and answers nothing."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionStore
from gateway_sessions.config import Provider, SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.errors import StorageError
from tests.cluster.databases import database_at
from tests.cluster.server import Server, make_server, own_server
from tests.crash.event_loop.heartbeat import LONGEST_GAP, call_everything, heartbeat, smallest_gap
from tests.crash.kills.store_workload import START, key, source
from tests.crash.store_calls import prepare_for_call
from tests.crash.stores import SteppedClock

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

STILL_SECONDS = 3.0
FOR_EVER = 240.0
"""Nobody waits for longer: forty calls at once wait for each other, and give up one after another."""
SERVERS = pytest.mark.parametrize("provider", [Provider.POSTGRESQL, Provider.MYSQL])


class Clock(SteppedClock):
    """Says the time of the script, and lets whoever sleeps wake up: nodes have to say that they live."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def running(provider: Provider) -> AsyncIterator[Server]:
    """A server of its own: one process that stands still may hold what all others of a server wait for."""
    if make_server(Path(tempfile.gettempdir()), provider) is None:
        missing = f"a {provider} server is held still here, and its programs are not on this machine"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    async with own_server(provider) as server:
        yield server


async def while_it_stands_still(server: Server, home: Path, seconds: float, outcomes: list[str]) -> float:
    """The largest gap while every call waits for an answer; their errors are added to *outcomes*."""
    settings = SessionDBConfig(provider=database_at(server.address).provider, url=server.address)
    config = Config(
        timezone="UTC", sessiondb=settings, sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF)
    )
    clock = Clock(START)
    async with SessionStore.open(home, config, clock=clock) as store:
        await prepare_for_call(store, clock)
        async with heartbeat() as heart:
            async with server.paused():
                calls = asyncio.create_task(call_everything(store))
                done, _ = await asyncio.wait({calls}, timeout=seconds)
            assert bool(done) == (seconds == FOR_EVER), "these calls have waited too long, or for nothing"
            async with asyncio.timeout(60):
                outcomes += await calls
                await goes_on(store)
    return heart.largest


async def goes_on(store: SessionStore) -> None:
    """Until the store can be used again; nobody who waits for that meets anything but errors of ours."""
    while True:
        try:
            await store.get_or_create_session(source("b"))
            assert await store.peek_session_id(key("b")) is not None
        except StorageError:
            await asyncio.sleep(0.1)
        else:
            return


@SERVERS
async def test_the_loop_goes_on_while_the_server_stands_still(provider: Provider, tmp_path: Path):
    outcomes: list[str] = []
    async with running(provider) as server:
        gap = await smallest_gap(
            tmp_path, lambda home: while_it_stands_still(server, home, STILL_SECONDS, outcomes)
        )
    assert gap < LONGEST_GAP
    assert outcomes == []


@SERVERS
@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_nobody_waits_for_ever_for_a_server_that_stands_still(provider: Provider, tmp_path: Path):
    outcomes: list[str] = []
    async with running(provider) as server:
        gap = await smallest_gap(
            tmp_path, lambda home: while_it_stands_still(server, home, FOR_EVER, outcomes)
        )
    assert gap < LONGEST_GAP
    assert outcomes, "nobody was told that the server did not answer"
