"""`config`: is it right, and where does each value come from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from gateway_sessions.cli.declare import offered

ANOTHER: Final = "Another file than that of the store."

app = typer.Typer(help="Check the configuration, and see where its values come from.")


@offered(app, "validate", "configuration:validate")
class Validate:
    """Say all that is wrong in a configuration, with line numbers."""

    file: Annotated[Path | None, typer.Argument(help=ANOTHER, metavar="FILE")] = None


@offered(app, "explain", "configuration:explain_config")
class ExplainConfig:
    """List the values that count, and where each was set; what nobody has set is marked as default."""

    key: Annotated[str | None, typer.Argument(help="Only this key, or what is below it.", metavar="KEY")] = (
        None
    )
    file: Annotated[Path | None, typer.Option(help=ANOTHER, metavar="FILE")] = None
    only_set: Annotated[bool, typer.Option("--set", help="Leave the defaults out.")] = False
