"""Assembly of a store: database, recovery, snapshot and duties, in the order in which they start.

Putting a store together: the database first, then what was left by the process before, then the duties.

Where the parts of a store are, by what people name it with.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from anyio.abc import TaskGroup

from gateway_sessions.config import Config, Durability, SnapshotMode
from gateway_sessions.core.identity.hermes_keys import hermes_key
from gateway_sessions.core.identity.keys import Isolation
from gateway_sessions.core.identity.pseudonyms import Pseudonyms
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.speakers import Speakers
from gateway_sessions.core.sessions.policy_rules import PolicyBook
from gateway_sessions.core.sessions.recovery import CrashLoopLimits
from gateway_sessions.errors import InvalidInputError, UnsupportedStorageError
from gateway_sessions.ports import AliasResolver, Clock, HasActiveProcesses
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.duties.backups import Backups
from gateway_sessions.runtime.duties.cleanup import Forgetting
from gateway_sessions.runtime.duties.cluster import Cluster, Duty, NodeLanes
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher, Pruner, Retention
from gateway_sessions.runtime.duties.hooks import Hook, Hooks
from gateway_sessions.runtime.duties.restart_recovery import RestartRecords, StartReport
from gateway_sessions.runtime.duties.snapshot_recovery import SnapshotRecovery
from gateway_sessions.runtime.duties.titles import Titler, Titling, plain_titler
from gateway_sessions.runtime.observability.events import Events
from gateway_sessions.runtime.observability.incidents import Incidents
from gateway_sessions.runtime.queue.aliases import Aliases, CachedAliases
from gateway_sessions.runtime.queue.ledger import Ledger
from gateway_sessions.runtime.queue.limits import QueueLimits
from gateway_sessions.runtime.queue.routing import EntryCache, Routing
from gateway_sessions.runtime.store.database_news import DatabaseNews, RewriteFiles
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.engines.registry import database_path, engine_at, home_of_server, server_at
from gateway_sessions.storage.files.atomic_file import read_all, remove, write_atomically
from gateway_sessions.storage.files.private_files import refuse_foreign_link
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.storage.home import owned, prepare_home
from gateway_sessions.storage.sessions_json import SessionsJson, SnapshotForm

logger: Final = logging.getLogger(__name__)

DATABASE_FILE: Final = "sessions.db"
CONFIG_NOTE: Final = "sessions.config.path"
"""Holds the path of the owner's configuration, so that nobody has to name it again who looks at the store."""


def noted_config(home: Path) -> Path | None:
    """The configuration that the last owner of a store has used, if that file is still there."""
    try:
        refuse_foreign_link(home / CONFIG_NOTE)
        note = read_all(home / CONFIG_NOTE)
        path = None if note is None else Path(os.fsdecode(note))
        return path if path is not None and path.is_file() else None
    except (OSError, ValueError, UnsupportedStorageError):
        return None


def leave_word_of_config(home: Path, file: Path | None) -> None:
    """Note for other programs which file the owner of a store was configured by; None: by none."""
    try:
        if file is None:
            remove(home / CONFIG_NOTE)
        else:
            write_atomically(home / CONFIG_NOTE, os.fsencode(file))
    except (OSError, UnsupportedStorageError) as error:
        facts = {"action": "file_failed", "problem": str(error)}
        logger.warning("a file could not be used", extra=facts)


def placed(path: str | Path, config: Config) -> tuple[Path, Config]:
    """The directory of a store, and its configuration; for a directory the address of a server will do."""
    config.require("sessiondb", "cluster")
    if (server := server_at(path)) is None:
        return Path(path).expanduser().absolute(), config
    address = str(path)
    if config.sessiondb.url not in (None, address):
        problem = "the address that is opened and sessiondb.url are different; give one of them"
        raise InvalidInputError(problem)
    settings = replace(config.sessiondb, provider=server.name, url=address)
    return home_of_server(server, address, config.cluster.name), replace(config, sessiondb=settings)


