"""Methods of `SessionDB` for session records, titles, lineage and lists of sessions.

Sessions made by hand, and what is known of any session.

What sessions are called, and which one somebody means.

Which sessions belong together, and how one comes from another.

Lists of sessions for people who look for one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from types import NoneType
from typing import Any, Final

from gateway_sessions.core.checks import check_value
from gateway_sessions.core.identity.row_ids import row_id
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import instant_of
from gateway_sessions.core.sessions.record import Relation, SessionRecord, SessionSummary
from gateway_sessions.core.sessions.titles import clean_title, one_line, suggested_title
from gateway_sessions.core.text import Intake, check_choice
from gateway_sessions.core.transcript.messages import NO_EXTRA, Message, message_of
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.tables import lineage as tables_lineage
from gateway_sessions.storage.transaction_runner import TransactionRunner
from gateway_sessions.storage.transactions.sessions import lists as session_lists
from gateway_sessions.storage.transactions.sessions import session_rows, split
from gateway_sessions.storage.transactions.sessions import titles as transactions
from gateway_sessions.storage.transactions.sessions.lists import SessionListQuery
from gateway_sessions.storage.transactions.sessions.session_rows import (
    TOOL_SOURCE,
    UNKNOWN_SOURCE,
    NewSession,
)
from gateway_sessions.storage.transactions.sessions.split import Descent


class SessionRowMethods(TransactionRunner):
    """The rows of sessions. Sessions of a lane come and go with their lane, through `SessionStore`."""

    async def create_session(
        self,
        session_id: str,
        source: str,
        *,
        model: str | None = None,
        model_config: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        user_id: str | None = None,
        parent_session_id: str | None = None,
        relation: Relation | str | None = None,
        session_key: str | None = None,
        started_at: datetime | float | None = None,
        extra: Mapping[str, Any] = NO_EXTRA,
    ) -> str:
        """Make a session; of one that is there already, fill in what is not known. Returns its id.

        `SentBeforeErasureError` if it began before its owner was erased.
        """
        new = NewSession(
            session_id=session_id,
            source=source,
            started_at=instant_of("started_at", started_at) or self._clock.now(),
            is_new=started_at is None,
            user_id=user_id,
            session_key=session_key,
            parent_session_id=parent_session_id,
            relation=None if relation is None else check_choice("relation", relation, Relation),
            model=model,
            model_config=model_config,
            system_prompt=system_prompt,
            extra=extra,
        )
        return await self.write(partial(session_rows.create, new, self.change_ids))

    async def ensure_session(
        self, session_id: str, source: str = UNKNOWN_SOURCE, model: str | None = None, **known: Any
    ) -> str:
        """Make a session unless it is there: for whoever has messages of it and cannot tell."""
        return await self.create_session(session_id, source, model=model, **known)

    async def get_session(self, session_id: str) -> SessionRecord | None:
        """All that is known of a session; None if there is none."""
        return await self.read(partial(session_rows.get, session_id))

    async def end_session(self, session_id: str, end_reason: str) -> bool:
        """End a session; False if it has ended already: the first reason stands.

        One that a lane has now is a `SessionOnLaneError`: it ends with `reset_session` of the store.
        """
        return await self.write(partial(session_rows.end_row, session_id, end_reason, self._clock.now()))

    async def reopen_session(self, session_id: str) -> bool:
        """Let a session go on that had ended; False if it had not. Not for the current session of a lane."""
        return await self.write(partial(session_rows.reopen_row, session_id))

    async def update_system_prompt(self, session_id: str, system_prompt: str | None) -> None:
        """Remember what the model is told before anything else."""
        await self._change("set_system_prompt", session_id, Intake().text("system_prompt", system_prompt))

    async def note_system_prompt(self, session_id: str, system_prompt: str) -> bool:
        """Remember what the model was told first; False if that is known, or there is no such session."""
        prompt = Intake().text("system_prompt", system_prompt) or ""
        return await self.write(partial(session_rows.note_prompt, session_id, prompt))

    async def update_session_model(
        self, session_id: str, model: str | None, model_config: Mapping[str, Any] | None = None
    ) -> None:
        """Remember which model answers from now on, and how it is set if that is given."""
        config = Intake().json("model_config", None if model_config is None else dict(model_config))
        await self._change("set_session_model", session_id, Intake().text("model", model), config)

    async def set_session_pinned(self, session_id: str, *, pinned: bool = True) -> None:
        """Keep a session whatever retention says, or do so no longer."""
        check_value("pinned", pinned, bool)
        await self._change("set_session_pinned", session_id, int(pinned))

    async def message_count(self, session_id: str, *, include_hidden: bool = False) -> int:
        """How many messages are part of the conversation, or with *include_hidden* are stored at all."""
        return await self.read(
            partial(session_rows.count_messages, session_id, include_hidden=include_hidden)
        )

    async def session_count(
        self,
        source: str | None = None,
        *,
        scope: Scope,
        min_message_count: int = 0,
        include_archived: bool = False,
    ) -> int:
        """How many sessions *scope* may see."""
        transaction = partial(
            session_rows.count,
            scope,
            source=source,
            min_message_count=min_message_count,
            include_archived=include_archived,
        )
        return await self.read(transaction)

    async def _change(self, statement: str, session_id: str, *values: object) -> None:
        await self.write(partial(session_rows.change, statement, session_id, *values))


class TitleMethods(TransactionRunner):
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
        return await self.write(partial(transactions.set_title, session_id, cleaned, scope, author))

    async def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Call a session so unless it has a title; one that is taken gets a number, one too long is cut."""
        cleaned = suggested_title(title)
        if cleaned is None:
            return False
        return await self.write(partial(transactions.set_title_if_none, session_id, cleaned))

    async def get_session_title(self, session_id: str) -> str | None:
        """What a session is called; None if it has no title, or there is no such session."""
        return await self.read(partial(transactions.title_of, session_id))

    async def get_next_title_in_lineage(self, title: str, *, scope: Scope) -> str:
        """The title if nothing in sight has it, else with the next number: `Trip`, `Trip #2`, `Trip #3`."""
        cleaned = clean_title(title)
        return await self.read(partial(transactions.next_in_lineage, cleaned, scope))

    async def resolve_session_by_title(self, title: str, *, scope: Scope) -> str | None:
        """The newest session with that title and a number, else the one with the title, at its tip.

        None if nothing in sight is called so, `AmbiguousSessionError` if several owners have such a session.
        """
        return await self.read(partial(transactions.resolve_title, title, scope))

    async def resolve_session(self, text: str, *, scope: Scope) -> str:
        """The session that somebody means by its id, the beginning of that, or its title, at its tip.

        `AmbiguousSessionError` lists the candidates if there are several, `SessionNotFoundError` says that
        nothing in sight fits.
        """
        return await self.read(partial(transactions.resolve, text, scope))


