"""`sessions browse`: choose a conversation, and go on with it."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack

from gateway_sessions.cli.agent_loading import answering
from gateway_sessions.cli.commands.sessions import Browse
from gateway_sessions.cli.context import Desk, owning, seated
from gateway_sessions.cli.conversation import Talk, Wanted
from gateway_sessions.cli.exit_codes import Declined, Exit
from gateway_sessions.cli.interrupts import CtrlC, hearing_ctrl_c
from gateway_sessions.cli.output.json import name_of_program
from gateway_sessions.cli.picker.model import Outcome
from gateway_sessions.cli.picker.run import Browser
from gateway_sessions.errors import InvalidInputError, StoreBusyError


async def browse(desk: Desk, asked: Browse) -> None:
    """Let somebody choose, and talk."""
    _refuse(desk)
    async with answering(asked.agent, desk) as given:
        async with seated(desk) as seat:
            left = await Browser(seat, desk.screen, source=asked.source, archived=asked.archived).choose()
        if left.outcome is Outcome.INTERRUPTED:
            desk.code = Exit.INTERRUPTED
        elif left.outcome is Outcome.CHOSEN and left.selected is not None:
            async with hearing_ctrl_c(desk) as ctrl_c:
                await _go_on(desk, left.selected.session_id, ctrl_c, given)


def _refuse(desk: Desk) -> None:
    instead = f"`{name_of_program()} sessions list` writes the same"
    if desk.as_json:
        problem = f"a choice is not JSON; leave --json out, or {instead}"
        raise InvalidInputError(problem)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or desk.screen.is_dumb_terminal:
        problem = f"there is no terminal here to choose at; {instead}"
        raise InvalidInputError(problem)


async def _go_on(desk: Desk, session_id: str, ctrl_c: CtrlC, agent: dict[str, object]) -> None:
    """Talk, or say how: a store that a gateway has open has its agents there."""
    program = name_of_program()
    async with AsyncExitStack() as opened:
        try:
            store = await opened.enter_async_context(owning(desk))
        except StoreBusyError as error:
            desk.done(session_id)
            desk.note(f"{error.owner} has this store open, and its agents: go on with it there.")
            desk.note(f"Read it: {program} sessions show {session_id}")
            desk.note(f"Once nobody has the store open: {program} chat -r {session_id}")
            return
        try:
            store.config.require("display")
            talk = Talk(desk, store, store.config.display.resume_display)
            await talk.hold(Wanted(go_on=True, text=session_id), ctrl_c, **agent)
        except Declined:
            desk.note(f"Go on in a copy: {program} chat -r {session_id} --fork")
            raise
