"""`top`: what a store does just now."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from rich.console import RenderableType

from gateway_sessions.adapters.protocol import in_background
from gateway_sessions.cli.commands.alone import Top
from gateway_sessions.cli.context import Desk, seated, this_moment
from gateway_sessions.cli.output.live import frame, show_live
from gateway_sessions.runtime.glance import glance


async def top(desk: Desk, asked: Top) -> None:
    """Look once, or until somebody has seen enough."""
    policies = desk.place()[1].policy_book()
    async with seated(desk) as seat:
        if asked.once or desk.as_json or not desk.screen.is_terminal:
            seen = await glance(seat, policies, this_moment(), asked.limit)
            desk.answer([seen], partial(frame, seen))
            return

        async def look() -> RenderableType:
            return frame(await glance(seat, policies, this_moment(), asked.limit))

        await _until_stopped(desk, look, asked.every)


async def _until_stopped(desk: Desk, look: Callable[[], Awaitable[RenderableType]], every: float) -> None:
    """Whoever has seen enough says so with Ctrl-C: that is no error here."""
    with anyio.CancelScope() as looking:

        async def until_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    looking.cancel()

        async with in_background(until_signal):
            await show_live(desk.screen, look, every)
