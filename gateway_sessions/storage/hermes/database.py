"""Read-only access to a Hermes database, without a change to it or a file beside it.

While Hermes runs, SQLite reads one snapshot. When no process has the database open, it is read as an
immutable file, because SQLite would else create files beside it; a writer that begins meanwhile is noticed.
Changes that a crash left in a log beside the database are read from a copy of both.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, Self, TypeAlias
from urllib.parse import quote

from gateway_sessions.errors import ForeignDatabaseError, StorageCorruptError, StorageUnavailableError
from gateway_sessions.storage.engines.sqlite.errors import translate_error
from gateway_sessions.storage.engines.sqlite.salvage import READ_ERRORS, columns_of, quote_name
from gateway_sessions.storage.files.atomic_file import copy_durably

Row: TypeAlias = dict[str, Any]

BUSY_SECONDS: Final = 5.0
"""The time for which a read waits for a lock of Hermes."""


class MessageCount(NamedTuple):
    """Counts the messages of a session."""

    messages: int = 0
    last_message_id: int = 0


TAKEN_IN: Final = frozenset(
    {"schema_version", "sessions", "messages", "session_model_usage", "gateway_routing"}
)
_OURS_TO_IGNORE: Final = ("sqlite_", "messages_fts")
_IDENTITY: Final = (
    "id", "source", "user_id", "session_key", "chat_id", "chat_type", "thread_id", "origin_json",
    "profile_name", "parent_session_id",
)  # fmt: skip
_CHILDREN: Final = ("id", "end_reason", "ended_at", "started_at", "source", "model_config")


@dataclass(slots=True)
class HermesDatabase:
    """Reads one snapshot of the database, within `with` and from one thread at a time."""

    path: Path
    scratch: Path | None
    """The directory for a temporary copy; None: the system's."""
    _steps: ExitStack = field(default_factory=ExitStack, init=False)
    _connection: sqlite3.Connection = field(init=False)
    _columns: dict[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"], init=False)
    _watched: tuple[object, ...] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        with self._translating_errors(), ExitStack() as steps:
            self._open_snapshot(steps)
            self._steps = steps.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._steps.close()

    def session_rowids(self) -> list[int]:
        """Return the rowids of the sessions, the oldest session first."""
        order = "started_at, rowid" if "started_at" in self._columns["sessions"] else "rowid"
        return [row[0] for row in self._rows(f"SELECT rowid FROM sessions NOT INDEXED ORDER BY {order}")]  # noqa: S608 -- constants

    def read_session(self, row: int) -> Row:
        """Return one session with all of its columns."""
        found = self._rows_by_column("sessions", "WHERE rowid = ?", (row,))
        if not found:
            raise StorageCorruptError(str(self.path), f"row {row} of sessions cannot be found again")
        return found[0]

    def count_messages(self) -> dict[str, MessageCount]:
        """Return how many messages each session has, counted in the table and not in an index of it."""
        found = self._rows(
            "SELECT session_id, count(*), max(id) FROM messages NOT INDEXED GROUP BY session_id"
        )
        return {str(row[0]): MessageCount(row[1], row[2]) for row in found}

    def read_messages(self, session_id: str) -> list[Row]:
        """Return the messages of a session in the order in which they were stored."""
        return self._rows_by_column("messages", "WHERE session_id = ? ORDER BY id", (session_id,))

    def read_usage(self, session_id: str) -> list[Row]:
        """Return the use of a session by model and task, if this version counted it."""
        if "session_model_usage" not in self._columns:
            return []
        return self._rows_by_column("session_model_usage", "WHERE session_id = ?", (session_id,))

    def children_of(self, session_id: str) -> list[Row]:
        """Return the sessions whose parent is this one, with the time of their last message."""
        known = [name for name in _CHILDREN if name in self._columns["sessions"]]
        if (
            "parent_session_id" not in self._columns["sessions"]
            or "timestamp" not in self._columns["messages"]
        ):
            return []
        found = self._rows(
            f"SELECT {', '.join(known)},"  # noqa: S608 -- names of a closed set
            " (SELECT max(timestamp) FROM messages WHERE messages.session_id = sessions.id)"
            " FROM sessions WHERE parent_session_id = ?",
            (session_id,),
        )
        return [dict(zip([*known, "last_message_at"], row, strict=True)) for row in found]

    def owner_columns_of(self, session_id: str) -> Row | None:
        """Return the columns that tell the owner and the source of a session."""
        known = [name for name in _IDENTITY if name in self._columns["sessions"]]
        sql = f"SELECT {', '.join(known)} FROM sessions WHERE id = ?"  # noqa: S608 -- names of a closed set
        found = self._rows(sql, (session_id,))
        return dict(zip(known, found[0], strict=True)) if found else None

    def end_reason_of(self, session_id: str) -> str | None:
        """Return the reason for which a session ended, if it did."""
        if "end_reason" not in self._columns["sessions"]:
            return None
        found = self._rows("SELECT end_reason FROM sessions WHERE id = ?", (session_id,))
        return found[0][0] if found else None

    def read_routing_table(self) -> list[tuple[str, str, bytes]]:
        """Return the routing table: the directory of each lane, its key and its entry."""
        if "gateway_routing" not in self._columns:
            return []
        scope = "CAST(scope AS TEXT)" if "scope" in self._columns["gateway_routing"] else "''"
        found = self._rows(
            f"SELECT {scope}, CAST(session_key AS TEXT), CAST(entry_json AS BLOB)"  # noqa: S608 -- constants
            " FROM gateway_routing ORDER BY 1, 2"
        )
        return [(row[0] or "", row[1] or "", row[2] or b"") for row in found]

    def count_other_rows(self) -> dict[str, int]:
        """Return how many rows are in tables that are not imported."""
        others = (
            name for name in self._columns if name not in TAKEN_IN and not name.startswith(_OURS_TO_IGNORE)
        )
        counted = {name: self._rows(f"SELECT count(*) FROM {quote_name(name)}")[0][0] for name in others}  # noqa: S608
        return {name: rows for name, rows in counted.items() if rows}

    def require_unchanged(self) -> None:
        """Raise `StorageUnavailableError` if the file was written meanwhile: reads may be torn."""
        if self._watched is not None and self._watched != _file_state(self.path):
            problem = (
                "was changed while it was read; import it again, what is taken in already is passed over"
            )
            raise StorageUnavailableError(str(self.path), problem)

    def _open_snapshot(self, steps: ExitStack) -> None:
        wal, shm = (self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))
        journal = self.path.with_name(self.path.name + "-journal")
        path, options = self.path, "mode=ro"
        if _file_size(wal) and not shm.exists():
            path = self._copy_with_log(wal, steps)
        elif not shm.exists() and not _file_size(journal):
            self._watched = _file_state(self.path)
            options = "mode=ro&immutable=1"
        uri = f"file:{quote(str(path))}?{options}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._connection = steps.enter_context(closing(connection))
        connection.text_factory = _decode_leniently
        connection.execute("BEGIN")
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._columns = {name: columns_of(connection, name) for (name,) in tables}
        needed = {"sessions": {"id"}, "messages": {"id", "session_id", "role"}}
        for table, columns in needed.items():
            if not columns.issubset(self._columns.get(table, ())):
                raise ForeignDatabaseError(
                    str(self.path), f"no table {table} with {', '.join(sorted(columns))}"
                )

    def _copy_with_log(self, wal: Path, steps: ExitStack) -> Path:
        folder = Path(steps.enter_context(TemporaryDirectory(dir=self.scratch, prefix=".hermes.")))
        for source in (self.path, wal):
            copy_durably(source, folder / source.name)
        return folder / self.path.name

    def _rows_by_column(self, table: str, condition: str, params: Sequence[object]) -> list[Row]:
        columns = self._columns[table]
        names = ", ".join(map(quote_name, columns))
        rows = self._rows(f"SELECT {names} FROM {quote_name(table)} {condition}", params)  # noqa: S608 -- quoted
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _rows(self, sql: str, params: Sequence[object] = ()) -> list[Any]:
        with self._translating_errors():
            return self._connection.execute(sql, params).fetchall()

    @contextmanager
    def _translating_errors(self) -> Generator[None]:
        try:
            yield
        except READ_ERRORS as error:
            raise translate_error(error, str(self.path)) from error
        except OSError as error:
            raise StorageUnavailableError(str(self.path), error.strerror or str(error)) from error


def _file_state(path: Path) -> tuple[object, ...]:
    """Return values that change when somebody writes to the database."""
    status = path.stat()
    beside = tuple(_file_size(path.with_name(path.name + end)) for end in ("-wal", "-journal"))
    return status.st_size, status.st_mtime_ns, beside


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _decode_leniently(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
