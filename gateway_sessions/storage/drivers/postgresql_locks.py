"""How transactions on a PostgreSQL server keep out of each other's way.

Everything is an advisory lock that ends with its transaction: it can be had for what has no row yet, it
leaves no trace in any table, it is the same for all rows that belong together, and the server frees it
whatever happens to us. Whoever changes the database has the lock of the store as well: shared by verbs that
name what they decide on, alone for all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

MIGRATING: Final = 0x67736573
"""Who holds this lock brings the database up to date; the others wait and find it done."""
_STORE: Final = f"{MIGRATING}, 1"
"""Two numbers: a kind of lock of their own, which no name can come to."""
TAKE: Final = "SELECT pg_advisory_xact_lock($1)"


def number_of(lock: str) -> int:
    """What the server calls a lock. Two that come to the same number merely wait for each other."""
    return int.from_bytes(blake2b(lock.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def take_all(wanted: Sequence[str]) -> str:
    """Take several locks, in one order everywhere, so that no two that take some wait for each other."""
    numbers = sorted({number_of(one) for one in wanted})
    return f"SELECT {','.join(f'pg_advisory_xact_lock({one})' for one in numbers)}"


def entrance(locks: Sequence[str], epoch: int | None) -> str:
    """What a changing transaction does before all else: get its locks, and make sure that it may still write.

    Without any, it runs alone. Once a node was declared dead, dividing by zero ends its transactions. Whoever
    declares it dead has the lock of the store alone: no earlier change is under way any more.
    """
    if locks:
        taken = f"SELECT pg_advisory_xact_lock_shared({_STORE});{take_all(locks)};"
    else:
        taken = f"SELECT pg_advisory_xact_lock({_STORE});"
    if epoch is None:
        return taken
    return f"{taken}SELECT 1 / count(*) FROM nodes WHERE epoch = {epoch};"  # noqa: S608 -- a number
