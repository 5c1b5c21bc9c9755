"""`sessiondb`: check, repair, move and upgrade the database, and give lanes to named accounts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import DryRun, command
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.display_text import visible_text
from gateway_sessions.core.notices.human_units import MEND_FILE, MEND_SERVER, counted
from gateway_sessions.errors import InvalidInputError, NoStoreError, OperatorsTaskError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.core.identity.account_lane_assignment import LanesReport
    from gateway_sessions.storage.maintenance.copy_store import MigrationProgress

app: Final = typer.Typer(help="Check, repair, move and upgrade the database.")

NEXT_STEPS: Final = (
    "Name the new place in the configuration (sessiondb), and keep the old one until you are content."
)
UNKNOWN: Final = " (nothing tells whose it was)"


@command(app, "migrate")
async def migrate(
    context: CommandContext,
    *,
    target: Annotated[
        str, typer.Argument(help="A path, a store's directory, postgresql://… or mysql://…", metavar="TARGET")
    ],
    source: Annotated[
        str | None,
        typer.Option("--from", help="The source, if not the database of the store.", metavar="SOURCE"),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Copy the whole store to another database, and check the copy. The source is not changed."""
    from gateway_sessions.runtime.store.database_opening import locate_database
    from gateway_sessions.storage.maintenance.copy_store import migrate_store

    home, config = context.home_and_config()
    origin, _ = locate_database(home, config.sessiondb.url)
    if source is not None:
        origin = _database_at(source)
    move = partial(
        migrate_store,
        prepared_statements=config.sessiondb.prepared_statements,
        allow_network=config.sessiondb.allow_network_filesystem,
    )
    with context.progress("Copying") as report_progress:

        def show(one: MigrationProgress) -> None:
            doing = f"{'Checking' if one.checking else 'Copying'} {one.table}"
            report_progress(one.rows, one.total_rows, doing)

        report = await move(origin, _database_at(target), dry_run=dry_run, progress=show)
    context.answer_text(str(report), report)
    if report.already:
        context.note("All of it had been moved before; it was checked once more.")
    elif not dry_run:
        context.note(NEXT_STEPS)


def _database_at(place: str) -> str | Path:
    """Return the database that people mean by a path, a directory or an address."""
    path = Path(place).expanduser()
    return path / "sessions.db" if "://" not in place and (path.is_dir() or not path.suffix) else place


@command(app, "upgrade")
async def upgrade(context: CommandContext, *, dry_run: DryRun = False) -> None:
    """Upgrade the tables to this version, as opening the store would, and do nothing else."""
    from gateway_sessions.runtime.store.database_opening import locate_database
    from gateway_sessions.storage.engines.upgrade import EngineOpening as Opening
    from gateway_sessions.storage.engines.upgrade import upgrade_schema

    home, config = context.home_and_config()
    database, beside = locate_database(home, config.sessiondb.url)
    opening = Opening(
        home=beside,
        prepared_statements=config.sessiondb.prepared_statements,
        allow_network=config.sessiondb.allow_network_filesystem,
    )
    with context.progress("Bringing the tables up to date"):
        report = await upgrade_schema(database, opening, dry_run=dry_run)
    context.answer_text(f"{report}.", report)


@command(app, "check")
async def check(context: CommandContext) -> None:
    """Read the whole database, and report what is wrong. It may be in use, and on a server."""
    from gateway_sessions.storage.maintenance.repair import check_store

    home, config = context.home_and_config()
    database = config.sessiondb
    server = database.url if database.is_server else None
    home = home if server else _folder_of_file(home, database.url)
    with context.work_progress("Checking") as watch:
        report = await check_store(
            home, server=server, prepared_statements=database.prepared_statements, progress=watch
        )
    if report.healthy:
        context.answer_text("Nothing is wrong.", report)
        return
    context.exit_code = Exit.UNSOUND
    kind = "The file is damaged" if report.damaged else "Something in it is wrong"
    lines = [f"{kind}:", *(f"  {one}" for one in report.found)]
    context.answer_text("\n".join([*lines, f"  → {MEND_SERVER if server else MEND_FILE}"]), report)


