"""How facts about the store are read, and what becomes of one that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec

from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import meta
from gateway_sessions.storage.verbs.erasure import Plan
from gateway_sessions.storage.verbs.stored import DAMAGE
from gateway_sessions.storage.verbs.tombstones import ERASING

MOST_OPENINGS: Final = 1 << 31
"""Entries are counted from behind each of them, with 32 bits, and a number of the database has 63."""
UNKNOWN_SECRET: Final = "no copy of the store tells it"  # noqa: S105 -- what is said of it
UNKNOWN_PLAN: Final = "nobody knows what was still to be erased: ask for that erasure again"


def damaged_facts(guessed: Collection[str] = ()) -> Verb[dict[str, Any]]:
    """The facts that no opening of the store would understand, as they are stored.

    So is a plan that is among the *guessed*, whose text was none: whom it names now, it may never have named.
    """
    rows = yield Statement("all_facts")
    return {
        name: value
        for name, value in rows
        if not _is_understood(name, value) or (name in guessed and name.startswith(ERASING))
    }


def mend_fact(name: str, secret: bytes | None) -> Verb[str | None]:
    """Let the store be opened again; what is lost by it, in words, or None.

    *secret* is the store's own, as far as a copy of it tells. What is forgotten is found out anew: a
    generation counts on above that of any file, and an index that misses something is made again. Only the
    plan of an erasure stands nowhere else.
    """
    if name == meta.EPOCH:
        rows = yield Statement("highest_epoch")
        yield from meta.remember(name, rows[0][0] or 0)
    elif name != meta.OWN_SECRET:
        yield Statement("forget_meta", (name,))
    elif secret is None:
        return UNKNOWN_SECRET
    else:
        yield from meta.remember(name, secret)
    return UNKNOWN_PLAN if name.startswith(ERASING) else None


def _is_understood(name: str, value: Any) -> bool:
    try:
        if name.startswith(ERASING):  # one that is noted under another name would never be done with
            return f"{ERASING}{_READ_PLAN(value).tombstone}" == name
        read = _READERS.get(name)
        return read is None or read(value) is not None
    except DAMAGE:
        return False


def _epoch(stored: Any) -> int:
    epoch = int(stored)
    if not 0 <= epoch < MOST_OPENINGS:
        raise ValueError(epoch)
    return epoch


_READ_PLAN: Final = msgspec.json.Decoder(Plan).decode
_READERS: Final[Mapping[str, Callable[[Any], object]]] = {
    meta.EPOCH: _epoch,
    meta.OWN_SECRET: meta.to_bytes,
    meta.GENERATION: int,
    meta.SETTLED_EPOCH: int,
    meta.CLEARED: int,
    meta.LIVED_AT: int,
}
