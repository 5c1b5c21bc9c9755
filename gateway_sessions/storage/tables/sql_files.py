"""Named SQL queries and migrations from `.sql` files, with fragments in the dialect of each engine.

A query starts with `-- name: its_name`; the comment lines below that line say what the query does. The word
`(index)` after the name marks a query that changes what sessions.json shows.

Text that differs between engines, or that several queries share, is a fragment and starts with `-- fragment:
its_name`. A query uses a fragment as `{its_name}`. A fragment that holds an `@` is used as
`{its_name:something}`: the text `something` takes the place of the `@`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

_HEAD = re.compile(r"^-- (?P<kind>name|fragment): (?P<name>\w+)(?P<index> \(index\))?$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_USE = re.compile(r"\{(?P<name>\w+)(?::(?P<argument>[^{}]*))?\}")
"""The use of a fragment whose argument uses no other fragment: the innermost uses are replaced first."""
_PLACE = re.compile(r"(?<!@)@(?!@)")
"""The place of a fragment's argument; `@@` is an operator of PostgreSQL and no such place."""
ROOT: Final = files("gateway_sessions.storage") / "sql"
STORE: Final = "store"
"""The folder of the queries that every engine answers."""
SEARCH: Final = "search_column"
"""The folder of the queries for engines whose database keeps the search index itself."""
_NUMBERED: Final = frozenset({"postgresql"})
"""Engines whose placeholders are numbered (`$1`) instead of `?`."""


@dataclass(frozen=True, slots=True)
class Query:
    """One statement of an engine's dialect."""

    sql: str
    changes_snapshot: bool = False
    reads: bool = field(init=False)
    """True if the statement changes nothing."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", self.sql.startswith("SELECT"))


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, forward only."""

    version: int
    name: str
    script: str


class Columns(NamedTuple):
    """The columns of a query: those that stand for themselves in front, and the fields of a type."""

    in_front: tuple[str, ...]
    fields: Callable[..., Any]


ROW_TYPES: Final[dict[str, Columns]] = {}
"""The type that a row of each query is made into, by the name of the query."""
RECORD_TYPES: Final[dict[str, Columns]] = {}
"""The type of the parameters of each `INSERT` of many columns, by the name of the statement."""


def row_of(*queries: str, in_front: tuple[str, ...] = ()) -> Callable[[T], T]:
    """Register what a row of these queries is made into: the class stands beside its queries.

    The names of its fields are the names of the columns behind those *in front*, in their order. A test
    compares them with what the database reports, so that a column which moves in a statement is found before
    anything reads it.
    """
    return _registrar(ROW_TYPES, queries, in_front)


def record_of(*statements: str, in_front: tuple[str, ...] = ()) -> Callable[[T], T]:
    """Register what the parameters of these `INSERT` statements are made of.

    The names of its fields are the names of the columns that the statement writes behind those *in front*, in
    their order; a test compares them with the text of the statement.
    """
    return _registrar(RECORD_TYPES, statements, in_front)


def _registrar(
    types: dict[str, Columns], names: Iterable[str], in_front: tuple[str, ...]
) -> Callable[[T], T]:
    def register(fields: T) -> T:
        for name in names:
            columns = Columns(in_front, fields)
            if types.setdefault(name, columns) != columns:
                raise ValueError(f"a query has two types: {name}")  # noqa: TRY003 -- only a developer meets it
        return fields

    return register


@cache
def load_queries(engine: str, *folders: str, dialect: Path | None = None) -> Mapping[str, Query]:
    """Return all queries of some folders by name, in the dialect of an engine.

    A *dialect* is a folder outside this package: its fragments take the place of the engine's fragments of
    the same name.
    """
    parts = [part for folder in (*(folders or (STORE,)), engine) for part in _named_sections(ROOT / folder)]
    named = [head["name"] for head, _ in parts if head["kind"] == "name"]
    if len(set(named)) < len(named):
        raise ValueError(f"a query is defined twice: {sorted(named)}")  # noqa: TRY003 -- only a developer meets it
    parts += [] if dialect is None else _named_sections(dialect)
    fragments = {head["name"]: text for head, text in parts if head["kind"] == "fragment"}
    found: dict[str, Query] = {}
    for head, text in parts:
        if head["kind"] == "name":
            sql = _expand_fragments(text, fragments)
            found[head["name"]] = Query(
                _number_placeholders(sql) if engine in _NUMBERED else sql,
                changes_snapshot=bool(head["index"]),
            )
    return MappingProxyType(found)


@cache
def load_migrations(engine: str, dialect: Path | None = None) -> tuple[Migration, ...]:
    """Return all migrations of an engine in order, or those of its *dialect* if that has any."""
    folder = ROOT / engine / "migrations"
    if dialect is not None and (dialect / "migrations").is_dir():
        folder = dialect / "migrations"
    steps = sorted(folder.iterdir(), key=lambda one: one.name)
    return tuple(
        Migration(int(step.name[:4]), step.name.removesuffix(".sql"), step.read_text("utf-8"))
        for step in steps
        if step.name.endswith(".sql")
    )


def _named_sections(folder: Traversable) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the head of each query and fragment in a folder with the text below it, without comments."""
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".sql"):
            text = file.read_text("utf-8")
            heads = list(_HEAD.finditer(text))
            ends = [head.start() for head in heads[1:]] + [len(text)]
            for head, end in zip(heads, ends, strict=True):
                yield head, _COMMENT.sub("", text[head.end() + 1 : end]).strip()


def _expand_fragments(sql: str, fragments: Mapping[str, str]) -> str:
    """Return the query with all fragments in their places, the innermost first."""

    def said(use: re.Match[str]) -> str:
        return _PLACE.sub(lambda _: use["argument"] or "", fragments[use["name"]])

    changed = 1
    while changed:
        sql, changed = _USE.subn(said, sql)
    return sql


def _number_placeholders(sql: str) -> str:
    numbers = itertools.count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
