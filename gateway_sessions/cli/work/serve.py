"""`serve`: run a gateway as its configuration says, until it is told to end."""

from __future__ import annotations

from gateway_sessions.cli.agent_loading import answering
from gateway_sessions.cli.commands.alone import Serve
from gateway_sessions.cli.context import Desk, owning
from gateway_sessions.cli.service import Service, free_addresses, logging_to_errors
from gateway_sessions.cli.work.configuration import tell_doubts
from gateway_sessions.config.misspelt import misspelt_names
from gateway_sessions.errors import InvalidInputError


async def serve(desk: Desk, asked: Serve) -> None:
    """Serve until a signal, or until another process wants the store."""
    if desk.as_json:
        problem = "a gateway does not answer in JSON; leave --json out, and ask /readyz"
        raise InvalidInputError(problem)
    home, config = desk.place_to_serve()
    tell_doubts(desk, misspelt_names(desk.own_config_path))
    store = owning(desk, may_be_new=True, upkeep=True, wait=asked.wait)
    service = Service(desk, config.serve, store)
    async with answering(asked.agent, desk) as given:
        with logging_to_errors():
            await free_addresses(config.serve, home, wait=asked.wait)
            await service.run(**given)
