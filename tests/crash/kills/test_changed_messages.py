"""An edit or a deletion that a kill cuts off was carried out and is known, or neither: on all engines."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

from gateway_sessions import Accepted, Config, Duplicate, SessionStore
from gateway_sessions.config import Provider, SessionDBConfig
from gateway_sessions.core.queue.inbound import MessageKind
from gateway_sessions.testing.clock import FakeClock
from gateway_sessions.testing.contract.queue.bursts import BURSTS, SIZES, Burst, commit, say
from gateway_sessions.testing.faults import count_passes
from tests import mysql, postgresql
from tests.programs import WarmPython

CONFIG = Config.from_mapping({"sessions_json": {"mode": "off"}, "timezone": "UTC"})
CHANGES = """
    import asyncio, sys
    from gateway_sessions import Config, SessionStore
    from gateway_sessions.core.queue.inbound import MessageKind
    from gateway_sessions.testing.contract.queue.bursts import Burst
    from gateway_sessions.testing.faults import crash_at

    async def main(home, config, point, nth, size, at, kind):
        async with SessionStore.open(home, config) as store:
            await store.db.catch_up_search_index()  # else its commits might be the ones that are counted
            with crash_at(point, nth=int(nth)):
                await store.enqueue(Burst(int(size), int(at), MessageKind(kind)).change)

    home, provider, url, *what = sys.argv[1:]
    told = {"sessiondb": {"provider": provider, "url": url or None}, "sessions_json": {"mode": "off"}}
    asyncio.run(main(home, Config.from_mapping({**told, "timezone": "UTC"}), *what))
"""
ENGINES = {"postgresql": postgresql.migrated_database_at, "mysql": mysql.migrated_database_at}
"""What makes a database of a server."""
WHEN = ("waits", "was cut off", "was answered")
pytestmark = pytest.mark.timeout(180)  # many children, one after another


@dataclass(frozen=True)
class Place:
    """Where a store lies, and its next openings."""

    home: Path
    config: Config
    clock: FakeClock
    """Of all openings until the first kill."""

    @property
    def is_file(self) -> bool:
        """Whether there is no server."""
        return self.config.sessiondb.url is None

    def opened(self, clock: FakeClock | None = None) -> SessionStore:
        return SessionStore.open(self.home, self.config, clock=clock)

    async def furnished(self, bursts: list[Burst], when: str) -> None:
        """Let bursts wait here, or be cut off with their turns, or be answered."""
        async with self.opened(self.clock) as store:
            await say(store, bursts, self.clock)
            for burst in bursts if when != "waits" else ():
                turn = await store.claim(burst.lane)
                assert turn is not None
                if when == "was answered":
                    await commit(turn)


@pytest.fixture(params=["sqlite", *ENGINES])
async def place(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    config = CONFIG
    async with AsyncExitStack() as stack:
        if request.param != "sqlite":
            address = await stack.enter_async_context(ENGINES[request.param]())
            database = SessionDBConfig(provider=Provider(request.param), url=address)
            config = replace(CONFIG, sessiondb=database)
        yield Place(tmp_path / "home", config, FakeClock())


async def what_it_says(store: SessionStore, burst: Burst) -> str:
    """The burst as its turn, or the transcript, has it."""
    queued = await store.list_queued(burst.lane)
    if queued:
        return "\n".join(one.message.text for one in queued)
    session_id = await store.peek_session_id(burst.lane) or ""
    return "\n".join(one.text for one in await store.db.get_messages(session_id) if one.role == "user")


async def rehearsed(place: Place, burst: Burst) -> list[tuple[str, int]]:
    """Where a change can be cut off."""
    async with place.opened(place.clock) as store:
        with count_passes() as passes:
            await store.enqueue(burst.change)
    return [(point, nth) for point, times in passes.items() for nth in range(1, times + 1)]


def mixed(kind: MessageKind) -> list[Burst]:
    """All bursts, the sizes in turns, and of each the messages from the middle on."""
    bursts = [burst for burst in BURSTS if burst.kind is kind]
    return sorted(bursts, key=lambda burst: ((burst.at - burst.size // 2) % burst.size, burst.size))


async def cut_off(place: Place, warm_python: WarmPython, burst: Burst, point: tuple[str, int]) -> bool:
    """Kill whoever changes a message of the burst, and deliver the change again; whether it stood before."""
    where = (place.home, str(place.config.sessiondb.provider), place.config.sessiondb.url or "")
    killed = partial(warm_python.run, CHANGES, *where, *point, burst.size, burst.at, str(burst.kind))
    done = await asyncio.to_thread(killed)
    assert done.returncode == -signal.SIGKILL, done.stderr
    async with place.opened() as store:
        says = await what_it_says(store, burst)
        assert says in ("\n".join(burst.texts), burst.left)
        receipt = await store.enqueue(burst.change)
        assert isinstance(receipt, Duplicate if says == burst.left else Accepted)
        assert await what_it_says(store, burst) == burst.left
    return says == burst.left


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("kind", [MessageKind.EDIT, MessageKind.DELETE])
async def test_whenever_it_is_killed_a_change_stands_and_is_known_or_is_carried_out_when_it_comes_again(
    place: Place, warm_python: WarmPython, kind: MessageKind, when: str
):
    begin = WHEN.index(when) + len(WHEN) * (kind is MessageKind.DELETE)
    first, *others = mixed(kind)[begin : begin + 1 + len(SIZES)]
    await place.furnished([first, *others], when)
    points = await rehearsed(place, first)
    assert len(points) <= len(others)
    # A file is looked at often enough: there, all six moments together try each size.
    tried = points if place.is_file else cycle(points)
    stood = [await cut_off(place, warm_python, *job) for job in zip(others, tried, strict=False)]
    assert set(stood) == {False, True}
