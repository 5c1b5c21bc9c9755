"""A Hermes home: its lanes from the routing table and sessions.json, and its sessions for an import.

Newer versions of Hermes keep the lanes in a routing table and mirror them in sessions.json; an entry of the
table wins. The database is opened read-only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

from gateway_sessions.core.export.session_reader import parse_json_text, read_session
from gateway_sessions.core.identity.keys import Isolation, encode_part, session_owner
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions_json.entries import entry_from_json
from gateway_sessions.core.sessions_json.file_format import RejectedEntry, SnapshotContent, parse_snapshot
from gateway_sessions.core.sessions_json.import_plan import Continuation, our_key, plan_import
from gateway_sessions.errors import InvalidInputError, InvalidSnapshotError, StorageCorruptError
from gateway_sessions.storage.engines.sqlite.errors import translate_error
from gateway_sessions.storage.files.atomic_file import read_whole_file
from gateway_sessions.storage.hermes.database import HermesDatabase, MessageCount, Row
from gateway_sessions.storage.hermes.rows_to_sessions import (
    Lineage,
    continuation_among,
    exported_session,
    one_line_name,
    relation_of,
    safe_id,
)
from gateway_sessions.storage.sessions_json import FILE_NAME
from gateway_sessions.storage.transactions.transfer.import_session import encode_session
from gateway_sessions.storage.transfer.import_files import SessionToImport

DATABASE: Final = "state.db"
_TABLE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'gateway_routing'"
_ROWS: Final = (
    "SELECT CAST(session_key AS TEXT), CAST(entry_json AS BLOB) FROM gateway_routing"
    " WHERE scope = ? ORDER BY session_key"
)


def with_routing_table(content: SnapshotContent, sessions_dir: Path, zone: tzinfo) -> SnapshotContent:
    """Return the entries of the file and of the routing tables beside and above it; the tables win."""
    return complete_with_rows(content, _routing_rows(sessions_dir), zone)


def complete_with_rows(
    content: SnapshotContent, rows: Iterable[tuple[str, bytes]], zone: tzinfo
) -> SnapshotContent:
    """Return the entries of the file and of the given rows; the rows win."""
    entries = {entry.session_key: entry for entry in content.entries}
    rejected = list(content.rejected)
    for key, text in rows:
        try:
            entries[key] = entry_from_json(key, text, zone)
        except InvalidInputError as error:
            rejected.append(RejectedEntry(key, f"in {DATABASE}: {error}", text))
    ordered: tuple[SessionEntry, ...] = tuple(entries[key] for key in sorted(entries))
    return SnapshotContent(ordered, tuple(rejected), content.meta, content.intact)


def _routing_rows(sessions_dir: Path) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for directory in (sessions_dir.parent, sessions_dir):
        database = directory / DATABASE
        if database.is_file():
            found += _read_routing_rows(database, str(sessions_dir.resolve()))
    return found


def _read_routing_rows(database: Path, scope: str) -> list[tuple[str, bytes]]:
    uri = f"file:{quote(str(database))}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=5)) as connection:
            connection.text_factory = _decoded_json
            if connection.execute(_TABLE).fetchone() is None:
                return []
            return [(key or "", text or b"") for key, text in connection.execute(_ROWS, (scope,))]
    except sqlite3.Error as error:
        # To go on without the table would lose the lanes that only the table has.
        raise translate_error(error, str(database)) from error


def _decoded_json(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


SESSIONS: Final = "sessions"
COMPRESSION: Final = "compression"
LONGEST_LINE: Final = 100
"""The most steps along a chain of parents or continuations, which damage may have closed to a circle."""
MAX_KEY: Final = 4096
_NOTHING: Final = SnapshotContent((), (), None, intact=True)
_OWN_FILES: Final = frozenset(
    {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal", FILE_NAME}
)


OUR_DATABASE: Final = "sessions.db"
"""The database in a directory of ours, where sessions.json has the same name as in one of Hermes."""


@dataclass(frozen=True, slots=True)
class HermesHome:
    """Names the directories of a Hermes home."""

    folder: Path
    sessions: Path

    @property
    def database(self) -> Path | None:
        """Return the database; None in a home of the first versions, which had none."""
        path = self.folder / DATABASE
        return path if path.is_file() else None

    @classmethod
    def find_home(cls, path: Path) -> HermesHome:
        """Return the home that a path names, directly, by its database or by its directory of sessions."""
        folder = path.parent if path.is_file() else path
        if folder.name == SESSIONS and not (folder / DATABASE).is_file():
            folder = folder.parent
        inner = folder / SESSIONS
        sessions = folder if (folder / FILE_NAME).is_file() and not (inner / FILE_NAME).is_file() else inner
        home = cls(folder, sessions)
        if home.database is None and (sessions / OUR_DATABASE).is_file():
            problem = f"{path} is a store of gateway_sessions, and no Hermes home; see sessions import"
            raise InvalidInputError(problem)
        if home.database is None and not (sessions / FILE_NAME).is_file():
            problem = f"{path} is no Hermes home: there is neither {DATABASE} nor {FILE_NAME}"
            raise InvalidInputError(problem)
        return home

    def unread_files(self) -> list[str]:
        """Return the names of files in the home that are not read."""
        found = sorted(
            one for one in self.folder.iterdir() if one.name not in _OWN_FILES and one != self.sessions
        )
        names = [f"{one.name}/" if one.is_dir() else one.name for one in found]
        if self.sessions.is_dir() and self.sessions != self.folder:
            inner = [one for one in self.sessions.iterdir() if one.name != FILE_NAME]
            names += [f"{self.sessions.name}/: {len(inner)} more"] if inner else []
        return names


@dataclass(frozen=True, slots=True)
class HermesLanes:
    """Holds the lanes of a home under our rules: each session belongs to one lane at most."""

    entries: tuple[SessionEntry, ...] = ()
    shared: tuple[Continuation, ...] = ()
    rejected: tuple[RejectedEntry, ...] = ()
    problems: tuple[str, ...] = ()
    flags: Isolation = field(default_factory=Isolation)


def read_lanes(
    home: HermesHome, database: HermesDatabase | None, zone: tzinfo, flags: Isolation
) -> HermesLanes:
    """Return the lanes of the routing table, completed by those of sessions.json."""
    problems: list[str] = []
    content = _NOTHING
    try:
        raw = read_whole_file(home.sessions / FILE_NAME)
        content = _NOTHING if raw is None else parse_snapshot(raw, zone)
    except InvalidSnapshotError as error:
        problems.append(f"{FILE_NAME}: {error}")
    if database is not None:
        rows = database.read_routing_table()
        scopes = {scope for scope, _, _ in rows}
        here = _scope_of_home(scopes, home)
        problems += [f"the routing table of {one or 'no directory'}" for one in sorted(scopes - {here})]
        content = complete_with_rows(
            content, [(key, text) for scope, key, text in rows if scope == here], zone
        )
    entries = [_follow_continuations(one, database) for one in content.entries]
    numbers = (f"\0{number}" for number in range(len(entries)))
    plan = plan_import(entries, numbers, flags)
    new = {one.new_session_id: _stable_session_id(one) for one in plan.continuations}
    return HermesLanes(
        entries=tuple(
            one.altered(session_id=new.get(one.session_id, one.session_id)) for one in plan.entries
        ),
        shared=tuple(
            Continuation(one.session_key, one.shared_session_id, new[one.new_session_id], one.kept_by)
            for one in plan.continuations
        ),
        rejected=content.rejected,
        problems=tuple(problems),
        flags=flags,
    )


@dataclass(slots=True)
class SessionReader:
    """Reads the sessions of a database for an import."""

    database: HermesDatabase
    lanes: HermesLanes
    extents: Mapping[str, MessageCount]
    _holders: dict[str, SessionEntry]
    _owners: dict[str, str]
    _continuations: dict[str, str | None]

    @classmethod
    def for_lanes(cls, database: HermesDatabase, lanes: HermesLanes) -> SessionReader:
        """Return a reader that knows the lanes by session and by key."""
        holders = {one.session_id: one for one in lanes.entries}
        owners = {one.session_key: one.owner for one in lanes.entries}
        return cls(database, lanes, database.count_messages(), holders, owners, {})

    def read_rows(self, places: Sequence[int]) -> list[Row | StorageCorruptError]:
        """Return sessions without their messages, or the error with which a row is read."""
        return [self._read_row(place) for place in places]

    def orphaned_sessions(self, known: set[str]) -> Iterator[Row]:
        """Yield sessions of which only messages are left."""
        for session_id in sorted(set(self.extents) - known):
            yield {"id": session_id, "source": "unknown"}

    def count_messages(self, row: Row) -> MessageCount:
        """Return how many messages the session has, and the last of them."""
        return self.extents.get(str(row["id"]), MessageCount())

    def read_candidate(self, row: Row) -> SessionToImport:
        """Return the session with its messages, ready to import. A large session takes a while."""
        messages = self.database.read_messages(row["id"])
        extent = self.count_messages(row)
        if len(messages) != extent.messages:
            problem = f"of {extent.messages} messages only {len(messages)} can be found by their session"
            raise StorageCorruptError(str(self.database.path), problem)
        given = exported_session(
            row, messages, self.database.read_usage(row["id"]), self._lineage_of(row, extent)
        )
        rows = encode_session(read_session(given), EPOCH)
        return SessionToImport(rows, size=rows.totals.text_bytes)

    def _read_row(self, place: int) -> Row | StorageCorruptError:
        try:
            return self.database.read_session(place)
        except StorageCorruptError as error:
            return error

    def _lineage_of(self, row: Row, extent: MessageCount) -> Lineage:
        holder = self._holders.get(safe_id(row["id"]))
        key = holder.session_key if holder is not None else self._lane_key_of(row)
        return Lineage(
            owner=holder.owner if holder is not None else self._owner_of(row),
            session_key=key,
            relation=self._relation_of(row),
            held=holder is not None and not holder.expiry_finalized,
            provenance=extent._asdict(),
        )

    def _lane_key_of(self, row: Row) -> str | None:
        key = one_line_name(row.get("session_key"), MAX_KEY)
        return our_key(key, _source_of_row(row), self._flags_of(row)) if key else None

    def _owner_of(self, row: Row) -> str:
        """Return the person or room of a session; without a name, the owner of its parent."""
        current: Row | None = row
        for _ in range(LONGEST_LINE):
            if current is None:
                break
            key, origin = self._lane_key_of(current), _source_of_row(current)
            if key is not None and key in self._owners:
                return self._owners[key]
            if origin is not None:
                return session_owner(origin, self._flags_of(current))
            if user := one_line_name(current.get("user_id")):
                return f"{_base_directory(current)}:user:{encode_part(user)}"
            parent = current.get("parent_session_id")
            current = self.database.owner_columns_of(parent) if parent else None
        return f"{_base_directory(row)}:local"

    def _relation_of(self, row: Row) -> Any:
        parent = row.get("parent_session_id")
        if not parent:
            return None
        end = self.database.end_reason_of(parent)
        if end == COMPRESSION and parent not in self._continuations:
            self._continuations[parent] = continuation_among(self.database.children_of(parent))
        return relation_of(row, end, self._continuations.get(parent))

    def _flags_of(self, row: Row) -> Isolation:
        flags = self.lanes.flags
        return replace(flags, profile=one_line_name(row.get("profile_name")) or flags.profile)


def _scope_of_home(scopes: set[str], home: HermesHome) -> str | None:
    """Return the directory in the table that stands for this home.

    A home that was copied is found under the name of its old path.
    """
    here = str(home.sessions.resolve())
    if here in scopes:
        return here
    alike = [one for one in scopes if not one or Path(one).name == home.sessions.name]
    return alike[0] if len(alike) == 1 else None


def _follow_continuations(entry: SessionEntry, database: HermesDatabase | None) -> SessionEntry:
    """Return the lane with the last continuation of its session, which Hermes looks up at each message."""
    session_id = entry.session_id
    for _ in range(LONGEST_LINE):
        if database is None or database.end_reason_of(session_id) != COMPRESSION:
            break
        following = continuation_among(database.children_of(session_id))
        if following is None:
            break
        session_id = following
    return entry if session_id == entry.session_id else entry.altered(session_id=safe_id(session_id))


def _stable_session_id(one: Continuation) -> str:
    """Return an id for a continuation that is the same at every import."""
    digest = blake2b(one.session_key.encode("utf-8", "backslashreplace"), digest_size=4).hexdigest()
    return f"{one.shared_session_id[:100]}_{digest}"


def _source_of_row(row: Row) -> SessionSource | None:
    """Return the source of a session, as far as its row tells."""
    stored: object = parse_json_text(row.get("origin_json"))
    if not isinstance(stored, dict):
        if not row.get("chat_id") or not row.get("chat_type"):
            return None
        names = {"platform": "source", "user_id": "user_id", "chat_id": "chat_id", "chat_type": "chat_type"}
        stored = {name: row.get(other) for name, other in names.items()} | {"thread_id": row.get("thread_id")}
    try:
        return SessionSource.from_dict(cast("dict[str, Any]", stored))
    except InvalidInputError:
        return None


def _base_directory(row: Row) -> str:
    return f"main:{encode_part(one_line_name(row.get('source')) or 'import')}"
