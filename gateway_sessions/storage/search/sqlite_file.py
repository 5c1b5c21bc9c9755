"""The file `search.db`: its tables, word list and checks, and its removal when it is damaged.

FTS5 finds a message by whole words only. To index every part of every word of every message would take
several times the room of the messages. So each word is listed once, with its parts of three letters: a query
for a part of a word finds the words first, and then the messages.

Everything here blocks.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from gateway_sessions.core.search.criteria import WordPart
from gateway_sessions.core.search.documents import (
    Document,
    IndexedMessage,
    IndexPosition,
    IndexWork,
    document_of,
    listed_words,
)
from gateway_sessions.core.search.stems import NO_STEMS, Stems
from gateway_sessions.errors import StorageUnavailableError, UnsupportedStorageError
from gateway_sessions.storage.engines.sqlite.schema import split_statements
from gateway_sessions.storage.files.atomic_file import QUARANTINE
from gateway_sessions.storage.files.private_files import (
    make_private_directory,
    prepare_database_file,
    prepare_sidecars_for_reader,
    replace_file,
)
from gateway_sessions.storage.search.sqlite_match import Fts5Match, containing_expression
from gateway_sessions.storage.tables.sql_files import Query, load_migrations, load_queries

MOST_KNOWN: Final = 30_000
"""The most words that are remembered as listed. Most text consists of few words, so nearly all are found
here."""


class WordList:
    """Lists each word of an index once. One thread at a time adds words."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self._queries = queries
        self._known: set[str] = set()
        self._added: set[str] = set()

    def add_words(self, connection: sqlite3.Connection, words: Iterable[str]) -> None:
        """List these words, in the transaction of the documents that have them."""
        self._added = set(words) - self._known
        if self._added:
            (last,) = connection.execute(self._sql("last_word")).fetchone()
            connection.execute(self._sql("add_words"), (msgspec.json.encode(list(self._added)).decode(),))
            connection.execute(self._sql("add_parts"), (last,))

    def remember_added(self) -> None:
        """Remember the added words as listed: the transaction was committed."""
        if len(self._known) > MOST_KNOWN:
            self._known = set()
        self._known |= self._added
        self._added = set()

    def words_containing(self, connection: sqlite3.Connection, part: WordPart, most: int) -> list[str] | None:
        """Return the words that contain a part; None if there are more than *most*."""
        parts = containing_expression(part.letters)
        if parts is None:
            rows = connection.execute(self._sql("words_with"), (part.text, most + 1)).fetchall()
        else:
            rows = connection.execute(self._sql("words_with_parts"), (parts, part.text, most + 1)).fetchall()
        return [row[0] for row in rows] if len(rows) <= most else None

    def finds_by_parts(self, connection: sqlite3.Connection, word: str) -> bool:
        """Return True if a word is found by its parts, or is too short to have any."""
        parts = containing_expression(word)
        if parts is None:
            return True
        return connection.execute(self._sql("probe_word"), (parts, word)).fetchone() is not None

    def _sql(self, name: str) -> str:
        return self._queries[name].sql


APPLICATION_ID: Final = 0x67736978
"""Marks the file as ours: "gsix"."""
FORMAT: Final = 3
"""Rises with every change of the file's tables; a file of another format is made anew."""
DIALECT: Final = "search_index"
BUSY_SECONDS: Final = 5.0
"""The time for which a connection waits for a lock on the file."""
CACHE_KIB: Final = 4 * 1024
"""The page cache of each connection."""
FEW_DEAD: Final = 10_000
"""Up to that many dead documents are not worth making the index anew."""
BEYOND: Final = (1 << 63) - 1
"""Greater than the id of any document."""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY: Final = 0xFF

T = TypeVar("T")


