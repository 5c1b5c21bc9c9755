"""The database for callers without a loop.

Made by docs/reference/make_blocking.py from the asynchronous classes: run that, and change nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from gateway_sessions.blocking._loop_thread import BlockingResource
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.core.export.transfer_reports import ExportReport, ImportReport, Progress
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
from gateway_sessions.core.transcript.model_history import Chat
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
        """Return the database at a path, `sqlite:///path`, `postgresql://…`, `mysql://…` or another URL.

        If another process owns it, or a server is away, opening is tried for up to *wait* seconds. Files
        beside a database on a server are kept in *home*; without *home*, in a directory for that database in
        the user's data directory. Many processes may have that database open, each with a *home* of its own;
        *cluster* has the rules for them, and *pool_size* is the number of connections for the work of this
        process. On PostgreSQL a *pool* of asyncpg, made for that address by the program, can take the place
        of our own; it stays open afterwards. Without *prepared_statements* no statement is prepared on a
        connection.

        *stemming* is the language whose words searches find in all their forms, or "off"; None keeps the
        present one. After a change the search index is made again in the background. While other processes
        have the database open, it is not changed.
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
        """Return the same database for reading only, also if another process owns it; writes are refused."""
        return cls(
            SessionDB.open_reader(
                url_or_path,
                clock=clock,
                home=home,
                prepared_statements=prepared_statements,
                pool_size=pool_size,
            )
        )

    def vacuum(self) -> VacuumReport:
        """Rewrite the database file without gaps. Writers wait, and the disk needs room for both files."""
        return self._run_and_wait(self._target.vacuum)

    def optimise(self) -> None:
        """Update the statistics that the database plans queries by; `vacuum` does so as well."""
        self._run_and_wait(self._target.optimise)

    def empty_log(self) -> bool:
        """Empty the write-ahead log; False if a reader still holds an old moment."""
        return self._run_and_wait(self._target.empty_log)

    def overwrite_deleted(self, *, overwrite: bool) -> None:
        """Overwrite the space of deleted rows with zeros from now on, or stop doing so."""
        self._run_and_wait(lambda: self._target.overwrite_deleted(overwrite=overwrite))

    @property
    def has_upkeep(self) -> bool:
        """Return whether this program maintains the database file and makes its backups."""
        return self._call_on_loop(lambda: self._target.has_upkeep)

    def newest_backup(self) -> datetime | None:
        """Return the time of the newest backup. It reads the disk: call it from a thread."""
        return self._call_on_loop(self._target.newest_backup)

    def back_up(self, *, keep: int | None = None) -> Path:
        """Back up the database as it is now, check the backup, and remove all but the newest *keep*."""
        return self._run_and_wait(lambda: self._target.back_up(keep=keep))

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
        """Create a session; of one that exists, fill in the fields that it lacks. Return its id.

        Raise `SentBeforeErasureError` if it began before its owner was erased.
        """
        return self._run_and_wait(
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
        """Create a session unless it exists, for callers that have messages of it and cannot tell."""
        return self._run_and_wait(lambda: self._target.ensure_session(session_id, source, model, **known))

    def get_session(self, session_id: str) -> SessionRecord | None:
        """Return the record of a session; None if there is none."""
        return self._run_and_wait(lambda: self._target.get_session(session_id))

    def end_session(self, session_id: str, end_reason: str) -> bool:
        """End a session; False if it has ended already: the first reason stands.

        Raise `SessionOnLaneError` for the current session of a lane, which `reset_session` of the store ends.
        """
        return self._run_and_wait(lambda: self._target.end_session(session_id, end_reason))

    def reopen_session(self, session_id: str) -> bool:
        """Let an ended session go on; False if it has not ended. Not for the current session of a lane."""
        return self._run_and_wait(lambda: self._target.reopen_session(session_id))

    def update_system_prompt(self, session_id: str, system_prompt: str | None) -> None:
        """Store the prompt that the model gets before all messages."""
        self._run_and_wait(lambda: self._target.update_system_prompt(session_id, system_prompt))

    def note_system_prompt(self, session_id: str, system_prompt: str) -> bool:
        """Store the first prompt of a session; False if the session has one, or does not exist."""
        return self._run_and_wait(lambda: self._target.note_system_prompt(session_id, system_prompt))

    def update_session_model(
        self, session_id: str, model: str | None, model_config: Mapping[str, Any] | None = None
    ) -> None:
        """Store the model that answers from now on, and its settings if they are given."""
        self._run_and_wait(lambda: self._target.update_session_model(session_id, model, model_config))

    def set_session_pinned(self, session_id: str, *, pinned: bool = True) -> None:
        """Keep a session whatever retention says, or stop doing so."""
        self._run_and_wait(lambda: self._target.set_session_pinned(session_id, pinned=pinned))

    def message_count(self, session_id: str, *, include_hidden: bool = False) -> int:
        """Return the number of messages in the conversation, or with *include_hidden* of all stored ones."""
        return self._run_and_wait(
            lambda: self._target.message_count(session_id, include_hidden=include_hidden)
        )

    def session_count(
        self,
        source: str | None = None,
        *,
        scope: Scope,
        min_message_count: int = 0,
        include_archived: bool = False,
    ) -> int:
        """Return the number of sessions that *scope* may see."""
        return self._run_and_wait(
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
        """Append one message; return its id."""
        return self._run_and_wait(
            lambda: self._target.append_message(session_id, role, content, timestamp=timestamp, **members)
        )

    def append_messages(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> list[int]:
        """Append messages, all or none, in one commit; return their ids.

        Raise `SentBeforeErasureError` for a message that was sent before an erasure of its author or owner.
        """
        return self._run_and_wait(lambda: self._target.append_messages(session_id, messages))

    def get_messages(
        self,
        session_id: str,
        *,
        include_hidden: bool = False,
        limit: int | None = None,
        after_seq: int | None = None,
        before_seq: int | None = None,
    ) -> list[Message]:
        """Return messages in order: the first behind `after_seq`, or without it the last before `before_seq`.

        Raise `SessionNotFoundError` if there is no such session.
        """
        return self._run_and_wait(
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
        """Return the conversation for a model: calls have results, roles alternate, nothing is hidden.

        With *include_ancestors*, the messages before a compression are included. *limit* is the number of
        stored messages that are read, the latest ones.
        """
        return self._run_and_wait(
            lambda: self._target.get_messages_as_conversation(
                session_id, include_ancestors=include_ancestors, limit=limit
            )
        )

    def get_messages_around(
        self, session_id: str, message_id: int | str, window: int = 5, *, include_hidden: bool = False
    ) -> MessageWindow:
        """Return a message and up to *window* others on each side; an empty window if it is not there.

        Compacted messages are shown; rewound and retracted ones only with *include_hidden*.
        """
        return self._run_and_wait(
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
        """Return the window around a message, and the first and last *bookend* texts outside it.

        Only messages of the roles in *keep_roles* are shown, and the message itself; None shows all roles.
        """
        return self._run_and_wait(
            lambda: self._target.get_anchored_view(
                session_id, message_id, window, bookend, keep_roles=keep_roles, include_hidden=include_hidden
            )
        )

    def has_platform_message_id(self, session_id: str, platform_message_id: str) -> bool:
        """Return whether a message with that id of its platform was ever stored in the session."""
        return self._run_and_wait(
            lambda: self._target.has_platform_message_id(session_id, platform_message_id)
        )

    def list_recent_user_messages(self, session_id: str, limit: int = 20) -> list[UserTurn]:
        """Return the latest messages of people to the agent, the latest first."""
        return self._run_and_wait(lambda: self._target.list_recent_user_messages(session_id, limit))

    def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns, or as many as there are; None if there is none.

        Their messages are hidden, and `restore_rewound` shows them again.
        """
        return self._run_and_wait(lambda: self._target.rewind_session(session_id, n))

    def rewind_to_message(self, session_id: str, message_id: int | str) -> Rewind:
        """Take back a message of a person, and all messages after it."""
        return self._run_and_wait(lambda: self._target.rewind_to_message(session_id, message_id))

    def restore_rewound(self, session_id: str) -> int:
        """Show the messages again that the last rewind hid; return how many.

        Raise `NothingToUndoError` if the conversation has gone on since.
        """
        return self._run_and_wait(lambda: self._target.restore_rewound(session_id))

    def replace_messages(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> list[int]:
        """Put messages in the place of the conversation, all or none; return their ids.

        Hidden messages stay: the originals behind a summary, and rewound ones.
        """
        return self._run_and_wait(lambda: self._target.replace_messages(session_id, messages))

    def archive_and_compact(self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]) -> int:
        """Hide the conversation so far behind *messages*, a summary of it; return how many were hidden.

        Searches still find the originals; no model gets them.
        """
        return self._run_and_wait(lambda: self._target.archive_and_compact(session_id, messages))

    def clear_messages(self, session_id: str) -> int:
        """Delete all messages of a session, hidden ones too; return how many there were."""
        return self._run_and_wait(lambda: self._target.clear_messages(session_id))

    def edit_message(self, session_id: str, platform_message_id: str, content: Content) -> bool:
        """Replace the content of an edited message and keep the old version; return whether they differ."""
        return self._run_and_wait(lambda: self._target.edit_message(session_id, platform_message_id, content))

    def retract_message(self, session_id: str, platform_message_id: str) -> bool:
        """Hide a message that was deleted on its platform; False if no message with that id is visible."""
        return self._run_and_wait(lambda: self._target.retract_message(session_id, platform_message_id))

    def get_message_versions(self, session_id: str, message_id: int | str) -> list[MessageVersion]:
        """Return the earlier versions of a message, the first one first."""
        return self._run_and_wait(lambda: self._target.get_message_versions(session_id, message_id))

    def split_session(
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
        return self._run_and_wait(
            lambda: self._target.split_session(
                session_id, new_session_id, messages, model=model, system_prompt=system_prompt
            )
        )

    def branch_session(
        self, session_id: str, new_session_id: str, *, at_message_id: int | str | None = None
    ) -> str:
        """Copy a session, up to and with that message, to a new one; the old one goes on. Return its id."""
        return self._run_and_wait(
            lambda: self._target.branch_session(session_id, new_session_id, at_message_id=at_message_id)
        )

    def get_compression_tip(self, session_id: str) -> str:
        """Return the session in which a compressed one goes on today; any other session is its own tip."""
        return self._run_and_wait(lambda: self._target.get_compression_tip(session_id))

    def get_compression_lineage(self, session_id: str) -> list[str]:
        """Return the sessions from the first to the tip; each continues the one before."""
        return self._run_and_wait(lambda: self._target.get_compression_lineage(session_id))

    def get_conversation_root(self, session_id: str) -> str:
        """Return the session in which it all began, back through compressions, branches and delegations."""
        return self._run_and_wait(lambda: self._target.get_conversation_root(session_id))

    def get_session_family(self, session_id: str) -> list[str]:
        """Return all sessions with the same conversation root, in the order of their ids."""
        return self._run_and_wait(lambda: self._target.get_session_family(session_id))

    def resolve_resume_session_id(self, session_id: str | None) -> str | None:
        """Return the session to resume for an id: the latest session with messages on its line.

        An empty id is returned as it is.
        """
        return self._run_and_wait(lambda: self._target.resolve_resume_session_id(session_id))

    def set_session_archived(self, session_id: str, *, archived: bool = True) -> None:
        """Leave a session and its whole line of compressions out of lists, or list them again.

        Raise `SessionNotFoundError` if there is no such session.
        """
        self._run_and_wait(lambda: self._target.set_session_archived(session_id, archived=archived))

    def set_session_title(
        self, session_id: str, title: str | None, *, scope: Scope | None = None, author: str | None = None
    ) -> bool:
        """Set the title of a session; an empty one removes it. False if *scope* sees no such session.

        A title of another session raises `TitleTakenError`, unless this session continues that one: then the
        title is passed on. *scope* tells who asks. *author* is the person who gives the title, if the session
        is not theirs: an erasure of that person removes the title.
        """
        return self._run_and_wait(
            lambda: self._target.set_session_title(session_id, title, scope=scope, author=author)
        )

    def set_auto_title_if_empty(self, session_id: str, title: str) -> bool:
        """Set the title of an untitled session; a taken title gets a number, and a long one is cut."""
        return self._run_and_wait(lambda: self._target.set_auto_title_if_empty(session_id, title))

    def get_session_title(self, session_id: str) -> str | None:
        """Return the title of a session; None if it has no title, or there is no such session."""
        return self._run_and_wait(lambda: self._target.get_session_title(session_id))

    def get_next_title_in_lineage(self, title: str, *, scope: Scope) -> str:
        """Return the title if *scope* sees none such, else with the next number: `Trip`, `Trip #2`."""
        return self._run_and_wait(lambda: self._target.get_next_title_in_lineage(title, scope=scope))

    def resolve_session_by_title(self, title: str, *, scope: Scope) -> str | None:
        """Return the tip of the newest session with that title and a number, else of the one with the title.

        None if *scope* sees no such session; `AmbiguousSessionError` if several owners have one.
        """
        return self._run_and_wait(lambda: self._target.resolve_session_by_title(title, scope=scope))

    def resolve_session(self, text: str, *, scope: Scope) -> str:
        """Return the tip of the session that an id, the beginning of an id, or a title means.

        `AmbiguousSessionError` lists the candidates if there are several. `SessionNotFoundError` is raised if
        *scope* sees none.
        """
        return self._run_and_wait(lambda: self._target.resolve_session(text, scope=scope))

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
        """Return a page of the conversations that *scope* sees; *after* is the last of the page before.

        A compressed conversation is one row: its latest session, in the place of its first. With
        *include_children* each session is a row of its own; sessions of sub-agents never are. The latest
        active come first, or the latest begun. *archived*: False leaves the archive out, True lists only the
        archive, None lists all.
        """
        return self._run_and_wait(
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
        """Return the conversations to choose from: the latest active, without those that tools hold."""
        return self._run_and_wait(
            lambda: self._target.recent_sessions(scope=scope, source=source, limit=limit)
        )

    def search_sessions_by_id(self, text: str, *, scope: Scope, limit: int = 20) -> list[SessionSummary]:
        """Return sessions whose id is that text, begins with it, or holds it, in this order; of any kind."""
        return self._run_and_wait(lambda: self._target.search_sessions_by_id(text, scope=scope, limit=limit))

    def record_usage(
        self,
        session_id: str,
        event_id: str,
        *,
        at: datetime | float | str | None = None,
        **facts: Unpack[UsageFacts],
    ) -> bool:
        """Count one use of a model; False, and no row is changed, if that event was counted already.

        The caller chooses the id of the event, which is unique in the whole store. An unknown price is None:
        `amend_usage` stores it later.
        """
        return self._run_and_wait(lambda: self._target.record_usage(session_id, event_id, at=at, **facts))

    def amend_usage(
        self,
        event_id: str,
        actual_cost_usd: float,
        *,
        cost_source: str | None = None,
        pricing_version: str | None = None,
    ) -> bool:
        """Store the actual cost of an event, once; False if it was stored already."""
        return self._run_and_wait(
            lambda: self._target.amend_usage(
                event_id, actual_cost_usd, cost_source=cost_source, pricing_version=pricing_version
            )
        )

    def usage_of_session(self, session_id: str) -> SessionUsage:
        """Return the use of a session, by model and task."""
        return self._run_and_wait(lambda: self._target.usage_of_session(session_id))

    def spent(self, session_id: str, *, zone: str = "UTC") -> Spent:
        """Return the use that counts against the budgets of a session's next turn, today in *zone*."""
        return self._run_and_wait(lambda: self._target.spent(session_id, zone=zone))

    def insights(
        self, days: float = 30, *, scope: Scope, source: str | None = None, zone: str = "UTC"
    ) -> Insights:
        """Return a report of the last days, as far as *scope* sees them; hours are those of *zone*."""
        return self._run_and_wait(lambda: self._target.insights(days, scope=scope, source=source, zone=zone))

    def erase(
        self, owner: str, *, keep_copies: bool = False, progress: OnProgress | None = None
    ) -> ErasureReceipt:
        """Forget an owner of sessions, in every table and file of the database; return a receipt.

        Raise `SessionBusyError` while a turn of theirs runs. A second erasure does no harm. Backups and
        quarantined files are removed, unless *keep_copies*: then the receipt lists them. An erasure that is
        cut off is finished when the store is opened again, or by `finish_erasures`.
        """
        return self._run_and_wait(
            lambda: self._target.erase(owner, keep_copies=keep_copies, progress=progress)
        )

    def unfinished_erasures(self) -> int:
        """Return the number of erasures that were begun and not finished."""
        return self._run_and_wait(self._target.unfinished_erasures)

    def finish_erasures(self) -> int:
        """Finish the erasures that were cut off; return how many. Messages sent since the erasure stay."""
        return self._run_and_wait(self._target.finish_erasures)

    def export_owner(self, owner: str) -> Iterator[dict[str, Any]]:
        """Yield all that is known of an owner: their lanes with log, queue and replies, and every session.

        Then come rooms that they share, with their messages that wait and the replies that they are owed;
        then their messages in other owners' sessions, be it in a room or because their session was moved or
        forked; and last the titles that they gave to these sessions.
        """
        return self._iterate(lambda: self._target.export_owner(owner))

    def count_said_elsewhere(self, owner: str) -> int:
        """Return how many messages of an owner are in sessions of others."""
        return self._run_and_wait(lambda: self._target.count_said_elsewhere(owner))

    def erased_at(self, owner: str) -> datetime | None:
        """Return the time at which an owner was erased: messages sent until then must not be taken in."""
        return self._run_and_wait(lambda: self._target.erased_at(owner))

    def search_stems(self) -> Stems:
        """Return the stems by which words are found in all their forms."""
        return self._run_and_wait(self._target.search_stems)

    def search_messages(
        self, query: str, *, scope: Scope, limit: int = 20, offset: int = 0, **options: Unpack[SearchOptions]
    ) -> SearchResult:
        """Return messages that match a query: the best ones first, or by `sort` the newest or the oldest."""
        return self._run_and_wait(
            lambda: self._target.search_messages(query, scope=scope, limit=limit, offset=offset, **options)
        )

    def search_sessions(
        self, query: str, *, scope: Scope, limit: int = 10, **options: Unpack[SearchOptions]
    ) -> SessionSearchResult:
        """Return the conversations with messages that match a query, each once, with its best message."""
        return self._run_and_wait(
            lambda: self._target.search_sessions(query, scope=scope, limit=limit, **options)
        )

    @property
    def search_index(self) -> IndexReport:
        """Return the state of the search index: empty, building, ready or unavailable, and why."""
        return self._call_on_loop(lambda: self._target.search_index)

    def catch_up_search_index(self) -> None:
        """Return when the index has read all messages so far. A search does not need to wait for this."""
        self._run_and_wait(self._target.catch_up_search_index)

    def check_search_index(self) -> IndexReport:
        """Check the whole index; a damaged one is set aside and made again from the messages."""
        return self._run_and_wait(self._target.check_search_index)

    def rebuild_search_index(self) -> None:
        """Remove the index from the disk and make it again in the background."""
        self._run_and_wait(self._target.rebuild_search_index)

    def export_session(self, session_id: str, *, scope: Scope, include_hidden: bool = True) -> dict[str, Any]:
        """Return a session with its messages; `SessionNotFoundError` if *scope* does not see it."""
        return self._run_and_wait(
            lambda: self._target.export_session(session_id, scope=scope, include_hidden=include_hidden)
        )

    def export_all(
        self, *, scope: Scope, source: str | None = None, include_hidden: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Yield every session that *scope* may see, the oldest first, each as it is when it is read.

        `write_export` writes all of them as of one moment.
        """
        return self._iterate(
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

        With *lineage* "logical", the sessions of a compressed conversation stand together, in their order.
        """
        return self._run_and_wait(
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
        """Import sessions from a file of JSON Lines, or from lines or objects: the inverse of an export.

        No session of the store is changed: the report lists the clashes. With *owner*, all become that
        owner's.
        """
        return self._run_and_wait(
            lambda: self._target.import_sessions(lines, owner=owner, dry_run=dry_run, progress=progress)
        )

    def delete_session(self, session_id: str) -> bool:
        """Remove a session with all its messages and those of its sub-agents; False if there is none.

        Other sessions that came from it stay, without a parent. Raise `SessionOnLaneError` for the current
        session of a lane, and `SessionBusyError` while a turn of it runs. After a `StorageError` the session
        may be gone while messages of it are left in the file: a second call removes these and returns False.
        So does a store when it is opened.
        """
        return self._run_and_wait(lambda: self._target.delete_session(session_id))

    def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Remove several sessions, each as `delete_session` does; return how many there were."""
        return self._run_and_wait(lambda: self._target.delete_sessions(session_ids))

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
        """Remove ended sessions that were not used for long, and the oldest beyond a number or a size.

        With *unended*, sessions that have not ended are removed as well. A session is kept if a lane has it,
        if it is pinned, was touched within a day, or is owed to a hook, and so are the sessions that it
        continues. A dry run returns the sessions that it would remove; with *limit*, that many are removed,
        or few more.
        """
        return self._run_and_wait(
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
        """Remove the messages that are left of removed sessions, piece by piece; return how many."""
        return self._run_and_wait(self._target.finish_removals)

    def get_meta(self, key: str) -> str | None:
        """Return the text that was kept under that name; None if there is none."""
        return self._run_and_wait(lambda: self._target.get_meta(key))

    def set_meta(self, key: str, value: str | None) -> None:
        """Keep a text under that name, in place of an earlier one; None forgets it."""
        self._run_and_wait(lambda: self._target.set_meta(key, value))
