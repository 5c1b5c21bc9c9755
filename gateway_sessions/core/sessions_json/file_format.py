"""The snapshot file: its layout, checksums and encoder, and a reader that keeps damaged entries apart.

    {
    "<session key>":{<entry>},
    …one line for each lane, in the order of the keys…
    "_meta":{"format":1,"generation":7,"entries":2,"written_at":"…","bytes":1702,"sha256":"…","crc32":"…"}}

The last member vouches for the file: its checksum covers every byte before it, and its CRC covers itself, so
that the end of a file alone tells which generation it is and whether it has the length it should have. Names
that begin with an underscore belong to no lane.

Reading takes files of ours and of Hermes, in any layout. An entry that cannot be read is returned as it
stands, with the reason; `InvalidSnapshotError` means that nothing could be read at all.
"""

from __future__ import annotations

import json
import re
from binascii import crc32
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any, Final

import msgspec

from gateway_sessions.core.damaged_json import Member, decode_json_text, split_members
from gateway_sessions.core.instants import as_utc
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions_json.entries import (
    Dialect,
    check_stored_key,
    entry_from_json,
    entry_to_dict,
)
from gateway_sessions.errors import InvalidInputError, InvalidSnapshotError

FORMAT: Final = 1
MAX_TAIL: Final = 4096
"""The number of bytes at a file's end that hold all of `_meta`: its longest form has under 400."""

_JSON: Final = msgspec.json.Encoder()
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_META = re.compile(
    rb'("_meta":\{"format":1,"generation":(\d{1,19}),"entries":(\d{1,19}),"written_at":"([0-9T:.+-]{19,40})",'
    rb'"bytes":(\d{1,19}),"sha256":"([0-9a-f]{64})"),"crc32":"([0-9a-f]{8})"\}\}\n\Z'
)


@dataclass(frozen=True, slots=True)
class SnapshotMeta:
    """The statements of a file's last member."""

    generation: int
    entries: int
    written_at: datetime
    size: int
    """The number of bytes before the last member."""
    sha256: str
    """The SHA-256 checksum over those bytes, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """A member that could not become an entry, as it stands in the file."""

    key: str | None
    """The name of the member; None: the damage left no member."""
    reason: str
    raw: bytes
    """The bytes of the member in the file."""


@dataclass(frozen=True, slots=True)
class SnapshotContent:
    """The content of a snapshot file. Two entries may name one session: the import chooses between them."""

    entries: tuple[SessionEntry, ...]
    rejected: tuple[RejectedEntry, ...]
    meta: SnapshotMeta | None
    intact: bool
    """Whether every byte is as this package wrote it; False for a file of Hermes, which has no checksum."""

    @property
    def damaged(self) -> bool:
        """Whether lanes may be missing, so that an earlier generation may hold more."""
        return any(one.key is None for one in self.rejected)


class SnapshotEncoder:
    """Encodes a snapshot piece by piece: header, pages of entries in the order of their keys, tail.

    After an error the encoder must be thrown away.
    """

    def __init__(
        self,
        dialect: Dialect = Dialect.NATIVE,
        zone: tzinfo = UTC,
        spelt: Mapping[str, str] | None = None,
    ) -> None:
        """Keep the names of members by session key in *spelt*, where a member's name differs from the key."""
        self._spelt = spelt or {}
        self._dialect = dialect
        self._zone = zone
        self._checksum = sha256()
        self._size = 0
        self._count = 0
        self._last_key = ""

    def encode_header(self) -> bytes:
        """Return the beginning of every snapshot."""
        return self._add_to_checksum(b"{\n")

    def encode_entries(self, entries: Iterable[SessionEntry]) -> bytes:
        """Return the next page of entries, or raise `InvalidInputError` if JSON cannot express one."""
        return self._add_to_checksum(b"".join([self._encode_entry(entry) for entry in entries]))

    def encode_tail(self, generation: int, written_at: datetime) -> bytes:
        """Return the end of the snapshot, once all entries are encoded."""
        meta = (
            f'"_meta":{{"format":{FORMAT},"generation":{generation},"entries":{self._count},'
            f'"written_at":"{as_utc(written_at).isoformat()}","bytes":{self._size},'
            f'"sha256":"{self._checksum.hexdigest()}"'
        ).encode()
        return meta + b',"crc32":"%08x"}}\n' % crc32(meta)

    def _encode_entry(self, entry: SessionEntry) -> bytes:
        key = entry.session_key
        # One comparison rules out duplicates as well, which a reader would silently merge.
        if key <= self._last_key:
            raise _unwritable_entry_error(key, "its key does not come after the one before it")
        check_stored_key(key)
        self._last_key = key
        self._count += 1
        # A lane without an origin keeps its key as the name, because the key came from the file like this.
        name = self._spelt.get(key, key) if entry.origin is not None else key
        stored = entry_to_dict(entry, self._dialect, self._zone)
        if name != key:
            stored["session_key"] = name
        try:
            return _encode_member({name: stored})[1:-1] + b",\n"
        except (TypeError, ValueError, RecursionError) as error:
            raise _unwritable_entry_error(key, error) from error

    def _add_to_checksum(self, piece: bytes) -> bytes:
        self._checksum.update(piece)
        self._size += len(piece)
        return piece


