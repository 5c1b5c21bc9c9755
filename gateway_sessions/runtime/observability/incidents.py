"""The latest incidents of a store: damage and faults that were found and dealt with."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

logger: Final = logging.getLogger(__name__)

KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Incident:
    """One thing that was not as it should be, and what became of it."""

    action: str
    """A stable word, such as `snapshot_quarantined`."""
    detail: str
    path: str | None = None
    """Where what was set aside can be found."""


class Incidents:
    """The latest incidents of one store."""

    def __init__(self) -> None:
        self._kept: deque[Incident] = deque(maxlen=KEPT)

    def __iter__(self) -> Iterator[Incident]:
        return iter(tuple(self._kept))

    def report(self, action: str, detail: str, path: object = None) -> None:
        """Log an incident and keep it."""
        incident = Incident(action, detail, str(path) if path is not None else None)
        self._kept.append(incident)
        logger.warning("the store was not as it should be", extra={"action": action, "detail": detail})
