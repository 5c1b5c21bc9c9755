"""`serve`: run a gateway as its configuration says, until it is told to end."""

from __future__ import annotations

from gateway_sessions.cli.answering import answering
from gateway_sessions.cli.commands.alone import Serve
from gateway_sessions.cli.desk import Desk
from gateway_sessions.cli.owning import owning
from gateway_sessions.cli.serving import Service, logging_to_errors
from gateway_sessions.errors import InvalidInputError


async def serve(desk: Desk, asked: Serve) -> None:
    """Serve until a signal, or until another process wants the store."""
    if desk.as_json:
        problem = "a gateway does not answer in JSON; leave --json out, and ask /readyz"
        raise InvalidInputError(problem)
    service = Service(desk, desk.place()[1].serve, owning(desk, may_be_new=True, upkeep=True))
    async with answering(asked.agent, desk) as given:
        with logging_to_errors():
            await service.run(**given)
