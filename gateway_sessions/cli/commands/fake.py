"""`fake`: a platform on this machine, to try a bot without an account and without the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import command, whole_number
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()
LARGEST_PORT: Final = 65_535


@command(app, "fake")
async def fake(
    context: CommandContext,
    *,
    platform: Annotated[
        str, typer.Argument(help="The platform, as a configuration names it.", metavar="PLATFORM")
    ],
    port: Annotated[
        int,
        typer.Option(
            parser=whole_number(0, LARGEST_PORT), help="Where it listens; else any free port.", metavar="PORT"
        ),
    ] = 0,
    webhook: Annotated[
        str | None,
        typer.Option(
            help="The address at which the bot is called, where the platform does that.", metavar="URL"
        ),
    ] = None,
) -> None:
    r"""Run a platform on this machine to try a bot. You type what people write, and see what the bot answers.

    A line is a message of yours; `ann: hello` is one of Ann, and `#team ann: hello` one of hers in a group.
    `\help` shows what else people can do, and which faults can be planned.
    """
    from gateway_sessions.cli.fakes.platforms import load_fake
    from gateway_sessions.cli.fakes.terminal import run_fake

    if context.as_json:
        problem = "a platform does not answer in JSON; leave --json out"
        raise InvalidInputError(problem)
    if webhook is not None and not webhook.startswith(("http://", "https://")):
        problem = "--webhook must be an address, such as http://127.0.0.1:8080/slack"
        raise InvalidInputError(problem)
    await run_fake(platform, load_fake(platform), port=port, webhook=webhook, note=context.note)
