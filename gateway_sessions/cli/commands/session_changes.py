"""`sessions rename`, `delete`, `prune` and `undo-reset`: change, remove and restore sessions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from gateway_sessions.cli.declare import MAX_COUNT, DryRun, Key, SessionText, Source, command, whole_number
from gateway_sessions.cli.lookup import find_exact_session
from gateway_sessions.cli.settings import PATIENCE_SECONDS
from gateway_sessions.core.notices.human_units import (
    DAY,
    counted,
    parse_byte_count,
    parse_duration,
    size_with_unit,
)
from gateway_sessions.core.sessions.retention import PruneReport
from gateway_sessions.errors import SessionNotFoundError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.cli.output.terminal import ReportProgress
    from gateway_sessions.core.progress import WorkProgress
    from gateway_sessions.core.sessions.entry import SessionEntry
    from gateway_sessions.core.sessions.record import SessionRecord
    from gateway_sessions.runtime.operator.store_client import StoreClient

app: Final = typer.Typer()

MAX_IDS_SHOWN: Final = 50
"""The number of ids of sessions to remove that people are shown."""
ROUND: Final = 5_000
"""Sessions that are removed at a time: an answer of the owner has room for more ids than that."""


@command(app, "rename")
async def rename(
    context: CommandContext,
    *,
    session: SessionText,
    title: Annotated[
        list[str], typer.Argument(help="The new title; several words are joined.", metavar="TITLE…")
    ],
) -> None:
    """Give a session a title."""
    async with context.open_client() as client:
        session_id = (await find_exact_session(client, session)).session_id
        if not await client.do("set_session_title", session_id=session_id, title=" ".join(title)):
            raise SessionNotFoundError(session_id)
        given = await client.db.get_session_title(session_id)
    told = "has no title now" if given is None else f"is called {given!r} now"
    context.answer_text(f"{session_id} {told}.", {"session_id": session_id, "title": given})


@command(app, "delete")
async def delete(
    context: CommandContext,
    *,
    session: SessionText,
    end: Annotated[
        bool,
        typer.Option("--end", help="Also delete the current session of a lane, which then gets a new one."),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a session with all its messages."""
    from gateway_sessions.storage.tables import entries
    from gateway_sessions.storage.transactions.sessions import remove as retention

    async with context.open_client() as client:
        record = await find_exact_session(client, session)
        told = f"{_session_label(record)} with {counted(record.message_count, 'message')}"
        what = {"session_id": record.session_id, "messages": record.message_count}
        there = await client.db.read(partial(entries.load_by_session, record.session_id)) if end else None
        if there is None:
            await client.db.read(partial(retention.check_deletable, record.session_id))
        told = told if there is None else f"{told}, and end it on {there.session_key} before"
        if dry_run:
            context.answer_text(f"Would delete {told}.", what, dry_run=True)
            return
        context.confirm(f"Delete {told}?")
        if there is not None:
            await client.do("reset_session", session_key=there.session_key)
        if not await client.do("delete_session", session_id=record.session_id):
            raise SessionNotFoundError(record.session_id)
    context.answer_text(f"Deleted {record.session_id}.", what, dry_run=False)


def _session_label(record: SessionRecord) -> str:
    return f"{record.session_id} ({record.title or record.preview or record.source})"


OlderThan: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Only those unused for that long. Default: 90d, without --keep and --max-size.", metavar="TIME"
    ),
]
Keep: TypeAlias = Annotated[
    int | None,
    typer.Option(
        parser=whole_number(0, MAX_COUNT), help="Keep N sessions, and remove the oldest.", metavar="N"
    ),
]
MaxSize: TypeAlias = Annotated[
    str | None, typer.Option(help="Keep that much text, such as 500M.", metavar="SIZE")
]
OnlyEmpty: TypeAlias = Annotated[bool, typer.Option("--only-empty", help="Only those without messages.")]
IncludeArchived: TypeAlias = Annotated[bool, typer.Option("--include-archived", help="Also archived ones.")]
Unended: TypeAlias = Annotated[bool, typer.Option("--unended", help="Also those that have not ended.")]


