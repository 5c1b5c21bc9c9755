"""`demo`: all that the package is for, in a few seconds."""

from __future__ import annotations

import typer

from gateway_sessions.errors import InvalidInputError


def demo(context: typer.Context) -> None:
    """Show in a few seconds what lanes, resets and crashes are like, with real stores that are gone then."""
    from gateway_sessions.cli.demo.story import play  # noqa: PLC0415 -- --help must not wait for it

    if context.obj.as_json:
        problem = "a story is not JSON; leave --json out"
        raise InvalidInputError(problem)
    play()
