"""`sessiondb`: the database as a whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway_sessions.cli.desk import Desk, run
from gateway_sessions.cli.exits import Exit
from gateway_sessions.cli.options import DryRun
from gateway_sessions.core.cures import MEND_FILE, MEND_SERVER
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import InvalidInputError, NoStoreError
from gateway_sessions.storage_errors import OperatorsTaskError

if TYPE_CHECKING:
    import gateway_sessions as gs

NEXT_STEPS = (
    "Name the new place in the configuration (sessiondb), and keep the old one until you are content."
)

app = typer.Typer(help="Look after the database: check, repair, move, upgrade it.")


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
        with desk.progress("Bringing the tables up to date"):
            report = await upgrade_schema(database, opening, dry_run=dry_run)
        desk.done(f"{report}.", report)

    run(context, work)


def database_at(place: str) -> str | Path:
    """The database that people mean by a path, a directory or an address."""
    path = Path(place).expanduser()
    return path / "sessions.db" if "://" not in place and (path.is_dir() or not path.suffix) else place


def folder_of_file(home: Path, url: str | None) -> Path:
    """Where the database file is, which the configuration may have put elsewhere."""
    from gateway_sessions.runtime.places import DATABASE_FILE, database_of  # noqa: PLC0415 -- as above

    database, beside = database_of(home, url)
    if Path(database).name != DATABASE_FILE:
        problem = f"{database}: only a file that is called {DATABASE_FILE} can be checked and repaired"
        raise InvalidInputError(problem)
    return beside


@app.command()
def check(context: typer.Context) -> None:
    """Read the whole database, and say what is wrong with it. It may be in use, and on a server."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.storage.repair import check_store  # noqa: PLC0415 -- as above

        home, config = desk.place()
        database = config.sessiondb
        server = database.url if database.is_server else None
        home = home if server else folder_of_file(home, database.url)
        with desk.steps("Checking") as watch:
            report = await check_store(
                home, server=server, prepared_statements=database.prepared_statements, progress=watch
            )
        if report.healthy:
            desk.done("Nothing is wrong.", report)
            return
        desk.code = Exit.UNSOUND
        kind = "The file is damaged" if report.damaged else "The tables do not agree"
        lines = [f"{kind}:", *(f"  {one}" for one in report.found)]
        desk.done("\n".join([*lines, f"  → {MEND_SERVER if server else MEND_FILE}"]), report)

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
        home = folder_of_file(home, config.sessiondb.url)
        if dry_run:
            with desk.steps("Checking") as watch:
                found = await check_store(home, progress=watch)
            lines = [
                f"Would mend {counted(len(found.found), 'thing')}:",
                *(f"  {one}" for one in found.found),
            ]
            desk.done("\n".join(lines) if found.found else "Nothing would be done.", found, dry_run=True)
            return
        if not home.is_dir():
            raise NoStoreError(str(home))
        desk.confirm(f"Repair the database in {home}?")
        with desk.steps("Repairing") as watch:
            report = await repair_store(home, progress=watch)
        lines = [f"  {one}" for one in report.done] + [f"  lost: {one}" for one in report.lost]
        lines += [f"  kept: {one}" for one in report.quarantine]
        desk.code = Exit.UNSOUND if report.lost else Exit.DONE
        desk.done("\n".join(["Repaired:", *lines]) if lines else "Nothing had to be repaired.", report)

    run(context, work)
