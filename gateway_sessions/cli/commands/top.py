"""`top`: what a store is doing now."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import Limit, command, number_from

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import RenderableType

    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()


@command(app, "top")
async def top(
    context: CommandContext,
    *,
    once: Annotated[bool, typer.Option("--once", help="Print once, as in a pipe.")] = False,
    every: Annotated[
        float, typer.Option(parser=number_from(0.2), help="Seconds between two updates.", metavar="N")
    ] = 2,
    limit: Limit = 10,
) -> None:
    """Watch running and waiting turns. Their leases and ages, and the next resets; Ctrl-C ends it."""
    from gateway_sessions.cli.output.live import overview_page
    from gateway_sessions.runtime.operator.overview import load_overview

    policies = context.home_and_config()[1].policy_book()
    async with context.open_client() as client:
        if once or context.as_json or not context.console.is_terminal:
            overview = await load_overview(client, policies, context.now(), limit)
            context.answer([overview], partial(overview_page, overview))
            return

        async def look() -> RenderableType:
            return overview_page(await load_overview(client, policies, context.now(), limit))

        await _show_until_stopped(context, look, every)


async def _show_until_stopped(
    context: CommandContext, look: Callable[[], Awaitable[RenderableType]], every: float
) -> None:
    """Show the overview until Ctrl-C or SIGTERM, which is no error here."""
    import signal

    import anyio

    from gateway_sessions._process.background import in_background
    from gateway_sessions.cli.output.live import show_live

    with anyio.CancelScope() as looking:

        async def until_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    looking.cancel()

        async with in_background(until_signal):
            await show_live(context.console, look, every)
