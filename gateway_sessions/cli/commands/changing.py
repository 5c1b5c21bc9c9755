"""`sessions`: change, remove and bring back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway_sessions.cli.desk import PATIENCE_SECONDS, Desk, everything, run
from gateway_sessions.cli.options import MOST, DryRun, Key, SessionText, Source
from gateway_sessions.core.telling import DAY, bytes_of, counted, length_of, size
from gateway_sessions.errors import SessionNotFoundError

if TYPE_CHECKING:
    import gateway_sessions as gs

app = typer.Typer()


async def exactly(seat: gs.Seat, text: str) -> gs.SessionRecord:
    """The session of that id itself, also where others continue it; else the one that the text means."""
    scope = everything()
    found = await seat.db.search_sessions_by_id(text, scope=scope, limit=1) if text else []
    same = [one.session_id for one in found if one.session_id == text]
    session_id = same[0] if same else await seat.db.resolve_session(text, scope=scope)
    record = await seat.db.get_session(session_id)
    if record is None:
        raise SessionNotFoundError(text)
    return record


def _called(record: gs.SessionRecord) -> str:
    return f"{record.session_id} ({record.title or record.preview or record.source})"


@app.command()
def rename(
    context: typer.Context,
    session: SessionText,
    title: Annotated[
        list[str], typer.Argument(help="The new title; several words are joined.", metavar="TITLE…")
    ],
) -> None:
    """Give a session a title."""

    async def work(desk: Desk) -> None:
        new = " ".join(title)
        async with desk.seat() as seat:
            record = await exactly(seat, session)
            if not await seat.do("set_session_title", session_id=record.session_id, title=new):
                raise SessionNotFoundError(record.session_id)
            given = await seat.db.get_session_title(record.session_id)
        desk.done(
            f"{record.session_id} is called {given!r} now.", {"session_id": record.session_id, "title": given}
        )

    run(context, work)


@app.command()
def delete(context: typer.Context, session: SessionText, *, dry_run: DryRun = False) -> None:
    """Remove a session with all its messages."""

    async def work(desk: Desk) -> None:
        async with desk.seat() as seat:
            record = await exactly(seat, session)
            messages = counted(record.message_count, "message")
            what = {"session_id": record.session_id, "messages": record.message_count}
            if dry_run:
                desk.done(
                    f"Would delete {_called(record)} with {messages}.",
                    what,
                    dry_run=True,
                )
                return
            desk.confirm(f"Delete {_called(record)} with {messages}?")
            if not await seat.do("delete_session", session_id=record.session_id):
                raise SessionNotFoundError(record.session_id)
        desk.done(f"Deleted {record.session_id}.", what, dry_run=False)

    run(context, work)


@app.command()
def prune(
    context: typer.Context,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(
            help="Untouched for so long: 90d. The default, if nothing else is said.", metavar="TIME"
        ),
    ] = None,
    keep: Annotated[int | None, typer.Option(min=0, max=MOST, help="Keep so many, the oldest go.")] = None,
    max_size: Annotated[str | None, typer.Option(help="Keep so much text: 500M.", metavar="SIZE")] = None,
    source: Source = None,
    only_empty: Annotated[bool, typer.Option("--only-empty", help="Only those without messages.")] = False,
    include_archived: Annotated[
        bool, typer.Option("--include-archived", help="Those of the archive, too.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove old sessions. What a lane goes on with, what is pinned and what is recent stays."""

    async def work(desk: Desk) -> None:
        text = older_than or (None if keep is not None or max_size is not None else "90d")
        bounds: dict[str, Any] = {
            "older_than_days": None if text is None else length_of("--older-than", text) / DAY,
            "max_count": keep,
            "max_bytes": None if max_size is None else bytes_of("--max-size", max_size),
            "source": source,
            "only_empty": only_empty,
            "include_archived": include_archived,
        }
        await _prune(desk, bounds, dry_run=dry_run)

    run(context, work)


async def _prune(desk: Desk, bounds: dict[str, Any], *, dry_run: bool) -> None:
    async with desk.seat() as seat:
        with desk.progress("Looking for what may go"):
            plan = await seat.db.prune_sessions(dry_run=True, **bounds)
        if dry_run or not plan.session_ids:
            desk.done(_removed("Would remove", plan, plan.session_ids), plan)
            return
        desk.confirm(f"{_removed('Remove', plan)[:-1]}?")
        with desk.steps("Removing sessions") as watch:
            done: gs.PruneReport = await seat.do(
                "prune_sessions", seconds=PATIENCE_SECONDS, progress=watch, **bounds
            )
    desk.done(_removed("Removed", done), done)


def _removed(word: str, report: gs.PruneReport, ids: tuple[str, ...] = ()) -> str:
    room = f"{counted(report.messages, 'message')}, {size(report.text_bytes)} of text"
    first = f"{word} {counted(len(report.session_ids), 'session')} ({room})"
    return "\n".join([first + (":" if ids else "."), *(f"  {one}" for one in ids)])


@app.command("undo-reset")
def undo_reset(context: typer.Context, key: Key, *, dry_run: DryRun = False) -> None:
    """Bring back the session that a lane's last reset took away."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.storage.verbs import lanes  # noqa: PLC0415 -- --help must not wait for it

        async with desk.seat() as seat:
            now = await seat.get_session(key)
            if now is None:
                raise SessionNotFoundError(key)
            before = await seat.db.read(partial(lanes.before_reset, now))
            change = f"{key} go on with {before.session_id} in place of {now.session_id}"
            if dry_run:
                desk.done(f"Would let {change}.", before, dry_run=True)
                return
            desk.confirm(f"Let {change}?")
            entry: gs.SessionEntry | None = await seat.do("undo_reset", session_key=key)
        back = entry.session_id if entry is not None else None
        desk.done(f"{key} goes on with {back}.", entry)

    run(context, work)
