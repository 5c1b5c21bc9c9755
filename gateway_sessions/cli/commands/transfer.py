"""`sessions export`, `sessions import` and `import hermes`: move sessions to files and from files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gateway_sessions.cli.declare import DryRun, Force, Source, Target, command
from gateway_sessions.cli.exit_codes import Exit
from gateway_sessions.core.display_text import visible_text
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.core.export.transfer_reports import ImportReport, TransferProgress

files_app: Final = typer.Typer()
"""Commands of the group `sessions`."""
app: Final = typer.Typer(help="Import the sessions of other programs.")


@command(files_app, "export")
async def export_sessions(
    context: CommandContext,
    *,
    target: Target,
    form: Annotated[str, typer.Option("--format", help="jsonl, markdown or html.", metavar="FORM")] = "jsonl",
    session: Annotated[str | None, typer.Option("--session-id", help="Only this session.", metavar="ID")] = (
        None
    ),
    source: Source = None,
    lineage: Annotated[
        str, typer.Option(help="single, or logical: a compressed conversation as a whole.", metavar="KIND")
    ] = "single",
    force: Force = False,
) -> None:
    """Write sessions to a file, as of one moment."""
    from gateway_sessions.cli.output.json_lines import check_target

    scope, to_pipe = Scope.operator(), target == "-"
    if to_pipe and context.as_json:
        problem = "--json would mix with the sessions on the standard output; name a file"
        raise InvalidInputError(problem)
    check_target(target, force=force)
    async with context.open_client() as client:
        session_id = await client.db.resolve_session(session, scope=scope) if session else None
        with context.progress("Exporting", beside=target) as report_progress:
            report = await client.db.write_export(
                sys.stdout.buffer if to_pipe else target,
                scope=scope,
                format=form,
                source=source,
                session_id=session_id,
                lineage=lineage,  # type: ignore[arg-type]  # checked there
                progress=lambda one: report_progress(one.sessions, one.total_sessions),
            )
    text = f"Exported {counted(report.sessions, 'session')} with {counted(report.messages, 'message')}"
    if to_pipe:
        context.note(f"{text}.")
    else:
        context.answer_text(f"{text} to {target}.", report)


@command(files_app, "import")
async def import_sessions(
    context: CommandContext,
    *,
    source: Annotated[Path, typer.Argument(help="A file from an export.", metavar="FILE")],
    owner: Annotated[
        str | None,
        typer.Option(
            help="The new owner of the sessions. Default: their owners in the file.", metavar="OWNER"
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Import sessions from a file. Existing sessions are not changed."""
    if not source.expanduser().is_file():
        problem = f"{source}: there is no such file"
        raise InvalidInputError(problem)
    with context.progress("Importing") as report_progress:

        def show(one: TransferProgress) -> None:
            report_progress(one.sessions, None)

        report = await _import_file(context, source, dry_run=dry_run, owner=owner, progress=show)
    _answer_import(context, source, report)


async def _import_file(
    context: CommandContext, source: Path, *, dry_run: bool, **options: Any
) -> ImportReport:
    # A file that is no export must not create a store.
    if dry_run or not await context.has_store():
        async with context.open_dry_run() as db:
            report = await db.import_sessions(source, dry_run=True, **options)
        if dry_run or not report.imported:
            return replace(report, dry_run=dry_run)
    async with context.open_owned(may_be_new=True) as store:
        return await store.db.import_sessions(source, **options)


@command(app, "hermes")
async def import_hermes(
    context: CommandContext,
    *,
    path: Annotated[Path, typer.Argument(help="The home of Hermes.", metavar="DIR")] = Path("~/.hermes"),
    dry_run: DryRun = False,
) -> None:
    """Import a Hermes home: sessions, messages, use, and lanes."""
    from gateway_sessions.runtime.store.hermes_import import rehearse_hermes_import
    from gateway_sessions.storage.hermes.home import HermesHome

    if not path.expanduser().is_dir():
        problem = f"{path}: there is no such directory; name the home of Hermes"
        raise InvalidInputError(problem)
    with context.progress("Importing") as report_progress:

        def show(one: TransferProgress) -> None:
            report_progress(one.sessions, one.total_sessions)

        if dry_run:
            async with context.open_dry_run() as db:
                report = await rehearse_hermes_import(db, context.home_and_config()[1], path, progress=show)
        else:
            HermesHome.find_home(
                path.expanduser().absolute()
            )  # a directory that is no Hermes home must not create a store
            async with context.open_owned(may_be_new=True) as store:
                report = await store.import_hermes(path, progress=show)
    _answer_import(context, path, report)


def _answer_import(context: CommandContext, source: Path, report: ImportReport) -> None:
    if report.errors and not report.imported:
        if not report.skipped:
            more = len(report.errors) + report.more_findings - 1
            others = f" (and {more:,} more)" if more else ""
            problem = f"{source}: nothing in it could be taken in: {report.errors[0]}{others}"
            raise InvalidInputError(problem)
        context.exit_code = Exit.FAILED
    context.answer_text(_import_summary(report), report)


def _import_summary(report: ImportReport) -> str:
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
    return visible_text("\n".join(lines))
