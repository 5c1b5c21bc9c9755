"""Facts about the store by name: its epoch, generation, secret, stemming and pending moves.

Every fact is stored as text, for not every database has a column that holds anything. Files that were made
earlier hold numbers and bytes as they are: whoever reads a fact takes either.

The generation counts the changes that sessions.json shows. It is counted in memory, so that a change costs
nothing more, and written down in two moments: before a file of that generation takes its place, and when no
change will follow. So the stored one is never behind a file that belongs to this database, and after an
orderly end it is exact. After any other end counting goes on above it, and the file is written afresh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gateway_sessions.core.search.stems import NO_STEMS
from gateway_sessions.errors import MigrationError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.columns import DAMAGE, tell_damage

T = TypeVar("T")

EPOCH: Final = "epoch"
"""How often the store was opened."""
OWN_SECRET: Final = "install_secret"  # noqa: S105 -- its name
"""What makes the pseudonyms of this store its own."""
GENERATION: Final = "generation"
SETTLED_EPOCH: Final = "settled_epoch"
"""The last opening that ended with its generation written down."""
MOVING: Final = "moving"
"""The store that is being moved here, and not all of which has come yet."""
MOVED_FROM: Final = "moved_from"
"""The store that was moved here."""
CLEARED: Final = "index_changes_cleared"
"""Notes for the search index up to this one are gone: an index that has not taken them in is of no use."""
LIVED_AT: Final = "lived_at"
"""When turns were last known to run: one that works for long writes nothing itself."""
STEMMING: Final = "search_stemming"
"""By which rules words are found in all their forms; absent: as they were written only."""
HALF_A_STORE: Final = "the store that is being moved here"
NOT_ALL_THERE: Final = "not all of it has come yet; run the migration again, it goes on where it was cut off"


def get(name: str) -> Transaction[Any]:
    """One fact as it is stored, or None."""
    rows = yield Statement("get_meta", (name,))
    return rows[0][0] if rows else None


def number(name: str) -> Transaction[int]:
    """One fact that is a number; 0 if it was never told."""
    return _understood(name, int, (yield from get(name)) or 0)


def install_secret() -> Transaction[bytes]:
    """What makes the pseudonyms of this store its own; empty before it was opened for the first time."""
    return _understood(OWN_SECRET, to_bytes, (yield from get(OWN_SECRET)) or b"")


def remember(name: str, value: str | int | bytes) -> Transaction[None]:
    """Set one fact."""
    yield Statement("set_meta", (name, to_text(value)))


def to_text(value: str | int | bytes) -> str:
    """A fact as it is stored today."""
    return value.hex() if isinstance(value, bytes) else str(value)


def to_bytes(stored: str | bytes) -> bytes:
    """A fact that is bytes, in either form."""
    # Not `bytes(stored)` of anything: of a number it is so many zeros.
    return bytes.fromhex(stored) if isinstance(stored, str) else bytes(memoryview(stored))


def _understood(name: str, read: Callable[[Any], T], stored: object) -> T:
    try:
        return read(stored)
    except DAMAGE as error:
        tell_damage(f"fact {name!r}", error)


@dataclass(frozen=True, slots=True)
class StoreOpening:
    """What an owner learns when it takes over the store."""

    epoch: int
    """Leases of earlier epochs belong to processes that are gone."""
    last_change_id: int
    install_secret: bytes
    generation: int
    """At least that of any file this database was written to."""
    settled: bool
    """Whether nothing has changed since that generation."""
    stemming: str = NO_STEMS.made_by
    """The rules by which words are found in all their forms."""


def open_store(secret: bytes) -> Transaction[StoreOpening]:
    """Begin a new epoch. *secret* becomes the store's own if it has none yet."""
    yield from refuse_unfinished_move()
    before = yield from number(EPOCH)
    yield from remember(EPOCH, before + 1)
    kept = yield from install_secret()
    if not kept:
        kept = secret
        yield from remember(OWN_SECRET, secret)
    rows = yield Statement("last_change_id")
    return StoreOpening(
        epoch=before + 1,
        last_change_id=int(rows[0][0] or 0),
        install_secret=kept,
        generation=(yield from generation()),
        settled=(yield from _settled()) == before,
        stemming=(yield from stemming()),
    )


def refuse_unfinished_move() -> Transaction[None]:
    """What has come only in part must not be taken for a store."""
    if (yield from get(MOVING)) is not None:
        raise MigrationError(HALF_A_STORE, NOT_ALL_THERE)


def stemming() -> Transaction[str]:
    """The rules by which words are found in all their forms."""
    return str((yield from get(STEMMING)) or NO_STEMS.made_by)


def generation() -> Transaction[int]:
    """The generation that was written down last."""
    return (yield from number(GENERATION))


def _settled() -> Transaction[int | None]:
    stored = yield from get(SETTLED_EPOCH)
    return None if stored is None else _understood(SETTLED_EPOCH, int, stored)


def settle(current: int, epoch: int) -> Transaction[None]:
    """Nothing will change any more in this epoch: its last generation is known exactly."""
    yield from remember(GENERATION, current)
    yield from remember(SETTLED_EPOCH, epoch)
