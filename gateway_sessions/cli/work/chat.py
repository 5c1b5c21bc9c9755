"""`chat`: talk to an agent here, and go on with any conversation."""

from __future__ import annotations

from gateway_sessions.cli.agent_loading import open_agent
from gateway_sessions.cli.commands.alone import Chat
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.conversation import Conversation, ResumeRequest
from gateway_sessions.cli.interrupts import handling_ctrl_c
from gateway_sessions.core.recap import RecapForm
from gateway_sessions.errors import InvalidInputError


async def chat(context: CommandContext, asked: Chat) -> None:
    """Conversation until the input ends."""
    name = " ".join(asked.title or ()) or None
    _refuse(context, name if not asked.go_on else None, asked.recap)
    text = asked.resume or name
    wanted = ResumeRequest(
        go_on=asked.go_on or asked.resume is not None, text=text, move=asked.move, fork=asked.fork
    )
    # Where there is no store, nothing can be resumed in it, and none is made for that.
    async with (
        handling_ctrl_c(context) as ctrl_c,
        open_agent(asked.agent, context) as given,
        context.open_owned(may_be_new=text is None) as store,
    ):
        store.config.require("display")
        form = store.config.display.resume_display if asked.recap is None else RecapForm(asked.recap)
        await Conversation(context, store, form).run(wanted, ctrl_c, **given)


def _refuse(context: CommandContext, name: str | None, recap: str | None) -> None:
    if context.as_json:
        problem = "a conversation is not JSON; leave --json out"
        raise InvalidInputError(problem)
    if recap is not None and recap not in list(RecapForm):
        problem = f"--recap: {recap!r} is none of {', '.join(RecapForm)}"
        raise InvalidInputError(problem)
    if name is not None:
        problem = f"to go on with {name!r}, say: -c {name!r}"
        raise InvalidInputError(problem)
