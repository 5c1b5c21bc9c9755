"""The rows of a lane's entry: load, write, remove and archive it; damaged entries are left aside.

The clocks of an entry have a table of their own, because they change with every message. Columns hold the
members that queries ask for, and one record of JSON holds all others: msgspec reads and checks it in C.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import FieldInfo

from gateway_sessions.core.checks import plain_value
from gateway_sessions.core.identity.keys import ACCOUNT, account_in_key
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables.column_decoding import DAMAGE, log_skipped_row, raise_damaged
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.tables.statements import lane_lock


@row_of(
    "entry_by_key",
    "entry_by_session",
    "entries_in_key_order",
    "entries_due",
    "entries_not_written_since",
    "entries_active_since",
    "list_entries",
    "list_entries_of_owners",
    "first_entries_due",
)
class EntryRow(NamedTuple):
    """The row of an entry with its clocks."""

    entry_id: int
    session_key: str
    session_id: str
    owner: str
    platform: str | None
    state: str
    state_since: int | None
    due_at: int | None
    policy_fingerprint: str
    record: str
    version: int
    updated_at: int
    last_interaction_at: int | None
    """None while it is the same instant as `updated_at`."""


@record_of("put_entry")
class EntryColumns(NamedTuple):
    """The row of an entry without its clocks."""

    entry_id: int
    session_key: str
    session_id: str
    owner: str
    platform: str | None
    state: str
    state_since: int | None
    due_at: int | None
    policy_fingerprint: str
    record: str


_COLUMNS: Final = (
    "session_key", "session_id", "version", "updated_at", "last_interaction_at", "owner", "platform", "state",
    "state_since", "due_at", "policy_fingerprint",
)  # fmt: skip
"""The fields of an entry that have a column, besides its id; the record holds all others."""
_ALWAYS_ARCHIVED: Final = frozenset({"version", "owner", "state"})
"""The fields that an archive holds whatever their value: earlier versions of the program ask for them."""


def _struct_of(name: str, fields: Iterable[FieldInfo]) -> type[msgspec.Struct]:
    """Make a struct of some fields of an entry, which reads and writes them as JSON."""
    members: list[Any] = []
    for one in fields:
        defaults: dict[str, Any] = {"default": one.default, "default_factory": one.default_factory}
        given = {name: value for name, value in defaults.items() if value is not msgspec.NODEFAULT}
        optional = bool(given) and one.name not in _ALWAYS_ARCHIVED
        members.append((one.name, one.type, msgspec.field(**given)) if optional else (one.name, one.type))
    return msgspec.defstruct(name, members, kw_only=True, omit_defaults=True, gc=False)


_FIELDS: Final = {one.name: one for one in msgspec.structs.fields(SessionEntry) if one.name != "entry_id"}
_RECORD_FIELDS: Final = [one for name, one in _FIELDS.items() if name not in _COLUMNS]
EntryRecord: Final = _struct_of("EntryRecord", _RECORD_FIELDS)
"""The members of an entry that have no column, by the names of its fields."""
EntryArchive: Final = _struct_of("EntryArchive", (*_RECORD_FIELDS, *map(_FIELDS.__getitem__, _COLUMNS)))
"""A whole entry as one JSON document, without its id."""
_STATES: Final = {str(state): state for state in SessionState}
_IN_RECORD: Final = EntryRecord.__struct_fields__
_IN_ARCHIVE: Final = EntryArchive.__struct_fields__
read_record: Final = msgspec.json.Decoder(EntryRecord).decode
_READ_ARCHIVE: Final = msgspec.json.Decoder(EntryArchive)


def load(
    session_key: str, known: SessionEntry | None = None, *, locked: bool = False
) -> Transaction[SessionEntry | None]:
    """Return the lane's entry. A *known* copy saves decoding if the database says that it is current.

    *Locked*, no other transaction decides on the lane until the commit.
    """
    lock = lane_lock(session_key) if locked else None
    if known is not None:
        for (version,) in (yield Statement("entry_version", (known.entry_id,), lock=lock)):
            if version == known.version:
                return known
    rows = yield Statement("entry_by_key", (session_key,), lock=lock)
    return decode(rows[0]) if rows else None


def load_readable(session_key: str) -> Transaction[SessionEntry | None]:
    """Return the lane's entry; None if the lane has none, or a damaged one."""
    found = decode_readable((yield Statement("entry_by_key", (session_key,))))
    return found[0] if found else None


def load_by_session(session_id: str) -> Transaction[SessionEntry | None]:
    """Return the entry whose current session this is."""
    rows = yield Statement("entry_by_session", (session_id,))
    return decode(rows[0]) if rows else None


