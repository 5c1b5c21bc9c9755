"""`sessions browse`: choose a conversation, and go on with it."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from gateway_sessions.cli.commands.chat import DEMO, WHO, answering, recap_form
from gateway_sessions.cli.desk import Desk, name_of_program, run
from gateway_sessions.cli.exits import Declined, Exit
from gateway_sessions.cli.options import Source
from gateway_sessions.errors import InvalidInputError, StoreBusyError

app = typer.Typer()


@app.command()
def browse(
    context: typer.Context,
    *,
    source: Source = None,
    archived: Annotated[bool, typer.Option("--archived", help="Those of the archive.")] = False,
    agent: Annotated[str, typer.Option(help=WHO, metavar="MODULE:NAME")] = DEMO,
) -> None:
    """Choose a conversation, and go on with it in `chat`. It takes a terminal; typing looks for one."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.browsing import Browser  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.core.picker import Outcome  # noqa: PLC0415 -- as above

        _refuse(desk)
        async with answering(agent, desk) as given:
            async with desk.seat() as seat:
                left = await Browser(seat, desk.screen, source=source, archived=archived).choose()
            if left.outcome is Outcome.INTERRUPTED:
                desk.code = Exit.INTERRUPTED
            elif left.outcome is Outcome.CHOSEN and left.selected is not None:
                await _go_on(desk, left.selected.session_id, given)

    run(context, work)


def _refuse(desk: Desk) -> None:
    instead = f"`{name_of_program()} sessions list` writes the same"
    if desk.as_json:
        problem = f"a choice is not JSON; leave --json out, or {instead}"
        raise InvalidInputError(problem)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or desk.screen.is_dumb_terminal:
        problem = f"there is no terminal here to choose at; {instead}"
        raise InvalidInputError(problem)


async def _go_on(desk: Desk, session_id: str, agent: dict[str, object]) -> None:
    """Talk, or say how: a store that a gateway has open has its agents there."""
    from gateway_sessions.cli.talking import Talk, Wanted  # noqa: PLC0415 -- as above

    program = name_of_program()
    async with AsyncExitStack() as opened:
        try:
            store = await opened.enter_async_context(desk.store())
        except StoreBusyError as error:
            desk.done(session_id)
            desk.note(f"{error.owner} has this store open, and its agents: go on with it there.")
            desk.note(f"Read it: {program} sessions show {session_id}")
            desk.note(f"Once nobody has the store open: {program} chat -r {session_id}")
            return
        try:
            await Talk(desk, store, recap_form(None, store.config)).hold(
                Wanted(go_on=True, text=session_id), **agent
            )
        except Declined:
            desk.note(f"Go on in a copy: {program} chat -r {session_id} --fork")
            raise
