"""`import`: the sessions of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway_sessions.cli.declare import DryRun, offered

app = typer.Typer(help="Bring the sessions of other programs along.")


@offered(app, "hermes", "importing:import_hermes")
class ImportHermes:
    """Bring a Hermes home along: sessions, messages, use, and the lanes that go on with them."""

    path: Annotated[Path, typer.Argument(help="The home of Hermes.", metavar="DIR")] = Path("~/.hermes")
    dry_run: DryRun = False
