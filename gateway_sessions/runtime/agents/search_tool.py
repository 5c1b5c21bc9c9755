"""`SessionSearch`: the tool by which an agent searches earlier conversations."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

import anyio

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.search.criteria import Criterion, criterion_of
from gateway_sessions.core.search.excerpts import (
    Passage,
    excerpt_of_transcript,
    extractive_summary,
    matching_places,
)
from gateway_sessions.core.search.results import SearchHit, SessionMatch
from gateway_sessions.core.sessions.record import SessionSummary
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.errors import GatewaySessionsError, InvalidInputError
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.threads import in_thread

logger: Final = logging.getLogger(__name__)

Summariser: TypeAlias = Callable[[Passage], Awaitable[str | None]]
"""Given what was said, and looked for, what is worth knowing of it; None or nothing: no idea."""

SESSIONS: Final = 3
MOST_SESSIONS: Final = 10
CHARACTERS: Final = 100_000
TIMEOUT: Final = timedelta(seconds=30)
WINDOW: Final = 5
MOST_ANCHORS: Final = 20
"""The surroundings of so many matches of a conversation are read, no more."""
MOST_LETTERS: Final = 20_000
"""A longer summary is cut."""
ROLES: Final = ("user", "assistant")

DEFINITION: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "name": "session_search",
        "description": (
            "Search earlier conversations. When the user refers to something from a past conversation, or "
            "relevant context may exist there, use this before asking them to repeat themselves. Words must "
            'all occur; "exact phrase", OR, NOT and deploy* work. Without a query: recent conversations.'
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_SESSIONS, "default": SESSIONS},
                "sort": {"type": "string", "enum": ["best", "newest", "oldest"], "default": "best"},
            },
        },
    }
)
"""The tool as models are told of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSearch:
    """Looks into all conversations that *scope* may see but the present one. Call it; it answers in JSON."""

    db: SessionDB
    """The database of the conversations."""
    scope: Scope
    current_session_id: str | None = None
    summariser: Summariser | None = None
    """Without one, the places that match are the summary."""
    characters: int = CHARACTERS
    """The characters of each conversation that are read."""
    timeout: timedelta = TIMEOUT
    """For one summary."""
    roles: Sequence[str] | None = ROLES
    exclude_sources: Sequence[str] = ("tool",)
    """Sessions of these sources are left out."""

    definition: ClassVar[Mapping[str, Any]] = DEFINITION
    """The tool as models are told of it."""

    async def __call__(
        self, query: str = "", *, limit: int = SESSIONS, sort: str | None = None
    ) -> dict[str, Any]:
        """Return an entry for each conversation that matches, as JSON; after a failure `success` is False."""
        try:
            if not 0 < limit <= MOST_SESSIONS:
                problem = f"limit must be from 1 to {MOST_SESSIONS}"
                raise InvalidInputError(problem)
            wanted = criterion_of(query, literal=False, stems=await self.db.search_stems())
            if wanted is None:
                return await self._list_recent(limit)
            return await self._search(query, wanted, limit, sort)
        except GatewaySessionsError as error:
            logger.warning(
                "a search for an agent failed",
                extra={"action": "session_search_failed", "problem": type(error).__name__},
            )
            return {"success": False, "error": str(error)}

    async def _list_recent(self, limit: int) -> dict[str, Any]:
        own = await self._own_conversation()
        recent = await self.db.recent_sessions(scope=self.scope, limit=limit + len(own))
        results = [_describe_session(one) for one in recent if one.session_id not in own][:limit]
        return {"success": True, "mode": "browse", "count": len(results), "results": results}

    async def _search(self, query: str, wanted: Criterion, limit: int, sort: str | None) -> dict[str, Any]:
        found = await self.db.search_sessions(
            query,
            scope=self.scope,
            limit=limit,
            sort=sort,
            role_filter=self.roles,
            exclude_sources=self.exclude_sources,
            exclude_sessions=await self._own_conversation(),
        )
        results: list[dict[str, Any]] = [{} for _ in found.sessions]
        async with anyio.create_task_group() as tasks:
            for number, match in enumerate(found.sessions):
                tasks.start_soon(self._describe_match, query, wanted, match, results[number])
        return {
            "success": True,
            "mode": "search",
            "query": query,
            "count": len(results),
            "results": results,
            "ranked_among": found.ranked_among,
            "degraded": found.degraded,
            "problem": found.problem,
        }

    async def _own_conversation(self) -> frozenset[str]:
        """The present conversation with all that belongs to it: an agent knows it already."""
        if self.current_session_id is None:
            return frozenset()
        return frozenset(await self.db.get_session_family(self.current_session_id)) | {
            self.current_session_id
        }

    async def _describe_match(
        self, query: str, wanted: Criterion, match: SessionMatch, result: dict[str, Any]
    ) -> None:
        best = match.best
        around, anchors = await self._read_around_matches(match)
        passage = await in_thread(partial(self._make_passage, query, wanted, best, around, anchors))
        summary = await self._summarise(passage)
        result |= {
            "session_id": best.session_id,
            "root_id": match.root_id,
            "title": best.title,
            "source": best.source,
            "model": best.model,
            "started_at": best.session_started.isoformat(),
            "said_at": best.timestamp.isoformat(),
            "matches": match.matches,
            "summary": summary or extractive_summary(passage),
            "summarised": summary is not None,
            "snippet": best.snippet,
            "message_id": best.id,
            "context": [{"role": line.role, "content": line.content} for line in best.context],
        }

    async def _read_around_matches(self, match: SessionMatch) -> tuple[list[Message], list[Message]]:
        """Read the messages around the matches, the best match first, and the matches themselves."""
        around: list[Message] = []
        anchors: list[Message] = []
        size = 0
        for session_id, message_id in match.found[:MOST_ANCHORS]:
            window = await self.db.get_messages_around(session_id, message_id, WINDOW)
            anchors += [one for one in window.messages if one.message_id == message_id]
            around += sorted(window.messages, key=lambda one: abs(one.message_id - message_id))
            size += sum(len(one.text) for one in window.messages)
            if size >= self.characters:
                break
        return around, anchors

    def _make_passage(
        self, query: str, wanted: Criterion, best: SearchHit, around: list[Message], anchors: list[Message]
    ) -> Passage:
        return Passage(
            query=query,
            text=excerpt_of_transcript(around, wanted, self.characters),
            highlights=matching_places(anchors, wanted) or (best.snippet,),
            session_id=best.session_id,
            source=best.source,
            title=best.title,
            started_at=best.session_started,
        )

    async def _summarise(self, passage: Passage) -> str | None:
        """Return the summary of a passage; None without a summariser, or if it fails or takes too long."""
        if self.summariser is None:
            return None
        try:
            with anyio.fail_after(self.timeout.total_seconds()):
                said = await self.summariser(passage)
        except Exception as error:  # noqa: BLE001 -- foreign code; the places that match are shown instead
            logger.warning(
                "a conversation could not be summarised",
                extra={
                    "action": "summary_failed",
                    "session_id": passage.session_id,
                    "problem": type(error).__name__,
                },
            )
            return None
        text = said.strip() if isinstance(said, str) else ""
        return text[:MOST_LETTERS] or None


def _describe_session(session: SessionSummary) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "title": session.title,
        "preview": session.preview,
        "source": session.source,
        "model": session.model,
        "started_at": session.started_at.isoformat(),
        "last_active": session.last_active.isoformat(),
        "messages": session.message_count,
    }
