"""How transactions on a MySQL server keep out of each other's way.

A lock that has a name belongs to a connection there, not to a transaction: it would have to be given back,
and after a lost answer nobody could tell whether it was. So locks are the rows of a table of their own. Who
has locked one has it until the end of the transaction, however that comes; it costs no write, and what is not
there yet has a lock as well. Names come to the rows by chance: two that meet in one merely wait for each
other.

The first row is the store as a whole: shared by verbs that name what they decide on, alone for all others.
Each kind of lock has rows of its own. So, as all verbs take the kinds in the same order, lanes and sessions
that meet do not wait for each other in a circle; where others do, the server ends one, which is run afresh.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

STORE: Final = 0
KINDS: Final = ("lane", "session", "reply", "index")
"""The first words of names that have rows of their own."""
GUESTS: Final = {"mail": "index"}
"""Others, and whose rows they share: who has one of these has no other lock, so nobody waits in a circle."""
OF_EACH_KIND: Final = 1024
"""How many rows it has; the schema makes them."""
TAKE: Final = "SELECT lock_id FROM locks WHERE lock_id = ? FOR UPDATE"
ALONE: Final = "FOR UPDATE"
SHARED: Final = "LOCK IN SHARE MODE"
"""What both kinds of servers understand."""


def number_of(lock: str) -> int:
    """The row that stands for a lock."""
    word = lock.partition(" ")[0]
    kind = KINDS.index(GUESTS.get(word, word))
    digest = blake2b(lock.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return 1 + kind * OF_EACH_KIND + int.from_bytes(digest) % OF_EACH_KIND


def entrance(first_lock: str | None) -> tuple[str, ...]:
    """What a changing transaction does before all else: get its first locks."""
    if first_lock is None:
        return (f"{_row(STORE)} {ALONE}",)
    return (f"{_row(STORE)} {SHARED}", f"{_row(number_of(first_lock))} {ALONE}")


def living(epoch: int) -> str:
    """What it asks behind them: nothing is found once its node was declared dead.

    Whoever declares it dead has the first row alone: no earlier change is under way any more.
    """
    return f"SELECT epoch FROM nodes WHERE epoch = {epoch}"  # noqa: S608 -- a number


def _row(number: int) -> str:
    return f"SELECT lock_id FROM locks WHERE lock_id = {number}"  # noqa: S608 -- a number
