"""How much of a database server one process takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway_sessions.core.cluster import POOL_SIZE


@dataclass(frozen=True, slots=True)
class Limits:
    """How long anything may take before the server breaks it off, and how much is asked of it at once."""

    statement_seconds: float = 5.0
    lock_seconds: float = 2.0
    idle_seconds: float = 5.0
    """A transaction that does nothing holds its locks, and old rows that nobody can clear away."""
    view_idle_seconds: float = 60.0
    """Whoever reads page by page does something with each page."""
    answer_seconds: float = 10.0
    """A server that says nothing for longer is taken to be gone: a network may lose whatever it would say."""
    acquire_seconds: float = 5.0
    connections: int = POOL_SIZE
    attempts: int = 6
    """How often a verb is run that others overtake."""


USUAL: Final = Limits()
PATIENT: Final = Limits(statement_seconds=3600.0, view_idle_seconds=3600.0, answer_seconds=3660.0)
"""For whoever compares all that there is with all that there is, and waits for it."""
