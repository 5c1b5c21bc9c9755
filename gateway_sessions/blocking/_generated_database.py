"""The database for callers without a loop.

Made by docs/reference/make_blocking.py from the asynchronous classes: run that, and change nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from gateway_sessions.blocking._loop_thread import BlockingResource
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.export.reports import ExportReport, ImportReport, Progress
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.progress import OnProgress
from gateway_sessions.core.search.results import SearchResult, SessionSearchResult
from gateway_sessions.core.search.stems import Stemming, Stems
from gateway_sessions.core.sessions.erasure import ErasureReceipt
from gateway_sessions.core.sessions.record import Relation, SessionRecord, SessionSummary
from gateway_sessions.core.sessions.retention import PruneReport
from gateway_sessions.core.transcript.messages import (
    NO_EXTRA,
    AnchoredView,
    Content,
    Message,
    MessageMembers,
    MessageVersion,
    MessageWindow,
    Rewind,
    Role,
    UserTurn,
)
from gateway_sessions.core.transcript.replay import Chat
from gateway_sessions.core.usage.budgets import Spent
from gateway_sessions.core.usage.insights import Insights
from gateway_sessions.core.usage.usage_events import SessionUsage, UsageFacts
from gateway_sessions.ports import Clock
from gateway_sessions.storage.api.search import SearchOptions
from gateway_sessions.storage.database import ALONE, SessionDB
from gateway_sessions.storage.engines.protocol import VacuumReport
from gateway_sessions.storage.search.protocol import IndexReport
from gateway_sessions.storage.transfer.export_files import Lines, Target


class BlockingSessionDB(BlockingResource[SessionDB]):
    """`SessionDB` for callers without a loop. Open it with `with BlockingSessionDB.open(path)`."""

    @property
    def path(self) -> Path:
        """The same as that of the SessionDB."""
        return self._target.path

    @property
    def place(self) -> str:
        """The same as that of the SessionDB."""
        return self._target.place

    @classmethod
    def open(
        cls,
        url_or_path: str | Path,
        *,
        clock: Clock | None = None,
        wait: float = 0.0,
        survives_power_cut: bool = True,
        allow_network: bool = False,
        home: str | Path | None = None,
        cluster: ClusterRules = ALONE,
        prepared_statements: bool = True,
        pool_size: int = 8,
        pool: object | None = None,
        stemming: Stemming | str | None = None,
    ) -> BlockingSessionDB:
        """A database at a path, `sqlite:///path`, `postgresql://…`, `mysql://…`, or of another provider.

        Another owner, or a server that is away, is waited for up to *wait* seconds. Beside a database on a
        server, files are kept in *home*; without it, in a directory for that database among what this
        user's programs keep.
        Many processes may have that database open, each with a *home* of its own; *cluster* says how they
        get along, and *pool_size* how many connections this one makes for its work. On PostgreSQL a *pool* of
        asyncpg, made for that address by the program, is used instead of one of our own, and left open;
        without *prepared_statements* nothing is kept on a connection.

        *stemming* is the language whose words searches find in all their forms, or "off"; None: as it is. If
        it changes, the search index is made anew in the background, and if others have the database open, it
        does not change.
        """
        return cls(
            SessionDB.open(
                url_or_path,
                clock=clock,
                wait=wait,
                survives_power_cut=survives_power_cut,
                allow_network=allow_network,
                home=home,
                cluster=cluster,
                prepared_statements=prepared_statements,
                pool_size=pool_size,
                pool=pool,
                stemming=stemming,
            )
        )

    @classmethod
    def open_reader(
        cls,
        url_or_path: str | Path,
        *,
        clock: Clock | None = None,
        home: str | Path | None = None,
        prepared_statements: bool = True,
        pool_size: int = 8,
    ) -> BlockingSessionDB:
        """The same database, which another process may own, for reading only: whatever writes is refused."""
        return cls(
            SessionDB.open_reader(
                url_or_path,
                clock=clock,
                home=home,
                prepared_statements=prepared_statements,
                pool_size=pool_size,
            )
        )

    def search_stems(self) -> Stems:
        """The stems by which words are found in all their forms."""
        return self._wait(self._target.search_stems)

    def vacuum(self) -> VacuumReport:
        """Write the file anew without gaps. Writers wait meanwhile, and the disk needs room for both."""
        return self._wait(self._target.vacuum)

    def optimise(self) -> None:
        """Let the database learn what its tables hold by now; `vacuum` does so as well."""
        self._wait(self._target.optimise)

    def empty_log(self) -> bool:
        """Cut the write-ahead log to nothing; False if somebody reads an old moment."""
        return self._wait(self._target.empty_log)

    def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Whether the room of deleted rows is overwritten with zeros from now on."""
        self._wait(lambda: self._target.overwrite_deleted(overwrite=overwrite))

    @property
    def epoch(self) -> int:
        """Which opening of the store this is."""
        return self._ask(lambda: self._target.epoch)

    @property
    def has_upkeep(self) -> bool:
        """Whether it is this program that makes the database small and tidy again, and takes copies of it."""
        return self._ask(lambda: self._target.has_upkeep)

    def newest_backup(self) -> datetime | None:
        """When the newest copy was taken. Looks at the disk: call it from a thread."""
        return self._ask(self._target.newest_backup)

    def back_up(self, *, keep: int | None = None) -> Path:
        """Copy the database as it is now, read the copy back, and remove all but the newest *keep*."""
        return self._wait(lambda: self._target.back_up(keep=keep))

    @property
    def generation(self) -> int:
        """Rises with every change of what sessions.json shows, also across restarts."""
        return self._ask(lambda: self._target.generation)

    def being_opened(self) -> AbstractContextManager[None]:
        """Until the end of the block a store is being opened: what fails is tried again, within the wait."""
        return self._ask(self._target.being_opened)

    def create_session(
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
        return self._wait(
            lambda: self._target.create_session(
                session_id,
                source,
                model=model,
                model_config=model_config,
                system_prompt=system_prompt,
                user_id=user_id,
                parent_session_id=parent_session_id,
                relation=relation,
                session_key=session_key,
                started_at=started_at,
                extra=extra,
            )
        )

    def ensure_session(
        self, session_id: str, source: str = "unknown", model: str | None = None, **known: Any
    ) -> str:
        """Make a session unless it is there: for whoever has messages of it and cannot tell."""
        return self._wait(lambda: self._target.ensure_session(session_id, source, model, **known))

    def get_session(self, session_id: str) -> SessionRecord | None:
        """All that is known of a session; None if there is none."""
        return self._wait(lambda: self._target.get_session(session_id))

    def end_session(self, session_id: str, end_reason: str) -> bool:
        """End a session; False if it has ended already: the first reason stands.

        One that a lane has now is a `SessionOnLaneError`: it ends with `reset_session` of the store.
        """
        return self._wait(lambda: self._target.end_session(session_id, end_reason))

    def reopen_session(self, session_id: str) -> bool:
        """Let a session go on that had ended; False if it had not. Not for the current session of a lane."""
        return self._wait(lambda: self._target.reopen_session(session_id))

    def update_system_prompt(self, session_id: str, system_prompt: str | None) -> None:
        """Remember what the model is told before anything else."""
        self._wait(lambda: self._target.update_system_prompt(session_id, system_prompt))

    def note_system_prompt(self, session_id: str, system_prompt: str) -> bool:
        """Remember what the model was told first; False if that is known, or there is no such session."""
        return self._wait(lambda: self._target.note_system_prompt(session_id, system_prompt))

    def update_session_model(
        self, session_id: str, model: str | None, model_config: Mapping[str, Any] | None = None
    ) -> None:
        """Remember which model answers from now on, and how it is set if that is given."""
        self._wait(lambda: self._target.update_session_model(session_id, model, model_config))

    def set_session_pinned(self, session_id: str, *, pinned: bool = True) -> None:
        """Keep a session whatever retention says, or do so no longer."""
        self._wait(lambda: self._target.set_session_pinned(session_id, pinned=pinned))

    def message_count(self, session_id: str, *, include_hidden: bool = False) -> int:
        """How many messages are part of the conversation, or with *include_hidden* are stored at all."""
        return self._wait(lambda: self._target.message_count(session_id, include_hidden=include_hidden))

    def session_count(
        self,
        source: str | None = None,
        *,
        scope: Scope,
        min_message_count: int = 0,
        include_archived: bool = False,
    ) -> int:
        """How many sessions *scope* may see."""
        return self._wait(
            lambda: self._target.session_count(
                source, scope=scope, min_message_count=min_message_count, include_archived=include_archived
            )
        )

    def append_message(
        self,
        session_id: str,
        role: str,
        content: Content = None,
        *,
        timestamp: datetime | float | str | None = None,
        **members: Unpack[MessageMembers],
    ) -> int:
        """Add one message behind the last; returns its id."""
        return self._wait(
            lambda: self._target.append_message(session_id, role, content, timestamp=timestamp, **members)
        )

    def append_messages(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> list[int]:
        """Add messages behind the last, all or none, in one transaction; returns their ids.

        `SentBeforeErasureError` for what somebody sent who was erased since.
        """
        return self._wait(lambda: self._target.append_messages(session_id, messages))

    def get_messages(
        self,
        session_id: str,
        *,
        include_hidden: bool = False,
        limit: int | None = None,
        after_seq: int | None = None,
        before_seq: int | None = None,
    ) -> list[Message]:
        """Messages in their order: the first behind `after_seq`, or without it the last before `before_seq`.

        `SessionNotFoundError` if there is no such session.
        """
        return self._wait(
            lambda: self._target.get_messages(
                session_id,
                include_hidden=include_hidden,
                limit=limit,
                after_seq=after_seq,
                before_seq=before_seq,
            )
        )

    def get_messages_as_conversation(
        self, session_id: str, *, include_ancestors: bool = False, limit: int | None = None
    ) -> list[Chat]:
        """What goes to a model: calls have their results, roles alternate, nothing hidden is shown.

        With *include_ancestors*, also what was said before the session was compressed. *limit* is the
        number of stored messages that are looked at, the latest ones.
        """
        return self._wait(
            lambda: self._target.get_messages_as_conversation(
                session_id, include_ancestors=include_ancestors, limit=limit
            )
        )

    def get_messages_around(
        self, session_id: str, message_id: int | str, window: int = 5, *, include_hidden: bool = False
    ) -> MessageWindow:
        """A message and up to *window* others on each side; nothing if it is not there.

        Compacted messages are shown, those taken back or retracted only with *include_hidden*.
        """
        return self._wait(
            lambda: self._target.get_messages_around(
                session_id, message_id, window, include_hidden=include_hidden
            )
        )

    def get_anchored_view(
        self,
        session_id: str,
        message_id: int | str,
        window: int = 5,
        bookend: int = 3,
        *,
        keep_roles: Collection[str] | None = (Role.USER, Role.ASSISTANT),
        include_hidden: bool = False,
    ) -> AnchoredView:
        """The window around a message, and the first and last *bookend* texts outside it.

        Of other roles than *keep_roles*, only the message itself is shown; None keeps all.
        """
        return self._wait(
            lambda: self._target.get_anchored_view(
                session_id, message_id, window, bookend, keep_roles=keep_roles, include_hidden=include_hidden
            )
        )

    def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        """Whether a message with that id of its platform was ever stored in the session."""
        return self._wait(lambda: self._target.has_platform_message_id(session_id, platform_message_id))

    def list_recent_user_messages(self, session_id: str, limit: int = 20) -> list[UserTurn]:
        """What people said to the agent, the latest first."""
        return self._wait(lambda: self._target.list_recent_user_messages(session_id, limit))

    def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns, or as many as there are; None if there is none.

        What is taken back is hidden, and comes back with `restore_rewound`.
        """
        return self._wait(lambda: self._target.rewind_session(session_id, n))

    def rewind_to_message(self, session_id: str, message_id: int | str) -> Rewind:
        """Take back a message that a person said, and all that came after it."""
        return self._wait(lambda: self._target.rewind_to_message(session_id, message_id))

    def restore_rewound(self, session_id: str) -> int:
        """Bring back exactly what the last rewind took; how many messages.

        `NothingToUndoError` once the conversation has gone on since.
        """
        return self._wait(lambda: self._target.restore_rewound(session_id))

    def replace_messages(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> list[int]:
        """Put messages in the place of the conversation, all or none; returns their ids.

        What is hidden stays: the originals behind a summary, and what was taken back.
        """
        return self._wait(lambda: self._target.replace_messages(session_id, messages))

    def archive_and_compact(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> int:
        """Let messages, a summary, stand for the conversation so far; how many they stand for.

        The originals are still found by a search, and never sent to a model.
        """
        return self._wait(lambda: self._target.archive_and_compact(session_id, messages))

    def clear_messages(self, session_id: str) -> int:
        """Delete all messages of a session, hidden ones too; how many there were."""
        return self._wait(lambda: self._target.clear_messages(session_id))

    def edit_message(self, session_id: str, platform_message_id: str, content: Content) -> bool:
        """Let a message say what it says on its platform now, and keep what it said; whether that is new."""
        return self._wait(lambda: self._target.edit_message(session_id, platform_message_id, content))

    def retract_message(self, session_id: str, platform_message_id: str) -> bool:
        """Hide what was deleted on its platform; False if nothing of that name is to be seen."""
        return self._wait(lambda: self._target.retract_message(session_id, platform_message_id))

    def get_message_versions(self, session_id: str, message_id: int | str) -> list[MessageVersion]:
        """What a message said before it was edited, the first version first."""
        return self._wait(lambda: self._target.get_message_versions(session_id, message_id))

    def split_session(
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
        return self._wait(
            lambda: self._target.split_session(
                session_id, new_session_id, messages, model=model, system_prompt=system_prompt
            )
        )

    def branch_session(
        self, session_id: str, new_session_id: str, *, at_message_id: int | str | None = None
    ) -> str:
        """Copy what was said, up to and with that message, to a new session; the old one goes on. Its id."""
        return self._wait(
            lambda: self._target.branch_session(session_id, new_session_id, at_message_id=at_message_id)
        )

    def get_compression_tip(self, session_id: str) -> str:
        """Where a compressed session goes on today; any other one is its own tip."""
        return self._wait(lambda: self._target.get_compression_tip(session_id))

    def get_compression_lineage(self, session_id: str) -> list[str]:
        """The sessions from the first to the tip of which each continues the one before."""
        return self._wait(lambda: self._target.get_compression_lineage(session_id))

    def get_conversation_root(self, session_id: str) -> str:
        """The session that it all began with: compressions, branches and delegations are followed back."""
        return self._wait(lambda: self._target.get_conversation_root(session_id))

    def get_session_family(self, session_id: str) -> list[str]:
        """All sessions with the same conversation root, in the order of their ids."""
        return self._wait(lambda: self._target.get_session_family(session_id))

    def resolve_resume_session_id(self, session_id: str | None) -> str | None:
        """The session to go on with for an id: the latest of its line with messages; nothing for nothing."""
        return self._wait(lambda: self._target.resolve_resume_session_id(session_id))

    def set_session_archived(self, session_id: str, *, archived: bool = True) -> None:
        """Leave a session out of lists, with all that it continues and is continued by; or do so no longer.

        `SessionNotFoundError` if there is no such session.
        """
        self._wait(lambda: self._target.set_session_archived(session_id, archived=archived))

    def set_session_title(
        self, session_id: str, title: str | None, *, scope: Scope | None = None, author: str | None = None
    ) -> bool:
        """Call a session so, on behalf of a person; nothing to see in it means no title.

        False if there is no such session in sight. A title that another session has is a `TitleTakenError`,
        unless this session continues that one: then it passes on. *scope* says who asks, *author* who that is
        if the session is not theirs: an erasure of that person takes the title away.
        """
        return self._wait(
            lambda: self._target.set_session_title(session_id, title, scope=scope, author=author)
        )

    def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Call a session so unless it has a title; one that is taken gets a number, one too long is cut."""
        return self._wait(lambda: self._target.set_auto_title_if_empty(session_id, title))

    def get_session_title(self, session_id: str) -> str | None:
        """What a session is called; None if it has no title, or there is no such session."""
        return self._wait(lambda: self._target.get_session_title(session_id))

    def get_next_title_in_lineage(self, title: str, *, scope: Scope) -> str:
        """The title if nothing in sight has it, else with the next number: `Trip`, `Trip #2`, `Trip #3`."""
        return self._wait(lambda: self._target.get_next_title_in_lineage(title, scope=scope))

    def resolve_session_by_title(self, title: str, *, scope: Scope) -> str | None:
        """The newest session with that title and a number, else the one with the title, at its tip.

        None if nothing in sight is called so, `AmbiguousSessionError` if several owners have such a session.
        """
        return self._wait(lambda: self._target.resolve_session_by_title(title, scope=scope))

    def resolve_session(self, text: str, *, scope: Scope) -> str:
        """The session that somebody means by its id, the beginning of that, or its title, at its tip.

        `AmbiguousSessionError` lists the candidates if there are several, `SessionNotFoundError` says that
        nothing in sight fits.
        """
        return self._wait(lambda: self._target.resolve_session(text, scope=scope))

    def list_sessions_rich(
        self,
        *,
        scope: Scope,
        source: str | None = None,
        exclude_sources: Iterable[str] | None = None,
        limit: int = 20,
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
        return self._wait(
            lambda: self._target.list_sessions_rich(
                scope=scope,
                source=source,
                exclude_sources=exclude_sources,
                limit=limit,
                after=after,
                include_children=include_children,
                archived=archived,
                order_by_last_active=order_by_last_active,
                min_message_count=min_message_count,
                search_query=search_query,
            )
        )

    def recent_sessions(
        self, *, scope: Scope, source: str | None = None, limit: int = 500
    ) -> list[SessionSummary]:
        """The conversations to choose from: the latest active, without those that tools hold."""
        return self._wait(lambda: self._target.recent_sessions(scope=scope, source=source, limit=limit))

    def search_sessions_by_id(self, text: str, *, scope: Scope, limit: int = 20) -> list[SessionSummary]:
        """Sessions whose id is that text, begins with it, or holds it, in this order; of any kind."""
        return self._wait(lambda: self._target.search_sessions_by_id(text, scope=scope, limit=limit))

    def record_usage(
        self,
        session_id: str,
        event_id: str,
        *,
        at: datetime | float | str | None = None,
        **facts: Unpack[UsageFacts],
    ) -> bool:
        """Count one use of a model; False, and nothing is changed, if that event was counted already.

        The id of an event is the caller's and names it over the whole store. A price that is not known is
        None: it may become known later, see `amend_usage`.
        """
        return self._wait(lambda: self._target.record_usage(session_id, event_id, at=at, **facts))

    def amend_usage(
        self,
        event_id: str,
        actual_cost_usd: float,
        *,
        cost_source: str | None = None,
        pricing_version: str | None = None,
    ) -> bool:
        """Note what an event really cost, once; False if that was known already."""
        return self._wait(
            lambda: self._target.amend_usage(
                event_id, actual_cost_usd, cost_source=cost_source, pricing_version=pricing_version
            )
        )

    def usage_of_session(self, session_id: str) -> SessionUsage:
        """What a session has used, by model and task."""
        return self._wait(lambda: self._target.usage_of_session(session_id))

    def spent(self, session_id: str, *, zone: str = "UTC") -> Spent:
        """What the budgets of a session's next turn have to allow for; the day is that of *zone*, now."""
        return self._wait(lambda: self._target.spent(session_id, zone=zone))

    def insights(
        self, days: float = 30, *, scope: Scope, source: str | None = None, zone: str = "UTC"
    ) -> Insights:
        """What happened in the last days, as far as *scope* sees it; dates and hours are those of *zone*."""
        return self._wait(lambda: self._target.insights(days, scope=scope, source=source, zone=zone))

    def erase(
        self, owner: str, *, keep_copies: bool = False, progress: OnProgress | None = None
    ) -> ErasureReceipt:
        """Forget an owner of sessions, in every table and file of the database; a receipt tells of it.

        `SessionBusyError` while a turn of theirs runs. Erasing again does no harm. Backups and what is in
        quarantine are removed, unless they shall be kept: then the receipt lists them. One that is cut off
        is finished by the store when it is opened again, or by `finish_erasures`.
        """
        return self._wait(lambda: self._target.erase(owner, keep_copies=keep_copies, progress=progress))

    def unfinished_erasures(self) -> int:
        """How many erasures were begun and not finished."""
        return self._wait(self._target.unfinished_erasures)

    def finish_erasures(self) -> int:
        """Bring to their end the erasures that were cut off; how many. What was sent since stays."""
        return self._wait(self._target.finish_erasures)

    def export_owner(self, owner: str) -> Iterator[dict[str, Any]]:
        """All that is known of an owner: their lanes, what happened and waits there, and every session.

        Of rooms that they share, what they sent there that waits, and what they are owed for it. Last, what
        they said in sessions of others, be it in a room or because their session was moved or forked, and the
        titles that they gave to these.
        """
        return self._each(lambda: self._target.export_owner(owner))

    def count_said_elsewhere(self, owner: str) -> int:
        """Return how many messages of an owner are in sessions of others."""
        return self._wait(lambda: self._target.count_said_elsewhere(owner))

    def erased_at(self, owner: str) -> datetime | None:
        """When an owner was erased: what they sent until then must not be taken in."""
        return self._wait(lambda: self._target.erased_at(owner))

    def search_messages(
        self, query: str, *, scope: Scope, limit: int = 20, offset: int = 0, **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """Messages that fit a query: the best of the newest first, or with `sort` "newest" or "oldest"."""
        return self._wait(
            lambda: self._target.search_messages(query, scope=scope, limit=limit, offset=offset, **options)
        )

    def search_sessions(
        self, query: str, *, scope: Scope, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> SessionSearchResult:
        """The conversations in which something fits a query, each once, with its best message."""
        return self._wait(lambda: self._target.search_sessions(query, scope=scope, limit=limit, **options))

    @property
    def search_index(self) -> IndexReport:
        """How the search index is: empty, building, ready or unavailable, and why."""
        return self._ask(lambda: self._target.search_index)

    def catch_up_search_index(self) -> None:
        """Return when all that was said before is in the index. A search does not need that."""
        self._wait(self._target.catch_up_search_index)

    def check_search_index(self) -> IndexReport:
        """Look at the whole index; a bad one is set aside and made anew from the messages."""
        return self._wait(self._target.check_search_index)

    def rebuild_search_index(self) -> None:
        """Leave nothing of the index on the disk, and make it anew in the background."""
        self._wait(self._target.rebuild_search_index)

    def export_session(self, session_id: str, *, scope: Scope, include_hidden: bool = True) -> dict[str, Any]:
        """A session with its messages; `SessionNotFoundError` if *scope* cannot see it."""
        return self._wait(
            lambda: self._target.export_session(session_id, scope=scope, include_hidden=include_hidden)
        )

    def export_all(
        self, *, scope: Scope, source: str | None = None, include_hidden: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Every session that *scope* may see, the oldest first, each as it is when it is read.

        `write_export` shows all of them as of one moment.
        """
        return self._each(
            lambda: self._target.export_all(scope=scope, source=source, include_hidden=include_hidden)
        )

    def write_export(
        self,
        target: Target,
        *,
        scope: Scope,
        format: str = "jsonl",
        source: str | None = None,
        session_id: str | None = None,
        lineage: Literal["single", "logical"] = "single",
        include_hidden: bool = True,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Write sessions to a file (whole or not at all) or a binary stream, all as of one moment.

        With *lineage* "logical" a compressed conversation stands together, from its beginning to its tip.
        """
        return self._wait(
            lambda: self._target.write_export(
                target,
                scope=scope,
                format=format,
                source=source,
                session_id=session_id,
                lineage=lineage,
                include_hidden=include_hidden,
                progress=progress,
            )
        )

    def import_sessions(
        self,
        lines: Lines,
        *,
        owner: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Take sessions in from a file of JSON Lines, or from lines or objects: the inverse of an export.

        Nothing that is here is changed: see the report for clashes. With *owner* all become theirs.
        """
        return self._wait(
            lambda: self._target.import_sessions(lines, owner=owner, dry_run=dry_run, progress=progress)
        )

    def delete_session(self, session_id: str) -> bool:
        """Remove a session with all its messages and those of its sub-agents; False if there is none.

        What came from it otherwise stays, and stands for itself. `SessionOnLaneError` for the current session
        of a lane, `SessionBusyError` while a turn of it runs. After a `StorageError` the session may be gone
        from sight with messages left in the file: called again, this removes them and says that there is no
        such session. A store that is opened removes them, too.
        """
        return self._wait(lambda: self._target.delete_session(session_id))

    def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Remove several sessions, each as `delete_session` does; how many were there."""
        return self._wait(lambda: self._target.delete_sessions(session_ids))

    def prune_sessions(
        self,
        *,
        older_than_days: float | None = 90,
        max_count: int | None = None,
        max_bytes: int | None = None,
        source: str | None = None,
        relation: str | None = None,
        only_empty: bool = False,
        include_archived: bool = False,
        unended: bool = False,
        limit: int | None = None,
        dry_run: bool = False,
        now: datetime | float | None = None,
        progress: OnProgress | None = None,
    ) -> PruneReport:
        """Remove ended sessions nobody has touched for that long, and the oldest beyond a number or a size.

        With *unended* also those that nobody has ended. Never one that a lane has, that is pinned, touched
        within a day, or still owed to a hook, nor what was compressed into such a one. A dry run tells what
        would go; with *limit* so many go, or few more.
        """
        return self._wait(
            lambda: self._target.prune_sessions(
                older_than_days=older_than_days,
                max_count=max_count,
                max_bytes=max_bytes,
                source=source,
                relation=relation,
                only_empty=only_empty,
                include_archived=include_archived,
                unended=unended,
                limit=limit,
                dry_run=dry_run,
                now=now,
                progress=progress,
            )
        )

    def finish_removals(self) -> int:
        """Remove the messages that are left of large sessions, piece by piece; how many there were."""
        return self._wait(self._target.finish_removals)

    def get_meta(self, key: str) -> str | None:
        """Return the text that was kept under that name; None if there is none."""
        return self._wait(lambda: self._target.get_meta(key))

    def set_meta(self, key: str, value: str | None) -> None:
        """Keep a text under that name, in place of an earlier one; None forgets it."""
        self._wait(lambda: self._target.set_meta(key, value))