def read_tail(last_bytes: bytes, size: int) -> SnapshotMeta | None:
    """Return the statements in the last `MAX_TAIL` bytes of a file of that size; None: no whole file."""
    found = _META.search(last_bytes)
    if found is None or crc32(found[1]) != int(found[7], 16):
        return None
    covered = size - len(last_bytes) + found.start()
    if covered != int(found[5]):
        return None
    try:
        written_at = as_utc(datetime.fromisoformat(found[4].decode()))
    except (ValueError, OverflowError):
        return None
    return SnapshotMeta(int(found[2]), int(found[3]), written_at, covered, found[6].decode())


def verify_checksum(raw: bytes) -> SnapshotMeta:
    """Return the file's statements about itself if its bytes match, or raise `InvalidSnapshotError`."""
    meta = read_tail(raw[-MAX_TAIL:], len(raw))
    if meta is None:
        problem = "the file does not end as one that was written completely"
        raise InvalidSnapshotError(problem)
    if not _matches_checksum(raw, meta):
        problem = f"the file was changed or is damaged: generation {meta.generation} has another checksum"
        raise InvalidSnapshotError(problem)
    return meta


def parse_snapshot(raw: bytes, zone: tzinfo = UTC) -> SnapshotContent:
    """Return the content of a file of ours or of Hermes; times without a zone are read in *zone*."""
    meta = read_tail(raw[-MAX_TAIL:], len(raw))
    members = split_members(raw.removeprefix(_BYTE_ORDER_MARK))
    if members is None:
        problem = "the file is empty" if not raw.strip() else "the file does not begin as a JSON object"
        raise InvalidSnapshotError(problem)
    texts, rejected = _members_by_key(members)
    entries: list[SessionEntry] = []
    for key, text in texts.items():
        try:
            entries.append(entry_from_json(key, text, zone))
        except InvalidInputError as error:
            rejected.append(RejectedEntry(_printable_key(key), str(error), text))
    intact = meta is not None and _matches_checksum(raw, meta)
    content = SnapshotContent(tuple(entries), tuple(rejected), meta, intact)
    if content.damaged and not entries:
        problem = "the file is damaged, and no entry in it can be read"
        raise InvalidSnapshotError(problem)
    return content


def _matches_checksum(raw: bytes, meta: SnapshotMeta) -> bool:
    return sha256(memoryview(raw)[: meta.size]).hexdigest() == meta.sha256


def _members_by_key(members: Iterable[Member]) -> tuple[dict[str, bytes], list[RejectedEntry]]:
    """Return the members that could be entries, by key, and the rejected ones."""
    texts: dict[str, bytes] = {}
    rejected: list[RejectedEntry] = []
    for name, text in members:
        if name is None:
            rejected.append(RejectedEntry(None, "the file is damaged here, or ends before it should", text))
            continue
        try:
            key: str = decode_json_text(name)
        except InvalidInputError as error:
            rejected.append(RejectedEntry(None, f"the name of the member: {error}", name + b":" + text))
            continue
        if key in texts:
            # The later member counts, because every other reader of JSON has been using it.
            rejected.append(
                RejectedEntry(_printable_key(key), "a later member has the same name", texts[key])
            )
        if not key.startswith("_"):
            texts[key] = text
    return texts, rejected


def _encode_member(member: dict[str, Any]) -> bytes:
    try:
        return _JSON.encode(member)
    except UnicodeEncodeError:
        # Halves of surrogate pairs exist in JSON as escapes only, which msgspec does not write.
        return json.dumps(member, separators=(",", ":"), allow_nan=False).encode()


def _printable_key(key: str) -> str:
    return key.encode("utf-8", "backslashreplace").decode()


def _unwritable_entry_error(key: str, problem: object) -> InvalidInputError:
    return InvalidInputError(f"entry {_printable_key(key)!r} cannot be written to sessions.json: {problem}")