def database_of(home: Path, url: str | None) -> tuple[str | Path, Path]:
    """The database of the store in a directory, and the directory that it owns."""
    if url is not None and server_at(url) is not None:
        return url, home
    path = home / DATABASE_FILE if url is None else database_path(url)
    return path, path.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """What the embedding program gives a store besides its configuration."""

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
class Parts:
    """The parts of an open store."""

    context: StoreContext
    routing: Routing
    ledger: Ledger
    hooks: Hooks
    watcher: ExpiryWatcher
    pruner: Pruner
    restart: RestartRecords
    titling: Titling
    snapshot: SessionsJson | None
    incidents: Incidents
    started: StartReport
    cluster: Cluster | None
    """The same store's other processes; None where there can be none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Everything known before a store is opened."""

    home: Path
    config: Config
    clock: Clock
    options: StoreOptions
    isolation: Isolation
    cache: EntryCache
    events: Events
    flush: Callable[[], Awaitable[None]]
    """Returns when sessions.json shows all that was changed before."""
    rewrite_files: RewriteFiles

    async def run(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> Parts:
        """Open everything; the duties run in *tasks*, *cleanup* closes the rest."""
        cleanup.callback(self.events.close)
        incidents = Incidents()
        news = DatabaseNews(self.events, incidents, self.rewrite_files)
        db = await self._open_database(cleanup, news)
        with db.ownership.retry.opening():
            return await self._assemble(db, news, incidents, tasks)

    async def _assemble(
        self, db: SessionDB, news: DatabaseNews, incidents: Incidents, tasks: TaskGroup
    ) -> Parts:
        """Take over what the process before has left, and begin the duties."""
        hooks = Hooks(db, self.clock, self.config.hooks)
        news.attach_hooks(hooks)
        for name, hook in self.options.hooks:
            hooks.register(hook, name=name)
        policies = await in_thread(self.config.policy_book)
        context = self._context(db, hooks, policies)
        snapshot = await self._open_snapshot(context, incidents)
        restart = RestartRecords(context, self.home)
        routing = Routing(context, self.isolation, self._aliases(), self.cache)
        news.attach_aliases(routing.alias_of)
        titling = Titling(db, self.clock, self.options.titler)
        lanes = self._lanes_of_nodes(db)
        ledger = self._ledger(context, routing, restart, titling, lanes)
        started = await restart.recover()
        cluster = None
        if lanes is not None and (shared := db.ownership.shared) is not None:
            on_lead = _nothing if snapshot is None else db.generation.count_change_elsewhere
            cluster = Cluster(lanes, shared, restart, ledger, on_look=hooks.wake, on_lead=on_lead)
            news.attach_cluster(cluster)
        await ledger.count()
        parts = Parts(
            context=context,
            routing=routing,
            ledger=ledger,
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

    def _begin_duties(self, parts: Parts, tasks: TaskGroup) -> None:
        for duty in self._duties(parts):
            tasks.start_soon(duty)
        if parts.cluster is not None:
            parts.cluster.start(tasks)

    def _ledger(
        self,
        context: StoreContext,
        routing: Routing,
        tries: RestartRecords,
        titling: Titling,
        lanes: NodeLanes | None,
    ) -> Ledger:
        limits, rules = self._limits(), self._rules_for()
        speakers = Speakers(
            pseudonyms=Pseudonyms(context.db.ownership.opening.install_secret),
            flags=self.isolation,
            redact=self.config.privacy.redact_pii,
        )
        return Ledger(
            context,
            routing,
            limits,
            rules,
            tries,
            on_turned=titling.consider,
            speakers=speakers,
            others=lanes,
            shown=self.flush if self.config.snapshot_mode is SnapshotMode.SYNC else None,
        )

    def _duties(self, parts: Parts) -> list[Duty]:
        backups = Backups(parts.context.db, self.clock, self.config.backups)
        forgetting = Forgetting(parts.ledger, self.clock, self.config.gateway.dedup_window)
        once = [parts.hooks.run, forgetting.run]
        if self.options.upkeep:
            kept = self.config.session_retention
            retention = Retention(parts.context, self.config.expiry_watcher, kept)
            once += [parts.watcher.run, parts.pruner.run, retention.run]
        if (cluster := parts.cluster) is not None:
            once = [cluster.led(duty) for duty in once]
        shown = [] if parts.snapshot is None else [parts.snapshot.run]
        return [*once, parts.titling.run, backups.run, *shown]

    def _lanes_of_nodes(self, db: SessionDB) -> NodeLanes | None:
        membership = db.ownership.membership
        if membership is None:
            return None
        return NodeLanes(membership, self.config.cluster.sticky)

    async def _open_database(self, cleanup: AsyncExitStack, news: DatabaseNews) -> SessionDB:
        settings = self.config.sessiondb
        url, home = database_of(self.home, settings.url)
        if settings.is_server and await in_thread((home / DATABASE_FILE).exists):
            problem = (
                f"holds a database already, {DATABASE_FILE}; give the store on a server another directory"
            )
            raise UnsupportedStorageError(str(home), problem)
        if home != self.home:
            # The files beside the database need an owner as well when they live somewhere else.
            await in_thread(lambda: prepare_home(self.home, allow_network=settings.allow_network_filesystem))
            await cleanup.enter_async_context(owned(self.home, self.clock, wait=self.options.wait))
        engine = await in_thread(  # the driver of a server takes its time to be imported
            partial(
                engine_at,
                url,
                survives_power_cut=settings.durability is Durability.FULL,
                allow_network=settings.allow_network_filesystem,
                home=home,
                cluster=self.config.cluster,
                prepared_statements=settings.prepared_statements,
                pool_size=settings.pool_size,
                pool=self.options.pool,
            )
        )
        db = SessionDB(
            engine,
            self.clock,
            wait=self.options.wait,
            cluster=self.config.cluster,
            stemming=self.config.search.stemming,
            listener=news,
        )
        await cleanup.enter_async_context(db)
        if self.options.upkeep:
            await in_thread(partial(leave_word_of_config, self.home, self.config.file))
        return db

    def _aliases(self) -> AliasResolver | None:
        given = self.options.aliases
        if given is None or isinstance(given, CachedAliases):  # that deals with failures by itself
            return given
        return Aliases(given, clock=self.clock)

    def _limits(self) -> QueueLimits:
        return QueueLimits(
            max_waiting=self.config.gateway.max_waiting,
            max_waiting_per_owner=self.config.gateway.max_waiting_per_owner,
            max_message_bytes=self.config.gateway.max_message_bytes,
            allow_unidentified=self.config.allow_unidentified_sources,
            remembered_lanes=self.config.cache.entries,
        )

    def _rules_for(self) -> Callable[[InboundMessage], BusyRules]:
        book = self.config.busy_book()
        return lambda message: book.rules_for(message.source.platform, message.source.chat_type)

    def _context(self, db: SessionDB, hooks: Hooks, policies: PolicyBook) -> StoreContext:
        return StoreContext(
            db=db,
            clock=self.clock,
            policies=policies,
            freshness=self.config.agent.gateway_auto_continue_freshness,
            restart_limit=self.config.agent.max_restart_attempts,
            crash_loop=CrashLoopLimits(
                starts=self.config.gateway.crash_loop_starts, window=self.config.gateway.crash_loop_window
            ),
            longest_debounce=self.config.busy_book().longest_debounce,
            hook_names=lambda: hooks.names,
            has_active_processes=self.options.has_active_processes,
        )

    async def _open_snapshot(self, context: StoreContext, incidents: Incidents) -> SessionsJson | None:
        """Look at sessions.json as it was left; even a store that writes none takes an old one in."""
        zone = ZoneInfo(context.policies.zone_name)
        recovery = SnapshotRecovery(
            context=context,
            home=self.home,
            zone=zone,
            flags=self.isolation,
            new_ids=iter(context.new_session_id, None),
            incidents=incidents,
        )
        shown = await recovery.run()
        settings = self.config.sessions_json
        if self.config.snapshot_mode is SnapshotMode.OFF:
            return None
        form = SnapshotForm(dialect=settings.format, zone=zone, interval=settings.interval)
        taken = partial(_report_taken, incidents)
        snapshot = SessionsJson(self.home, context.db, self.clock, form, on_taken=taken)
        if shown is not None:
            await snapshot.trust(shown)
        return snapshot


def _report_taken(incidents: Incidents, session_key: str) -> None:
    known_as = hermes_key(session_key)
    detail = f"{session_key} has its own key in sessions.json: {known_as} is another lane's"
    incidents.report("hermes_key_taken", f"{detail}, and Hermes does not tell the two apart")


def _nothing() -> None:
    """Nothing has to follow what other nodes have changed."""
