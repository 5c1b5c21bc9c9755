"""The declaration of commands: a decorator, and the options that several commands share.

A command is an async function in `cli/commands`: its parameters are the options and arguments, its docstring
is the help text, and its body is the work.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from inspect import Signature, signature
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_type_hints

import typer

Number = TypeVar("Number", int, float)
Work = TypeVar("Work", bound=Callable[..., Coroutine[Any, Any, None]])

MAX_COUNT: Final = 1_000_000_000
"""More than anybody counts, and less than a database refuses."""
MAX_ROW_ID: Final = 2**63 - 1
"""No row of a database has a higher number."""
DEMO_AGENT: Final = "gateway_sessions.cli.demo_agent:answer"
"""The default agent, which needs no model and shows what a session remembers."""


def command(group: typer.Typer, name: str) -> Callable[[Work], Work]:
    """Declare an async function as a command of a group; its first parameter is a `CommandContext`."""

    def declare(work: Work) -> Work:
        def typed(context: typer.Context, **given: object) -> None:
            # This loads the configuration and the terminal, for which help texts and errors should not wait.
            from gateway_sessions.cli.context import run_command  # noqa: PLC0415

            run_command(context, partial(work, **given))

        group.command(name, help=work.__doc__)(_with_signature_of(typed, work))
        return work

    return declare


def _with_signature_of(typed: Any, work: Callable[..., object]) -> Any:
    """Give *typed* the parameters of *work*, with the parser's own context, as its signature."""
    hints = get_type_hints(work, localns={"CommandContext": typer.Context}, include_extras=True)
    parameters = signature(work).parameters.values()
    typed.__signature__ = Signature([one.replace(annotation=hints[one.name]) for one in parameters])
    return typed


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers in a range that the help text does not show."""
    return partial(_parse_between, int, "whole number", least, most)


def number_from(least: float) -> Callable[[str], float]:
    """Return a parser of numbers from *least* on."""
    return partial(_parse_between, float, "number", least, MAX_COUNT)


def _parse_between(
    kind: Callable[[str], Number], name: str, least: Number, most: Number, text: str
) -> Number:
    with suppress(ValueError):
        if least <= (read := kind(text)) <= most:
            return read
    problem = f"{text!r} is no {name} from {least:,} to {most:,}."
    raise typer.BadParameter(problem)


Limit: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", parser=whole_number(1, MAX_COUNT), help="Show at most N.", metavar="N")
]
Source: TypeAlias = Annotated[str | None, typer.Option(help="Only this platform.", metavar="NAME")]
Archived: TypeAlias = Annotated[bool, typer.Option("--archived", help="Archived ones.")]
DryRun: TypeAlias = Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
SessionText: TypeAlias = Annotated[
    str, typer.Argument(help="Its id, the beginning of its id, or its title.", metavar="SESSION")
]
Key: TypeAlias = Annotated[str, typer.Argument(help="The lane's session key.", metavar="KEY")]
Target: TypeAlias = Annotated[
    str, typer.Argument(help="The file to write; - for the standard output.", metavar="FILE")
]
Agent: TypeAlias = Annotated[
    str,
    typer.Option(
        help="The agent: a function of a turn, a factory, or `openai` for the configured model.",
        metavar="MODULE:NAME",
    ),
]
