"""`privacy`: what is known of a person, and how they are forgotten."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from gateway_sessions.cli.declare import DryRun, Force, Target, offered

Subject: TypeAlias = Annotated[
    str, typer.Argument(help="An owner as sessions name it, a session key, or a session.", metavar="WHO")
]

app = typer.Typer(help="Tell what is known of a person, and forget them.")


@offered(app, "export", "privacy:export_person")
class ExportPerson:
    """Write all that is known of a person, a line of JSON for each thing."""

    who: Subject
    target: Target = "-"
    force: Force = False


@offered(app, "erase", "privacy:erase")
class Erase:
    """Forget a person, in every file of the store. What they sent until now is refused afterwards."""

    who: Subject
    keep_copies: Annotated[bool, typer.Option("--keep-copies", help="Leave backups as they are.")] = False
    dry_run: DryRun = False
