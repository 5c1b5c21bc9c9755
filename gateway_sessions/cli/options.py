"""Options that several commands have, said once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Final, TypeAlias, TypeVar

import typer

Number = TypeVar("Number", int, float)

MOST: Final = 1_000_000_000
"""More than anybody counts, and less than a database refuses."""
LAST: Final = 2**63 - 1
"""No row of a database has a higher number."""
DEMO_AGENT: Final = "gateway_sessions.cli.demo_agent:answer"
"""Answers without any model: it shows what a session remembers."""


def whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number between the two; help is spared bounds that nobody meets."""
    return partial(_between, int, "whole number", least, most)


def number(least: float) -> Callable[[str], float]:
    """Reads a number of that size or a larger one."""
    return partial(_between, float, "number", least, MOST)


def _between(kind: Callable[[str], Number], name: str, least: Number, most: Number, text: str) -> Number:
    with suppress(ValueError):
        if least <= (read := kind(text)) <= most:
            return read
    problem = f"{text!r} is no {name} from {least:,} to {most:,}."
    raise typer.BadParameter(problem)


Limit: TypeAlias = Annotated[
    int,
    typer.Option("--limit", "-n", parser=whole(1, MOST), help="Show no more than so many.", metavar="N"),
]
Source: TypeAlias = Annotated[str | None, typer.Option(help="Only this platform.", metavar="NAME")]
Archived: TypeAlias = Annotated[bool, typer.Option("--archived", help="Those of the archive.")]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
SessionText: TypeAlias = Annotated[
    str, typer.Argument(help="Its id, the beginning of that, or its title.", metavar="SESSION")
]
Key: TypeAlias = Annotated[str, typer.Argument(help="The lane's session key.", metavar="KEY")]
Target: TypeAlias = Annotated[
    str, typer.Argument(help="The file to write; - is the standard output.", metavar="FILE")
]
Agent: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Who answers: a function of a turn, a factory, or `openai`: the model that is configured.",
        metavar="MODULE:NAME",
    ),
]
