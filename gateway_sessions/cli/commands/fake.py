"""`fake`: a platform on this machine, to try a bot without an account and without the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import command
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()


@command(app, "fake")
async def fake(
    context: CommandContext,
    *,
    platform: Annotated[str, typer.Argument(help="The platform: telegram.", metavar="PLATFORM")],
) -> None:
    """Run a platform on this machine to try a bot. You type what people write, and see what the bot answers.

    A line is a message of yours; `ann: hello` is one of Ann, and `#team ann: hello` one of hers in a group.
    """
    from gateway_sessions.cli.fake_terminal import FAKES, run_fake

    if context.as_json:
        problem = "a platform does not answer in JSON; leave --json out"
        raise InvalidInputError(problem)
    if platform not in FAKES:
        problem = f"there is no fake of {platform!r}; there are {', '.join(FAKES)}"
        raise InvalidInputError(problem)
    await run_fake(platform, context.note)
