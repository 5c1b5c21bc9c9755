"""`doctor`: the health of a store, and advice for each problem."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import command
from gateway_sessions.cli.exit_codes import Exit

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()


@command(app, "doctor")
async def doctor(
    context: CommandContext,
    *,
    online: Annotated[
        bool, typer.Option("--online", help="Ask the platforms of serve.adapters, too.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read the whole database.")] = False,
) -> None:
    """Check everything around a store. Each problem comes with advice."""
    from gateway_sessions.cli.adapter_health import examine_adapters
    from gateway_sessions.cli.output.reports import health_page
    from gateway_sessions.runtime.operator.health import Health, examine_store

    home, config = context.home_and_config()
    with context.work_progress("Looking") as watch:
        found = [one async for one in examine_store(home, config, thorough=not quick, progress=watch)]
        found += [one async for one in examine_adapters(config, home, online=online)]
    if any(one.health is Health.BAD for one in found):
        context.exit_code = Exit.UNSOUND
    context.answer(found, partial(health_page, found))
