"""Which messages a search may show, besides what they must contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.messages import Hidden
from gateway_sessions.core.scope import Scope
from gateway_sessions.errors import InvalidInputError

EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
"""No message was sent before, and none at the latest instant or after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Who asks, and what they narrow the search to. None: not narrowed."""

    scope: Scope
    sources: frozenset[str] | None = None
    exclude_sources: frozenset[str] = frozenset()
    roles: frozenset[str] | None = None
    session_id: str | None = None
    session_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Messages sent at that instant or later are left out."""
    include_hidden: bool = False
    """Also what was taken back or deleted on its platform; what was compacted is always found."""
    exclude_sessions: frozenset[str] = frozenset()

    @property
    def sees_nothing(self) -> bool:
        """Whether no message can pass."""
        scope = self.scope
        nobody = not (scope.sees_everything or scope.owners or scope.session_key is not None)
        return nobody or self.sources == frozenset() or self.roles == frozenset()

    @property
    def span(self) -> tuple[int, int]:
        """Microseconds: messages are shown from the first on, and before the second."""
        since = EARLIEST if self.since is None else to_micros(self.since)
        return since, LATEST if self.until is None else to_micros(self.until)

    def shows(self, *, owner: str, session_key: str | None, session_id: str, source: str) -> bool:
        """Whether all messages of such a session may be shown."""
        visible = self.scope.sees(owner=owner, session_key=session_key)
        return visible and self.covers(session_key=session_key, session_id=session_id, source=source)

    def covers(self, *, session_key: str | None, session_id: str, source: str) -> bool:
        """Whether such a session is among those that are asked for, whoever may see it."""
        return (
            (self.session_id is None or session_id == self.session_id)
            and (self.session_key is None or session_key == self.session_key)
            and (self.sources is None or source in self.sources)
            and source not in self.exclude_sources
            and session_id not in self.exclude_sessions
        )

    def admits(self, *, role: str, sent_at: int, hidden_because: str | None) -> bool:
        """Whether a message of a session that may be shown may itself be."""
        return (
            (self.roles is None or role in self.roles)
            and (self.since is None or sent_at >= to_micros(self.since))
            and (self.until is None or sent_at < to_micros(self.until))
            and (self.include_hidden or hidden_because is None or hidden_because == Hidden.COMPACTED)
        )


def words_of(name: str, given: Sequence[str] | None) -> frozenset[str] | None:
    """A filter as a set of words; a single word is not taken apart into letters."""
    if given is None:
        return None
    words = (given,) if isinstance(given, str) else tuple(given)
    if all(isinstance(one, str) for one in words):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
        return frozenset(words)
    problem = f"{name} must be words"
    raise InvalidInputError(problem)
