"""Salvage of a damaged SQLite file: readable rows, a rebuilt database, and text with invalid bytes.

Reading what can still be read of a damaged SQLite file.

A damaged page stops a scan. So a table is read from its beginning and from its end, and what lies between is
looked up row by row under the keys that its indexes still know. What an index names and the table cannot show
is lost, and counted.

A new database from what a damaged one and its newest copy still hold.

Text in a SQLite file that is none: its bytes are no UTF-8.

SQLite compares bytes, and Python cannot make a text of these: whatever reads them fails, with all that is
read along. To guess would be worse, for a key that reads like another one finds nothing. So a store tells it,
a check finds it, and a repair puts U+FFFD where the damage is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway_sessions.core.progress import OnProgress, Steps
from gateway_sessions.ports import Row
from gateway_sessions.storage.engines.sqlite.backup import make_durable, read_only
from gateway_sessions.storage.engines.sqlite.schema import APPLICATION_ID, prepare
from gateway_sessions.storage.files.private_files import prepare_database_file
from gateway_sessions.storage.tables.queries import Migration
from gateway_sessions.storage.transactions.transfer.import_entries import IMPORTED

Key: TypeAlias = tuple[Any, ...]
TableRow: TypeAlias = tuple[Any, ...]

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
    connection: sqlite3.Connection, table: str, columns: tuple[str, ...], keep: Callable[[TableRow], None]
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
        keep: Callable[[TableRow], None],
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

    def _take(self, key: Key, row: TableRow) -> None:
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


OWN_FACTS: Final = frozenset({"schema_version", "readable_from"})
"""What the new database knows by itself."""


@dataclass(frozen=True, slots=True)
class RebuiltTable:
    """Where the rows of one table came from, and how many are known to be lost."""

    name: str
    salvaged: int
    from_backup: int
    unusable: int
    unreadable: int
    complete: bool


def rebuild(
    damaged: Path,
    target: Path,
    backup: Path | None,
    known: Sequence[Migration],
    progress: OnProgress | None = None,
) -> list[RebuiltTable]:
    """Write a new database to *target*; the other files stay as they are.

    The copy only fills tables that could not be read whole: it is older, and what was deleted since has gone
    on purpose.
    """
    target.unlink(missing_ok=True)
    prepare_database_file(target, APPLICATION_ID)
    with closing(sqlite3.connect(target, isolation_level=None)) as new:
        prepare(new, target, known, synchronous="OFF")
        names = tables_of(new)
        new.execute("BEGIN IMMEDIATE")
        steps, tables = Steps(progress, len(names)), list[RebuiltTable]()
        with closing(read_only(damaged)) as old:
            for name in names:
                steps.begin(f"Saving table {name}")
                tables.append(_refill(new, old, name, backup))
        if not all(table.complete for table in tables if table.name in ("entries", "clocks")):
            # The next start takes the lanes that are missing from sessions.json.
            new.execute("DELETE FROM meta WHERE name = ?", (IMPORTED,))
        new.execute("COMMIT")
    make_durable(target)
    return tables


def _refill(new: sqlite3.Connection, old: sqlite3.Connection, name: str, backup: Path | None) -> RebuiltTable:
    first = _Refill(new, old, name)
    second: _Refill | None = None
    if backup is not None and not first.outcome.complete:
        with closing(read_only(backup)) as copy:
            second = _Refill(new, copy, name)
    return RebuiltTable(
        name=name,
        salvaged=first.written,
        from_backup=second.written if second is not None else 0,
        unusable=first.outcome.rows - first.written,
        unreadable=first.outcome.unreadable,
        complete=first.outcome.complete,
    )


class _Refill:
    """Takes the rows of one table over; one that is there already, or fits no more, is left out."""

    def __init__(self, new: sqlite3.Connection, source: sqlite3.Connection, name: str) -> None:
        wanted = columns_of(new, name)
        present = columns_of(source, name)
        columns = tuple(column for column in wanted if column in present)
        self.written = 0
        self._new = new
        self._keeps_own_facts = name == "meta"
        self._insert = (
            f"INSERT OR IGNORE INTO {quoted(name)} ({', '.join(map(quoted, columns))}) "  # noqa: S608 -- our schema
            f"VALUES ({', '.join('?' * len(columns))})"
        )
        self.outcome = salvage(source, name, columns, self._take) if columns else Salvaged(complete=False)

    def _take(self, row: TableRow) -> None:
        if self._keeps_own_facts and row[0] in OWN_FACTS:
            self.written += 1
            return
        try:
            self.written += self._new.execute(self._insert, row).rowcount
        except READ_ERRORS:
            return  # a value that the column cannot hold: the page was damaged, and read all the same
