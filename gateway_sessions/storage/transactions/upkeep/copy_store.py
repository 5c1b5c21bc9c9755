"""Copy a store into another database table by table: pages of rows, progress and checksums.

Whatever was taken in is noted in the same transaction, so a move that is cut off goes on exactly behind its
last page. What is here at last has to add up to what is there: the hashes of all rows of a table are summed
up, for a sum does not depend on an order, in which engines may differ.

The epoch moves as well: ids of entries are counted from it on. So do the leases that a process left behind
which is gone: the next owner finds them as it would have in the old place, and its recovery is the same.
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
from gateway_sessions.storage.tables.columns import from_json
from gateway_sessions.storage.tables.messages import searchable
from gateway_sessions.storage.transactions.search import stemming

Key: TypeAlias = tuple[int | str, ...]

LOWEST: Final = -(1 << 63)
"""Below every number that is a key."""
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
    }
)
"""Every table but those of the facts and of the processes that live, and what stands before its first key."""
OF_THE_DATABASE: Final = frozenset(
    {"schema_version", "readable_from", meta.MOVING, meta.MOVED_FROM, *stemming.OF_THE_INDEX}
)
"""Facts about a database, not about the store in it."""
NOTE: Final = f"{meta.MOVING}:"
DIGEST_BYTES: Final = 16
NUMBER_BYTES: Final = 8
_ROLE: Final = 3
"""The place of the role in the row of a message."""
_HIDDEN_BY: Final = 22
"""The place of what no search asks for, between columns that it does."""


@dataclass(frozen=True, slots=True)
class TablePage:
    """Some rows of a table."""

    rows: Rows
    last: Key
    """The key of the last of them."""
    size: int
    """Bytes in it, roughly."""
    digest: int
    """What the hashes of its rows add up to."""


class Stage(StrEnum):
    """How far a database is with taking in a store."""

    EMPTY = "empty"
    CUT_OFF = "cut_off"  # a part of it has come
    DONE = "done"  # all of it has come, and nobody has opened it since


@dataclass(frozen=True, slots=True)
class MoveState:
    """What a database says of moves."""

    identity: str
    """Of the store in it, as it is now: another one as soon as somebody opens it."""
    moving: str | None
    """Of the store that is being moved here."""
    moved_from: str | None
    """Of the store that was moved here."""
    empty: bool

    def stage(self, identity: str) -> Stage | None:
        """How far it is with that store; None if it cannot take it in."""
        if self.moving is not None:
            return Stage.CUT_OFF if self.moving == identity else None
        if self.empty:
            return Stage.EMPTY
        return Stage.DONE if self.moved_from == identity == self.identity else None


NOTHING: Final = MoveState(identity="", moving=None, moved_from=None, empty=True)
"""What an empty database says."""


def page(table: str, after: Key, limit: int) -> Transaction[TablePage]:
    """The rows behind the key *after*, up to *limit* of them."""
    rows = yield Statement(f"move_out_{table}", (*after, limit))
    last = tuple(rows[-1][: len(after)]) if rows else after
    return TablePage(rows, last, sum(map(_size, rows)), sum(map(_digest, rows)))


def take_in(table: str, one: TablePage) -> Transaction[None]:
    """Store a page, and that it is stored."""
    said = partial(_said, one.rows) if table == "messages" else None
    yield Statement(f"move_in_{table}", many=[tuple(row) for row in one.rows], said=said)
    yield from meta.remember(f"{NOTE}{table}", msgspec.json.encode(one.last).decode())


def _said(rows: Rows) -> list[Searchable]:
    return [searchable(row[1], (*row[_ROLE:_HIDDEN_BY], *row[_HIDDEN_BY + 1 :])) for row in rows]


def reached(table: str) -> Transaction[Key]:
    """The last key that was taken in."""
    noted = yield from meta.get(f"{NOTE}{table}")
    if noted is None:
        return BEGINNINGS[table]
    return tuple(from_json(f"fact {NOTE + table!r}", noted, list[int | str]))


def counts() -> Transaction[dict[str, int]]:
    """How many rows each table has."""
    rows = yield Statement("rows_of_tables")
    return {str(name): int(count) for name, count in rows}


def facts() -> Transaction[dict[str, str]]:
    """All that is told of the store itself."""
    rows = yield Statement("all_facts")
    return {
        name: meta.to_text(value)
        for name, value in rows
        if name not in OF_THE_DATABASE and not name.startswith(NOTE)
    }


def take_in_facts(given: Mapping[str, str]) -> Transaction[None]:
    """Let them be told of the store here."""
    for name, value in given.items():
        yield from meta.remember(name, value)


def identity() -> Transaction[str]:
    """Of the store that is here, as it is now."""
    return _identity((yield from facts()))


def look() -> Transaction[MoveState]:
    """What is here, as far as moves are concerned."""
    told = yield from facts()
    rows = yield from counts()
    return MoveState(
        identity=_identity(told),
        moving=(yield from meta.get(meta.MOVING)),
        moved_from=(yield from meta.get(meta.MOVED_FROM)),
        empty=not told and not any(rows.values()),
    )


def begin(identity: str) -> Transaction[None]:
    """From now on nobody can open what is here, until all of it has come."""
    yield from meta.remember(meta.MOVING, identity)


def finish(identity: str) -> Transaction[None]:
    """All has come: what is here is a store like any other."""
    for table in BEGINNINGS:
        yield Statement("forget_meta", (f"{NOTE}{table}",))
    yield Statement("forget_meta", (meta.MOVING,))
    yield from meta.remember(meta.MOVED_FROM, identity)


def _identity(told: Mapping[str, str]) -> str:
    known = f"{told.get('install_secret')}:{told.get('epoch')}".encode()
    return blake2b(known, digest_size=DIGEST_BYTES).hexdigest()


def _size(row: Row) -> int:
    return sum(len(value) if isinstance(value, str) else NUMBER_BYTES for value in row)


def _digest(row: Row) -> int:
    packed = msgspec.msgpack.encode(tuple(row))
    return int.from_bytes(blake2b(packed, digest_size=DIGEST_BYTES).digest(), "big")
