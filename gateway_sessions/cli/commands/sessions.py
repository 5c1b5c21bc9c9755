"""`sessions`: look at them, and change them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway_sessions.cli.declare import (
    DEMO_AGENT,
    MOST,
    Agent,
    Archived,
    DryRun,
    Force,
    Key,
    Limit,
    SessionText,
    Source,
    Target,
    offered,
    whole,
)

app = typer.Typer(help="Look at sessions, and change them.")

# Looking


@offered(app, "list", "sessions:list_sessions")
class ListSessions:
    """List conversations, the latest active first."""

    source: Source = None
    limit: Limit = 20
    find: Annotated[
        str | None, typer.Option(help="Only those whose title or id holds this text.", metavar="TEXT")
    ] = None
    archived: Archived = False
    every: Annotated[bool, typer.Option("--all", help="Every session, not each conversation once.")] = False
    oldest_part: Annotated[bool, typer.Option("--begun", help="Latest begun first, not latest active.")] = (
        False
    )


@offered(app, "show", "sessions:show_session")
class ShowSession:
    """Show a session, and what was said last."""

    session: SessionText
    messages: Annotated[
        int,
        typer.Option(
            "--messages", "-n", parser=whole(0, MOST), help="So many of the last messages.", metavar="N"
        ),
    ] = 20
    hidden: Annotated[bool, typer.Option("--hidden", help="Also what was taken back or compacted.")] = False


@offered(app, "search", "sessions:search_messages")
class SearchMessages:
    """Find messages in all sessions."""

    query: Annotated[
        str, typer.Argument(help='Words, "phrases", OR, NOT, beginnings of words*.', metavar="QUERY")
    ]
    source: Source = None
    role: Annotated[str | None, typer.Option(help="Only messages of this role.", metavar="ROLE")] = None
    session: Annotated[str | None, typer.Option(help="Only in this session.", metavar="ID")] = None
    since: Annotated[str | None, typer.Option(help="Said since then: 5h, 3d, or a date.", metavar="TIME")] = (
        None
    )
    until: Annotated[str | None, typer.Option(help="Said before that.", metavar="TIME")] = None
    sort: Annotated[str | None, typer.Option(help="newest or oldest first, not best.", metavar="ORDER")] = (
        None
    )
    substring: Annotated[bool, typer.Option("--substring", help="The text as it stands, anywhere.")] = False
    fuzzy: Annotated[
        bool, typer.Option("--fuzzy", help="Also words like these, such as misspelt ones; exact ones first.")
    ] = False
    limit: Limit = 10


@offered(app, "stats", "sessions:count_all")
class CountAll:
    """Count sessions and messages."""


@offered(app, "browse", "browse:browse")
class Browse:
    """Choose a conversation, and go on with it in `chat`. It takes a terminal; typing looks for one."""

    source: Source = None
    archived: Archived = False
    agent: Agent = DEMO_AGENT


# Changing


@offered(app, "rename", "changing:rename")
class Rename:
    """Give a session a title."""

    session: SessionText
    title: Annotated[
        list[str], typer.Argument(help="The new title; several words are joined.", metavar="TITLE…")
    ]


@offered(app, "delete", "changing:delete")
class Delete:
    """Remove a session with all its messages."""

    session: SessionText
    end: Annotated[
        bool,
        typer.Option("--end", help="Also the current one of a lane, which goes on with a new session."),
    ] = False
    dry_run: DryRun = False


@offered(app, "prune", "changing:prune")
class Prune:
    """Remove old sessions that have ended. What a lane goes on with, is pinned or is recent stays."""

    older_than: Annotated[
        str | None,
        typer.Option(
            help="Untouched for so long: 90d. The default, if nothing else is said.", metavar="TIME"
        ),
    ] = None
    keep: Annotated[
        int | None, typer.Option(parser=whole(0, MOST), help="Keep so many, the oldest go.", metavar="N")
    ] = None
    max_size: Annotated[str | None, typer.Option(help="Keep so much text: 500M.", metavar="SIZE")] = None
    source: Source = None
    only_empty: Annotated[bool, typer.Option("--only-empty", help="Only those without messages.")] = False
    include_archived: Annotated[
        bool, typer.Option("--include-archived", help="Those of the archive, too.")
    ] = False
    unended: Annotated[bool, typer.Option("--unended", help="Those that nobody has ended, too.")] = False
    dry_run: DryRun = False


@offered(app, "undo-reset", "changing:undo_reset")
class UndoReset:
    """Bring back the session that a lane's last reset took away."""

    key: Key
    dry_run: DryRun = False


# Files


@offered(app, "export", "exporting:export_sessions")
class ExportSessions:
    """Write sessions to a file, all as of one moment."""

    target: Target
    form: Annotated[str, typer.Option("--format", help="jsonl, markdown or html.", metavar="FORM")] = "jsonl"
    session: Annotated[str | None, typer.Option("--session-id", help="Only this session.", metavar="ID")] = (
        None
    )
    source: Source = None
    lineage: Annotated[
        str, typer.Option(help="single, or logical: a compressed conversation together.", metavar="KIND")
    ] = "single"
    force: Force = False


@offered(app, "import", "importing:import_sessions")
class ImportSessions:
    """Take sessions in from a file. Nothing that is here is changed."""

    source: Annotated[Path, typer.Argument(help="A file that an export has written.", metavar="FILE")]
    owner: Annotated[
        str | None, typer.Option(help="Whose they become; else whose they were.", metavar="OWNER")
    ] = None
    dry_run: DryRun = False
