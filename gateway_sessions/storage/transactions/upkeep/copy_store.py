"""Copy a store into another database table by table: pages of rows, progress and checksums.

The key of each page's last row is stored in the transaction that stores the page, so a move that is cut off
goes on exactly behind its last page. At the end both databases must have the same checksum: the sum of the
hashes of a table's rows, because a sum does not depend on the order of rows, in which engines may differ.

The epoch is copied, because ids of entries count from it. So are the leases of a process that is gone: the
next owner recovers their turns as it would have in the old place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from gateway_sessions.core.search.documents import Searchable
from gateway_sessions.ports import Row, Rows, Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.message_rows import MessageColumns
from gateway_sessions.storage.transactions.search import stemming

Key: TypeAlias = tuple[int | str, ...]

LOWEST: Final = -(1 << 63)
"""A number below every key."""
BEGINNINGS: Final[Mapping[str, Key]] = MappingProxyType(
    {
        "lanes": ("",),
        "sessions": ("",),
        "entries": (LOWEST,),
        "clocks": (LOWEST,),
        "transitions": (LOWEST,),
        "hook_calls": ("",),
        "totals": ("",),
        "messages": (LOWEST,),
        "message_versions": (LOWEST, LOWEST),
        "usage_events": ("",),
        "index_changes": (LOWEST,),
        "tombstones": ("",),
        "inbox": (LOWEST,),
        "outbox": (LOWEST,),
        "schedules": ("",),
    }
)
"""Every table but those of facts and of nodes, with a key below its first one."""
OF_THE_DATABASE: Final = frozenset(
    {"schema_version", "readable_from", meta.MOVING, meta.MOVED_FROM, *stemming.OF_THE_INDEX}
)
"""Facts about a database and not about the store in it."""
NOTE: Final = f"{meta.MOVING}:"
DIGEST_BYTES: Final = 16
"""The size of a hash: two different tables never have the same sum by chance."""
NUMBER_BYTES: Final = 8
"""The size that is counted for a value other than a text."""
_HIDDEN_BY: Final = MessageColumns._fields.index("hidden_because") + 1
"""The place, from `role` on, of the one column of the copied rows that is none of a message's own."""


@dataclass(frozen=True, slots=True)
class TablePage:
    """Some rows of a table."""

    rows: Rows
    last: Key
    """The key of the last row."""
    size: int
    """The approximate size of the rows in bytes."""
    digest: int
    """The sum of the hashes of the rows."""


class Stage(StrEnum):
    """The progress of a database in taking in a store."""

    EMPTY = "empty"
    CUT_OFF = "cut_off"  # a part of it has come
    DONE = "done"  # all of it has come, and nobody has opened it since


@dataclass(frozen=True, slots=True)
class MoveState:
    """The facts of a database about moves."""

    identity: str
    """The identity of the store as it is now; each opening changes it."""
    moving: str | None
    """The identity of the store that is being moved here."""
    moved_from: str | None
    """The identity of the store that was moved here."""
    empty: bool

    def stage(self, identity: str) -> Stage | None:
        """Return the progress with that store; None if the database cannot take it in."""
        if self.moving is not None:
            return Stage.CUT_OFF if self.moving == identity else None
        if self.empty:
            return Stage.EMPTY
        return Stage.DONE if self.moved_from == identity == self.identity else None


NOTHING: Final = MoveState(identity="", moving=None, moved_from=None, empty=True)
"""The state of an empty database."""


def load_table_page(table: str, after: Key, limit: int) -> Transaction[TablePage]:
    """Return up to *limit* rows behind the key *after*."""
    rows = yield Statement(f"move_out_{table}", (*after, limit))
    last = tuple(rows[-1][: len(after)]) if rows else after
    return TablePage(rows, last, sum(map(_row_size, rows)), sum(map(_row_digest, rows)))


def store_table_page(table: str, one: TablePage) -> Transaction[None]:
    """Store a page, and the key of its last row."""
    said = partial(_searchable_texts, one.rows) if table == "messages" else None
    yield Statement(f"move_in_{table}", many=[tuple(row) for row in one.rows], said=said)
    yield from meta.set_fact(f"{NOTE}{table}", msgspec.json.encode(one.last).decode())


def _searchable_texts(rows: Rows) -> list[Searchable]:
    return [
        MessageColumns(*columns[:_HIDDEN_BY], *columns[_HIDDEN_BY + 1 :]).as_searchable(session_id)
        for _, session_id, _, *columns in rows
    ]


def last_copied_key(table: str) -> Transaction[Key]:
    """Return the key of the last row that was taken in."""
    noted = yield from meta.get_fact(f"{NOTE}{table}")
    if noted is None:
        return BEGINNINGS[table]
    return tuple(decode_json(f"fact {NOTE + table!r}", noted, list[int | str]))


def count_rows() -> Transaction[dict[str, int]]:
    """Return the number of rows of each table."""
    rows = yield Statement("rows_of_tables")
    return {str(name): int(count) for name, count in rows}


def load_facts() -> Transaction[dict[str, str]]:
    """Return all facts about the store itself."""
    rows = yield Statement("all_facts")
    return {
        name: meta.fact_as_text(value)
        for name, value in rows
        if name not in OF_THE_DATABASE and not name.startswith(NOTE)
    }


def store_facts(given: Mapping[str, str]) -> Transaction[None]:
    """Store facts about the store."""
    for name, value in given.items():
        yield from meta.set_fact(name, value)


def store_identity() -> Transaction[str]:
    """Return the identity of the store as it is now."""
    return _identity_from_facts((yield from load_facts()))


def load_move_state() -> Transaction[MoveState]:
    """Return the facts of this database about moves."""
    told = yield from load_facts()
    rows = yield from count_rows()
    return MoveState(
        identity=_identity_from_facts(told),
        moving=(yield from meta.get_fact(meta.MOVING)),
        moved_from=(yield from meta.get_fact(meta.MOVED_FROM)),
        empty=not told and not any(rows.values()),
    )


def mark_as_half_moved(identity: str) -> Transaction[None]:
    """Mark the database so that no process can open it until the whole store has come."""
    yield from meta.set_fact(meta.MOVING, identity)


def finish_move(identity: str) -> Transaction[None]:
    """Remove the marks of the move: the store is complete and can be opened."""
    for table in BEGINNINGS:
        yield Statement("forget_meta", (f"{NOTE}{table}",))
    yield Statement("forget_meta", (meta.MOVING,))
    yield from meta.set_fact(meta.MOVED_FROM, identity)


def _identity_from_facts(told: Mapping[str, str]) -> str:
    known = f"{told.get('install_secret')}:{told.get('epoch')}".encode()
    return blake2b(known, digest_size=DIGEST_BYTES).hexdigest()


def _row_size(row: Row) -> int:
    return sum(len(value) if isinstance(value, str) else NUMBER_BYTES for value in row)


def _row_digest(row: Row) -> int:
    packed = msgspec.msgpack.encode(tuple(row))
    return int.from_bytes(blake2b(packed, digest_size=DIGEST_BYTES).digest(), "big")
