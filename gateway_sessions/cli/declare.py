"""How a command comes about: a record of what can be typed, and the name of the work that does it.

The records load nothing. What does the work may import what it needs, because it is loaded once a command has
been typed as it should be: neither help nor a mistake waits for a database.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from pkgutil import resolve_name
from typing import Annotated, Any, Final, TypeAlias, TypeVar, dataclass_transform, get_type_hints

import typer

WORK: Final = "gateway_sessions.cli.work"
RUN: Final = "gateway_sessions.cli.context:run"

Record = TypeVar("Record")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def offered(group: typer.Typer, name: str, work: str) -> Callable[[type[Record]], type[Record]]:
    """Offers a class as a command: its fields are what people type, its docstring is the help.

    *work* is a module below `cli/work` and a function in it, which is given the context and the record.
    """

    def offer(described: type[Record]) -> type[Record]:
        record = dataclass(frozen=True, slots=True, kw_only=True)(described)

        def typed(context: typer.Context, **given: object) -> None:
            resolve_name(RUN)(context, f"{WORK}.{work}", record(**given))

        _declare(typed, record)
        group.command(name)(typed)
        return record

    return offer


def _declare(typed: Any, record: type[Any]) -> None:
    """Let a function look as if it took the fields of the record one by one."""
    hints = get_type_hints(record, include_extras=True)
    fields = [one.replace(annotation=hints[one.name]) for one in signature(record).parameters.values()]
    context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    typed.__signature__ = Signature([context, *fields])
    typed.__doc__ = record.__doc__


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