@command(app, "prune")
async def prune(
    context: CommandContext,
    *,
    older_than: OlderThan = None,
    keep: Keep = None,
    max_size: MaxSize = None,
    source: Source = None,
    only_empty: OnlyEmpty = False,
    include_archived: IncludeArchived = False,
    unended: Unended = False,
    dry_run: DryRun = False,
) -> None:
    """Remove old sessions that have ended. Current, pinned and recent sessions stay."""
    bounded = keep is not None or max_size is not None
    length = older_than or (None if bounded else "90d")
    bounds: dict[str, Any] = {
        "older_than_days": None if length is None else parse_duration("--older-than", length) / DAY,
        "max_count": keep,
        "max_bytes": None if max_size is None else parse_byte_count("--max-size", max_size),
        "source": source,
        "only_empty": only_empty,
        "include_archived": include_archived,
        "unended": unended,
    }
    async with context.open_client() as client:
        with context.progress("Looking for what may go"):
            plan = await client.db.prune_sessions(dry_run=True, **bounds)
        if dry_run or not plan.session_ids:
            context.answer_text(_removal_text("Would remove", plan, plan.session_ids, unended=unended), plan)
            return
        context.confirm(f"{_removal_text('Remove', plan, unended=unended)[:-1]}?")
        with context.progress("Removing sessions") as report:
            done = await _prune_in_rounds(client, bounds, len(plan.session_ids), report)
    context.answer_text(_removal_text("Removed", done, unended=unended), done)


async def _prune_in_rounds(
    client: StoreClient, bounds: dict[str, Any], planned: int, report: ReportProgress
) -> PruneReport:
    """Remove sessions in rounds: the ids of all of them may not fit into one answer of the owner."""
    done = PruneReport(dry_run=False, session_ids=())

    def watch(one: WorkProgress) -> None:
        report(len(done.session_ids) + one.done, planned)

    while len(done.session_ids) < planned:
        some: PruneReport = await client.do(
            "prune_sessions", seconds=PATIENCE_SECONDS, progress=watch, limit=ROUND, **bounds
        )
        done = done.with_more(some)
        if not some.session_ids:
            break  # what is left has been used meanwhile
        report(len(done.session_ids), planned)
    return done


def _removal_text(word: str, report: PruneReport, ids: tuple[str, ...] = (), *, unended: bool) -> str:
    room = f"{counted(report.messages, 'message')}, {size_with_unit(report.text_bytes)} of text"
    number = len(report.session_ids)
    which = f"{counted(number, 'session')}, ended or not" if unended else counted(number, "ended session")
    first = f"{word} {which} ({room})"
    named = [f"  {one}" for one in ids[:MAX_IDS_SHOWN]]
    more = (
        [f"  ... and {len(ids) - MAX_IDS_SHOWN:,} more; --json names them all"] if ids[MAX_IDS_SHOWN:] else []
    )
    return "\n".join([first + (":" if ids else "."), *named, *more])


@command(app, "undo-reset")
async def undo_reset(context: CommandContext, *, key: Key, dry_run: DryRun = False) -> None:
    """Restore the session that a lane had before its last reset."""
    from gateway_sessions.storage.transactions.sessions import lane_changes as lanes

    async with context.open_client() as client:
        now = await client.get_session(key)
        if now is None:
            raise SessionNotFoundError(key)
        before = await client.db.read(partial(lanes.session_before_reset, now))
        change = f"{key} go on with {before.session_id} in place of {now.session_id}"
        if dry_run:
            context.answer_text(f"Would let {change}.", before, dry_run=True)
            return
        context.confirm(f"Let {change}?")
        entry: SessionEntry | None = await client.do("undo_reset", session_key=key)
    back = entry.session_id if entry is not None else None
    context.answer_text(f"{key} goes on with {back}.", entry)
