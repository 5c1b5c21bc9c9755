"""`privacy`: what is known of a person, and how they are forgotten."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gateway_sessions.cli.desk import PATIENCE_SECONDS, Desk, everything, run
from gateway_sessions.cli.options import DryRun, Force
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import SessionNotFoundError

if TYPE_CHECKING:
    import gateway_sessions as gs

app = typer.Typer(help="Tell what is known of a person, and forget them.")

Subject = Annotated[
    str, typer.Argument(help="An owner as sessions name it, a session key, or a session.", metavar="WHO")
]


async def owner_named(seat: gs.Seat, text: str) -> str:
    """The owner that somebody means: by name, or as the one whose lane or session it is."""
    entry = await seat.get_session(text)
    if entry is not None:
        return entry.owner
    if text.count(":") >= 2 and not text.startswith("agent:"):  # noqa: PLR2004 -- profile, platform, who
        return text
    record = await seat.db.get_session(await seat.db.resolve_session(text, scope=everything()))
    if record is None:
        raise SessionNotFoundError(text)
    return record.owner


@app.command("export")
def export_person(
    context: typer.Context,
    who: Subject,
    target: Annotated[
        str, typer.Argument(help="The file to write; - is the standard output.", metavar="FILE")
    ] = "-",
    *,
    force: Force = False,
) -> None:
    """Write all that is known of a person, a line of JSON for each thing."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.lines import check_target, open_lines  # noqa: PLC0415 -- --help must not wait for it

        check_target(target, force=force)
        lines = 0
        async with desk.seat() as seat:
            owner = await owner_named(seat, who)
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

    run(context, work)


@app.command()
def erase(
    context: typer.Context,
    who: Subject,
    *,
    keep_copies: Annotated[bool, typer.Option("--keep-copies", help="Leave backups as they are.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Forget a person, in every file of the store. What they sent until now is refused afterwards."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.receipts import receipt_page  # noqa: PLC0415 -- as above
        from gateway_sessions.core.scope import Scope  # noqa: PLC0415 -- as above

        async with desk.seat() as seat:
            owner = await owner_named(seat, who)
            theirs = Scope(owners=frozenset({owner}))
            sessions = await seat.db.session_count(scope=theirs, include_archived=True)
            if dry_run:
                desk.done(
                    f"Would forget {owner}: {counted(sessions, 'session')}, and all that waits or is owed.",
                    {"owner": owner, "sessions": sessions},
                    dry_run=True,
                )
                return
            desk.confirm(f"Forget {owner} for ever, with {counted(sessions, 'session')}?")
            with desk.steps("Forgetting") as watch:
                receipt: gs.ErasureReceipt = await seat.do(
                    "erase",
                    subject=owner,
                    keep_copies=keep_copies,
                    seconds=PATIENCE_SECONDS,
                    progress=watch,
                )
        desk.answer([receipt], partial(receipt_page, receipt))

    run(context, work)