@command(app, "repair")
async def repair(context: CommandContext, *, dry_run: DryRun = False) -> None:
    """Repair what `check` finds in a file. Damaged data is not deleted, but kept in quarantine."""
    from gateway_sessions.storage.maintenance.repair import repair_store

    home, config = context.home_and_config()
    if config.sessiondb.is_server:
        problem = "is mended on the server, from backups of its operator; nothing was changed"
        raise OperatorsTaskError(str(config.sessiondb.shown_url), problem)
    home = _folder_of_file(home, config.sessiondb.url)
    if dry_run:
        await _repair_dry_run(context, home)
        return
    if not home.is_dir():
        raise NoStoreError(str(home))
    context.confirm(f"Repair the database in {home}?")
    with context.work_progress("Repairing") as watch:
        report = await repair_store(home, progress=watch)
    lines = [f"  {one}" for one in report.done] + [f"  lost: {one}" for one in report.lost]
    lines += [f"  kept: {one}" for one in report.quarantine]
    context.exit_code = Exit.UNSOUND if report.lost else Exit.DONE
    context.answer_text("\n".join(["Repaired:", *lines]) if lines else "Nothing had to be repaired.", report)


async def _repair_dry_run(context: CommandContext, home: Path) -> None:
    from gateway_sessions.storage.maintenance.repair import check_store

    with context.work_progress("Checking") as watch:
        found = await check_store(home, progress=watch)
    context.exit_code = Exit.UNSOUND if found.found else Exit.DONE
    lines = [f"Would mend {counted(len(found.found), 'thing')}:", *(f"  {one}" for one in found.found)]
    context.answer_text("\n".join(lines) if found.found else "Nothing would be done.", found, dry_run=True)


def _folder_of_file(home: Path, url: str | None) -> Path:
    """Return the folder of the database file, which the configuration may have put elsewhere."""
    from gateway_sessions.runtime.store.database_opening import DATABASE_FILE, locate_database

    database, beside = locate_database(home, url)
    if Path(database).name != DATABASE_FILE:
        problem = f"{database}: only a file that is called {DATABASE_FILE} can be checked and repaired"
        raise InvalidInputError(problem)
    return beside


@command(app, "accounts")
async def accounts(
    context: CommandContext,
    *,
    given: Annotated[
        list[str] | None,
        typer.Argument(help="The account of lanes whose account is unknown.", metavar="PLATFORM=ACCOUNT"),
    ] = None,
    unnamed: Annotated[
        bool,
        typer.Option(
            "--unnamed", help="Also assign the lanes of the account without a name, which now has that name."
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Assign lanes of version 0.1 to the named accounts that used them.

    A gateway does this once when it starts. Each lane goes to the account that used it last.
    """
    from gateway_sessions.runtime.store.account_lanes import rehearse_lane_assignment

    by_platform = _parse_accounts(given or ())
    if unnamed and not by_platform:
        problem = "--unnamed needs the name: say PLATFORM=ACCOUNT, such as telegram=support"
        raise InvalidInputError(problem)
    async with context.open_dry_run() as db:
        report = await rehearse_lane_assignment(db, by_platform, unnamed_too=unnamed)
    if not dry_run and (report.moved or report.linked):
        context.confirm(_lanes_summary(report).partition("\n")[0].rstrip(".:") + "?")
        async with context.open_owned() as store:
            report = await store.assign_lanes(by_platform, unnamed_too=unnamed)
    context.answer_text(_lanes_summary(report), report)


def _parse_accounts(given: Iterable[str]) -> dict[str, str]:
    """Return the account for each platform, of what was typed as `PLATFORM=ACCOUNT`."""
    from gateway_sessions.core.identity.source import check_identifier

    found: dict[str, str] = {}
    for one in given:
        platform, _, account = one.partition("=")
        if not platform.strip() or not account.strip():
            problem = f"{one!r}: say PLATFORM=ACCOUNT, such as telegram=support"
            raise InvalidInputError(problem)
        check_identifier("account", account)
        found[platform.strip().lower()] = account
    return found


def _lanes_summary(report: LanesReport) -> str:
    if not (report.moved or report.linked or report.left):
        return "Every lane is its account's already."
    give, link = ("Would give", "would link") if report.dry_run else ("Gave", "linked")
    lines = [f"{give} {counted(len(report.moved), 'lane')} to accounts, {link} {len(report.linked):,}:"]
    lines += [f"  {one.session_key} → {one.now}{'' if one.known else UNKNOWN}" for one in report.moved]
    lines += [f"  {one.session_key} begins anew, linked to {one.session_id}" for one in report.linked]
    lines += [f"  left: {one.session_key}: {one.problem}" for one in report.left]
    return visible_text("\n".join(lines))
