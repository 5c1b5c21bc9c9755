"""A gateway on a fake platform, with its store and its clock, for tests of the whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from gateway_sessions import Config, SessionStore, TurnContext
from gateway_sessions.config import SessionDBConfig, SessionsJsonConfig, SnapshotMode
from gateway_sessions.config.sections import Durability
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.storage.transactions.queue import waiting
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform

QUICK = Config(
    timezone="UTC",
    sessions_json=SessionsJsonConfig(mode=SnapshotMode.OFF),
    sessiondb=SessionDBConfig(durability=Durability.OS),
)


def busy_config(mode: BusyMode, **rules: Any) -> Config:
    """A quick configuration with that mode for all lanes."""
    return replace(QUICK, busy=BusyRules(mode=mode, **rules))


class GatewayHarness:
    """One gateway with its store, its platform and its clock."""

    def __init__(
        self, home: Path, platform: FakePlatform, clock: FakeClock, store: SessionStore, gateway: Gateway
    ) -> None:
        self.home = home
        self.platform = platform
        self.clock = clock
        self.store = store
        self.gateway = gateway

    def key(self, person: str, chat: str | None = None) -> str:
        return self.store.key_for(self.platform.source(person, chat=chat))

    async def transcript(self, person: str) -> list[tuple[str, object]]:
        session_id = await self.store.peek_session_id(self.key(person))
        assert session_id is not None
        return [(row["role"], row["content"]) for row in await self.store.load_transcript(session_id)]

    async def outcomes(self, person: str) -> dict[str, int]:
        """What became of everything that a person wrote."""
        return await self.store.db.read(partial(waiting.count_outcomes, self.key(person)))

    async def wait_until_idle(self) -> None:
        await self.platform.wait_until_idle()


@asynccontextmanager
async def open_harness(
    home: Path,
    config: Config = QUICK,
    *,
    platform: FakePlatform | None = None,
    clock: FakeClock | None = None,
    others: Sequence[FakePlatform] = (),
    pool: object | None = None,
    **options: Any,
) -> AsyncGenerator[GatewayHarness]:
    """A gateway that runs within the block; whatever still moves at its end is a failure of the test."""
    clock = clock or FakeClock()
    platform = platform or FakePlatform(clock=clock, run="")
    async with (
        SessionStore.open(home, config, clock=clock, pool=pool) as store,
        Gateway(store, adapters=[platform, *others], **options) as gateway,
    ):
        yield GatewayHarness(home, platform, clock, store, gateway)


async def echo(turn: TurnContext) -> str:
    """Answer with the text of the message."""
    return turn.text


async def quote_message(turn: TurnContext) -> str:
    """Answer with a sentence that tells the answer from the message."""
    return f"you said: {turn.text}"


async def wait_until(true: Callable[[], object], *, seconds: float = 5) -> None:
    """Wait, in real time, until something is so."""
    with anyio.fail_after(seconds):
        while not true():  # noqa: ASYNC110 -- nobody tells a test
            await anyio.sleep(0.002)
