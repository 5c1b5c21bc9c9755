"""`serve`: run a gateway as its configuration says, until it is told to end."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway_sessions.cli.commands.chat import DEMO, WHO, answering
from gateway_sessions.cli.desk import Desk, run
from gateway_sessions.errors import InvalidInputError


def serve(
    context: typer.Context,
    *,
    agent: Annotated[str, typer.Option(help=WHO, metavar="MODULE:NAME")] = DEMO,
) -> None:
    """Run a gateway as `serve` in the configuration says. SIGTERM or Ctrl-C ends it, after what runs."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.serving import Service, logging_to_errors  # noqa: PLC0415 -- --help must not wait

        if desk.as_json:
            problem = "a gateway does not answer in JSON; leave --json out, and ask /readyz"
            raise InvalidInputError(problem)
        service = Service(desk, desk.place()[1].serve)
        async with answering(agent, desk) as given:
            with logging_to_errors():
                await service.run(**given)

    run(context, work)
