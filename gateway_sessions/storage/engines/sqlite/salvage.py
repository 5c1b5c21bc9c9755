"""Salvage of a damaged SQLite file: readable rows, a rebuilt database, and text with invalid bytes.

A damaged page stops a scan. So a table is scanned from its beginning and from its end, and the rows in
between are looked up one by one, under the keys that its indexes still hold. A row that an index names and
the table cannot show is lost, and counted.

A rebuilt database has the rows that the damaged file still holds; tables that could not be read whole are
filled up from the newest backup.

SQLite stores text without a check, so damage can leave bytes that are no UTF-8. Python raises an error for
the whole query then. A guess would be worse, as a key that is guessed finds nothing. So the store reports
such text, a check finds it, and a repair puts U+FFFD where the damage is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway_sessions.core.progress import OnProgress, ProgressSteps
from gateway_sessions.ports import Row
from gateway_sessions.storage.engines.sqlite.backup import flush_file, open_read_only
from gateway_sessions.storage.engines.sqlite.schema import APPLICATION_ID, prepare_file
from gateway_sessions.storage.files.private_files import prepare_database_file
from gateway_sessions.storage.tables.sql_files import Migration
from gateway_sessions.storage.transactions.transfer.import_entries import IMPORTED

Key: TypeAlias = tuple[Any, ...]
TableRow: TypeAlias = tuple[Any, ...]

READ_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError, OverflowError)
"""The errors that damaged pages cause; damaged text cannot be decoded."""


@dataclass(slots=True)
class SalvagedCount:
    """Counts the rows of a table that could be read."""

    rows: int = 0
    complete: bool = True
    """True if the table was read from one end to the other without an error."""
    unreadable: int = 0
    """The number of rows that an index names and that could not be read."""


def columns_of(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the table's columns; none if there is no such table, or its schema cannot be read."""
    try:
        described = connection.execute(f"PRAGMA table_info({quote_name(table)})").fetchall()
    except READ_ERRORS:
        return ()
    return tuple(str(one[1]) for one in described)


def read_salvageable_rows(
    connection: sqlite3.Connection, table: str, columns: tuple[str, ...], keep: Callable[[TableRow], None]
) -> SalvagedCount:
    """Call *keep* once with every row of the table that can be read."""
    reading = _TableSalvage(connection, table, columns, keep)
    if reading.scan_to_known_row(backwards=False):
        return reading.outcome
    reading.outcome.complete = False
    reading.scan_to_known_row(backwards=True)
    reading.read_rows_of_indexes()
    return reading.outcome


