"""`serve`: run a gateway as its configuration says, until it is told to end."""

from __future__ import annotations

from gateway_sessions.cli.agent_loading import open_agent
from gateway_sessions.cli.commands.alone import Serve
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.service import Service, logging_to_stderr, wait_for_addresses
from gateway_sessions.cli.work.configuration import tell_doubts
from gateway_sessions.config.misspelt import misspelt_names
from gateway_sessions.errors import InvalidInputError


async def serve(context: CommandContext, asked: Serve) -> None:
    """Serve until a signal, or until another process wants the store."""
    if context.as_json:
        problem = "a gateway does not answer in JSON; leave --json out, and ask /readyz"
        raise InvalidInputError(problem)
    home, config = context.place_to_serve()
    tell_doubts(context, misspelt_names(context.own_config_path))
    store = context.open_owned(may_be_new=True, upkeep=True, wait=asked.wait)
    service = Service(context, config.serve, store)
    async with open_agent(asked.agent, context) as given:
        with logging_to_stderr():
            await wait_for_addresses(config.serve, home, wait=asked.wait)
            await service.run(**given)
