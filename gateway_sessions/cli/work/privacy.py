"""`privacy`: what is known of a person, and how they are forgotten."""

from __future__ import annotations

from functools import partial

from gateway_sessions.cli.commands.privacy import Erase, ExportPerson
from gateway_sessions.cli.context import PATIENCE_SECONDS, Desk, seated
from gateway_sessions.cli.lookup import owner_named
from gateway_sessions.cli.output.json_lines import check_target, open_lines
from gateway_sessions.cli.output.reports import receipt_page
from gateway_sessions.core.erasure import ErasureReceipt
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.telling import counted


async def export_person(desk: Desk, asked: ExportPerson) -> None:
    """Write all that is known of a person."""
    target = asked.target
    check_target(target, force=asked.force)
    lines = 0
    async with seated(desk) as seat:
        owner = await owner_named(seat, asked.who)
        with desk.progress("Writing", beside=target) as tell, open_lines(target) as write:
            async for one in seat.db.export_owner(owner):
                write(one)
                lines += 1
                tell(lines, None)
    text = f"{counted(lines, 'thing')} known of {owner}"
    if target == "-":
        desk.note(f"{text}.")
    else:
        desk.done(f"{text}; they are in {target}.", owner=owner, lines=lines, file=target)


async def erase(desk: Desk, asked: Erase) -> None:
    """Forget a person, in every file of the store."""
    async with seated(desk) as seat:
        owner = await owner_named(seat, asked.who)
        theirs = Scope(owners=frozenset({owner}))
        sessions = await seat.db.session_count(scope=theirs, include_archived=True)
        elsewhere = await seat.db.count_said_elsewhere(owner)
        held = counted(sessions, "session")
        if elsewhere:
            held += f" and {counted(elsewhere, 'message')} in sessions of others"
        if asked.dry_run:
            desk.done(
                f"Would forget {owner}: {held}, and all that waits or is owed.",
                {"owner": owner, "sessions": sessions, "messages_elsewhere": elsewhere},
                dry_run=True,
            )
            return
        desk.confirm(f"Forget {owner} for ever, with {held}?")
        with desk.steps("Forgetting") as watch:
            receipt: ErasureReceipt = await seat.do(
                "erase",
                subject=owner,
                keep_copies=asked.keep_copies,
                seconds=PATIENCE_SECONDS,
                progress=watch,
            )
    desk.answer([receipt], partial(receipt_page, receipt))
