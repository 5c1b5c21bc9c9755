"""`sessiondb`: find what is wrong with the database, and mend it."""

from __future__ import annotations

from pathlib import Path

from gateway_sessions.cli.commands.sessiondb import Check, Repair
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.cures import MEND_FILE, MEND_SERVER
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import InvalidInputError, NoStoreError
from gateway_sessions.runtime.places import DATABASE_FILE, database_of
from gateway_sessions.storage.repair import check_store, repair_store
from gateway_sessions.storage_errors import OperatorsTaskError


async def check(context: CommandContext, asked: Check) -> None:
    """Read the whole database, and say what is wrong with it."""
    home, config = context.place()
    database = config.sessiondb
    server = database.url if database.is_server else None
    home = home if server else folder_of_file(home, database.url)
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


async def repair(context: CommandContext, asked: Repair) -> None:
    """Mend what `check` finds in a file."""
    home, config = context.place()
    if config.sessiondb.is_server:
        problem = "is mended on the server, from backups of its operator; nothing was changed"
        raise OperatorsTaskError(str(config.sessiondb.shown_url), problem)
    home = folder_of_file(home, config.sessiondb.url)
    if asked.dry_run:
        await _rehearse(context, home)
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


async def _rehearse(context: CommandContext, home: Path) -> None:
    with context.work_progress("Checking") as watch:
        found = await check_store(home, progress=watch)
    context.exit_code = Exit.UNSOUND if found.found else Exit.DONE
    lines = [f"Would mend {counted(len(found.found), 'thing')}:", *(f"  {one}" for one in found.found)]
    context.answer_text("\n".join(lines) if found.found else "Nothing would be done.", found, dry_run=True)


def folder_of_file(home: Path, url: str | None) -> Path:
    """Where the database file is, which the configuration may have put elsewhere."""
    database, beside = database_of(home, url)
    if Path(database).name != DATABASE_FILE:
        problem = f"{database}: only a file that is called {DATABASE_FILE} can be checked and repaired"
        raise InvalidInputError(problem)
    return beside
