"""Facts about the store by name: its epoch, generation, secret, stemming and pending moves.

Every fact is stored as text, for not every database has a column that holds any type. Databases of earlier
versions hold numbers and bytes as such: the functions that read facts accept both forms.

The generation counts the changes that sessions.json shows. It is counted in memory, so that a change costs
nothing more, and stored at two moments: before a file of that generation takes its place, and when no change
will follow. So the stored generation is never behind a file that belongs to this database, and after an
orderly end it is exact. After any other end, counting goes on above the stored generation, and the file is
written afresh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gateway_sessions.core.search.stems import NO_STEMS
from gateway_sessions.errors import MigrationError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.column_decoding import DAMAGE, raise_damaged

T = TypeVar("T")

EPOCH: Final = "epoch"
"""The number of times that the store was opened."""
OWN_SECRET: Final = "install_secret"  # noqa: S105 -- its name
"""The secret that makes the pseudonyms of this store differ from those of other stores."""
GENERATION: Final = "generation"
SETTLED_EPOCH: Final = "settled_epoch"
"""The last opening that ended with its generation written down."""
MOVING: Final = "moving"
"""The store that is being moved here, as long as some of its rows have not come yet."""
MOVED_FROM: Final = "moved_from"
"""The store that was moved here."""
CLEARED: Final = "index_changes_cleared"
"""The last note for the search index that was removed: an index that has not read it must be made again."""
LIVED_AT: Final = "lived_at"
"""The last time at which turns are known to have run: a long turn writes no row itself."""
STEMMING: Final = "search_stemming"
"""The rules by which words are found in all their forms; absent: only as they were written."""
HALF_A_STORE: Final = "the store that is being moved here"
NOT_ALL_THERE: Final = "not all of it has come yet; run the migration again, it goes on where it was cut off"


def get_fact(name: str) -> Transaction[Any]:
    """Return one fact as it is stored, or None."""
    return next((value for (value,) in (yield Statement("get_meta", (name,)))), None)


def get_number(name: str) -> Transaction[int]:
    """Return one fact that is a number; 0 if it was never stored."""
    return _decode_fact(name, int, (yield from get_fact(name)) or 0)


def install_secret() -> Transaction[bytes]:
    """Return the secret behind the pseudonyms of this store; empty before the store was first opened."""
    return _decode_fact(OWN_SECRET, fact_as_bytes, (yield from get_fact(OWN_SECRET)) or b"")


def set_fact(name: str, value: str | int | bytes) -> Transaction[None]:
    """Store one fact."""
    yield Statement("set_meta", (name, fact_as_text(value)))


def fact_as_text(value: str | int | bytes) -> str:
    """Return the text that stores a fact."""
    return value.hex() if isinstance(value, bytes) else str(value)


def fact_as_bytes(stored: str | bytes) -> bytes:
    """Return a fact that is bytes from either form."""
    # `memoryview` refuses a number, of which `bytes(stored)` would silently make that many zeros.
    return bytes.fromhex(stored) if isinstance(stored, str) else bytes(memoryview(stored))


def _decode_fact(name: str, read: Callable[[Any], T], stored: object) -> T:
    try:
        return read(stored)
    except DAMAGE as error:
        raise_damaged(f"fact {name!r}", error)


@dataclass(frozen=True, slots=True)
class StoreOpening:
    """The facts that an owner learns when it takes over the store."""

    epoch: int
    """The number of this opening; leases of earlier epochs belong to processes that are gone."""
    last_change_id: int
    install_secret: bytes
    generation: int
    """A generation at least as high as that of any sessions.json that was written from this database."""
    settled: bool
    """True if nothing has changed since that generation."""
    stemming: str = NO_STEMS.made_by
    """The rules by which words are found in all their forms."""


def open_store(secret: bytes) -> Transaction[StoreOpening]:
    """Begin a new epoch. *secret* becomes the store's own if the store has none yet."""
    yield from refuse_unfinished_move()
    before = yield from get_number(EPOCH)
    yield from set_fact(EPOCH, before + 1)
    kept = yield from install_secret()
    if not kept:
        kept = secret
        yield from set_fact(OWN_SECRET, secret)
    ((last_change_id,),) = yield Statement("last_change_id")
    return StoreOpening(
        epoch=before + 1,
        last_change_id=int(last_change_id or 0),
        install_secret=kept,
        generation=(yield from stored_generation()),
        settled=(yield from _settled_epoch()) == before,
        stemming=(yield from stored_stemming()),
    )


def refuse_unfinished_move() -> Transaction[None]:
    """Raise `MigrationError` if the store was moved here only in part."""
    if (yield from get_fact(MOVING)) is not None:
        raise MigrationError(HALF_A_STORE, NOT_ALL_THERE)


def stored_stemming() -> Transaction[str]:
    """Return the rules by which words are found in all their forms."""
    return str((yield from get_fact(STEMMING)) or NO_STEMS.made_by)


def stored_generation() -> Transaction[int]:
    """Return the generation that was stored last."""
    return (yield from get_number(GENERATION))


def _settled_epoch() -> Transaction[int | None]:
    stored = yield from get_fact(SETTLED_EPOCH)
    return None if stored is None else _decode_fact(SETTLED_EPOCH, int, stored)


def store_final_generation(current: int, epoch: int) -> Transaction[None]:
    """Store the last generation of this epoch: no change will follow, so the generation is exact."""
    yield from set_fact(GENERATION, current)
    yield from set_fact(SETTLED_EPOCH, epoch)
