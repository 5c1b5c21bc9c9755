"""`privacy`: what is known of a person, and how they are forgotten."""

from __future__ import annotations

from functools import partial

from gateway_sessions.cli.commands.privacy import Erase, ExportPerson
from gateway_sessions.cli.context import PATIENCE_SECONDS, CommandContext
from gateway_sessions.cli.lookup import find_owner
from gateway_sessions.cli.output.json_lines import check_target, open_json_lines
from gateway_sessions.cli.output.reports import receipt_page
from gateway_sessions.core.erasure import ErasureReceipt
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.telling import counted


async def export_person(context: CommandContext, asked: ExportPerson) -> None:
    """Write all that is known of a person."""
    target = asked.target
    check_target(target, force=asked.force)
    lines = 0
    async with context.open_client() as client:
        owner = await find_owner(client, asked.who)
        with context.progress("Writing", beside=target) as tell, open_json_lines(target) as write:
            async for one in client.db.export_owner(owner):
                write(one)
                lines += 1
                tell(lines, None)
    text = f"{counted(lines, 'thing')} known of {owner}"
    if target == "-":
        context.note(f"{text}.")
    else:
        context.answer_text(f"{text}; they are in {target}.", owner=owner, lines=lines, file=target)


async def erase(context: CommandContext, asked: Erase) -> None:
    """Forget a person, in every file of the store."""
    async with context.open_client() as client:
        owner = await find_owner(client, asked.who)
        theirs = Scope(owners=frozenset({owner}))
        sessions = await client.db.session_count(scope=theirs, include_archived=True)
        elsewhere = await client.db.count_said_elsewhere(owner)
        held = counted(sessions, "session")
        if elsewhere:
            held += f" and {counted(elsewhere, 'message')} in sessions of others"
        if asked.dry_run:
            context.answer_text(
                f"Would forget {owner}: {held}, and all that waits or is owed.",
                {"owner": owner, "sessions": sessions, "messages_elsewhere": elsewhere},
                dry_run=True,
            )
            return
        context.confirm(f"Forget {owner} for ever, with {held}?")
        with context.work_progress("Forgetting") as watch:
            receipt: ErasureReceipt = await client.do(
                "erase",
                subject=owner,
                keep_copies=asked.keep_copies,
                seconds=PATIENCE_SECONDS,
                progress=watch,
            )
    context.answer([receipt], partial(receipt_page, receipt))
