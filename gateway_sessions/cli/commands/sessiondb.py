"""`sessiondb`: the database as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway_sessions.cli.desk import Desk, run
from gateway_sessions.cli.exits import Exit
from gateway_sessions.cli.options import DryRun
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import UnsupportedStorageError

if TYPE_CHECKING:
    import gateway_sessions as gs

NEXT_STEPS = (
    "Name the new place in the configuration (sessiondb), and keep the old one until you are content."
)

app = typer.Typer(help="Look after the database: check, repair, move it.", no_args_is_help=True)


@app.command()
def migrate(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(help="A path, a store's directory, postgresql://… or mysql://…", metavar="TARGET")
    ],
    *,
    source: Annotated[
        str | None, typer.Option("--from", help="Another one than that of the store.", metavar="SOURCE")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Move all that the store holds to another database, and check it there. The source is left as it is."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.runtime.places import database_of  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.storage.moving import migrate_store  # noqa: PLC0415 -- as above

        if source is not None:
            origin: str | Path = database_at(source)
        else:
            home, config = desk.place()
            origin, _ = database_of(home, config.sessiondb.url)
        with desk.progress("Copying") as tell:

            def show(one: gs.MigrationProgress) -> None:
                tell(one.rows, one.total_rows, f"{'Checking' if one.checking else 'Copying'} {one.table}")

            report = await migrate_store(origin, database_at(target), dry_run=dry_run, progress=show)
        desk.done(str(report), report)
        if report.already:
            desk.note("All of it had been moved before; it was checked once more.")
        elif not dry_run:
            desk.note(NEXT_STEPS)

    run(context, work)


def database_at(place: str) -> str | Path:
    """The database that people mean by a path, a directory or an address."""
    path = Path(place).expanduser()
    return path / "sessions.db" if "://" not in place and (path.is_dir() or not path.suffix) else place


@app.command()
def check(context: typer.Context) -> None:
    """Read the whole database, and say what is wrong with it. It may be in use meanwhile."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.storage.repair import check_store  # noqa: PLC0415 -- as above

        report = await check_store(_file_home(desk))
        if report.healthy:
            desk.done("Nothing is wrong.", report)
            return
        desk.code = Exit.UNSOUND
        kind = "The file is damaged" if report.damaged else "The tables do not agree"
        lines = [f"{kind}:", *(f"  {one}" for one in report.found)]
        desk.done("\n".join([*lines, "Stop the gateway, then: gateway-sessions sessiondb repair"]), report)

    run(context, work)


@app.command()
def repair(context: typer.Context, *, dry_run: DryRun = False) -> None:
    """Mend what `check` finds. Nothing damaged is thrown away: it is kept in quarantine."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.storage.repair import check_store, repair_store  # noqa: PLC0415 -- as above

        home = _file_home(desk)
        found = await check_store(home) if dry_run else None
        if found is not None:
            lines = [
                f"Would mend {counted(len(found.found), 'thing')}:",
                *(f"  {one}" for one in found.found),
            ]
            desk.done("\n".join(lines) if found.found else "Nothing would be done.", found, dry_run=True)
            return
        desk.confirm(f"Repair the database in {home}?")
        report = await repair_store(home)
        lines = [f"  {one}" for one in report.done] + [f"  lost: {one}" for one in report.lost]
        lines += [f"  kept: {one}" for one in report.quarantine]
        desk.code = Exit.UNSOUND if report.lost else Exit.DONE
        desk.done("\n".join(["Repaired:", *lines]) if lines else "Nothing had to be repaired.", report)

    run(context, work)


def _file_home(desk: Desk) -> Path:
    home, config = desk.place()
    if config.sessiondb.is_server:
        problem = "a database on a server is checked and mended there, with the means of its operator"
        raise UnsupportedStorageError("sessiondb", problem)
    return home
