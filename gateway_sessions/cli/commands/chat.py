"""`chat`: talk to an agent here, and go on with any conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from gateway_sessions.cli.declare import DEMO_AGENT, Agent, command
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext

app: Final = typer.Typer()

Title: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        help="With -c: the title of the conversation; several words are joined.", metavar="TITLE…"
    ),
]
GoOn: TypeAlias = Annotated[bool, typer.Option("--continue", "-c", help="Continue the last conversation.")]
Resume: TypeAlias = Annotated[
    str | None, typer.Option("--resume", "-r", help="Continue this session.", metavar="SESSION")
]
RecapOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The recap of a resumed conversation: full, minimal or off. Default: display.resume_display.",
        metavar="FORM",
    ),
]
Move: TypeAlias = Annotated[bool, typer.Option("--move", help="Take the session over from its lane.")]
Fork: TypeAlias = Annotated[bool, typer.Option("--fork", help="Continue in a copy of the session.")]


@command(app, "chat")
async def chat(
    context: CommandContext,
    *,
    title: Title = None,
    go_on: GoOn = False,
    resume: Resume = None,
    agent: Agent = DEMO_AGENT,
    recap: RecapOf = None,
    move: Move = False,
    fork: Fork = False,
) -> None:
    """Talk to an agent at this terminal. Ctrl-C ends its turn, Ctrl-D the conversation."""
    from gateway_sessions.cli.agent_loading import open_agent
    from gateway_sessions.cli.conversation import Conversation, ResumeRequest
    from gateway_sessions.cli.conversation_ctrl_c import handling_ctrl_c
    from gateway_sessions.core.transcript.recap import RecapForm

    name = " ".join(title or ()) or None
    _check_options(context, name if not go_on else None, recap)
    text = resume or name
    request = ResumeRequest(go_on=go_on or resume is not None, text=text, move=move, fork=fork)
    # Where there is no store, nothing can be resumed in it, and none is made for that.
    async with (
        handling_ctrl_c(context) as ctrl_c,
        open_agent(agent, context) as loaded,
        context.open_owned(may_be_new=text is None) as store,
    ):
        store.config.require("display")
        form = store.config.display.resume_display if recap is None else RecapForm(recap)
        await Conversation(context, store, form).run(request, ctrl_c, **loaded.arguments)


def _check_options(context: CommandContext, name: str | None, recap: str | None) -> None:
    from gateway_sessions.core.transcript.recap import RecapForm

    if context.as_json:
        problem = "a conversation is not JSON; leave --json out"
        raise InvalidInputError(problem)
    if recap is not None and recap not in list(RecapForm):
        problem = f"--recap: {recap!r} is none of {', '.join(RecapForm)}"
        raise InvalidInputError(problem)
    if name is not None:
        problem = f"to go on with {name!r}, say: -c {name!r}"
        raise InvalidInputError(problem)
