"""Search answers with these records, and an agent remembers with this tool."""

from gateway_sessions.core.search.excerpts import Passage
from gateway_sessions.core.search.results import (
    ContextLine,
    FoundMessage,
    SearchHit,
    SearchResult,
    SessionMatch,
    SessionSearchResult,
)
from gateway_sessions.runtime.agents.search_tool import SessionSearch, Summariser
from gateway_sessions.storage.search.protocol import IndexReport, IndexState

__all__ = [
    "ContextLine",
    "FoundMessage",
    "IndexReport",
    "IndexState",
    "Passage",
    "SearchHit",
    "SearchResult",
    "SessionMatch",
    "SessionSearch",
    "SessionSearchResult",
    "Summariser",
]
