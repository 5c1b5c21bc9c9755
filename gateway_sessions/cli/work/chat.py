"""`chat`: talk to an agent here, and go on with any conversation."""

from __future__ import annotations

from gateway_sessions.cli.agent_loading import answering
from gateway_sessions.cli.commands.alone import Chat
from gateway_sessions.cli.context import Desk, owning
from gateway_sessions.cli.conversation import Talk, Wanted
from gateway_sessions.cli.interrupts import hearing_ctrl_c
from gateway_sessions.core.recap import RecapForm
from gateway_sessions.errors import InvalidInputError


async def chat(desk: Desk, asked: Chat) -> None:
    """Talk until the input ends."""
    name = " ".join(asked.title or ()) or None
    _refuse(desk, name if not asked.go_on else None, asked.recap)
    text = asked.resume or name
    wanted = Wanted(
        go_on=asked.go_on or asked.resume is not None, text=text, move=asked.move, fork=asked.fork
    )
    # Where there is no store, nothing can be resumed in it, and none is made for that.
    async with (
        hearing_ctrl_c(desk) as ctrl_c,
        answering(asked.agent, desk) as given,
        owning(desk, may_be_new=text is None) as store,
    ):
        store.config.require("display")
        form = store.config.display.resume_display if asked.recap is None else RecapForm(asked.recap)
        await Talk(desk, store, form).hold(wanted, ctrl_c, **given)


def _refuse(desk: Desk, name: str | None, recap: str | None) -> None:
    if desk.as_json:
        problem = "a conversation is not JSON; leave --json out"
        raise InvalidInputError(problem)
    if recap is not None and recap not in list(RecapForm):
        problem = f"--recap: {recap!r} is none of {', '.join(RecapForm)}"
        raise InvalidInputError(problem)
    if name is not None:
        problem = f"to go on with {name!r}, say: -c {name!r}"
        raise InvalidInputError(problem)
