"""`sessiondb`: the database as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway_sessions.cli.declare import DryRun, offered

app = typer.Typer(help="Look after the database: check, repair, move, upgrade it.")


@offered(app, "migrate", "moving:migrate")
class Migrate:
    """Move all that the store holds to another database, and check it there. The source is left as it is."""

    target: Annotated[
        str, typer.Argument(help="A path, a store's directory, postgresql://… or mysql://…", metavar="TARGET")
    ]
    source: Annotated[
        str | None, typer.Option("--from", help="Another one than that of the store.", metavar="SOURCE")
    ] = None
    dry_run: DryRun = False


@offered(app, "upgrade", "moving:upgrade")
class Upgrade:
    """Bring the tables up to date with this version, as opening the store would, and do nothing else."""

    dry_run: DryRun = False


@offered(app, "check", "mending:check")
class Check:
    """Read the whole database, and say what is wrong with it. It may be in use, and on a server."""


@offered(app, "repair", "mending:repair")
class Repair:
    """Mend what `check` finds in a file. Nothing damaged is thrown away: it is kept in quarantine."""

    dry_run: DryRun = False


@offered(app, "accounts", "accounts:assign")
class Accounts:
    """Give lanes that named accounts used before they had lanes of their own to those accounts.

    A gateway does this once when it starts. Each lane goes to the account that wrote on it last.
    """

    given: Annotated[
        list[str] | None,
        typer.Argument(help="Where lanes go if nothing tells whose they are.", metavar="PLATFORM=ACCOUNT"),
    ] = None
    unnamed: Annotated[
        bool,
        typer.Option("--unnamed", help="Also lanes of the account without a name, which is called so now."),
    ] = False
    dry_run: DryRun = False
