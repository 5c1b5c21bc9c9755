"""A gateway that ends in order or is killed, and starts again; people write on the same platform on."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio

from gateway_sessions import Config, SessionStore
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.runtime.gateway.gateway import Gateway
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness

AT_ONCE = timedelta(0)


class KillableAdapter:
    """What one process has of a platform. It is dead with the process: nothing is sent any more."""

    def __init__(self, platform: FakePlatform) -> None:
        self.platform, self.name = platform.platform, platform.name
        self.capabilities = platform.capabilities
        self.dead = False
        self._end = platform

    def connect(self, submit: Submit) -> AbstractAsyncContextManager[None]:
        return self._end.connect(submit)

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        await self._living()
        return await self._end.send(target, message, idempotency_key=idempotency_key)

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        await self._living()
        await self._end.edit(target, message_id, message)

    async def typing(self, target: ReplyTarget) -> None:
        await self._living()
        await self._end.typing(target)

    async def _living(self) -> None:
        if self.dead:
            await anyio.sleep_forever()


def home_after_kill(home: Path) -> Path:
    """A copy of what a kill leaves of a home at this moment; nothing may be in the middle of a write."""
    copy = next(one for number in itertools.count(1) if not (one := home.parent / f"after-{number}").exists())
    copy.mkdir(mode=0o700)
    for path in home.iterdir():
        if path.is_file():
            shutil.copy(path, copy / path.name)
    return copy


class RestartableGateway:
    """One home, one platform and one clock, and a gateway as often as need be."""

    def __init__(self, base: Path, config: Config = QUICK) -> None:
        self.home = base / "home"
        self.config = config
        self.clock = FakeClock()
        self.platform = FakePlatform(clock=self.clock)

    @asynccontextmanager
    async def run(self, *, killed: bool = False, **options: Any) -> AsyncGenerator[GatewayHarness]:
        """A gateway that runs within the block; if *killed*, its end leaves what was durable and no more."""
        line = KillableAdapter(self.platform)
        async with (
            SessionStore.open(self.home, self.config, clock=self.clock) as store,
            Gateway(store, adapters=[line], **options) as gateway,
        ):
            harness = GatewayHarness(self.home, self.platform, self.clock, store, gateway)
            yield harness
            if killed:
                await harness.wait_until_idle()
                self.home = home_after_kill(self.home)
                line.dead = True
                await gateway.drain(AT_ONCE)
