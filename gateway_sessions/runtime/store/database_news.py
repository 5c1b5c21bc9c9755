"""The listener of a store's database: passes on what the database reports to the parts of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from gateway_sessions.core.committed_changes import CommittedChange
from gateway_sessions.ports import AliasResolver
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.duties.session_hooks import Hooks
from gateway_sessions.runtime.observability.event_stream import Events, SessionEvents
from gateway_sessions.runtime.observability.incidents import Incidents
from gateway_sessions.storage.listener import DatabaseListener, FilesBeside

RewriteFiles: TypeAlias = Callable[[], Awaitable[FilesBeside]]
"""Rewrites the files of a store besides its database, once the rows of an erasure are gone."""


class DatabaseNews(DatabaseListener):
    """Made before the database. The parts of the store, which need the database, are attached later."""

    def __init__(self, events: Events, incidents: Incidents, rewrite_files: RewriteFiles) -> None:
        self._session_events = SessionEvents(events)
        self._incidents = incidents
        self._rewrite_files = rewrite_files
        self._hooks: Hooks | None = None
        self._cluster: Cluster | None = None
        self._aliases: AliasResolver | None = None

    def attach_hooks(self, hooks: Hooks) -> None:
        """Tell the hooks of each commit from now on."""
        self._hooks = hooks

    def attach_cluster(self, cluster: Cluster) -> None:
        """Tell the cluster of silence and of calls from now on."""
        self._cluster = cluster

    def attach_aliases(self, aliases: AliasResolver | None) -> None:
        """Resolve the ids of people with these aliases from now on."""
        self._aliases = aliases

    def hear_news(self, news: Sequence[CommittedChange]) -> None:
        """Emit the events of sessions, and tell the hooks."""
        if self._hooks is not None:
            self._session_events.emit_news(news)
            self._hooks.hear_news(news)

    def hear_index_fault(self, problem: str, place: Path | None) -> None:
        """Report an incident."""
        self._incidents.report("search_index_lost", problem, place)

    def hear_silence(self) -> None:
        """Stop all turns of this node."""
        if self._cluster is not None:
            self._cluster.silence()

    def hear_call(self, epochs: frozenset[int]) -> None:
        """Let the duties of this node look."""
        if self._cluster is not None:
            self._cluster.hear_call(epochs)

    async def resolve_alias(self, platform: str, user_id: str) -> str:
        """Return the one id that all ids of a person share, where one is known."""
        return user_id if self._aliases is None else await self._aliases(platform, user_id)

    async def purge_erased_from_files(self) -> FilesBeside:
        """Rewrite the files of the store besides the database."""
        return await self._rewrite_files()
