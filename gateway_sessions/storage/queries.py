"""Named queries from the `.sql` files of an engine.

A query starts with `-- name: its_name`; the comment lines below it say what it does. The word `(index)`
behind the name marks a change that sessions.json has to show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_HEAD = re.compile(r"^-- name: (?P<name>\w+)(?P<index> \(index\))?$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
ROOT: Final = files("gateway_sessions.storage") / "sql"


@dataclass(frozen=True, slots=True)
class Query:
    """One statement of an engine's dialect."""

    sql: str
    changes_index: bool = False
    reads: bool = field(init=False)
    """Whether it changes nothing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", self.sql.startswith("SELECT"))


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, forward only."""

    version: int
    name: str
    script: str


@cache
def load_queries(engine: str) -> Mapping[str, Query]:
    """All queries of an engine by name."""
    found: dict[str, Query] = {}
    for file in sorted((ROOT / engine).iterdir(), key=lambda one: one.name):
        if file.name.endswith(".sql"):
            for name, query in _parse(file.read_text("utf-8")):
                if name in found:
                    raise ValueError(f"query {name} is defined twice")  # noqa: TRY003 -- only a developer meets it
                found[name] = query
    return MappingProxyType(found)


@cache
def load_migrations(engine: str) -> tuple[Migration, ...]:
    """All migrations of an engine, in order."""
    steps = sorted((ROOT / engine / "migrations").iterdir(), key=lambda one: one.name)
    return tuple(
        Migration(int(step.name[:4]), step.name.removesuffix(".sql"), step.read_text("utf-8"))
        for step in steps
        if step.name.endswith(".sql")
    )


def _parse(text: str) -> list[tuple[str, Query]]:
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        (
            head["name"],
            Query(_COMMENT.sub("", text[head.end() + 1 : end]).strip(), changes_index=bool(head["index"])),
        )
        for head, end in zip(heads, ends, strict=True)
    ]
