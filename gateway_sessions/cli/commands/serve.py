"""`serve`: run a gateway from its configuration until a signal ends it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import DEMO_AGENT, Agent, command, number_from
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()


@command(app, "serve")
async def serve(
    context: CommandContext,
    *,
    agent: Agent = DEMO_AGENT,
    wait: Annotated[
        float,
        typer.Option(
            parser=number_from(0),
            help="Ask another process with this store to end, and wait that long for it and its ports.",
            metavar="SECONDS",
        ),
    ] = 0,
) -> None:
    """Run a gateway from its configuration. A signal or Ctrl-C ends it after the running turns."""
    from gateway_sessions.cli.agent_loading import open_agent
    from gateway_sessions.cli.served_addresses import wait_for_addresses
    from gateway_sessions.cli.served_gateway import ServedGateway, logging_to_stderr
    from gateway_sessions.config.misspellings import misspelt_names
    from gateway_sessions.integrations.registry import make_adapters
    from gateway_sessions.storage.files.threads import in_thread

    if context.as_json:
        problem = "a gateway does not answer in JSON; leave --json out, and ask /readyz"
        raise InvalidInputError(problem)
    home, config = context.home_and_config_to_serve()
    context.note_misspellings(misspelt_names(context.own_config_path))
    adapters = await in_thread(partial(make_adapters, config.serve.adapters, home))
    service = ServedGateway(context, config.serve, adapters)
    if agent == DEMO_AGENT:
        context.note("The demo agent answers; --agent MODULE:NAME names yours.")
    async with open_agent(agent, context) as loaded:
        store = context.open_owned(may_be_new=True, upkeep=True, wait=wait, titler=loaded.titler)
        with logging_to_stderr():
            await wait_for_addresses(service.addresses, home, wait=wait)
            await service.run(store, **loaded.arguments)
