"""Options that several commands have, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

MOST: Final = 1_000_000_000
"""More than anybody counts, and less than a database refuses."""
LAST: Final = 2**63 - 1
"""No row of a database has a higher number."""

Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=MOST, help="Show no more than so many.")
]
Source: TypeAlias = Annotated[str | None, typer.Option(help="Only this platform.", metavar="NAME")]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
SessionText: TypeAlias = Annotated[
    str, typer.Argument(help="Its id, the beginning of that, or its title.", metavar="SESSION")
]
Key: TypeAlias = Annotated[str, typer.Argument(help="The lane's session key.", metavar="KEY")]
File: TypeAlias = Annotated[Path, typer.Argument(help="The file.", metavar="FILE")]
