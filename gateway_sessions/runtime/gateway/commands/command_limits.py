"""Limits on slash commands that run at the same time, by owner and in all."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import Final

from gateway_sessions.runtime.gateway.commands.protocol import Command

LEAST_OF_ONE: Final = 8
"""Who lets next to nothing wait on a lane has said nothing of commands, which are done in a moment."""


class CommandPlaces:
    """Places for commands. Whoever gets one gives it back by closing it."""

    def __init__(self, most: int) -> None:
        """*most* is how many there are for all owners together."""
        self._most = most
        self._taken = 0
        self._of_owners: Counter[str] = Counter()
        self._urgent: set[tuple[str, str]] = set()

    def reserve_place(
        self, command: Command, session_key: str, owner: str, most_of_one: int
    ) -> ExitStack | None:
        """A place for a command; None if that owner, or all together, have too many under way.

        That is more than *most_of_one*, and in any case more than `LEAST_OF_ONE`. Each lane has one place
        more for each urgent command, as that may be what ends a flood.
        """
        place = ExitStack()
        if self._taken < self._most and self._of_owners[owner] < max(most_of_one, LEAST_OF_ONE):
            self._taken += 1
            self._of_owners[owner] += 1
            place.callback(self._free_place, owner)
            return place
        urgent = (session_key, command.name)
        if not command.urgent or urgent in self._urgent:
            return None
        self._urgent.add(urgent)
        place.callback(self._urgent.remove, urgent)
        return place

    def _free_place(self, owner: str) -> None:
        self._taken -= 1
        self._of_owners[owner] -= 1
        if not self._of_owners[owner]:
            del self._of_owners[owner]
