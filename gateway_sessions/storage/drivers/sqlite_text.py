"""Text in a SQLite file that is none: its bytes are no UTF-8.

SQLite compares bytes, and Python cannot make a text of these: whatever reads them fails, with all that is
read along. To guess would be worse, for a key that reads like another one finds nothing. So a store tells it,
a check finds it, and a repair puts U+FFFD where the damage is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from gateway_sessions.ports import Row
from gateway_sessions.storage.drivers.sqlite_salvage import clustering_key, columns_of, quoted

_KEPT: Final = "surrogateescape"
"""Bytes that are no text become halves of surrogate pairs, which no text has, and can be bytes again."""


@dataclass(frozen=True, slots=True)
class DamagedText:
    """A row with text that is none."""

    table: str
    where: str
    """Which row it is, as a condition."""
    key: tuple[Any, ...]
    values: dict[str, Any]
    columns: tuple[str, ...]
    """Those with such text."""

    @property
    def row(self) -> dict[str, Any]:
        """All that it holds, such text as bytes."""
        return self.values | {name: _stored(self.values[name]) for name in self.columns}

    @property
    def name(self) -> str:
        """What people know it by."""
        parts = (one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in self.key)
        return ", ".join(parts)


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """All of the schema."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [str(name) for (name,) in rows if not str(name).startswith("sqlite_")]


def damaged_text(connection: sqlite3.Connection, table: str) -> list[DamagedText]:
    """All rows of a table with text that is none."""
    key, columns = clustering_key(connection, table), columns_of(connection, table)
    listed = ", ".join((*key, *map(quoted, columns)))
    found: list[DamagedText] = []
    with _kept_as_they_are(connection) as texts:
        for row in connection.execute(f"SELECT {listed} FROM {quoted(table)}"):  # noqa: S608 -- our schema
            if texts.damaged:
                texts.damaged = False
                values = dict(zip(columns, row[len(key) :], strict=True))
                bad = tuple(name for name, value in values.items() if _is_damaged(value))
                which = tuple(map(_stored, row[: len(key)]))
                found.append(DamagedText(table, _where(key, row), which, values, bad))
    return found


def mend_text(connection: sqlite3.Connection, one: DamagedText) -> bool:
    """Let the columns hold what can be read; False if the row had to go, as another one says the same."""
    assigned = ", ".join(f"{quoted(name)} = ?" for name in one.columns)
    table, new = quoted(one.table), tuple(_readable(one.values[name]) for name in one.columns)
    changing = f"UPDATE OR IGNORE {table} SET {assigned} WHERE {one.where}"  # noqa: S608 -- our schema
    if connection.execute(changing, (*new, *one.key)).rowcount:
        return True
    connection.execute(f"DELETE FROM {table} WHERE {one.where}", one.key)  # noqa: S608 -- our schema
    return False


class _Texts:
    """Makes texts of bytes, and notes when they were none."""

    def __init__(self) -> None:
        self.damaged = False

    def __call__(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.damaged = True
            return raw.decode(errors=_KEPT)


@contextmanager
def _kept_as_they_are(connection: sqlite3.Connection) -> Generator[_Texts]:
    texts = connection.text_factory = _Texts()
    try:
        yield texts
    finally:
        connection.text_factory = str


def _is_damaged(value: object) -> bool:
    return isinstance(value, str) and _readable(value) != value


def _readable(value: str) -> str:
    return value.encode(errors=_KEPT).decode(errors="replace")


def _where(key: tuple[str, ...], row: Row) -> str:
    """A text that is none can only be said as bytes."""
    return " AND ".join(
        f"{name} = {'CAST(? AS TEXT)' if isinstance(value, str) else '?'}"
        for name, value in zip(key, row, strict=False)
    )


def _stored(value: Any) -> Any:
    return value.encode(errors=_KEPT) if isinstance(value, str) else value
