"""`doctor`: how the store is, and what to do about it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.desk import Desk, run
from gateway_sessions.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from gateway_sessions.runtime.health import Symptom

SIGNS: Final = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}


def doctor(
    context: typer.Context,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read the whole database.")] = False,
) -> None:
    """Look at everything around a store. What is not well is told with what to do about it."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.runtime.health import Health, examine  # noqa: PLC0415 -- --help must not wait for it

        home, config = desk.place()
        with desk.steps("Looking") as watch:
            found = [one async for one in examine(home, config, thorough=not quick, progress=watch)]
        if any(one.health is Health.BAD for one in found):
            desk.code = Exit.UNSOUND
        desk.answer(found, partial(_page, found))

    run(context, work)


def _page(found: Sequence[Symptom]) -> RenderableType:
    from rich.text import Text  # noqa: PLC0415 -- as above

    from gateway_sessions.cli.screen import inline  # noqa: PLC0415 -- as above

    page = Text()
    for one in found:
        sign, style = SIGNS[one.health]
        page.append(f"{sign} ", style=style)
        page.append(f"{one.what}: ", style="bold")
        page.append(f"{inline(one.told)}\n")
        if one.what_next:
            page.append(f"    → {one.what_next}\n", style="dim")
    page.rstrip()
    return page