def put(entry: SessionEntry) -> Transaction[SessionEntry]:
    """Write all columns of the entry and its clocks."""
    columns = EntryColumns(
        entry_id=entry.entry_id,
        session_key=entry.session_key,
        session_id=entry.session_id,
        owner=entry.owner,
        platform=entry.platform,
        state=str(entry.state),
        state_since=_micros_or_none(entry.state_since),
        due_at=_micros_or_none(entry.due_at),
        policy_fingerprint=entry.policy_fingerprint,
        record=encode_record(entry),
    )
    yield Statement("put_entry", columns)
    yield Statement("put_clocks", _clock_columns(entry))
    return entry


def put_record_and_clocks(entry: SessionEntry) -> Transaction[SessionEntry]:
    """Write the record and the clocks of an entry whose other columns are unchanged."""
    yield Statement("put_record", (encode_record(entry), entry.entry_id))
    yield Statement("put_clocks", _clock_columns(entry))
    return entry


def remove(entry: SessionEntry) -> Transaction[None]:
    """Remove the entry and its clocks."""
    yield Statement("delete_entry", (entry.entry_id,))
    yield Statement("delete_clocks", (entry.entry_id,))


def decode(row: Row) -> SessionEntry:
    """Return the entry in a row; `StorageCorruptError` if it holds what no version of this program writes."""
    stored = EntryRow._make(row)
    try:
        return _entry_from_row(stored)
    except DAMAGE as error:
        raise_damaged(f"lane {stored.session_key!r}", error, "its entry")


def decode_readable(rows: Iterable[Row]) -> list[SessionEntry]:
    """Return the entries in rows. Damaged ones are logged and left aside, so that they stop no other lane."""
    found, damaged = split_off_damaged(rows)
    for session_key in damaged:
        log_skipped_row(f"the entry of lane {session_key}", session_key=session_key)
    return found


def split_off_damaged(rows: Iterable[Row]) -> tuple[list[SessionEntry], list[str]]:
    """Return the entries in rows, and the keys of lanes whose entries are damaged."""
    found, damaged = list[SessionEntry](), list[str]()
    for row in rows:
        try:
            found.append(decode(row))
        except StorageCorruptError:
            damaged.append(str(EntryRow._make(row).session_key))
    return found, damaged


def _entry_from_row(row: EntryRow) -> SessionEntry:
    key, since, due_at, interaction = row.session_key, row.state_since, row.due_at, row.last_interaction_at
    written = from_micros(row.updated_at)
    fields = msgspec.structs.asdict(read_record(row.record))
    if ACCOUNT in key and (origin := fields["origin"]) is not None and not origin.account:
        # A node of an earlier version, which has this database open as well, writes origins without it.
        fields["origin"] = replace(origin, account=account_in_key(key))
    return SessionEntry(
        entry_id=row.entry_id,
        session_key=key,
        session_id=row.session_id,
        owner=row.owner,
        platform=row.platform,
        state=_STATES[row.state],
        state_since=None if since is None else from_micros(since),
        due_at=None if due_at is None else from_micros(due_at),
        policy_fingerprint=row.policy_fingerprint,
        version=row.version,
        updated_at=written,
        last_interaction_at=written if interaction is None else from_micros(interaction),
        **fields,
    )


def encode_archive(entry: SessionEntry) -> str:
    """Return the entry as text, to be kept with its ended session."""
    return _encode_record(EntryArchive(**_fields_to_store(entry, _IN_ARCHIVE)))


def decode_archive(text: str) -> SessionEntry:
    """Return the entry as it was when its session ended; its lane may have another entry by now."""
    try:
        return SessionEntry(**msgspec.structs.asdict(_READ_ARCHIVE.decode(text)))
    except DAMAGE as error:
        raise_damaged("sessions", error, "the record of an ended session")


def _clock_columns(entry: SessionEntry) -> tuple[int, int, int, int | None]:
    same = entry.last_interaction_at == entry.updated_at
    interaction = None if same else to_micros(entry.last_interaction_at)
    return entry.entry_id, entry.version, to_micros(entry.updated_at), interaction


def encode_record(entry: SessionEntry) -> str:
    """Return the record of an entry: the members that have no column."""
    return _encode_record(EntryRecord(**_fields_to_store(entry, _IN_RECORD)))


def encode_blank_record(created_at: datetime) -> str:
    """Return the record of an entry of which only the creation time is known."""
    return _encode_record(EntryRecord(created_at=created_at))


def _fields_to_store(entry: SessionEntry, names: Iterable[str]) -> dict[str, Any]:
    """Return some fields; of the origin only what holds for more than one message."""
    fields = {name: getattr(entry, name) for name in names}
    return fields | {"origin": entry.origin.lasting if entry.origin is not None else None}


def _encode_record(record: msgspec.Struct) -> str:
    return _JSON.encode(record).decode()


_JSON: Final = msgspec.json.Encoder(enc_hook=plain_value)


def _micros_or_none(instant: datetime | None) -> int | None:
    return to_micros(instant) if instant is not None else None
