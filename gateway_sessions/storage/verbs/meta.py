"""Facts about the store as a whole.

The generation counts the changes that sessions.json shows. It is counted in memory, so that a change costs
nothing more, and written down in two moments: before a file of that generation takes its place, and when no
change will follow. So the stored one is never behind a file that belongs to this database, and after an
orderly end it is exact. After any other end counting goes on above it, and the file is written afresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.ports import Statement, Verb

GENERATION: Final = "generation"
SETTLED_EPOCH: Final = "settled_epoch"
"""The last opening that ended with its generation written down."""


def get(name: str) -> Verb[Any]:
    """One fact, or None."""
    rows = yield Statement("get_meta", (name,))
    return rows[0][0] if rows else None


def remember(name: str, value: object) -> Verb[None]:
    """Set one fact."""
    yield Statement("set_meta", (name, value))


@dataclass(frozen=True, slots=True)
class Opening:
    """What an owner learns when it takes over the store."""

    epoch: int
    """Leases of earlier epochs belong to processes that are gone."""
    last_change_id: int
    install_secret: bytes
    generation: int
    """At least that of any file this database was written to."""
    settled: bool
    """Whether nothing has changed since that generation."""


def open_store(secret: bytes) -> Verb[Opening]:
    """Begin a new epoch. *secret* becomes the store's own if it has none yet."""
    before = yield from _count("epoch")
    yield from remember("epoch", before + 1)
    kept = yield from get("install_secret")
    if kept is None:
        kept = secret
        yield from remember("install_secret", secret)
    rows = yield Statement("last_change_id")
    return Opening(
        epoch=before + 1,
        last_change_id=int(rows[0][0] or 0),
        install_secret=bytes(kept),
        generation=(yield from generation()),
        settled=(yield from get(SETTLED_EPOCH)) == before,
    )


def generation() -> Verb[int]:
    """The generation that was written down last."""
    return (yield from _count(GENERATION))


def _count(name: str) -> Verb[int]:
    """A fact that is a number; 0 if nobody has set it."""
    value = yield from get(name)
    if value is not None and not isinstance(value, int):
        fact = f"fact {name!r}"
        problem = f"is {value!r}, which is no number; repair the store"
        raise StorageCorruptError(fact, problem)
    return value or 0


def settle(current: int, epoch: int) -> Verb[None]:
    """Nothing will change any more in this epoch: its last generation is known exactly."""
    yield from remember(GENERATION, current)
    yield from remember(SETTLED_EPOCH, epoch)
