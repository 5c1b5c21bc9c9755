"""`demo`: all that the package is for, in a few seconds."""

from __future__ import annotations

from gateway_sessions.cli.commands.alone import Demo
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.demo.story import play
from gateway_sessions.errors import InvalidInputError


async def demo(context: CommandContext, asked: Demo) -> None:
    """Play the story."""
    if context.as_json:
        problem = "a story is not JSON; leave --json out"
        raise InvalidInputError(problem)
    await play()
