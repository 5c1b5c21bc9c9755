"""Methods of `SessionDB` for session records, titles, lineage and lists of sessions."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from types import NoneType
from typing import Any, Final

from gateway_sessions.core.checks import check_value
from gateway_sessions.core.identity.row_ids import parse_row_id
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import parse_instant
from gateway_sessions.core.sessions.record import Relation, SessionRecord, SessionSummary
from gateway_sessions.core.sessions.titles import clean_suggested_title, clean_title, normalize_title
from gateway_sessions.core.storable_text import StorableEncoder, check_choice
from gateway_sessions.core.transcript.messages import NO_EXTRA, Message, message_from
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.tables import lineage as tables_lineage
from gateway_sessions.storage.transaction_runner_protocol import TransactionRunner
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
        """Create a session; of one that exists, fill in the fields that it lacks. Return its id.

        Raise `SentBeforeErasureError` if it began before its owner was erased.
        """
        new = NewSession(
            session_id=session_id,
            source=source,
            started_at=parse_instant("started_at", started_at) or self._clock.now(),
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
        return await self.write(partial(session_rows.create_session, new, self._change_ids))

    async def ensure_session(
        self, session_id: str, source: str = UNKNOWN_SOURCE, model: str | None = None, **known: Any
    ) -> str:
        """Create a session unless it exists, for callers that have messages of it and cannot tell."""
        return await self.create_session(session_id, source, model=model, **known)

    async def get_session(self, session_id: str) -> SessionRecord | None:
        """Return the record of a session; None if there is none."""
        return await self.read(partial(session_rows.load_record, session_id))

    async def end_session(self, session_id: str, end_reason: str) -> bool:
        """End a session; False if it has ended already: the first reason stands.

        Raise `SessionOnLaneError` for the current session of a lane, which `reset_session` of the store ends.
        """
        return await self.write(
            partial(session_rows.end_session_row, session_id, end_reason, self._clock.now())
        )

    async def reopen_session(self, session_id: str) -> bool:
        """Let an ended session go on; False if it has not ended. Not for the current session of a lane."""
        return await self.write(partial(session_rows.reopen_session_row, session_id))

    async def update_system_prompt(self, session_id: str, system_prompt: str | None) -> None:
        """Store the prompt that the model gets before all messages."""
        await self._change_row(
            "set_system_prompt", session_id, StorableEncoder().text("system_prompt", system_prompt)
        )

    async def note_system_prompt(self, session_id: str, system_prompt: str) -> bool:
        """Store the first prompt of a session; False if the session has one, or does not exist."""
        prompt = StorableEncoder().text("system_prompt", system_prompt) or ""
        return await self.write(partial(session_rows.store_first_prompt, session_id, prompt))

    async def update_session_model(
        self, session_id: str, model: str | None, model_config: Mapping[str, Any] | None = None
    ) -> None:
        """Store the model that answers from now on, and its settings if they are given."""
        config = StorableEncoder().json("model_config", None if model_config is None else dict(model_config))
        await self._change_row(
            "set_session_model", session_id, StorableEncoder().text("model", model), config
        )

    async def set_session_pinned(self, session_id: str, *, pinned: bool = True) -> None:
        """Keep a session whatever retention says, or stop doing so."""
        check_value("pinned", pinned, bool)
        await self._change_row("set_session_pinned", session_id, int(pinned))

    async def message_count(self, session_id: str, *, include_hidden: bool = False) -> int:
        """Return the number of messages in the conversation, or with *include_hidden* of all stored ones."""
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
        """Return the number of sessions that *scope* may see."""
        transaction = partial(
            session_rows.count_sessions,
            scope,
            source=source,
            min_message_count=min_message_count,
            include_archived=include_archived,
        )
        return await self.read(transaction)

    async def _change_row(self, statement: str, session_id: str, *values: object) -> None:
        await self.write(partial(session_rows.set_columns, statement, session_id, *values))


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
        """Set the title of a session; an empty one removes it. False if *scope* sees no such session.

        A title of another session raises `TitleTakenError`, unless this session continues that one: then the
        title is passed on. *scope* tells who asks. *author* is the person who gives the title, if the session
        is not theirs: an erasure of that person removes the title.
        """
        check_value("title", title, str, NoneType)
        cleaned = clean_title(title) if title and normalize_title(title) else None
        return await self.write(partial(transactions.set_title, session_id, cleaned, scope, author))

    async def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Set the title of an untitled session; a taken title gets a number, and a long one is cut."""
        cleaned = clean_suggested_title(title)
        if cleaned is None:
            return False
        return await self.write(partial(transactions.set_title_if_none, session_id, cleaned))

    async def get_session_title(self, session_id: str) -> str | None:
        """Return the title of a session; None if it has no title, or there is no such session."""
        return await self.read(partial(transactions.load_title, session_id))

    async def get_next_title_in_lineage(self, title: str, *, scope: Scope) -> str:
        """Return the title if *scope* sees none such, else with the next number: `Trip`, `Trip #2`."""
        cleaned = clean_title(title)
        return await self.read(partial(transactions.next_visible_title, cleaned, scope))

    async def resolve_session_by_title(self, title: str, *, scope: Scope) -> str | None:
        """Return the tip of the newest session with that title and a number, else of the one with the title.

        None if *scope* sees no such session; `AmbiguousSessionError` if several owners have one.
        """
        return await self.read(partial(transactions.resolve_title, title, scope))

    async def resolve_session(self, text: str, *, scope: Scope) -> str:
        """Return the tip of the session that an id, the beginning of an id, or a title means.

        `AmbiguousSessionError` lists the candidates if there are several. `SessionNotFoundError` is raised if
        *scope* sees none.
        """
        return await self.read(partial(transactions.resolve_session, text, scope))