class LineageMethods(TransactionRunner):
    """Compressions, branches, and the way from any session to where its conversation began or goes on."""

    async def split_session(
        self,
        session_id: str,
        new_session_id: str,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> str:
        """End a session by compression: *messages*, a summary of it, go on in a new one. Returns its id.

        All in one step: the lane follows, and the old session stays readable. Of several callers one makes
        the continuation; the others get its id. A session that ended otherwise is a `SessionEndedError`.
        """
        descent = self._descent(session_id, new_session_id, model=model, system_prompt=system_prompt)
        summary = [message_of(one) for one in messages]
        return await self.write(partial(split.split, descent, summary))

    async def branch_session(
        self, session_id: str, new_session_id: str, *, at_message_id: int | str | None = None
    ) -> str:
        """Copy what was said, up to and with that message, to a new session; the old one goes on. Its id."""
        descent = self._descent(session_id, new_session_id)
        at = None if at_message_id is None else row_id("at_message_id", at_message_id)
        return await self.write(partial(split.branch, descent, at))

    async def get_compression_tip(self, session_id: str) -> str:
        """Where a compressed session goes on today; any other one is its own tip."""
        return await self.read(partial(tables_lineage.tip, session_id))

    async def get_compression_lineage(self, session_id: str) -> list[str]:
        """The sessions from the first to the tip of which each continues the one before."""
        return await self.read(partial(tables_lineage.chain, session_id))

    async def get_conversation_root(self, session_id: str) -> str:
        """The session that it all began with: compressions, branches and delegations are followed back."""
        return await self.read(partial(tables_lineage.root, session_id))

    async def get_session_family(self, session_id: str) -> list[str]:
        """All sessions with the same conversation root, in the order of their ids."""
        return await self.read(partial(tables_lineage.family, session_id))

    async def resolve_resume_session_id(self, session_id: str | None) -> str | None:
        """The session to go on with for an id: the latest of its line with messages; nothing for nothing."""
        if not session_id:
            return session_id
        return await self.read(partial(tables_lineage.to_resume, session_id))

    async def set_session_archived(self, session_id: str, *, archived: bool = True) -> None:
        """Leave a session out of lists, with all that it continues and is continued by; or do so no longer.

        `SessionNotFoundError` if there is no such session.
        """
        check_value("archived", archived, bool)
        await self.write(partial(tables_lineage.archive, session_id, archived=archived))

    def _descent(self, session_id: str, new_session_id: str, **answered: str | None) -> Descent:
        return Descent(
            session_id=session_id,
            new_session_id=new_session_id,
            now=self._clock.now(),
            ids=self.change_ids,
            **answered,
        )


PAGE: Final = 20
BROWSED: Final = 500


class ListingMethods(TransactionRunner):
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
        wanted = SessionListQuery(
            scope=scope,
            source=source,
            exclude_sources=tuple(exclude_sources or ()),
            archived=archived,
            min_message_count=min_message_count,
            text=_looked_for(search_query),
            every_session=include_children,
        )
        page = session_lists.recent if order_by_last_active else session_lists.begun
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
        return await self.read(partial(session_lists.by_id, text, scope, _checked(limit)))


def _checked(limit: int) -> int:
    if limit < 1:
        problem = f"limit = {limit} must be 1 or more"
        raise InvalidInputError(problem)
    return limit


def _looked_for(text: str | None) -> str | None:
    """The text as titles are stored; nothing to look for is None."""
    return unicodedata.normalize("NFC", text.strip()) or None if text else None
