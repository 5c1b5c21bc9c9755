"""How a command comes about: a record of what can be typed, and the name of the work that does it.

The records load nothing. What does the work may import what it needs, because it is loaded once a command has
been typed as it should be: neither help nor a mistake waits for a database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pkgutil import resolve_name
from typing import Any, Final, TypeVar, dataclass_transform, get_type_hints

import typer

WORK: Final = "gateway_sessions.cli.work"
RUN: Final = "gateway_sessions.cli.desk:run"

Record = TypeVar("Record")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def offered(group: typer.Typer, name: str, work: str) -> Callable[[type[Record]], type[Record]]:
    """Offers a class as a command: its fields are what people type, its docstring is the help.

    *work* is a module below `cli/work` and a function in it, which is given the desk and the record.
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
