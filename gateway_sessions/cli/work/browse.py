"""`sessions browse`: choose a conversation, and go on with it."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack

from gateway_sessions.cli.agent_loading import open_agent
from gateway_sessions.cli.commands.sessions import Browse
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.conversation import Conversation, ResumeRequest
from gateway_sessions.cli.exit_codes import Declined, Exit
from gateway_sessions.cli.interrupts import CtrlC, handling_ctrl_c
from gateway_sessions.cli.picker.model import PickerOutcome
from gateway_sessions.cli.picker.run import SessionBrowser
from gateway_sessions.cli.settings import name_of_program
from gateway_sessions.errors import InvalidInputError, StoreBusyError


async def browse(context: CommandContext, asked: Browse) -> None:
    """Let somebody choose, and talk."""
    _refuse(context)
    async with open_agent(asked.agent, context) as given:
        async with context.open_client() as client:
            left = await SessionBrowser(
                client, context.console, source=asked.source, archived=asked.archived
            ).choose()
        if left.outcome is PickerOutcome.INTERRUPTED:
            context.exit_code = Exit.INTERRUPTED
        elif left.outcome is PickerOutcome.CHOSEN and left.selected is not None:
            async with handling_ctrl_c(context) as ctrl_c:
                await _go_on(context, left.selected.session_id, ctrl_c, given)


def _refuse(context: CommandContext) -> None:
    instead = f"`{name_of_program()} sessions list` writes the same"
    if context.as_json:
        problem = f"a choice is not JSON; leave --json out, or {instead}"
        raise InvalidInputError(problem)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or context.console.is_dumb_terminal:
        problem = f"there is no terminal here to choose at; {instead}"
        raise InvalidInputError(problem)


async def _go_on(context: CommandContext, session_id: str, ctrl_c: CtrlC, agent: dict[str, object]) -> None:
    """Conversation, or say how: a store that a gateway has open has its agents there."""
    program = name_of_program()
    async with AsyncExitStack() as opened:
        try:
            store = await opened.enter_async_context(context.open_owned())
        except StoreBusyError as error:
            context.answer_text(session_id)
            context.note(f"{error.owner} has this store open, and its agents: go on with it there.")
            context.note(f"Read it: {program} sessions show {session_id}")
            context.note(f"Once nobody has the store open: {program} chat -r {session_id}")
            return
        try:
            store.config.require("display")
            talk = Conversation(context, store, store.config.display.resume_display)
            await talk.run(ResumeRequest(go_on=True, text=session_id), ctrl_c, **agent)
        except Declined:
            context.note(f"Go on in a copy: {program} chat -r {session_id} --fork")
            raise
