"""`Blocker`: a connection that holds locks others wait for, described for an operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """A connection that holds locks in a transaction of the database."""

    connection: int
    """The server's number of the connection."""
    where: str | None
    """The program and its machine; None if this login may not know them."""
    seconds: float | None
    """The age of its transaction; None if this login may not know it."""
    idle: bool
    """True if the connection runs nothing at the moment, as that of a stopped process."""
    holds: tuple[str, ...] = ()


def describe_blockers(blockers: Iterable[Blocker]) -> str:
    """Return a sentence about the blockers; an empty text if there are none."""
    return "; ".join(map(_describe_blocker, blockers))


def _describe_blocker(one: Blocker) -> str:
    who = f"connection {one.connection}" + (f" ({one.where})" if one.where else "")
    lasts = "" if one.seconds is None else f" in a transaction that has lasted {one.seconds:.0f} s"
    idle = " and does nothing now" if one.idle else ""
    holds = f" holds {', '.join(one.holds)}" if one.holds else " holds locks"
    return f"{who}{holds}{lasts}{idle}"
