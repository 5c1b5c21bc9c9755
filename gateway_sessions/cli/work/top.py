"""`top`: what a store does just now."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from rich.console import RenderableType

from gateway_sessions.adapters.protocol import in_background
from gateway_sessions.cli.commands.alone import Top
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.output.live import overview_page, show_live
from gateway_sessions.runtime.glance import glance


async def top(context: CommandContext, asked: Top) -> None:
    """Look once, or until somebody has overview enough."""
    policies = context.place()[1].policy_book()
    async with context.open_client() as client:
        if asked.once or context.as_json or not context.console.is_terminal:
            overview = await glance(client, policies, context.now(), asked.limit)
            context.answer([overview], partial(overview_page, overview))
            return

        async def look() -> RenderableType:
            return overview_page(await glance(client, policies, context.now(), asked.limit))

        await _until_stopped(context, look, asked.every)


async def _until_stopped(
    context: CommandContext, look: Callable[[], Awaitable[RenderableType]], every: float
) -> None:
    """Whoever has overview enough says so with Ctrl-C: that is no error here."""
    with anyio.CancelScope() as looking:

        async def until_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    looking.cancel()

        async with in_background(until_signal):
            await show_live(context.console, look, every)
