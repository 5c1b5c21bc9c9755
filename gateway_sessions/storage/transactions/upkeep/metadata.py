"""Facts that the embedding program keeps by name, apart from the store's own facts."""

from __future__ import annotations

from typing import Final

from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta, statements

PREFIX: Final = "program:"


def get_metadata(key: str) -> Transaction[str | None]:
    """Return the text kept under that name; None if there is none."""
    stored = yield from meta.get_fact(f"{PREFIX}{key}")
    return None if stored is None else str(stored)


def set_metadata(key: str, value: str | None) -> Transaction[None]:
    """Keep a text under that name, or forget it."""
    name = f"{PREFIX}{key}"
    if value is None:
        yield Statement("forget_meta", (name,), lock=statements.session_lock(name))
    else:
        yield Statement("set_meta", (name, value), lock=statements.session_lock(name))
