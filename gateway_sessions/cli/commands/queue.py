"""`queue`: what waits, and what was given up."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway_sessions.cli.declare import LAST, DryRun, Limit, offered, whole

app = typer.Typer(help="Look at what waits, cancel it, or try again what was given up.")


@offered(app, "list", "queue:list_queue")
class ListQueue:
    """List messages that wait or run and replies that are owed; or what was given up."""

    key: Annotated[str | None, typer.Argument(help="Only this lane.", metavar="KEY")] = None
    dead: Annotated[bool, typer.Option("--dead", help="Messages and replies that were given up.")] = False
    limit: Limit = 50


@offered(app, "cancel", "queue:cancel")
class Cancel:
    """Take waiting messages out of a lane's queue. A running turn goes on."""

    key: Annotated[str, typer.Argument(help="The lane.", metavar="KEY")]
    seq: Annotated[
        int | None,
        typer.Argument(
            parser=whole(1, LAST), help="The number of the message, as `queue list` shows it.", metavar="SEQ"
        ),
    ] = None
    every: Annotated[bool, typer.Option("--all", help="All that waits there.")] = False
    dry_run: DryRun = False


@offered(app, "requeue", "queue:requeue")
class Requeue:
    """Try again a message, or a reply, that was given up."""

    number: Annotated[
        int,
        typer.Argument(parser=whole(1, LAST), help="Its id, as `queue list --dead` shows it.", metavar="ID"),
    ]
    reply: Annotated[bool, typer.Option("--reply", help="It is a reply, to be sent again.")] = False
