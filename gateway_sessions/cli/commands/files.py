"""`sessions export`, `sessions import`, `import hermes`: files and other homes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway_sessions.cli.desk import Desk, everything, run
from gateway_sessions.cli.exits import Exit
from gateway_sessions.cli.options import DryRun, Force, Source
from gateway_sessions.core.telling import counted
from gateway_sessions.core.untrusted import visible
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    import gateway_sessions as gs

app = typer.Typer()
importing = typer.Typer(help="Bring the sessions of other programs along.")


@app.command("export")
def export_sessions(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(help="The file to write; - is the standard output.", metavar="FILE")
    ],
    *,
    form: Annotated[str, typer.Option("--format", help="jsonl, markdown or html.")] = "jsonl",
    session: Annotated[
        str | None, typer.Option("--session-id", help="Only this session.", metavar="ID")
    ] = None,
    source: Source = None,
    lineage: Annotated[
        str, typer.Option(help="single, or logical: a compressed conversation together.")
    ] = "single",
    force: Force = False,
) -> None:
    """Write sessions to a file, all as of one moment."""

    async def work(desk: Desk) -> None:
        to_pipe = target == "-"
        _refuse_target(desk, target, force=force)
        async with desk.seat() as seat:
            scope = everything()
            session_id = await seat.db.resolve_session(session, scope=scope) if session else None
            with desk.progress("Exporting", beside=target) as tell:
                report = await seat.db.write_export(
                    sys.stdout.buffer if to_pipe else target,
                    scope=scope,
                    format=form,
                    source=source,
                    session_id=session_id,
                    lineage=lineage,  # type: ignore[arg-type]  # checked there
                    progress=lambda one: tell(one.sessions, one.total_sessions),
                )
        text = f"Exported {counted(report.sessions, 'session')} with {counted(report.messages, 'message')}"
        if to_pipe:
            desk.note(f"{text}.")
        else:
            desk.done(f"{text} to {target}.", report)

    run(context, work)


def _refuse_target(desk: Desk, target: str, *, force: bool) -> None:
    from gateway_sessions.cli.lines import check_target  # noqa: PLC0415 -- --help must not wait for it

    if target == "-" and desk.as_json:
        problem = "--json would mix with the sessions on the standard output; name a file"
        raise InvalidInputError(problem)
    check_target(target, force=force)


@app.command("import")
def import_sessions(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(help="A file that an export has written.", metavar="FILE")],
    *,
    owner: Annotated[str | None, typer.Option(help="Whose they become; else whose they were.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Take sessions in from a file. Nothing that is here is changed."""

    async def work(desk: Desk) -> None:
        if not source.expanduser().is_file():
            problem = f"{source}: there is no such file"
            raise InvalidInputError(problem)
        with desk.progress("Importing") as tell:

            def show(one: gs.TransferProgress) -> None:
                tell(one.sessions, None)

            report = await _taken_in(desk, source, dry_run=dry_run, owner=owner, progress=show)
        answer_import(desk, source, report)

    run(context, work)


async def _taken_in(desk: Desk, source: Path, *, dry_run: bool, **options: Any) -> gs.ImportReport:
    # No store is made for a file that is no export.
    if dry_run or not await desk.has_store():
        async with desk.rehearsal() as db:
            report = await db.import_sessions(source, dry_run=True, **options)
        if dry_run or not report.imported:
            return replace(report, dry_run=dry_run)
    async with desk.store(may_be_new=True) as store:
        return await store.db.import_sessions(source, **options)


@importing.command("hermes")
def import_hermes(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The home of Hermes.", metavar="DIR")] = Path("~/.hermes"),
    *,
    dry_run: DryRun = False,
) -> None:
    """Bring a Hermes home along: sessions, messages, use, and the lanes that go on with them."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.runtime.hermes_import import rehearse_hermes_import  # noqa: PLC0415 -- --help must not wait
        from gateway_sessions.storage.importers.hermes_home import HermesHome  # noqa: PLC0415 -- as above

        if not path.expanduser().is_dir():
            problem = f"{path}: there is no such directory; name the home of Hermes"
            raise InvalidInputError(problem)
        with desk.progress("Importing") as tell:

            def show(one: gs.TransferProgress) -> None:
                tell(one.sessions, one.total_sessions)

            if dry_run:
                async with desk.rehearsal() as db:
                    report = await rehearse_hermes_import(db, desk.place()[1], path, progress=show)
            else:
                HermesHome.at(path.expanduser().absolute())  # no store is made for what is none
                async with desk.store(may_be_new=True) as store:
                    report = await store.import_hermes(path, progress=show)
        answer_import(desk, path, report)

    run(context, work)


def answer_import(desk: Desk, source: Path, report: gs.ImportReport) -> None:
    """Say what was taken in, and what came in the way."""
    if report.errors and not report.imported:
        if not report.skipped:
            more = len(report.errors) + report.more_findings - 1
            others = f" (and {more:,} more)" if more else ""
            problem = f"{source}: nothing in it could be taken in: {report.errors[0]}{others}"
            raise InvalidInputError(problem)
        desk.code = Exit.FAILED
    desk.done(_import_told(report), report)


def _import_told(report: gs.ImportReport) -> str:
    done = "Would import" if report.dry_run else "Imported"
    said = f"{counted(report.imported, 'session')} with {counted(report.messages, 'message')}"
    lanes = f", {counted(report.lanes, 'lane')} with them" if report.lanes else ""
    known = f"; {report.skipped:,} were here already" if report.skipped else ""
    lines = [f"{done} {said}{lanes}{known}."]
    lines += [f"  {one.kind}: {one}" for one in report.findings]
    lines += [f"  ... and {report.more_findings:,} more"] if report.more_findings else []
    return visible("\n".join(lines))