class LineageMethods(TransactionRunner):
    """Compressions and branches, and the first and the last session of a conversation."""

    async def split_session(
        self,
        session_id: str,
        new_session_id: str,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> str:
        """End a session by compression and go on with *messages*, its summary, in a new one; return its id.

        All in one commit: the lane follows, and the old session stays readable. Of several callers one
        creates the continuation, and the others get its id. Raise `SessionEndedError` for a session that
        ended otherwise.
        """
        descent = self._new_session(session_id, new_session_id, model=model, system_prompt=system_prompt)
        summary = [message_from(one) for one in messages]
        return await self.write(partial(split.continue_in_new_session, descent, summary))

    async def branch_session(
        self, session_id: str, new_session_id: str, *, at_message_id: int | str | None = None
    ) -> str:
        """Copy a session, up to and with that message, to a new one; the old one goes on. Return its id."""
        descent = self._new_session(session_id, new_session_id)
        at = None if at_message_id is None else parse_row_id("at_message_id", at_message_id)
        return await self.write(partial(split.branch_session, descent, at))

    async def get_compression_tip(self, session_id: str) -> str:
        """Return the session in which a compressed one goes on today; any other session is its own tip."""
        return await self.read(partial(tables_lineage.tip, session_id))

    async def get_compression_lineage(self, session_id: str) -> list[str]:
        """Return the sessions from the first to the tip; each continues the one before."""
        return await self.read(partial(tables_lineage.compression_line_ids, session_id))

    async def get_conversation_root(self, session_id: str) -> str:
        """Return the session in which it all began, back through compressions, branches and delegations."""
        return await self.read(partial(tables_lineage.root, session_id))

    async def get_session_family(self, session_id: str) -> list[str]:
        """Return all sessions with the same conversation root, in the order of their ids."""
        return await self.read(partial(tables_lineage.family_ids, session_id))

    async def resolve_resume_session_id(self, session_id: str | None) -> str | None:
        """Return the session to resume for an id: the latest session with messages on its line.

        An empty id is returned as it is.
        """
        if not session_id:
            return session_id
        return await self.read(partial(tables_lineage.session_to_resume, session_id))

    async def set_session_archived(self, session_id: str, *, archived: bool = True) -> None:
        """Leave a session and its whole line of compressions out of lists, or list them again.

        Raise `SessionNotFoundError` if there is no such session.
        """
        check_value("archived", archived, bool)
        await self.write(partial(tables_lineage.set_line_archived, session_id, archived=archived))

    def _new_session(self, session_id: str, new_session_id: str, **answered: str | None) -> Descent:
        return Descent(
            session_id=session_id,
            new_session_id=new_session_id,
            now=self._clock.now(),
            ids=self._change_ids,
            **answered,
        )


PAGE: Final = 20
"""The default number of rows in a list."""
BROWSED: Final = 500
"""The default number of conversations to choose from."""


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
        """Return a page of the conversations that *scope* sees; *after* is the last of the page before.

        A compressed conversation is one row: its latest session, in the place of its first. With
        *include_children* each session is a row of its own; sessions of sub-agents never are. The latest
        active come first, or the latest begun. *archived*: False leaves the archive out, True lists only the
        archive, None lists all.
        """
        wanted = SessionListQuery(
            scope=scope,
            source=source,
            exclude_sources=tuple(exclude_sources or ()),
            archived=archived,
            min_message_count=min_message_count,
            text=_normalized_title(search_query),
            every_session=include_children,
        )
        page = session_lists.list_recent if order_by_last_active else session_lists.list_by_beginning
        return await self.read(partial(page, wanted, after, _check_limit(limit)))

    async def recent_sessions(
        self, *, scope: Scope, source: str | None = None, limit: int = BROWSED
    ) -> list[SessionSummary]:
        """Return the conversations to choose from: the latest active, without those that tools hold."""
        excluded = () if source is not None else (TOOL_SOURCE,)
        return await self.list_sessions_rich(
            scope=scope, source=source, exclude_sources=excluded, limit=limit
        )

    async def search_sessions_by_id(
        self, text: str, *, scope: Scope, limit: int = PAGE
    ) -> list[SessionSummary]:
        """Return sessions whose id is that text, begins with it, or holds it, in this order; of any kind."""
        return await self.read(partial(session_lists.list_by_id, text, scope, _check_limit(limit)))


def _check_limit(limit: int) -> int:
    if limit < 1:
        problem = f"limit = {limit} must be 1 or more"
        raise InvalidInputError(problem)
    return limit


def _normalized_title(text: str | None) -> str | None:
    """Return the text in the form of stored titles; None for an empty one."""
    return unicodedata.normalize("NFC", text.strip()) or None if text else None
