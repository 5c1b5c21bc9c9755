"""A cancellation that a platform's library lets out ends nothing but what it came out of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway_sessions.adapters import in_background
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.fake_platform import FakePlatform
from tests.integration.gateway.gateway_harness import echo, open_harness


async def of_a_future() -> None:
    """As when a library cancels what somebody waits for."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def of_its_own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


LEAKS = pytest.mark.parametrize("leak", [of_a_future, of_its_own_task])
Leak = Callable[[], Awaitable[None]]


class Leaking(FakePlatform):
    """Its library lets a cancellation out, a few times."""

    def __init__(self, platform: str, clock: FakeClock, leak: Leak, *, times: int = 1) -> None:
        super().__init__(platform, clock=clock)
        self.capabilities = AdapterCapabilities(edit=False)
        self.times = times
        self.leak = leak

    async def leaks(self) -> None:
        if self.times:
            self.times -= 1
            await self.leak()


class AtConnecting(Leaking):
    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        await self.leaks()
        async with super().connect(submit):
            yield


class WhileListening(Leaking):
    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        async with super().connect(submit), in_background(self.listen):
            yield

    async def listen(self) -> None:
        await self.leaks()
        await asyncio.Event().wait()


class AtSending(Leaking):
    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        sent = await super().send(target, message, idempotency_key=idempotency_key)
        await self.leaks()
        return sent


@pytest.mark.parametrize("kind", [AtConnecting, WhileListening])
@LEAKS
async def test_an_adapter_that_cancels_itself_is_connected_again_and_the_others_go_on(
    tmp_path: Path, kind: type[Leaking], leak: Leak, caplog: pytest.LogCaptureFixture
):
    """The whole gateway had ended, without a word, for everybody on every platform."""
    clock = FakeClock()
    good = FakePlatform("good", clock=clock)
    bad = kind("bad", clock, leak, times=2)
    async with open_harness(tmp_path, platform=bad, clock=clock, agent=echo, others=[good]) as harness:
        await harness.wait_until_idle()
        await good.says("ann", "hello")
        await harness.wait_until_idle()
        assert good.shown() == ["hello"]
        lost = [one for one in caplog.records if getattr(one, "action", "") == "adapter_lost"]
        assert len(lost) == 1
        assert lost[0].levelno == logging.ERROR
        await clock.advance(seconds=10)
        await bad.says("ann", "back again")
        await harness.wait_until_idle()
        assert bad.shown() == ["back again"]


@LEAKS
async def test_a_send_that_cancels_itself_is_repeated_with_the_mark(tmp_path: Path, leak: Leak):
    """It was sent again as if it had never been tried, and people saw it twice."""
    clock = FakeClock()
    platform = AtSending("bad", clock, leak)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        await platform.says("ann", "one")
        await harness.wait_until_idle()
        await clock.advance(minutes=1)
        await harness.wait_until_idle()
        assert platform.shown() == ["one", f"{REPEATED}\none"]


async def test_a_send_that_cancels_itself_for_ever_is_given_up(tmp_path: Path):
    clock = FakeClock()
    platform = AtSending("bad", clock, of_a_future, times=100)
    async with open_harness(tmp_path, platform=platform, clock=clock, agent=echo) as harness:
        await platform.says("ann", "one")
        await harness.wait_until_idle()
        await clock.advance(hours=1)
        await harness.wait_until_idle()
        assert len(platform.shown()) == 3
        (dead,) = await harness.store.dead_replies()
        assert "cancelled itself" in (dead.problem or "")
