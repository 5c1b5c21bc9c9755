"""`sessions`: look at what there is."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Final

from gateway_sessions.cli.commands.sessions import CountAll, ListSessions, SearchMessages, ShowSession
from gateway_sessions.cli.context import Desk, everything, seated, this_moment
from gateway_sessions.cli.lookup import session_named
from gateway_sessions.cli.output.sessions import hits_page, session_page, sessions_table, stats_page
from gateway_sessions.core.search_results import SearchResult
from gateway_sessions.core.telling import moment_of
from gateway_sessions.storage.verbs import status

BEHIND_ALL: Final = 1 << 62
"""No message has such a number."""


async def list_sessions(desk: Desk, asked: ListSessions) -> None:
    """List conversations."""
    async with seated(desk) as seat:
        found = await seat.db.list_sessions_rich(
            scope=everything(),
            source=asked.source,
            exclude_sources=None if asked.source else ("tool",),
            limit=asked.limit + 1,
            archived=asked.archived,
            include_children=asked.every,
            order_by_last_active=not asked.oldest_part,
            search_query=asked.find,
        )
    shown = found[: asked.limit]
    if not shown:
        desk.answer([], lambda: None, more=False)
        desk.note("No sessions found.")
        return
    more = len(found) > asked.limit
    desk.answer(shown, partial(sessions_table, shown, this_moment()), more=more)
    if more:
        desk.note(f"There are more: --limit {asked.limit * 5}")


async def show_session(desk: Desk, asked: ShowSession) -> None:
    """Show one, and what was said last."""
    async with seated(desk) as seat:
        record = await session_named(seat, asked.session)
        said = (
            await seat.db.get_messages(
                record.session_id,
                limit=asked.messages,
                before_seq=BEHIND_ALL,
                include_hidden=asked.hidden,
            )
            if asked.messages
            else []
        )
        use = await seat.db.usage_of_session(record.session_id)
    page = partial(session_page, record, said, this_moment())
    desk.answer([record], page, messages=said, usage=use)


async def search_messages(desk: Desk, asked: SearchMessages) -> None:
    """Find messages in all sessions."""
    now = this_moment()
    options: dict[str, Any] = {
        "source_filter": [asked.source] if asked.source else None,
        "role_filter": [asked.role] if asked.role else None,
        "since": moment_of("--since", asked.since, now),
        "until": moment_of("--until", asked.until, now),
        "sort": asked.sort,
        "mode": "substring" if asked.substring else "words",
        "fuzzy": asked.fuzzy,
    }
    async with seated(desk) as seat:
        scope = everything()
        if asked.session:
            options["session_id"] = await seat.db.resolve_session(asked.session, scope=scope)
        found = await seat.db.search_messages(asked.query, scope=scope, limit=asked.limit, **options)
    _answer_hits(desk, found, now)


def _answer_hits(desk: Desk, found: SearchResult, now: datetime) -> None:
    desk.answer(
        found.hits,
        partial(hits_page, found.hits, now),
        matches=found.matches,
        degraded=found.degraded,
        near_words=list(found.near_words),
    )
    if found.near_words:
        desk.note(f"Also looked for: {', '.join(found.near_words)}")
    if not found.hits:
        desk.note("Nothing was found.")
    elif found.matches > len(found.hits):
        desk.note(f"{len(found.hits)} of {found.matches} matches; --limit shows more")
    if found.degraded:
        desk.note(f"Something may be missing: {found.problem}")


async def count_all(desk: Desk, asked: CountAll) -> None:
    """Count sessions and messages."""
    async with seated(desk) as seat:
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