def clustering_key(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    """Return the columns by which the rows of a table are ordered in the file."""
    try:
        connection.execute(f"SELECT rowid FROM {quote_name(table)} LIMIT 0")  # noqa: S608 -- our schema
    except READ_ERRORS:
        described = connection.execute(f"PRAGMA table_info({quote_name(table)})").fetchall()
        return tuple(quote_name(name) for _, name in sorted((one[5], one[1]) for one in described if one[5]))
    return ("rowid",)


def quote_name(name: str) -> str:
    """Return a name in quotes, as SQL needs it."""
    return '"' + name.replace('"', '""') + '"'


class _TableSalvage:
    """Reads one table of a damaged file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        table: str,
        columns: tuple[str, ...],
        keep: Callable[[TableRow], None],
    ) -> None:
        self._connection = connection
        self._table = quote_name(table)
        self._key = clustering_key(connection, table)
        self._columns = ", ".join(map(quote_name, columns))
        self._keep = keep
        self._seen: set[Key] = set()
        self.outcome = SalvagedCount()

    def scan_to_known_row(self, *, backwards: bool) -> bool:
        """Read in the order of the keys up to a row that was read already; return False after an error."""
        direction = "DESC" if backwards else "ASC"
        order = ", ".join(f"{name} {direction}" for name in self._key)
        names = ", ".join(self._key)
        query = f"SELECT {names}, {self._columns} FROM {self._table} ORDER BY {order}"  # noqa: S608 -- our schema
        try:
            for row in self._connection.execute(query):
                key = row[: len(self._key)]
                if key in self._seen:
                    return True
                self._keep_row(key, row[len(self._key) :])
        except READ_ERRORS:
            return False
        return True

    def read_rows_of_indexes(self) -> None:
        """Read, one by one, the rows that an index names and no scan has reached."""
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
                self._keep_row(key, row)

    def _keep_row(self, key: Key, row: TableRow) -> None:
        self._seen.add(key)
        self.outcome.rows += 1
        self._keep(row)

    def _indexed_keys(self) -> Iterator[Key]:
        """Yield the keys in the indexes of the table, as far as each index can be read."""
        names = ", ".join(self._key)
        try:
            indexes = [str(one[1]) for one in self._connection.execute(f"PRAGMA index_list({self._table})")]
        except READ_ERRORS:
            return
        for index in indexes:
            query = f"SELECT {names} FROM {self._table} INDEXED BY {quote_name(index)}"  # noqa: S608 -- our schema
            try:
                yield from self._connection.execute(query)
            except READ_ERRORS:
                continue  # a damaged index, or one that holds only some of the rows


_KEPT: Final = "surrogateescape"
"""Decodes bytes that are no UTF-8 to halves of surrogate pairs, which no text has, and encodes them back."""


@dataclass(frozen=True, slots=True)
class DamagedTextRow:
    """A row with text that is no UTF-8."""

    table: str
    where: str
    """The SQL condition that finds the row."""
    key: tuple[Any, ...]
    values: dict[str, Any]
    columns: tuple[str, ...]
    """The columns with such text."""

    @property
    def row(self) -> dict[str, Any]:
        """Return the values of the row, damaged text as bytes."""
        return self.values | {name: _as_parameter(self.values[name]) for name in self.columns}

    @property
    def name(self) -> str:
        """Return the key of the row as people read it."""
        parts = (one.decode(errors="replace") if isinstance(one, bytes) else str(one) for one in self.key)
        return ", ".join(parts)


def tables_of(connection: sqlite3.Connection) -> list[str]:
    """Return the names of all tables."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [str(name) for (name,) in rows if not str(name).startswith("sqlite_")]


def rows_with_damaged_text(connection: sqlite3.Connection, table: str) -> list[DamagedTextRow]:
    """Return all rows of a table with text that is no UTF-8."""
    key, columns = clustering_key(connection, table), columns_of(connection, table)
    listed = ", ".join((*key, *map(quote_name, columns)))
    found: list[DamagedTextRow] = []
    with _noting_damaged_text(connection) as texts:
        for row in connection.execute(f"SELECT {listed} FROM {quote_name(table)}"):  # noqa: S608 -- our schema
            if texts.damaged:
                texts.damaged = False
                values = dict(zip(columns, row[len(key) :], strict=True))
                bad = tuple(name for name, value in values.items() if _is_damaged(value))
                which = tuple(map(_as_parameter, row[: len(key)]))
                found.append(DamagedTextRow(table, _key_condition(key, row), which, values, bad))
    return found


def mend_text(connection: sqlite3.Connection, one: DamagedTextRow) -> bool:
    """Put U+FFFD where text is damaged; return False if the row was deleted instead.

    A row is deleted if another one has the mended key already.
    """
    assigned = ", ".join(f"{quote_name(name)} = ?" for name in one.columns)
    table, new = quote_name(one.table), tuple(_replace_bad_bytes(one.values[name]) for name in one.columns)
    changing = f"UPDATE OR IGNORE {table} SET {assigned} WHERE {one.where}"  # noqa: S608 -- our schema
    if connection.execute(changing, (*new, *one.key)).rowcount:
        return True
    connection.execute(f"DELETE FROM {table} WHERE {one.where}", one.key)  # noqa: S608 -- our schema
    return False


class _TextDecoder:
    """Decodes texts, and notes when one is damaged."""

    def __init__(self) -> None:
        self.damaged = False

    def __call__(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.damaged = True
            return raw.decode(errors=_KEPT)


@contextmanager
def _noting_damaged_text(connection: sqlite3.Connection) -> Generator[_TextDecoder]:
    texts = connection.text_factory = _TextDecoder()
    try:
        yield texts
    finally:
        connection.text_factory = str


def _is_damaged(value: object) -> bool:
    return isinstance(value, str) and _replace_bad_bytes(value) != value


def _replace_bad_bytes(value: str) -> str:
    return value.encode(errors=_KEPT).decode(errors="replace")


def _key_condition(key: tuple[str, ...], row: Row) -> str:
    """Return the condition for a key; damaged text in it can only be passed as bytes."""
    return " AND ".join(
        f"{name} = {'CAST(? AS TEXT)' if isinstance(value, str) else '?'}"
        for name, value in zip(key, row, strict=False)
    )


def _as_parameter(value: Any) -> Any:
    return value.encode(errors=_KEPT) if isinstance(value, str) else value


OWN_FACTS: Final = frozenset({"schema_version", "readable_from"})
"""Rows of `meta` that a rebuilt database keeps as the migrations wrote them."""


@dataclass(frozen=True, slots=True)
class RebuiltTable:
    """Counts the rows of a rebuilt table by their origin, and those that are lost."""

    name: str
    salvaged: int
    from_backup: int
    unusable: int
    unreadable: int
    complete: bool


def rebuild_database(
    damaged: Path,
    target: Path,
    backup: Path | None,
    known: Sequence[Migration],
    progress: OnProgress | None = None,
) -> list[RebuiltTable]:
    """Write a new database to *target* from a damaged one and its backup, which stay as they are.

    The backup only fills tables that could not be read whole: it is older, and rows that were deleted since
    must stay deleted.
    """
    target.unlink(missing_ok=True)
    prepare_database_file(target, APPLICATION_ID)
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        prepare_file(new, target, known, synchronous="OFF")
        names = tables_of(new)
        new.execute("BEGIN IMMEDIATE")
        steps, tables = ProgressSteps(progress, len(names)), list[RebuiltTable]()
        with closing(open_read_only(damaged)) as old:
            for name in names:
                steps.begin_step(f"Saving table {name}")
                tables.append(_refill_table(new, old, name, backup))
        if not all(table.complete for table in tables if table.name in ("entries", "clocks")):
            # The next start takes the lanes that are missing from sessions.json.
            new.execute("DELETE FROM meta WHERE name = ?", (IMPORTED,))
        new.execute("COMMIT")
    flush_file(target)
    return tables


def _refill_table(
    new: sqlite3.Connection, old: sqlite3.Connection, name: str, backup: Path | None
) -> RebuiltTable:
    first = _TableCopy(new, old, name)
    second: _TableCopy | None = None
    if backup is not None and not first.outcome.complete:
        with closing(open_read_only(backup)) as copy:
            second = _TableCopy(new, copy, name)
    return RebuiltTable(
        name=name,
        salvaged=first.written,
        from_backup=second.written if second is not None else 0,
        unusable=first.outcome.rows - first.written,
        unreadable=first.outcome.unreadable,
        complete=first.outcome.complete,
    )


class _TableCopy:
    """Copies the rows of one table; it skips rows that are there already, or that do not fit any more."""

    def __init__(self, new: sqlite3.Connection, source: sqlite3.Connection, name: str) -> None:
        wanted = columns_of(new, name)
        present = columns_of(source, name)
        columns = tuple(column for column in wanted if column in present)
        self.written = 0
        self._new = new
        self._keeps_own_facts = name == "meta"
        self._insert = (
            f"INSERT OR IGNORE INTO {quote_name(name)} ({', '.join(map(quote_name, columns))}) "  # noqa: S608 -- our schema
            f"VALUES ({', '.join('?' * len(columns))})"
        )
        self.outcome = (
            read_salvageable_rows(source, name, columns, self._insert_row)
            if columns
            else SalvagedCount(complete=False)
        )

    def _insert_row(self, row: TableRow) -> None:
        if self._keeps_own_facts and row[0] in OWN_FACTS:
            self.written += 1
            return
        try:
            self.written += self._new.execute(self._insert, row).rowcount
        except READ_ERRORS:
            return  # a damaged page can be read without an error and hold a value that the column refuses
