"""`sessions`: look at what there is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gateway_sessions.cli.desk import Desk, everything, run, this_moment
from gateway_sessions.cli.options import MOST, Limit, SessionText, Source
from gateway_sessions.core.telling import moment_of
from gateway_sessions.errors import SessionNotFoundError

if TYPE_CHECKING:
    from datetime import datetime

    import gateway_sessions as gs

BEHIND_ALL: Final = 1 << 62
"""No message has such a number."""

app = typer.Typer(help="Look at sessions, and change them.")


@app.command("list")
def list_sessions(
    context: typer.Context,
    *,
    source: Source = None,
    limit: Limit = 20,
    find: Annotated[str | None, typer.Option(help="Only those whose title or id holds this text.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Those of the archive.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Every session, not each conversation once.")] = False,
    oldest_part: Annotated[
        bool, typer.Option("--begun", help="Latest begun first, not latest active.")
    ] = False,
) -> None:
    """List conversations, the latest active first."""

    async def work(desk: Desk) -> None:
        async with desk.seat() as seat:
            found = await seat.db.list_sessions_rich(
                scope=everything(),
                source=source,
                exclude_sources=None if source else ("tool",),
                limit=limit + 1,
                archived=archived,
                include_children=every,
                order_by_last_active=not oldest_part,
                search_query=find,
            )
        from gateway_sessions.cli.showing import sessions_table  # noqa: PLC0415 -- --help must not wait for it

        shown = found[:limit]
        if not shown:
            desk.answer([], lambda: None, more=False)
            desk.note("No sessions found.")
            return
        desk.answer(shown, partial(sessions_table, shown, this_moment()), more=len(found) > limit)
        if len(found) > limit:
            desk.note(f"There are more: --limit {limit * 5}")

    run(context, work)


@app.command()
def show(
    context: typer.Context,
    *,
    session: SessionText,
    messages: Annotated[
        int, typer.Option("--messages", "-n", min=0, max=MOST, help="So many of the last messages.")
    ] = 20,
    hidden: Annotated[bool, typer.Option("--hidden", help="Also what was taken back or compacted.")] = False,
) -> None:
    """Show a session, and what was said last."""

    async def work(desk: Desk) -> None:
        async with desk.seat() as seat:
            session_id = await seat.db.resolve_session(session, scope=everything())
            record = await seat.db.get_session(session_id)
            said = (
                await seat.db.get_messages(
                    session_id, limit=messages, before_seq=BEHIND_ALL, include_hidden=hidden
                )
                if messages
                else []
            )
            use = await seat.db.usage_of_session(session_id)
        if record is None:
            raise SessionNotFoundError(session_id)
        from gateway_sessions.cli.showing import session_page  # noqa: PLC0415 -- as above

        page = partial(session_page, record, said, this_moment())
        desk.answer([record], page, messages=said, usage=use)

    run(context, work)


@app.command()
def search(
    context: typer.Context,
    *,
    query: Annotated[str, typer.Argument(help='Words, "phrases", OR, NOT, beginnings of words*.')],
    source: Source = None,
    role: Annotated[str | None, typer.Option(help="Only messages of this role.")] = None,
    session: Annotated[str | None, typer.Option(help="Only in this session.", metavar="ID")] = None,
    since: Annotated[
        str | None, typer.Option(help="Said since then: 5h, 3d, or a date.", metavar="TIME")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Said before that.", metavar="TIME")] = None,
    sort: Annotated[str | None, typer.Option(help="newest or oldest first, not best.")] = None,
    substring: Annotated[bool, typer.Option("--substring", help="The text as it stands, anywhere.")] = False,
    limit: Limit = 10,
) -> None:
    """Find messages in all sessions."""

    async def work(desk: Desk) -> None:
        now = this_moment()
        options: dict[str, Any] = {
            "source_filter": [source] if source else None,
            "role_filter": [role] if role else None,
            "since": moment_of("--since", since, now),
            "until": moment_of("--until", until, now),
            "sort": sort,
            "mode": "substring" if substring else "words",
        }
        async with desk.seat() as seat:
            scope = everything()
            if session:
                options["session_id"] = await seat.db.resolve_session(session, scope=scope)
            found = await seat.db.search_messages(query, scope=scope, limit=limit, **options)
        _answer_hits(desk, found, now)

    run(context, work)


def _answer_hits(desk: Desk, found: gs.SearchResult, now: datetime) -> None:
    from gateway_sessions.cli.showing import hits_page  # noqa: PLC0415 -- as above

    desk.answer(
        found.hits, partial(hits_page, found.hits, now), matches=found.matches, degraded=found.degraded
    )
    if not found.hits:
        desk.note("Nothing was found.")
    elif found.matches > len(found.hits):
        desk.note(f"{len(found.hits)} of {found.matches} matches; --limit shows more")
    if found.degraded:
        desk.note(f"Something may be missing: {found.problem}")


@app.command()
def stats(context: typer.Context) -> None:
    """Count sessions and messages."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.showing import stats_page  # noqa: PLC0415 -- as above
        from gateway_sessions.storage.verbs import status  # noqa: PLC0415 -- as above

        async with desk.seat() as seat:
            platforms = await seat.db.read(status.by_source)
            messages = await seat.db.read(status.count_messages)
            lanes = await seat.db.read(status.count_lanes)
            to_do = await seat.db.read(status.work)
            size = seat.db.path.stat().st_size if seat.db.path.is_file() else None
            place = seat.db.place
        facts = {
            "sessions": sum(one.sessions for one in platforms),
            "messages": messages,
            "lanes": lanes,
            "waiting": to_do.waiting,
            "database": place,
            "bytes": size,
        }
        desk.answer(platforms, partial(stats_page, facts, platforms), **facts)

    run(context, work)