class IndexFault(StrEnum):
    """States why a file cannot be the index of this store."""

    DAMAGED = "damaged"
    FOREIGN = "foreign"  # a database of another program
    OUTDATED = "outdated"  # of another format, or made by another tokeniser
    MISPLACED = "misplaced"  # newer than the database, or too old for its notes of changes
    GONE = "gone"  # removed or replaced while it was open


class UnusableIndexError(Exception):
    """The file must be set aside, and the index made anew."""

    def __init__(self, fault: IndexFault, detail: str) -> None:
        self.fault = fault
        super().__init__(f"{fault}: {detail}")


@dataclass(frozen=True, slots=True)
class IndexMatches:
    """Holds a page of candidates from one snapshot of the index."""

    position: IndexPosition
    message_ids: tuple[int, ...]
    last_document: int | None
    """The document behind which the next page begins; None at the end."""
    is_answer: bool = True
    """False if the index cannot tell, because too many words contain the wanted part."""


class IndexFile:
    """Fills the index on one connection and reads it on another, each used by one thread at a time."""

    def __init__(self, path: Path, *, read_only: bool = False, stems: Stems = NO_STEMS) -> None:
        self.path = path
        self._stems = stems
        self.position: IndexPosition = IndexPosition()
        self.is_new: bool = False
        self._queries: Mapping[str, Query] = {}
        self._words = WordList({})
        self._read_only = read_only
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._inode = 0
        # One thread at a time may use a connection; with two locks, a search does not wait for a write.
        self._reading = threading.Lock()
        self._filling = threading.Lock()

    def connect(self, identity: str, start: IndexPosition) -> None:
        """Open the index of the store that *identity* names, or create one that begins at *start*."""
        self._queries = load_queries("sqlite", DIALECT)
        self._words = WordList(self._queries)
        try:
            with _raising_damage():
                if self._read_only:
                    self._prepare_to_read()
                    self._reader = self._connect("ro")
                    self._check_identity(self._read_facts(self._reader), identity)
                else:
                    self._open_to_write(identity, start)
        except BaseException:
            self.close()
            raise

    def apply_work(self, work: IndexWork) -> None:
        """Write documents for new and changed messages, all of them or none."""
        documents = _documents_of_work(work, self._stems)
        with self._filling, _raising_damage():
            connection = self._in_write_transaction()
            connection.execute("BEGIN IMMEDIATE")
            try:
                revisions = [(change_id, message_id) for change_id, message_id, _ in work.changed]
                connection.executemany(self._sql("add_revision"), revisions)
                rows = (
                    (one.message_id, one.labels, " ".join((*one.tokens, *one.stems))) for one in documents
                )
                connection.executemany(self._sql("add_document"), rows)
                self._words.add_words(connection, listed_words(documents))
                _write_position(connection, self._sql("set_state"), work.position)
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._words.remember_added()
        self.position = work.position

    def find_candidates(
        self, match: Fts5Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> IndexMatches:
        """Return a page of the messages that match, behind the last document of the page before."""
        sql = self._sql("find_oldest" if oldest_first else "find_newest")
        start = after if after is not None else (-BEYOND if oldest_first else BEYOND)
        part = match.certain.part

        def look(reader: sqlite3.Connection) -> IndexMatches:
            state = dict(reader.execute(self._sql("get_state")).fetchall())
            position = IndexPosition(int(state["watermark"]), int(state["changes"]))
            words = None if part is None else self._words.words_containing(reader, part, match.most_words)
            if (expression := match.fts5_expression(words)) is None:
                return IndexMatches(position, (), None, is_answer=False)
            rows = reader.execute(sql, (expression, start, limit)).fetchall()
            last = int(rows[-1][0]) if len(rows) == limit else None
            return IndexMatches(position, tuple(row[1] for row in rows), last)

        return self._read_snapshot(look)

    def find_fault(self, samples: Sequence[IndexedMessage]) -> str | None:
        """Return what is wrong with the index, or None; *samples* are messages that it must find."""
        try:
            if not self._read_only:
                with self._filling, _raising_damage():
                    for name in ("check_structure", "check_parts"):
                        self._in_write_transaction().execute(self._sql(name))
            problem = self._read_snapshot(_integrity_fault)
            missing = [one.message_id for one in samples if not self._finds_message(one)]
        except UnusableIndexError as error:
            return str(error)
        if problem is not None:
            return problem
        return f"{len(missing)} of {len(samples)} messages are not found" if missing else None

    def dead_share(self) -> float:
        """Return the share of documents whose text has changed or is gone."""
        dead = self._count_documents("count_revisions")
        return dead / self._count_documents("count_documents") if dead >= FEW_DEAD else 0.0

    def is_gone(self) -> bool:
        """Return True if the file was removed or replaced since it was opened."""
        try:
            return self.path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Close both connections."""
        with self._filling, self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    def _open_to_write(self, identity: str, start: IndexPosition) -> None:
        self._prepare_to_write()
        self._writer = self._connect("rwc")
        state = self._read_facts(self._writer)
        self._configure(self._writer)
        self.is_new = state is None
        if state is None:
            self._create_tables(self._writer, identity, start)
        self._check_identity(state if state is not None else self._read_facts(self._writer), identity)
        self._reader = self._connect("ro")
        self._inode = self.path.stat().st_ino

    def _prepare_to_write(self) -> None:
        try:
            prepare_database_file(self.path, APPLICATION_ID)
        except UnsupportedStorageError as error:  # a link, or no file at all
            raise UnusableIndexError(IndexFault.FOREIGN, str(error)) from error
        except (
            StorageUnavailableError
        ) as error:  # the file of another user: the directory is ours, so make a new file
            raise UnusableIndexError(IndexFault.DAMAGED, str(error)) from error

    def _prepare_to_read(self) -> None:
        try:
            prepare_sidecars_for_reader(self.path)
        except (StorageUnavailableError, UnsupportedStorageError) as error:
            raise UnusableIndexError(IndexFault.DAMAGED, str(error)) from error

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.path))}?mode={mode}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        return connection

    def _read_facts(self, connection: sqlite3.Connection) -> dict[str, Any] | None:
        """Return the facts in the file; None if it is new."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application_id == 0 and not tables:
            return None
        if application_id != APPLICATION_ID:
            raise UnusableIndexError(IndexFault.FOREIGN, f"application id {application_id}")
        if version != FORMAT:
            raise UnusableIndexError(IndexFault.OUTDATED, f"format {version}, ours is {FORMAT}")
        return dict(connection.execute(self._sql("get_state")).fetchall())

    def _check_identity(self, state: dict[str, Any] | None, identity: str) -> None:
        if state is None:
            raise UnusableIndexError(IndexFault.GONE, "it is empty")
        if state.get("identity") != identity:
            raise UnusableIndexError(
                IndexFault.OUTDATED, "it was made for another store, or by another tokeniser"
            )
        self.position = IndexPosition(int(state["watermark"]), int(state["changes"]))

    def _configure(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last documents: they are made again from the database.
        connection.execute("PRAGMA synchronous = NORMAL")

    def _create_tables(self, connection: sqlite3.Connection, identity: str, start: IndexPosition) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for step in load_migrations(DIALECT):
                for statement in split_statements(step.script):
                    connection.execute(statement)
            connection.execute(self._sql("set_state"), ("identity", identity))
            _write_position(connection, self._sql("set_state"), start)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _count_documents(self, name: str) -> int:
        return self._read_snapshot(lambda reader: int(reader.execute(self._sql(name)).fetchone()[0]))

    def _finds_message(self, message: IndexedMessage) -> bool:
        """Return True if a message is found by its first tokens and labels, and its longest word by parts."""
        wanted = document_of(message, self._stems)
        tokens = " ".join(wanted.tokens[:8])
        match = " AND ".join(f'{{labels}} : "{one}"' for one in wanted.labels.split())
        match = f'({match}) AND {{text}} : "{tokens}"' if tokens else match
        word = max(listed_words([wanted]), key=len, default="")

        def look(reader: sqlite3.Connection) -> bool:
            row = reader.execute(self._sql("newest_revision"), (message.message_id,)).fetchone()
            document = message.message_id if row[0] is None else row[0]
            found = reader.execute(self._sql("probe_document"), (match, document)).fetchone()
            return found is not None and self._words.finds_by_parts(reader, word)

        return self._read_snapshot(look)

    def _read_snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run *work* in one snapshot of the index."""
        with self._reading, _raising_damage():
            if self._reader is None:
                raise UnusableIndexError(IndexFault.GONE, "it is closed")
            self._reader.execute("BEGIN")
            try:
                return work(self._reader)
            finally:
                if self._reader.in_transaction:
                    self._reader.execute("ROLLBACK")

    def _in_write_transaction(self) -> sqlite3.Connection:
        if self._writer is None:
            raise UnusableIndexError(IndexFault.GONE, "it is closed")
        if self.is_gone():
            raise UnusableIndexError(IndexFault.GONE, "the file is not there any more")
        return self._writer

    def _sql(self, name: str) -> str:
        return self._queries[name].sql


def is_damage(error: sqlite3.Error) -> bool:
    """Return True if the error means that the file is damaged, and not merely locked or unreadable now."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & _PRIMARY in _DAMAGED


def _documents_of_work(work: IndexWork, stems: Stems) -> list[Document]:
    """Return the documents to write; that of a changed message has the id of the change."""
    changed = [
        document_of(message, stems)._replace(message_id=change_id)
        for change_id, _, message in work.changed
        if message is not None
    ]
    return [*changed, *(document_of(one, stems) for one in work.messages)]


def _write_position(connection: sqlite3.Connection, sql: str, position: IndexPosition) -> None:
    connection.executemany(sql, [("watermark", position.watermark), ("changes", position.changes)])


def _integrity_fault(connection: sqlite3.Connection) -> str | None:
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return None if answer == "ok" else f"damaged: {answer}"


@contextmanager
def _raising_damage() -> Generator[None]:
    """Raise `UnusableIndexError` for errors of a damaged file, and pass all others on."""
    try:
        yield
    except sqlite3.Error as error:
        if is_damage(error):
            raise UnusableIndexError(IndexFault.DAMAGED, str(error)) from error
        raise
    except (KeyError, TypeError, ValueError) as error:
        # No version of this program writes such values.
        raise UnusableIndexError(IndexFault.DAMAGED, f"{type(error).__name__}: {error}") from error


ASIDE: Final = ".aside"
"""The ending of the last index that was set aside: an operator may want to look into its fault."""
SIDECARS: Final = ("", "-wal", "-shm")


def set_index_aside(path: Path, fault: IndexFault, stamp: str) -> Path | None:
    """Move the file away: a foreign one to the quarantine, an index in place of the last one set aside."""
    if fault is IndexFault.FOREIGN:
        place = path.parent / QUARANTINE / f"{path.name}.{stamp}"
        make_private_directory(place.parent)
    else:
        place = path.with_name(path.name + ASIDE)
        _remove_with_sidecars(place)
    # The log goes before the database: after a crash in between, a left-over log must not meet a new file.
    moved = False
    for sidecar in reversed(SIDECARS):
        source = path.with_name(path.name + sidecar)
        if os.path.lexists(source):
            replace_file(source, place.with_name(place.name + sidecar))
            moved = True
    return place if moved else None


def remove_index(path: Path) -> None:
    """Remove the index, and one that was set aside."""
    _remove_with_sidecars(path)
    _remove_with_sidecars(path.with_name(path.name + ASIDE))


def _remove_with_sidecars(path: Path) -> None:
    for sidecar in SIDECARS:
        path.with_name(path.name + sidecar).unlink(missing_ok=True)
