"""Lists of sessions for people who look for one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import partial
from typing import Final

from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session_summary import SessionSummary
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import listing as verbs
from gateway_sessions.storage.verbs.listing import Wanted
from gateway_sessions.storage.verbs.session_rows import TOOL_SOURCE

PAGE: Final = 20
BROWSED: Final = 500


class ListingMethods(VerbRunner):
    """Lists: each conversation once, page by page."""

    async def list_sessions_rich(
        self,
        *,
        scope: Scope,
        source: str | None = None,
        exclude_sources: Iterable[str] | None = None,
        limit: int = PAGE,
        after: SessionSummary | None = None,
        include_children: bool = False,
        archived: bool | None = False,
        order_by_last_active: bool = True,
        min_message_count: int = 0,
        search_query: str | None = None,
    ) -> list[SessionSummary]:
        """A page of the conversations that *scope* may see; *after* is the last of the page before.

        A conversation that was compressed is one line: its latest session, in the place of its first. With
        *include_children* each session is a line of its own; those of sub-agents never are. Latest active
        first, or latest begun first. *archived*: without those of the archive, only those, or (None) all.
        """
        wanted = Wanted(
            scope=scope,
            source=source,
            exclude_sources=tuple(exclude_sources or ()),
            archived=archived,
            min_message_count=min_message_count,
            text=_looked_for(search_query),
            every_session=include_children,
        )
        page = verbs.recent if order_by_last_active else verbs.begun
        return await self.read(partial(page, wanted, after, _checked(limit)))

    async def recent_sessions(
        self, *, scope: Scope, source: str | None = None, limit: int = BROWSED
    ) -> list[SessionSummary]:
        """The conversations to choose from: the latest active, without those that tools hold."""
        excluded = () if source is not None else (TOOL_SOURCE,)
        return await self.list_sessions_rich(
            scope=scope, source=source, exclude_sources=excluded, limit=limit
        )

    async def search_sessions_by_id(
        self, text: str, *, scope: Scope, limit: int = PAGE
    ) -> list[SessionSummary]:
        """Sessions whose id is that text, begins with it, or holds it, in this order; of any kind."""
        return await self.read(partial(verbs.by_id, text, scope, _checked(limit)))


def _checked(limit: int) -> int:
    if limit < 1:
        problem = f"limit = {limit} must be 1 or more"
        raise InvalidInputError(problem)
    return limit


def _looked_for(text: str | None) -> str | None:
    """The text as titles are stored; nothing to look for is None."""
    return unicodedata.normalize("NFC", text.strip()) or None if text else None
