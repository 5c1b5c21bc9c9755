"""`sessions list`, `show`, `search`, `stats` and `browse`: look at sessions."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from gateway_sessions.cli.declare import (
    DEMO_AGENT,
    MAX_COUNT,
    Agent,
    Archived,
    Limit,
    SessionText,
    Source,
    command,
    whole_number,
)
from gateway_sessions.cli.exit_codes import Declined, Exit
from gateway_sessions.cli.lookup import find_session
from gateway_sessions.cli.settings import name_of_program
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.errors import InvalidInputError, StoreBusyError

if TYPE_CHECKING:
    from datetime import datetime

    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.cli.conversation_ctrl_c import CtrlC
    from gateway_sessions.core.search.results import SearchResult

app: Final = typer.Typer(help="Look at sessions, and change them.")

BEHIND_ALL: Final = 1 << 62
"""Higher than the number of any message."""


@command(app, "list")
async def list_sessions(
    context: CommandContext,
    *,
    source: Source = None,
    limit: Limit = 20,
    find: Annotated[
        str | None, typer.Option(help="Only those whose title or id contains this text.", metavar="TEXT")
    ] = None,
    archived: Archived = False,
    every: Annotated[
        bool, typer.Option("--all", help="All sessions, instead of each conversation once.")
    ] = False,
    oldest_part: Annotated[
        bool, typer.Option("--begun", help="Order by beginning, latest first, instead of by activity.")
    ] = (False),
) -> None:
    """List conversations, the latest active first."""
    from gateway_sessions.cli.output.sessions import sessions_table

    async with context.open_client() as client:
        found = await client.db.list_sessions_rich(
            scope=Scope.operator(),
            source=source,
            exclude_sources=None if source else ("tool",),
            limit=limit + 1,
            archived=archived,
            include_children=every,
            order_by_last_active=not oldest_part,
            search_query=find,
        )
    shown, more = found[:limit], len(found) > limit
    if not shown:
        context.answer([], lambda: None, more=False)
        context.note("No sessions found.")
        return
    context.answer(shown, partial(sessions_table, shown, context.now()), more=more)
    if more:
        context.note(f"There are more: --limit {limit * 5}")


@command(app, "show")
async def show_session(
    context: CommandContext,
    *,
    session: SessionText,
    messages: Annotated[
        int,
        typer.Option(
            "--messages",
            "-n",
            parser=whole_number(0, MAX_COUNT),
            help="The number of last messages.",
            metavar="N",
        ),
    ] = 20,
    hidden: Annotated[bool, typer.Option("--hidden", help="Also undone and compacted messages.")] = False,
) -> None:
    """Show a session and its last messages."""
    from gateway_sessions.cli.output.sessions import session_page

    async with context.open_client() as client:
        record = await find_session(client, session)
        said = (
            await client.db.get_messages(
                record.session_id, limit=messages, before_seq=BEHIND_ALL, include_hidden=hidden
            )
            if messages
            else []
        )
        use = await client.db.usage_of_session(record.session_id)
    page = partial(session_page, record, said, context.now())
    context.answer([record], page, messages=said, usage=use)


Query: TypeAlias = Annotated[
    str, typer.Argument(help='Words, "phrases", OR, NOT, beginnings of words*.', metavar="QUERY")
]
Role: TypeAlias = Annotated[str | None, typer.Option(help="Only messages of this role.", metavar="ROLE")]
InSession: TypeAlias = Annotated[str | None, typer.Option(help="Only in this session.", metavar="ID")]
Since: TypeAlias = Annotated[
    str | None, typer.Option(help="Only messages since then: 5h, 3d, or a date.", metavar="TIME")
]
Until: TypeAlias = Annotated[str | None, typer.Option(help="Only messages before then.", metavar="TIME")]
Order: TypeAlias = Annotated[
    str | None, typer.Option(help="newest or oldest first, instead of best first.", metavar="ORDER")
]
Substring: TypeAlias = Annotated[bool, typer.Option("--substring", help="Search for the literal text.")]
Fuzzy: TypeAlias = Annotated[
    bool,
    typer.Option("--fuzzy", help="Also find similar words, such as misspelt ones; exact matches come first."),
]


@command(app, "search")
async def search_messages(
    context: CommandContext,
    *,
    query: Query,
    source: Source = None,
    role: Role = None,
    session: InSession = None,
    since: Since = None,
    until: Until = None,
    sort: Order = None,
    substring: Substring = False,
    fuzzy: Fuzzy = False,
    limit: Limit = 10,
) -> None:
    """Find messages in all sessions."""
    from gateway_sessions.core.notices.human_units import parse_moment

    now, scope = context.now(), Scope.operator()
    options: dict[str, Any] = {
        "source_filter": [source] if source else None,
        "role_filter": [role] if role else None,
        "since": parse_moment("--since", since, now),
        "until": parse_moment("--until", until, now),
        "sort": sort,
        "mode": "substring" if substring else "words",
        "fuzzy": fuzzy,
    }
    async with context.open_client() as client:
        if session:
            options["session_id"] = await client.db.resolve_session(session, scope=scope)
        found = await client.db.search_messages(query, scope=scope, limit=limit, **options)
    _answer_hits(context, found, now)


def _answer_hits(context: CommandContext, found: SearchResult, now: datetime) -> None:
    from gateway_sessions.cli.output.sessions import hits_page

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


@command(app, "stats")
async def count_all(context: CommandContext) -> None:
    """Count sessions and messages."""
    from gateway_sessions.cli.output.sessions import stats_page
    from gateway_sessions.storage.transactions.upkeep import status

    async with context.open_client() as client:
        platforms = await client.db.read(status.count_by_source)
        messages = await client.db.read(status.count_messages)
        lanes = await client.db.read(status.count_lanes)
        to_do = await client.db.read(status.load_pending_work)
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


@command(app, "browse")
async def browse(
    context: CommandContext, *, source: Source = None, archived: Archived = False, agent: Agent = DEMO_AGENT
) -> None:
    """Choose a conversation, and continue it in `chat`. Typing searches. It needs a terminal."""
    from gateway_sessions.cli.agent_loading import open_agent
    from gateway_sessions.cli.conversation_ctrl_c import handling_ctrl_c
    from gateway_sessions.cli.picker.model import PickerOutcome
    from gateway_sessions.cli.picker.run import SessionBrowser

    _check_terminal(context)
    async with open_agent(agent, context) as loaded:
        async with context.open_client() as client:
            browser = SessionBrowser(client, context.console, source=source, archived=archived)
            left = await browser.choose()
        if left.outcome is PickerOutcome.INTERRUPTED:
            context.exit_code = Exit.INTERRUPTED
        elif left.outcome is PickerOutcome.CHOSEN and left.selected is not None:
            async with handling_ctrl_c(context) as ctrl_c:
                await _continue_in_chat(context, left.selected.session_id, ctrl_c, loaded.arguments)


def _check_terminal(context: CommandContext) -> None:
    instead = f"`{name_of_program()} sessions list` writes the same"
    if context.as_json:
        problem = f"a choice is not JSON; leave --json out, or {instead}"
        raise InvalidInputError(problem)
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or context.console.is_dumb_terminal:
        problem = f"there is no terminal here to choose at; {instead}"
        raise InvalidInputError(problem)


async def _continue_in_chat(
    context: CommandContext, session_id: str, ctrl_c: CtrlC, agent: dict[str, object]
) -> None:
    """Continue the conversation here; if a gateway has the store open, print how to continue it."""
    from gateway_sessions.cli.conversation import Conversation, ResumeRequest

    program = name_of_program()
    async with AsyncExitStack() as opened:
        try:
            store = await opened.enter_async_context(context.open_owned())
        except StoreBusyError as error:
            context.answer_text(session_id)
            context.note(f"{error.owner} has this store open, and its agents: go on with it there.")
            context.note(f"Read it: {program} sessions show {session_id}")
            context.note(f"Once nobody has the store open: {program} chat -r {session_id}")
            return
        try:
            store.config.require("display")
            talk = Conversation(context, store, store.config.display.resume_display)
            await talk.run(ResumeRequest(go_on=True, text=session_id), ctrl_c, **agent)
        except Declined:
            context.note(f"Go on in a copy: {program} chat -r {session_id} --fork")
            raise
