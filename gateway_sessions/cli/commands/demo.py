"""`demo`: all that the package is for, in a few seconds."""

from __future__ import annotations

import typer

from gateway_sessions.cli.desk import at_desk
from gateway_sessions.errors import InvalidInputError


def demo(context: typer.Context) -> None:
    """Show lanes, resets and crashes in a few seconds. The stores are real, and gone afterwards."""
    from gateway_sessions.cli.demo.story import play  # noqa: PLC0415 -- --help must not wait for it

    with at_desk(context) as desk:
        if desk.as_json:
            problem = "a story is not JSON; leave --json out"
            raise InvalidInputError(problem)
        play()
