"""`Scope`: the owners and the lane whose sessions a read may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gateway_sessions.core.identity.keys import NO_ALIASES, Isolation, person_owner, room_owner
from gateway_sessions.core.identity.source import SessionSource


@dataclass(frozen=True, slots=True)
class Scope:
    """The owners and the lane whose sessions are visible; make one with `of`, `lane` or `operator`."""

    owners: frozenset[str] = frozenset()
    session_key: str | None = None
    sees_everything: bool = False
    """Whether every session is visible, as to an operator."""

    @classmethod
    def of(
        cls, source: SessionSource, flags: Isolation | None = None, aliases: Mapping[str, str] = NO_ALIASES
    ) -> Scope:
        """Return the scope of a person: their own sessions on that account, and those of the room.

        If a person has several ids, *aliases* must name the canonical one; a store's `scope_of` knows it.
        """
        flags = flags or Isolation()
        owners = (person_owner(source, flags, aliases), room_owner(source, flags))
        return cls(owners=frozenset(filter(None, owners)))

    @classmethod
    def lane(cls, session_key: str) -> Scope:
        """Return the scope of one lane."""
        return cls(session_key=session_key)

    @classmethod
    def operator(cls) -> Scope:
        """Return the scope of everything: for the command line and the embedding program, not for chats."""
        return cls(sees_everything=True)

    def shown_in(self, *, owner: str, session_key: str, direct: bool) -> Scope:
        """Return what of a person's sessions may be shown on a lane, with all who read there.

        In a direct chat these are the sessions of the lane's owner, elsewhere only those of the lane.
        """
        return Scope(owners=self.owners & {owner}) if direct else Scope.lane(session_key)

    def sees(self, *, owner: str, session_key: str | None) -> bool:
        """Return whether a session of that owner and lane is visible."""
        return (
            self.sees_everything
            or owner in self.owners
            or (self.session_key is not None and session_key == self.session_key)
        )

    def sees_message(self, *, author: str | None, from_lane: str | None) -> bool:
        """Return whether a message is visible in a hidden session, by its author or the lane it is from."""
        return author in self.owners or (self.session_key is not None and from_lane == self.session_key)
