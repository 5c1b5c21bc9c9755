"""Tombstones of erased people: they refuse messages that were sent before the erasure.

Every transaction that writes messages asks here, so that no erasure can come between the question and the
write: `append`, through which all new messages of a session go, and the imports of files and of lanes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.erasure import tombstone_of
from gateway_sessions.errors import SentBeforeErasureError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import meta

ERASING: Final = "erasing:"
"""The prefix, in `meta`, of a fact about an unfinished erasure; the tombstone follows it."""
ANY_TIME: Final = (1 << 63) - 1
"""An instant later than any erasure."""


def erased_at(owner: str) -> Transaction[datetime | None]:
    """Return the time at which that owner was erased; messages sent until then must not come in."""
    secret = yield from meta.install_secret()
    rows = yield Statement("get_tombstone", (tombstone_of(secret, owner),))
    return next((from_micros(instant) for (instant,) in rows), None)


def erased_since(owner: str, instant: int) -> Transaction[datetime | None]:
    """Return the time at which that owner was erased, if that was at the instant or later."""
    if not (yield Statement("any_tombstone_since", (instant,))):
        return None
    erased = yield from erased_at(owner)
    return erased if erased is not None and instant <= to_micros(erased) else None


def refuse_if_erased(session_id: str, owner: str, instant: int) -> Transaction[None]:
    """Raise `SentBeforeErasureError` if the owner was erased at that instant or later."""
    if (erased := (yield from erased_since(owner, instant))) is not None:
        raise SentBeforeErasureError(session_id, erased)


def refuse_if_being_erased(session_id: str, owner: str, began_at: int) -> Transaction[None]:
    """Raise `SentBeforeErasureError` if the session is being erased: no session may continue or copy it."""
    if not (yield Statement("any_tombstone_since", (began_at,))):
        return
    secret = yield from meta.install_secret()
    if (yield from meta.get_fact(f"{ERASING}{tombstone_of(secret, owner)}")) is not None:
        yield from refuse_if_erased(session_id, owner, began_at)
