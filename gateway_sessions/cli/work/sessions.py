"""`sessions`: look at what there is."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Final

from gateway_sessions.cli.commands.sessions import CountAll, ListSessions, SearchMessages, ShowSession
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.lookup import find_session
from gateway_sessions.cli.output.sessions import hits_page, session_page, sessions_table, stats_page
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.search_results import SearchResult
from gateway_sessions.core.telling import moment_of
from gateway_sessions.storage.verbs import status

BEHIND_ALL: Final = 1 << 62
"""No message has such a number."""


async def list_sessions(context: CommandContext, asked: ListSessions) -> None:
    """List conversations."""
    async with context.open_client() as client:
        found = await client.db.list_sessions_rich(
            scope=Scope.operator(),
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
        context.answer([], lambda: None, more=False)
        context.note("No sessions found.")
        return
    more = len(found) > asked.limit
    context.answer(shown, partial(sessions_table, shown, context.now()), more=more)
    if more:
        context.note(f"There are more: --limit {asked.limit * 5}")


async def show_session(context: CommandContext, asked: ShowSession) -> None:
    """Show one, and what was said last."""
    async with context.open_client() as client:
        record = await find_session(client, asked.session)
        said = (
            await client.db.get_messages(
                record.session_id,
                limit=asked.messages,
                before_seq=BEHIND_ALL,
                include_hidden=asked.hidden,
            )
            if asked.messages
            else []
        )
        use = await client.db.usage_of_session(record.session_id)
    page = partial(session_page, record, said, context.now())
    context.answer([record], page, messages=said, usage=use)


async def search_messages(context: CommandContext, asked: SearchMessages) -> None:
    """Find messages in all sessions."""
    now = context.now()
    options: dict[str, Any] = {
        "source_filter": [asked.source] if asked.source else None,
        "role_filter": [asked.role] if asked.role else None,
        "since": moment_of("--since", asked.since, now),
        "until": moment_of("--until", asked.until, now),
        "sort": asked.sort,
        "mode": "substring" if asked.substring else "words",
        "fuzzy": asked.fuzzy,
    }
    async with context.open_client() as client:
        scope = Scope.operator()
        if asked.session:
            options["session_id"] = await client.db.resolve_session(asked.session, scope=scope)
        found = await client.db.search_messages(asked.query, scope=scope, limit=asked.limit, **options)
    _answer_hits(context, found, now)


def _answer_hits(context: CommandContext, found: SearchResult, now: datetime) -> None:
    context.answer(
        found.hits,
        partial(hits_page, found.hits, now),
        matches=found.matches,
        degraded=found.degraded,
        near_words=list(found.near_words),
    )
    if found.near_words:
        context.note(f"Also looked for: {', '.join(found.near_words)}")
    if not found.hits:
        context.note("Nothing was found.")
    elif found.matches > len(found.hits):
        context.note(f"{len(found.hits)} of {found.matches} matches; --limit shows more")
    if found.degraded:
        context.note(f"Something may be missing: {found.problem}")


async def count_all(context: CommandContext, asked: CountAll) -> None:
    """Count sessions and messages."""
    async with context.open_client() as client:
        platforms = await client.db.read(status.by_source)
        messages = await client.db.read(status.count_messages)
        lanes = await client.db.read(status.count_lanes)
        to_do = await client.db.read(status.work)
        size = client.db.path.stat().st_size if client.db.path.is_file() else None
        place = client.db.place
    facts = {
        "sessions": sum(one.sessions for one in platforms),
        "messages": messages,
        "lanes": lanes,
        "waiting": to_do.waiting,
        "database": place,
        "bytes": size,
    }
    context.answer(platforms, partial(stats_page, facts, platforms), **facts)
