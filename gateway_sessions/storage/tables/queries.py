"""Named SQL queries and migrations from `.sql` files, with fragments in the dialect of each engine.

A query starts with `-- name: its_name`; the comment lines below it say what it does. The word `(index)`
behind the name marks a change that sessions.json has to show.

What engines say differently, or several queries say, is a fragment and starts with `-- fragment: its_name`.
It is used as `{its_name}`, or as `{its_name:something}` if it holds an `@` for that.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Final

_HEAD = re.compile(r"^-- (?P<kind>name|fragment): (?P<name>\w+)(?P<index> \(index\))?$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_USE = re.compile(r"\{(?P<name>\w+)(?::(?P<argument>[^{}]*))?\}")
"""A fragment in which no other one is used any more."""
_PLACE = re.compile(r"(?<!@)@(?!@)")
"""Two of them are an operator."""
ROOT: Final = files("gateway_sessions.storage") / "sql"
STORE: Final = "store"
"""The folder of the queries that every engine of the store answers."""
SEARCH: Final = "search_column"
"""That of what only a database is asked for that keeps the search index itself."""
_NUMBERED: Final = frozenset({"postgresql"})
"""Engines whose parameters have numbers."""


@dataclass(frozen=True, slots=True)
class Query:
    """One statement of an engine's dialect."""

    sql: str
    changes_snapshot: bool = False
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
def load_queries(engine: str, *folders: str, dialect: Path | None = None) -> Mapping[str, Query]:
    """All queries of some folders by name, as an engine understands them.

    A *dialect* of it is a folder elsewhere: what stands there takes the place of what has the same name.
    """
    parts = [part for folder in (*(folders or (STORE,)), engine) for part in _parts_of(ROOT / folder)]
    named = [head["name"] for head, _ in parts if head["kind"] == "name"]
    if len(set(named)) < len(named):
        raise ValueError(f"a query is defined twice: {sorted(named)}")  # noqa: TRY003 -- only a developer meets it
    parts += [] if dialect is None else _parts_of(dialect)
    fragments = {head["name"]: text for head, text in parts if head["kind"] == "fragment"}
    found: dict[str, Query] = {}
    for head, text in parts:
        if head["kind"] == "name":
            sql = _expanded(text, fragments)
            found[head["name"]] = Query(
                _numbered(sql) if engine in _NUMBERED else sql, changes_snapshot=bool(head["index"])
            )
    return MappingProxyType(found)


@cache
def load_migrations(engine: str, dialect: Path | None = None) -> tuple[Migration, ...]:
    """All migrations of an engine in order, or those of a dialect of it that has its own."""
    folder = ROOT / engine / "migrations"
    if dialect is not None and (dialect / "migrations").is_dir():
        folder = dialect / "migrations"
    steps = sorted(folder.iterdir(), key=lambda one: one.name)
    return tuple(
        Migration(int(step.name[:4]), step.name.removesuffix(".sql"), step.read_text("utf-8"))
        for step in steps
        if step.name.endswith(".sql")
    )


def _parts_of(folder: Traversable) -> Iterator[tuple[re.Match[str], str]]:
    """The heads of all queries and fragments in a folder, and what stands below them."""
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".sql"):
            text = file.read_text("utf-8")
            heads = list(_HEAD.finditer(text))
            ends = [head.start() for head in heads[1:]] + [len(text)]
            for head, end in zip(heads, ends, strict=True):
                yield head, _COMMENT.sub("", text[head.end() + 1 : end]).strip()


def _expanded(sql: str, fragments: Mapping[str, str]) -> str:
    """The query with all fragments in their places, the innermost first."""

    def said(use: re.Match[str]) -> str:
        return _PLACE.sub(lambda _: use["argument"] or "", fragments[use["name"]])

    changed = 1
    while changed:
        sql, changed = _USE.subn(said, sql)
    return sql


def _numbered(sql: str) -> str:
    numbers = itertools.count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
