"""Facts about the store as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway_sessions.ports import Statement, Verb


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


def open_store(secret: bytes) -> Verb[Opening]:
    """Begin a new epoch. *secret* becomes the store's own if it has none yet."""
    epoch = int((yield from get("epoch")) or 0) + 1
    yield from remember("epoch", epoch)
    kept = yield from get("install_secret")
    if kept is None:
        kept = secret
        yield from remember("install_secret", secret)
    rows = yield Statement("last_change_id")
    return Opening(epoch=epoch, last_change_id=int(rows[0][0] or 0), install_secret=bytes(kept))


def generation() -> Verb[int]:
    """How often the truth behind sessions.json has changed."""
    rows = yield Statement("get_generation")
    return int(rows[0][0]) if rows else 0
