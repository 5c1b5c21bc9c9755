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
    """Damage or a fault that was found, and what was done about it."""

    action: str
    """A stable word, such as `snapshot_quarantined`."""
    detail: str
    """The incident in words."""
    path: str | None = None
    """The file that was set aside, if any."""


class Incidents:
    """The latest incidents of one store."""

    def __init__(self) -> None:
        self._kept: deque[Incident] = deque(maxlen=KEPT)

    def __iter__(self) -> Iterator[Incident]:
        return iter(tuple(self._kept))

    def report(self, action: str, detail: str, path: object = None) -> None:
        """Log an incident, and keep it in the list."""
        incident = Incident(action, detail, str(path) if path is not None else None)
        self._kept.append(incident)
        logger.warning("the store was not as it should be", extra={"action": action, "detail": detail})
