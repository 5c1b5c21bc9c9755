"""Reading what can still be read of a damaged SQLite file.

A damaged page stops a scan. So a table is read from its beginning and from its end, and what lies between is
looked up row by row under the keys that its indexes still know. What an index names and the table cannot show
is lost, and counted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = tuple[Any, ...]

READ_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""What reading damaged pages can raise; text that is none cannot be decoded."""


@dataclass(slots=True)
class Salvaged:
    """How much of a table could be read."""

    rows: int = 0
    complete: bool = True
    """Whether the table was read from one end to the other without an error."""
    unreadable: int = 0
    """Rows that are known to have been there."""


def columns_of(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """The table's columns; none if there is no such table, or nobody can tell."""
    try:
        described = connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
    except READ_ERRORS:
        return ()
    return tuple(str(one[1]) for one in described)


def salvage(
    connection: sqlite3.Connection, table: str, columns: tuple[str, ...], keep: Callable[[Row], None]
) -> Salvaged:
    """Hand every row of the table that can be read to *keep*, once."""
    reading = _Reading(connection, table, columns, keep)
    if reading.scan(backwards=False):
        return reading.outcome
    reading.outcome.complete = False
    reading.scan(backwards=True)
    reading.look_up_the_rest()
    return reading.outcome


def clustering_key(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """What the rows of a table are stored in the order of."""
    try:
        connection.execute(f"SELECT rowid FROM {quoted(table)} LIMIT 0")  # noqa: S608 -- our schema
    except READ_ERRORS:
        described = connection.execute(f"PRAGMA table_info({quoted(table)})").fetchall()
        return tuple(quoted(name) for _, name in sorted((one[5], one[1]) for one in described if one[5]))
    return ("rowid",)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


class _Reading:
    """One table on its way out of a damaged file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        table: str,
        columns: tuple[str, ...],
        keep: Callable[[Row], None],
    ) -> None:
        self._connection = connection
        self._table = quoted(table)
        self._key = clustering_key(connection, table)
        self._columns = ", ".join(map(quoted, columns))
        self._keep = keep
        self._seen: set[Key] = set()
        self.outcome = Salvaged()

    def scan(self, *, backwards: bool) -> bool:
        """Read in the order of the keys up to a row that is known already; False if that was not possible."""
        direction = "DESC" if backwards else "ASC"
        order = ", ".join(f"{name} {direction}" for name in self._key)
        names = ", ".join(self._key)
        query = f"SELECT {names}, {self._columns} FROM {self._table} ORDER BY {order}"  # noqa: S608 -- our schema
        try:
            for row in self._connection.execute(query):
                key = row[: len(self._key)]
                if key in self._seen:
                    return True
                self._take(key, row[len(self._key) :])
        except READ_ERRORS:
            return False
        return True

    def look_up_the_rest(self) -> None:
        """Fetch, one by one, the rows that an index knows and no scan has reached."""
        where = " AND ".join(f"{name} = ?" for name in self._key)
        query = f"SELECT {self._columns} FROM {self._table} WHERE {where}"  # noqa: S608 -- names of our schema
        for key in {one for one in self._indexed_keys() if one not in self._seen}:
            try:
                row = self._connection.execute(query, key).fetchone()
            except READ_ERRORS:
                row = None
            if row is None:
                self.outcome.unreadable += 1
            else:
                self._take(key, row)

    def _take(self, key: Key, row: Row) -> None:
        self._seen.add(key)
        self.outcome.rows += 1
        self._keep(row)

    def _indexed_keys(self) -> Iterator[Key]:
        """Keys as the indexes of the table name them, as far as each of them can be read."""
        names = ", ".join(self._key)
        try:
            indexes = [str(one[1]) for one in self._connection.execute(f"PRAGMA index_list({self._table})")]
        except READ_ERRORS:
            return
        for index in indexes:
            query = f"SELECT {names} FROM {self._table} INDEXED BY {quoted(index)}"  # noqa: S608 -- our schema
            try:
                yield from self._connection.execute(query)
            except READ_ERRORS:
                continue  # a damaged index, or one that holds only some of the rows
