"""`top`: what a store does just now."""

from __future__ import annotations

import signal
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gateway_sessions.cli.desk import Desk, run, this_moment
from gateway_sessions.cli.options import Limit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import RenderableType


def top(
    context: typer.Context,
    *,
    once: Annotated[bool, typer.Option("--once", help="Look once, as it is done into a pipe.")] = False,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2,
    limit: Limit = 10,
) -> None:
    """Watch turns that run and wait. Their leases and ages, and the next resets; Ctrl-C ends it."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.frames import frame  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.runtime.glance import glance  # noqa: PLC0415 -- as above

        policies = desk.place()[1].policy_book()
        async with desk.seat() as seat:
            if once or desk.as_json or not desk.screen.is_terminal:
                seen = await glance(seat, policies, this_moment(), limit)
                desk.answer([seen], partial(frame, seen))
                return

            async def look() -> RenderableType:
                return frame(await glance(seat, policies, this_moment(), limit))

            await _until_stopped(desk, look, every)

    run(context, work)


async def _until_stopped(desk: Desk, look: Callable[[], Awaitable[RenderableType]], every: float) -> None:
    """Whoever has seen enough says so with Ctrl-C: that is no error here."""
    import anyio  # noqa: PLC0415 -- as above

    from gateway_sessions.adapters.background import in_background  # noqa: PLC0415 -- as above
    from gateway_sessions.cli.frames import show_live  # noqa: PLC0415 -- as above

    with anyio.CancelScope() as looking:

        async def until_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    looking.cancel()

        async with in_background(until_signal):
            await show_live(desk.screen, look, every)
