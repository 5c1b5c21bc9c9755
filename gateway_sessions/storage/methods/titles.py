"""What sessions are called, and which one somebody means."""

from __future__ import annotations

from functools import partial
from types import NoneType

from gateway_sessions.core.automatic_titles import suggested_title
from gateway_sessions.core.field_types import check_value
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.titles import clean_title, one_line
from gateway_sessions.storage.verb_runner import VerbRunner
from gateway_sessions.storage.verbs import titles as verbs


class TitleMethods(VerbRunner):
    """Titles: one line, unique among the sessions of an owner."""

    async def set_session_title(
        self,
        session_id: str,
        title: str | None,
        *,
        scope: Scope | None = None,
        author: str | None = None,
    ) -> bool:
        """Call a session so, on behalf of a person; nothing to see in it means no title.

        False if there is no such session in sight. A title that another session has is a `TitleTakenError`,
        unless this session continues that one: then it passes on. *scope* says who asks, *author* who that is
        if the session is not theirs: an erasure of that person takes the title away.
        """
        check_value("title", title, str, NoneType)
        cleaned = clean_title(title) if title and one_line(title) else None
        return await self.write(partial(verbs.set_title, session_id, cleaned, scope, author))

    async def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Call a session so unless it has a title; one that is taken gets a number, one too long is cut."""
        cleaned = suggested_title(title)
        if cleaned is None:
            return False
        return await self.write(partial(verbs.set_title_if_none, session_id, cleaned))

    async def get_session_title(self, session_id: str) -> str | None:
        """What a session is called; None if it has no title, or there is no such session."""
        return await self.read(partial(verbs.title_of, session_id))

    async def get_next_title_in_lineage(self, title: str, *, scope: Scope) -> str:
        """The title if nothing in sight has it, else with the next number: `Trip`, `Trip #2`, `Trip #3`."""
        cleaned = clean_title(title)
        return await self.read(partial(verbs.next_in_lineage, cleaned, scope))

    async def resolve_session_by_title(self, title: str, *, scope: Scope) -> str | None:
        """The newest session with that title and a number, else the one with the title, at its tip.

        None if nothing in sight is called so, `AmbiguousSessionError` if several owners have such a session.
        """
        return await self.read(partial(verbs.resolve_title, title, scope))

    async def resolve_session(self, text: str, *, scope: Scope) -> str:
        """The session that somebody means by its id, the beginning of that, or its title, at its tip.

        `AmbiguousSessionError` lists the candidates if there are several, `SessionNotFoundError` says that
        nothing in sight fits.
        """
        return await self.read(partial(verbs.resolve, text, scope))
