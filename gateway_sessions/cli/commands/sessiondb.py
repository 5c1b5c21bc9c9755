"""`sessiondb`: the database as a whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway_sessions.cli.desk import Desk, run
from gateway_sessions.cli.exits import Exit
from gateway_sessions.cli.options import DryRun
from gateway_sessions.core.telling import counted
from gateway_sessions.storage_errors import OperatorsTaskError

if TYPE_CHECKING:
    import gateway_sessions as gs

NEXT_STEPS = (
    "Name the new place in the configuration (sessiondb), and keep the old one until you are content."
)
IN_A_FILE = "Stop the gateway, then: gateway-sessions sessiondb repair"
ON_A_SERVER = "It is mended on the server, from backups of its operator."

app = typer.Typer(help="Look after the database: check, repair, move, upgrade it.", no_args_is_help=True)


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

        home, config = desk.place()
        origin, _ = database_of(home, config.sessiondb.url)
        if source is not None:
            origin = database_at(source)
        moved = partial(
            migrate_store,
            prepared_statements=config.sessiondb.prepared_statements,
            allow_network=config.sessiondb.allow_network_filesystem,
        )
        with desk.progress("Copying") as tell:

            def show(one: gs.MigrationProgress) -> None:
                tell(one.rows, one.total_rows, f"{'Checking' if one.checking else 'Copying'} {one.table}")

            report = await moved(origin, database_at(target), dry_run=dry_run, progress=show)
        desk.done(str(report), report)
        if report.already:
            desk.note("All of it had been moved before; it was checked once more.")
        elif not dry_run:
            desk.note(NEXT_STEPS)

    run(context, work)


@app.command()
def upgrade(context: typer.Context, *, dry_run: DryRun = False) -> None:
    """Bring the tables up to date with this version, as opening the store would, and do nothing else."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.runtime.places import database_of  # noqa: PLC0415 -- as above
        from gateway_sessions.storage.opened import Opening  # noqa: PLC0415 -- as above
        from gateway_sessions.storage.upgrading import upgrade_schema  # noqa: PLC0415 -- as above

        home, config = desk.place()
        database, beside = database_of(home, config.sessiondb.url)
        opening = Opening(
            home=beside,
            prepared_statements=config.sessiondb.prepared_statements,
            allow_network=config.sessiondb.allow_network_filesystem,
        )
        report = await upgrade_schema(database, opening, dry_run=dry_run)
        desk.done(f"{report}.", report)

    run(context, work)


def database_at(place: str) -> str | Path:
    """The database that people mean by a path, a directory or an address."""
    path = Path(place).expanduser()
    return path / "sessions.db" if "://" not in place and (path.is_dir() or not path.suffix) else place


@app.command()
def check(context: typer.Context) -> None:
    """Read the whole database, and say what is wrong with it. It may be in use, and on a server."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.storage.repair import check_store  # noqa: PLC0415 -- as above

        home, config = desk.place()
        database = config.sessiondb
        server = database.url if database.is_server else None
        report = await check_store(home, server=server, prepared_statements=database.prepared_statements)
        if report.healthy:
            desk.done("Nothing is wrong.", report)
            return
        desk.code = Exit.UNSOUND
        kind = "The file is damaged" if report.damaged else "The tables do not agree"
        lines = [f"{kind}:", *(f"  {one}" for one in report.found)]
        desk.done("\n".join([*lines, ON_A_SERVER if server else IN_A_FILE]), report)

    run(context, work)


@app.command()
def repair(context: typer.Context, *, dry_run: DryRun = False) -> None:
    """Mend what `check` finds in a file. Nothing damaged is thrown away: it is kept in quarantine."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.storage.repair import check_store, repair_store  # noqa: PLC0415 -- as above

        home, config = desk.place()
        if config.sessiondb.is_server:
            problem = "is mended on the server, from backups of its operator; nothing was changed"
            raise OperatorsTaskError(str(config.sessiondb.shown_url), problem)
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
