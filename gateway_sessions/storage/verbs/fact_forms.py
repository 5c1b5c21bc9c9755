"""How facts about the store are read, and what becomes of one that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.verbs import meta
from gateway_sessions.storage.verbs.erasure import Plan
from gateway_sessions.storage.verbs.stored import DAMAGE
from gateway_sessions.storage.verbs.tombstones import ERASING

MOST_OPENINGS: Final = 1 << 31
"""Entries are counted from behind each of them, with 32 bits, and a number of the database has 63."""


def damaged_facts() -> Verb[dict[str, Any]]:
    """The facts that no opening of the store would understand, as they are stored."""
    rows = yield Statement("all_facts")
    return {name: value for name, value in rows if not _is_understood(name, value)}


def mend_fact(name: str, secret: bytes | None) -> Verb[bool]:
    """Let the store be opened again; False if nobody can say what that fact was.

    *secret* is the store's own, as far as a copy of it tells. What is forgotten is found out anew: a
    generation counts on above that of any file, and an index that misses something is made again.
    """
    if name == meta.EPOCH:
        rows = yield Statement("highest_epoch")
        yield from meta.remember(name, rows[0][0] or 0)
    elif name != meta.OWN_SECRET:
        yield Statement("forget_meta", (name,))
    elif secret is None:
        return False
    else:
        yield from meta.remember(name, secret)
    return True


def _is_understood(name: str, value: Any) -> bool:
    read = _READ_PLAN if name.startswith(ERASING) else _READERS.get(name)
    try:
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
}
