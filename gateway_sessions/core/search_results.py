"""What a search answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gateway_sessions.core.messages import Hidden


@dataclass(frozen=True, slots=True)
class ContextLine:
    """A message near a hit, briefly."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that was found."""

    id: int
    """The id of the message."""
    session_id: str
    session_key: str | None
    seq: int
    """Its place in the session."""
    role: str
    snippet: str
    """About forty words around the match, which stands between `>>>` and `<<<`."""
    context: tuple[ContextLine, ...]
    """What was said before it, it, and what was said after it; each at most 200 characters."""
    timestamp: datetime
    tool_name: str | None
    source: str
    model: str | None
    session_started: datetime
    title: str | None
    score: float | None = None
    """The higher, the better it fits; None if nothing was ranked. Comparable within one result only."""
    hidden_because: Hidden | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of a search, and how much they can be relied on."""

    hits: tuple[SearchHit, ...] = ()
    matches: int = 0
    """How many messages were found, at least; `hits` is a page of them."""
    ranked_among: int | None = None
    """The order is the best one among so many of the newest matches; None: ordered by time."""
    degraded: bool = False
    """Whether something may be missing; `problem` says why."""
    problem: str | None = None
    near_words: tuple[str, ...] = ()
    """Of a fuzzy search: the words like those of the query that were looked for as well."""


class FoundMessage(NamedTuple):
    """Where a message is that was found."""

    session_id: str
    message_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMatch:
    """A conversation in which something was found."""

    root_id: str
    """The session it began with; compressions, branches and delegated work belong to it."""
    best: SearchHit
    matches: int
    """How many messages of it were found, at least."""
    session_ids: tuple[str, ...]
    """The sessions of it in which they are."""
    found: tuple[FoundMessage, ...]
    """All of them, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSearchResult:
    """The conversations of a search, the best one first."""

    sessions: tuple[SessionMatch, ...] = ()
    ranked_among: int | None = None
    degraded: bool = False
    problem: str | None = None
    near_words: tuple[str, ...] = ()
