"""Assembly of a store: database, recovery, snapshot and duties, in the order in which they start.

Putting a store together: the database first, then what was left by the process before, then the duties.

Where the parts of a store are, by what people name it with.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

from anyio.abc import TaskGroup

from gateway_sessions.config import Config, SnapshotMode
from gateway_sessions.core.identity.hermes_keys import hermes_key
from gateway_sessions.core.queue.inbound import Speakers
from gateway_sessions.ports import AliasResolver, Clock, HasActiveProcesses
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.duties.backups import Backups
from gateway_sessions.runtime.duties.cluster import Cluster, Duty, NodeLanes
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher, Pruner, QueueCleanup, Retention
from gateway_sessions.runtime.duties.restart_recovery import RestartRecords, StartReport
from gateway_sessions.runtime.duties.session_hooks import Hook, Hooks
from gateway_sessions.runtime.duties.sessions_json_recovery import SnapshotRecovery
from gateway_sessions.runtime.duties.titles import Titler, Titling, plain_titler
from gateway_sessions.runtime.observability.event_stream import Events
from gateway_sessions.runtime.observability.incidents import Incidents
from gateway_sessions.runtime.queue.admission import QueueLimits
from gateway_sessions.runtime.queue.aliases import Aliases, CachedAliases
from gateway_sessions.runtime.queue.edits import MessageEdits
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.runtime.queue.routing import EntryCache, Routing
from gateway_sessions.runtime.store.database_news import DatabaseNews, RewriteFiles
from gateway_sessions.runtime.store.database_opening import DatabaseOpening
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.sessions_json import SnapshotForm, SnapshotWriter

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """The arguments of `SessionStore.open` besides the configuration."""

    has_active_processes: HasActiveProcesses | None = None
    hooks: tuple[tuple[str | None, Hook], ...] = ()
    """With their names; None: named after the function."""
    aliases: AliasResolver | None = None
    titler: Titler | None = plain_titler
    wait: float = 0.0
    pool: object | None = None
    """Connections to the database, which the program closes itself."""
    upkeep: bool = True
    """Whether sessions end, and lanes are forgotten, when their time has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """The parts of an open store."""

    context: StoreContext
    routing: Routing
    queue: QueueOperations
    edits: MessageEdits
    hooks: Hooks
    watcher: ExpiryWatcher
    pruner: Pruner
    restart: RestartRecords
    titling: Titling
    snapshot: SnapshotWriter | None
    incidents: Incidents
    started: StartReport
    cluster: Cluster | None
    """The other processes that have the store open; None where there can be none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAssembly:
    """Opens the parts of a store from its configuration and options."""

    config: Config
    clock: Clock
    options: StoreOptions
    database: DatabaseOpening
    cache: EntryCache
    events: Events
    flush: Callable[[], Awaitable[None]]
    """Returns when sessions.json shows all that was changed before."""
    rewrite_files: RewriteFiles

    async def open_parts(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> StoreParts:
        """Open everything; the duties run in *tasks*, *cleanup* closes the rest."""
        cleanup.callback(self.events.close)
        incidents = Incidents()
        news = DatabaseNews(self.events, incidents, self.rewrite_files)
        db = await self.database.open(cleanup, news)
        with db.ownership.retry.while_opening():
            return await self._assemble_parts(db, news, incidents, tasks)

    async def _assemble_parts(
        self, db: SessionDB, news: DatabaseNews, incidents: Incidents, tasks: TaskGroup
    ) -> StoreParts:
        """Take over what the process before has left, and begin the duties."""
        hooks = self._register_hooks(db, news)
        context = await self._make_context(db, hooks)
        snapshot = await self._open_snapshot(context, incidents)
        restart = RestartRecords(context, self.database.home)
        routing = self._open_routing(context, news)
        titling = Titling(db, self.clock, self.options.titler)
        lanes = self._make_node_lanes(db)
        queue = self._open_queue(context, routing, restart, titling, lanes)
        started = await restart.recover()
        cluster = None
        if lanes is not None and (shared := db.ownership.shared) is not None:
            on_lead = _follow_nothing if snapshot is None else db.generation.count_change_elsewhere
            cluster = Cluster(lanes, shared, restart, queue, on_look=hooks.wake, on_lead=on_lead)
            news.attach_cluster(cluster)
        await queue.refresh_counts()
        parts = StoreParts(
            context=context,
            routing=routing,
            queue=queue,
            edits=MessageEdits(queue, routing, QueueLimits.configured(self.config)),
            hooks=hooks,
            watcher=ExpiryWatcher(context, self.config.expiry_watcher),
            pruner=Pruner(context, self.config.expiry_watcher, self.config.session_store_max_age),
            restart=restart,
            titling=titling,
            snapshot=snapshot,
            incidents=incidents,
            started=started,
            cluster=cluster,
        )
        self._begin_duties(parts, tasks)
        return parts

    def _begin_duties(self, parts: StoreParts, tasks: TaskGroup) -> None:
        for duty in self._make_duties(parts):
            tasks.start_soon(duty)
        if parts.cluster is not None:
            parts.cluster.start_duties(tasks)

    async def _make_context(self, db: SessionDB, hooks: Hooks) -> StoreContext:
        return StoreContext.configured(
            self.config,
            db=db,
            clock=self.clock,
            policies=await in_thread(self.config.policy_book),
            hook_names=hooks.registered,
            has_active_processes=self.options.has_active_processes,
        )

    def _register_hooks(self, db: SessionDB, news: DatabaseNews) -> Hooks:
        hooks = Hooks(db, self.clock, self.config.hooks)
        news.attach_hooks(hooks)
        for name, hook in self.options.hooks:
            hooks.register(hook, name=name)
        return hooks

    def _open_routing(self, context: StoreContext, news: DatabaseNews) -> Routing:
        routing = Routing(context, self.config.isolation, self._make_alias_resolver(), self.cache)
        news.attach_aliases(routing.alias_of)
        return routing

    def _open_queue(
        self,
        context: StoreContext,
        routing: Routing,
        tries: RestartRecords,
        titling: Titling,
        lanes: NodeLanes | None,
    ) -> QueueOperations:
        speakers = Speakers(
            pseudonyms=context.pseudonyms, flags=self.config.isolation, redact=self.config.privacy.redact_pii
        )
        return QueueOperations(
            context,
            routing,
            QueueLimits.configured(self.config),
            self.config.busy_book(),
            tries,
            on_turned=titling.consider_session,
            speakers=speakers,
            others=lanes,
            shown=self.flush if self.config.snapshot_mode is SnapshotMode.SYNC else None,
        )

    def _make_duties(self, parts: StoreParts) -> list[Duty]:
        backups = Backups(parts.context.db, self.clock, self.config.backups)
        forgetting = QueueCleanup(parts.queue, self.clock, self.config.gateway.dedup_window)
        once = [parts.hooks.run, forgetting.run]
        if self.options.upkeep:
            kept = self.config.session_retention
            retention = Retention(parts.context, self.config.expiry_watcher, kept)
            once += [parts.watcher.run, parts.pruner.run, retention.run]
        if (cluster := parts.cluster) is not None:
            once = [cluster.only_while_leading(duty) for duty in once]
        shown = [] if parts.snapshot is None else [parts.snapshot.run]
        return [*once, parts.titling.run, backups.run, *shown]

    def _make_node_lanes(self, db: SessionDB) -> NodeLanes | None:
        if db.ownership.membership is None or db.ownership.shared is None:
            return None
        return NodeLanes(db.ownership.membership, self.config.cluster.sticky)

    def _make_alias_resolver(self) -> AliasResolver | None:
        given = self.options.aliases
        if given is None or isinstance(given, CachedAliases):  # that deals with failures by itself
            return given
        return Aliases(given, clock=self.clock)

    async def _open_snapshot(self, context: StoreContext, incidents: Incidents) -> SnapshotWriter | None:
        """Look at sessions.json as it was left; even a store that writes none takes an old one in."""
        zone = ZoneInfo(context.policies.zone_name)
        recovery = SnapshotRecovery(
            context=context,
            home=self.database.home,
            zone=zone,
            flags=self.config.isolation,
            new_ids=iter(context.new_session_id, None),
            incidents=incidents,
        )
        shown = await recovery.run()
        settings = self.config.sessions_json
        if self.config.snapshot_mode is SnapshotMode.OFF:
            return None
        form = SnapshotForm(dialect=settings.format, zone=zone, interval=settings.interval)
        taken = partial(_report_hermes_key_taken, incidents)
        snapshot = SnapshotWriter(self.database.home, context.db, self.clock, form, on_taken=taken)
        if shown is not None:
            await snapshot.accept_generation(shown)
        return snapshot


def _report_hermes_key_taken(incidents: Incidents, session_key: str) -> None:
    known_as = hermes_key(session_key)
    detail = f"{session_key} has its own key in sessions.json: {known_as} is another lane's"
    incidents.report("hermes_key_taken", f"{detail}, and Hermes does not tell the two apart")


def _follow_nothing() -> None:
    """Nothing has to follow what other nodes have changed."""
