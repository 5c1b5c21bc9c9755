"""`sessions import`, `import hermes`: sessions from files and from other homes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway_sessions.cli.commands.importing import ImportHermes
from gateway_sessions.cli.commands.sessions import ImportSessions
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.export.reports import ImportReport, TransferProgress
from gateway_sessions.core.telling import counted
from gateway_sessions.core.untrusted import visible
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.hermes_import import rehearse_hermes_import
from gateway_sessions.storage.importers.hermes_home import HermesHome


async def import_sessions(context: CommandContext, asked: ImportSessions) -> None:
    """Take sessions in from a file."""
    if not asked.source.expanduser().is_file():
        problem = f"{asked.source}: there is no such file"
        raise InvalidInputError(problem)
    with context.progress("Importing") as tell:

        def show(one: TransferProgress) -> None:
            tell(one.sessions, None)

        report = await _taken_in(
            context, asked.source, dry_run=asked.dry_run, owner=asked.owner, progress=show
        )
    _answer(context, asked.source, report)


async def _taken_in(context: CommandContext, source: Path, *, dry_run: bool, **options: Any) -> ImportReport:
    # No store is made for a file that is no export.
    if dry_run or not await context.has_store():
        async with context.open_dry_run() as db:
            report = await db.import_sessions(source, dry_run=True, **options)
        if dry_run or not report.imported:
            return replace(report, dry_run=dry_run)
    async with context.open_owned(may_be_new=True) as store:
        return await store.db.import_sessions(source, **options)


async def import_hermes(context: CommandContext, asked: ImportHermes) -> None:
    """Bring a Hermes home along."""
    path = asked.path
    if not path.expanduser().is_dir():
        problem = f"{path}: there is no such directory; name the home of Hermes"
        raise InvalidInputError(problem)
    with context.progress("Importing") as tell:

        def show(one: TransferProgress) -> None:
            tell(one.sessions, one.total_sessions)

        if asked.dry_run:
            async with context.open_dry_run() as db:
                report = await rehearse_hermes_import(db, context.place()[1], path, progress=show)
        else:
            HermesHome.at(path.expanduser().absolute())  # no store is made for what is none
            async with context.open_owned(may_be_new=True) as store:
                report = await store.import_hermes(path, progress=show)
    _answer(context, path, report)


def _answer(context: CommandContext, source: Path, report: ImportReport) -> None:
    """Say what was taken in, and what came in the way."""
    if report.errors and not report.imported:
        if not report.skipped:
            more = len(report.errors) + report.more_findings - 1
            others = f" (and {more:,} more)" if more else ""
            problem = f"{source}: nothing in it could be taken in: {report.errors[0]}{others}"
            raise InvalidInputError(problem)
        context.exit_code = Exit.FAILED
    context.answer_text(_told(report), report)


def _told(report: ImportReport) -> str:
    done = "Would import" if report.dry_run else "Imported"
    hidden = f" and {counted(report.hidden, 'hidden one')}" if report.hidden else ""
    said = f"{counted(report.imported, 'session')} with {counted(report.messages, 'message')}{hidden}"
    lanes = f", {counted(report.lanes, 'lane')} with them" if report.lanes else ""
    begun = f", for which {counted(report.begun, 'session')} {'begin' if report.dry_run else 'began'} anew"
    lanes += begun if report.begun else ""
    known = f"; {report.skipped:,} were here already" if report.skipped else ""
    lines = [f"{done} {said}{lanes}{known}."]
    lines += [f"  {one.kind}: {one}" for one in report.findings]
    lines += [f"  ... and {report.more_findings:,} more"] if report.more_findings else []
    return visible("\n".join(lines))
