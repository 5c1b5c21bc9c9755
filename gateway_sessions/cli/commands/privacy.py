"""`privacy export` and `privacy erase`: export and erase the data of a person."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from gateway_sessions.cli.declare import DryRun, Force, Target, command
from gateway_sessions.cli.lookup import find_owner
from gateway_sessions.cli.settings import PATIENCE_SECONDS
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.notices.human_units import counted

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.core.sessions.erasure import ErasureReceipt

app: Final = typer.Typer(help="Export and erase the data of a person.")

Subject: TypeAlias = Annotated[
    str, typer.Argument(help="An owner as sessions name it, a session key, or a session.", metavar="WHO")
]


@command(app, "export")
async def export_person(
    context: CommandContext, *, who: Subject, target: Target = "-", force: Force = False
) -> None:
    """Write all data about a person as lines of JSON."""
    from gateway_sessions.cli.output.json_lines import check_target, open_json_lines

    check_target(target, force=force)
    lines = 0
    async with context.open_client() as client:
        owner = await find_owner(client, who)
        with context.progress("Writing", beside=target) as report, open_json_lines(target) as write:
            async for one in client.db.export_owner(owner):
                write(one)
                lines += 1
                report(lines, None)
    text = f"{counted(lines, 'thing')} known of {owner}"
    if target == "-":
        context.note(f"{text}.")
    else:
        context.answer_text(f"{text}; they are in {target}.", owner=owner, lines=lines, file=target)


@command(app, "erase")
async def erase(
    context: CommandContext,
    *,
    who: Subject,
    keep_copies: Annotated[bool, typer.Option("--keep-copies", help="Keep backups.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Erase a person from every file of the store. Messages that they sent before are refused afterwards."""
    from gateway_sessions.cli.output.reports import receipt_page

    async with context.open_client() as client:
        owner = await find_owner(client, who)
        theirs = Scope(owners=frozenset({owner}))
        sessions = await client.db.session_count(scope=theirs, include_archived=True)
        elsewhere = await client.db.count_said_elsewhere(owner)
        held = counted(sessions, "session")
        if elsewhere:
            held += f" and {counted(elsewhere, 'message')} in sessions of others"
        if dry_run:
            context.answer_text(
                f"Would forget {owner}: {held}, and all that waits or is owed.",
                {"owner": owner, "sessions": sessions, "messages_elsewhere": elsewhere},
                dry_run=True,
            )
            return
        context.confirm(f"Forget {owner} for ever, with {held}?")
        with context.work_progress("Forgetting") as watch:
            receipt: ErasureReceipt = await client.do(
                "erase", subject=owner, keep_copies=keep_copies, seconds=PATIENCE_SECONDS, progress=watch
            )
    context.answer([receipt], partial(receipt_page, receipt))
