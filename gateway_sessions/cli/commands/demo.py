"""`demo`: a tour of the package in a few seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from gateway_sessions.cli.declare import command
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()


@command(app, "demo")
async def demo(context: CommandContext) -> None:
    """Show lanes, resets, crashes and search in a few seconds. The stores are real, and temporary."""
    from gateway_sessions.cli.demo.story import play_demo

    if context.as_json:
        problem = "a story is not JSON; leave --json out"
        raise InvalidInputError(problem)
    await play_demo()
