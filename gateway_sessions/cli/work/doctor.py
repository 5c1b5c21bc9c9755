"""`doctor`: how the store is, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from gateway_sessions.cli.commands.alone import Doctor
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.cli.output.terminal import inline
from gateway_sessions.runtime.health import Health, Symptom, examine

SIGNS: Final = {"good": ("✓", "green"), "warning": ("!", "yellow"), "bad": ("✗", "red")}


async def doctor(context: CommandContext, asked: Doctor) -> None:
    """Look at everything around the store."""
    home, config = context.place()
    with context.work_progress("Looking") as watch:
        found = [one async for one in examine(home, config, thorough=not asked.quick, progress=watch)]
    if any(one.health is Health.BAD for one in found):
        context.exit_code = Exit.UNSOUND
    context.answer(found, partial(_page, found))


def _page(found: Sequence[Symptom]) -> RenderableType:
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
