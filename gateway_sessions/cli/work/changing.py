"""`sessions`: change, remove and bring back."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from gateway_sessions.cli.commands.sessions import Delete, Prune, Rename, UndoReset
from gateway_sessions.cli.context import PATIENCE_SECONDS, CommandContext
from gateway_sessions.cli.lookup import find_exact_session
from gateway_sessions.cli.output.terminal import ReportProgress
from gateway_sessions.core.retention import PruneReport
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.core.session_record import SessionRecord
from gateway_sessions.core.telling import DAY, bytes_of, counted, length_of, size
from gateway_sessions.core.work_progress import WorkProgress
from gateway_sessions.errors import SessionNotFoundError
from gateway_sessions.runtime.seat import Seat
from gateway_sessions.storage.verbs import entries, lanes, retention

MOST_NAMED: Final = 50
"""Of the sessions that would be removed, so many are shown to people."""
ROUND: Final = 5_000
"""Sessions that are removed at a time; an answer holds the names of more than that, however long."""


async def rename(context: CommandContext, asked: Rename) -> None:
    """Give a session a title."""
    async with context.open_client() as client:
        session_id = (await find_exact_session(client, asked.session)).session_id
        if not await client.do("set_session_title", session_id=session_id, title=" ".join(asked.title)):
            raise SessionNotFoundError(session_id)
        given = await client.db.get_session_title(session_id)
    told = "has no title now" if given is None else f"is called {given!r} now"
    context.answer_text(f"{session_id} {told}.", {"session_id": session_id, "title": given})


async def delete(context: CommandContext, asked: Delete) -> None:
    """Remove a session with all its messages."""
    async with context.open_client() as client:
        record = await find_exact_session(client, asked.session)
        told = f"{_called(record)} with {counted(record.message_count, 'message')}"
        what = {"session_id": record.session_id, "messages": record.message_count}
        there = (
            await client.db.read(partial(entries.load_by_session, record.session_id)) if asked.end else None
        )
        if there is None:
            await client.db.read(partial(retention.check_deletable, record.session_id))
        told = told if there is None else f"{told}, and end it on {there.session_key} before"
        if asked.dry_run:
            context.answer_text(f"Would delete {told}.", what, dry_run=True)
            return
        context.confirm(f"Delete {told}?")
        if there is not None:
            await client.do("reset_session", session_key=there.session_key)
        if not await client.do("delete_session", session_id=record.session_id):
            raise SessionNotFoundError(record.session_id)
    context.answer_text(f"Deleted {record.session_id}.", what, dry_run=False)


def _called(record: SessionRecord) -> str:
    return f"{record.session_id} ({record.title or record.preview or record.source})"


async def prune(context: CommandContext, asked: Prune) -> None:
    """Remove old sessions."""
    bounded = asked.keep is not None or asked.max_size is not None
    length = asked.older_than or (None if bounded else "90d")
    bounds: dict[str, Any] = {
        "older_than_days": None if length is None else length_of("--older-than", length) / DAY,
        "max_count": asked.keep,
        "max_bytes": None if asked.max_size is None else bytes_of("--max-size", asked.max_size),
        "source": asked.source,
        "only_empty": asked.only_empty,
        "include_archived": asked.include_archived,
        "unended": asked.unended,
    }
    async with context.open_client() as client:
        with context.progress("Looking for what may go"):
            plan = await client.db.prune_sessions(dry_run=True, **bounds)
        if asked.dry_run or not plan.session_ids:
            context.answer_text(_removed("Would remove", plan, plan.session_ids, unended=asked.unended), plan)
            return
        context.confirm(f"{_removed('Remove', plan, unended=asked.unended)[:-1]}?")
        with context.progress("Removing sessions") as tell:
            done = await _pruned(client, bounds, len(plan.session_ids), tell)
    context.answer_text(_removed("Removed", done, unended=asked.unended), done)


async def _pruned(client: Seat, bounds: dict[str, Any], planned: int, tell: ReportProgress) -> PruneReport:
    """Remove them in rounds: the names of all of them may be more than an owner answers at a time."""
    done = PruneReport(dry_run=False, session_ids=())

    def watch(one: WorkProgress) -> None:
        tell(len(done.session_ids) + one.done, planned)

    while len(done.session_ids) < planned:
        some: PruneReport = await client.do(
            "prune_sessions", seconds=PATIENCE_SECONDS, progress=watch, limit=ROUND, **bounds
        )
        done = done.with_more(some)
        if not some.session_ids:
            break  # what is left has been used meanwhile
        tell(len(done.session_ids), planned)
    return done


def _removed(word: str, report: PruneReport, ids: tuple[str, ...] = (), *, unended: bool) -> str:
    room = f"{counted(report.messages, 'message')}, {size(report.text_bytes)} of text"
    number = len(report.session_ids)
    which = f"{counted(number, 'session')}, ended or not" if unended else counted(number, "ended session")
    first = f"{word} {which} ({room})"
    named = [f"  {one}" for one in ids[:MOST_NAMED]]
    more = [f"  ... and {len(ids) - MOST_NAMED:,} more; --json names them all"] if ids[MOST_NAMED:] else []
    return "\n".join([first + (":" if ids else "."), *named, *more])


async def undo_reset(context: CommandContext, asked: UndoReset) -> None:
    """Bring back the session that a lane's last reset took away."""
    key = asked.key
    async with context.open_client() as client:
        now = await client.get_session(key)
        if now is None:
            raise SessionNotFoundError(key)
        before = await client.db.read(partial(lanes.before_reset, now))
        change = f"{key} go on with {before.session_id} in place of {now.session_id}"
        if asked.dry_run:
            context.answer_text(f"Would let {change}.", before, dry_run=True)
            return
        context.confirm(f"Let {change}?")
        entry: SessionEntry | None = await client.do("undo_reset", session_key=key)
    back = entry.session_id if entry is not None else None
    context.answer_text(f"{key} goes on with {back}.", entry)
