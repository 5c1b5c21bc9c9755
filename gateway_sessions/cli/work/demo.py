"""`demo`: all that the package is for, in a few seconds."""

from __future__ import annotations

from gateway_sessions.cli.commands.alone import Demo
from gateway_sessions.cli.context import Desk
from gateway_sessions.cli.demo.story import play
from gateway_sessions.errors import InvalidInputError


async def demo(desk: Desk, asked: Demo) -> None:
    """Play the story."""
    if desk.as_json:
        problem = "a story is not JSON; leave --json out"
        raise InvalidInputError(problem)
    await play()
