"""`SessionStore`: finds and changes the session of each conversation; a gateway runs on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Final, TypeVar

from anyio.abc import TaskGroup

from gateway_sessions._process.clock import SystemClock
from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.config import Config, SnapshotMode
from gateway_sessions.core.checks import check_value
from gateway_sessions.core.identity.keys import NO_ALIASES, Isolation, session_key
from gateway_sessions.core.identity.pseudonyms import Pseudonyms
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.instants import duration
from gateway_sessions.core.notices.notice_texts import reset_note
from gateway_sessions.core.sessions.boundaries import zone_named
from gateway_sessions.core.sessions.entry import (
    SessionEntry,
    check_reason,
    check_tokens,
    clean_model_override,
)
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.sessions.reset_policy import SessionResetPolicy
from gateway_sessions.core.sessions.state_machine import notice_due
from gateway_sessions.core.transcript.system_prompt import build_session_context_prompt
from gateway_sessions.errors import InvalidInputError, SnapshotError, UnidentifiedSourceError
from gateway_sessions.ports import AliasResolver, Clock, HasActiveProcesses, Transaction
from gateway_sessions.runtime.duties.cluster import Cluster
from gateway_sessions.runtime.duties.erasure import Erasures
from gateway_sessions.runtime.duties.expiry import ExpiryWatcher
from gateway_sessions.runtime.duties.hooks import Hook, Hooks, with_names
from gateway_sessions.runtime.duties.restart_recovery import StartReport
from gateway_sessions.runtime.duties.titles import Titler, plain_titler
from gateway_sessions.runtime.observability.events import Events
from gateway_sessions.runtime.observability.explain import Explanation, Rules, explain
from gateway_sessions.runtime.observability.incidents import Incident
from gateway_sessions.runtime.queue.ledger import Ledger
from gateway_sessions.runtime.queue.routing import EntryCache
from gateway_sessions.runtime.session_context import build_session_context
from gateway_sessions.runtime.store.account_lanes import AccountMethods
from gateway_sessions.runtime.store.control import AgentsOfGateway, Control
from gateway_sessions.runtime.store.conversation_api import ConversationMethods, SessionTranscripts
from gateway_sessions.runtime.store.hermes_import import HermesMethods
from gateway_sessions.runtime.store.opening import Assembly, Parts, StoreOptions, placed
from gateway_sessions.runtime.store.privacy_api import PrivacyMethods
from gateway_sessions.runtime.store.queue_api import QueueMethods
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.tables import entries
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.transactions.sessions import lane_changes, lists
from gateway_sessions.storage.transactions.sessions.lane_changes import TurnEnd

T = TypeVar("T")

PAGE: Final = 100


class SessionStore(
    ConversationMethods, QueueMethods, SessionTranscripts, HermesMethods, PrivacyMethods, AccountMethods
):
    """The sessions of one gateway. Open it with `async with SessionStore.open(directory) as store`."""

    def __init__(self, home: Path, config: Config, clock: Clock, options: StoreOptions) -> None:
        super().__init__("session store")
        self.home = home
        self.config = config
        self._clock = clock
        self._options = options
        self._opened: Parts | None = None
        self._control: Control | None = None
        self.cluster: Cluster | None = None
        """The other processes that have the store open; None where there can be none."""
        self._cache = EntryCache(config.cache.entries)
        self._agents = AgentsOfGateway()
        self.events: Events = Events(clock)
        """What happens here, and in a gateway on it, for whoever listens."""
        self._isolation = config.isolation

    @classmethod
    def open(
        cls,
        path: str | Path,
        config: Config | None = None,
        *,
        has_active_processes: HasActiveProcesses | None = None,
        clock: Clock | None = None,
        hooks: Mapping[str, Hook] | Iterable[Hook] = (),
        aliases: AliasResolver | None = None,
        titler: Titler | None = plain_titler,
        wait: float = 0.0,
        pool: object | None = None,
        upkeep: bool = True,
    ) -> SessionStore:
        """A store in a directory, made if need be. Another owner is waited for up to *wait* seconds.

        It is told so: its `drain_requested` is set, and it decides itself when it ends. A server that is away
        is waited for as long. *path* may also be
        an address of a server; the directory is then one among what programs keep. A *pool* of asyncpg that
        the program made for that address is used, and never closed. *hooks* are called for each session that
        ends; a mapping gives them names that outlive a refactoring. Without *upkeep* no session is ended or
        forgotten because its time has come: for programs that only visit, and have not those hooks.
        """
        options = StoreOptions(
            has_active_processes=has_active_processes,
            hooks=with_names(hooks),
            aliases=aliases,
            titler=titler,
            wait=wait,
            pool=pool,
            upkeep=upkeep,
        )
        home, settings = placed(path, config or Config())
        settings.require_for_store()
        return cls(home, settings, clock or SystemClock(), options)

    # The parts

    @property
    def db(self) -> SessionDB:
        """The database."""
        return self._parts.context.db

    @property
    def hooks(self) -> Hooks:
        """The hooks, and what became of their calls."""
        return self._parts.hooks

    @property
    def watcher(self) -> ExpiryWatcher:
        """The duty that ends sessions nobody writes to."""
        return self._parts.watcher

    @property
    def clock(self) -> Clock:
        """The time that this store goes by."""
        return self._clock

    @property
    def isolation(self) -> Isolation:
        """Who shares a lane with whom."""
        return self._isolation

    def key_for(self, source: SessionSource) -> str:
        """The plain key of the lane a message of that origin belongs to, if nobody has another name."""
        return session_key(source, self._isolation, NO_ALIASES)

    @property
    def ledger(self) -> Ledger:
        """The queue of all lanes."""
        return self._parts.ledger

    @property
    def control(self) -> Control:
        """Where other programs ask this one to act."""
        if self._control is None:
            self._check_running()
        assert self._control is not None  # noqa: S101 -- running means opened
        return self._control

    @property
    def drain_requested(self) -> asyncio.Event:
        """Set when another process would like to take over; this one ends when it sees fit."""
        return self.control.drain_requested

    @property
    def started(self) -> StartReport:
        """How the store was found when it was opened."""
        return self._parts.started

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """What was found wrong and dealt with since the store was opened."""
        return tuple(self._parts.incidents)

    # Sessions

    async def get_or_create_session(
        self,
        source: SessionSource,
        force_new: bool = False,  # noqa: FBT001, FBT002 -- the established signature
        touch: bool = True,  # noqa: FBT001, FBT002 -- the established signature
    ) -> SessionEntry:
        """The session that a message from *source* belongs to: the current one, or a new one in its place.

        *touch* is False for heartbeats and cron jobs, which must not keep a session alive.
        """
        self._check_running()
        if not source.has_identifier and not self.config.allow_unidentified_sources:
            raise UnidentifiedSourceError(source.platform)
        entry = await self._parts.routing.session_for(source, force_new=force_new, touched=touch)
        await self._shown()
        return entry

    async def update_session(
        self,
        session_key: str,
        last_prompt_tokens: int | None = None,
        *,
        session_id: str | None = None,
        touch: bool = True,
    ) -> SessionEntry | None:
        """Note the end of a turn: the person was answered now, and has been told of a reset.

        With *session_id*, a turn that ended after its session was replaced changes nothing. *touch* is False
        for the turn of a heartbeat or cron job, which answered nobody and must not keep a session alive.
        """
        tokens = last_prompt_tokens
        turn = TurnEnd(
            session_key=session_key,
            session_id=session_id,
            last_prompt_tokens=tokens if tokens is None else check_tokens("last_prompt_tokens", tokens),
            touch=touch,
            known=self._cache.get(session_key),
        )
        entry = await self._write(Actor.PERSON, partial(lane_changes.settle, turn=turn))
        if entry is not None:
            self._parts.titling.consider(entry.session_id)
        return entry

    async def suspend_session(self, session_key: str, reason: str = "suspended") -> bool:
        """Make the next message start afresh, whatever the policy says; False if the lane has no session."""
        transaction = partial(lane_changes.suspend, session_key=session_key, reason=check_reason(reason))
        return await self._write(Actor.PERSON, transaction) is not None

    async def mark_resume_pending(self, session_key: str, reason: str = ResumeReason.RESTART_TIMEOUT) -> bool:
        """Note that a turn was cut off; False if there is no session, or it may not go on."""
        transaction = partial(
            lane_changes.mark_resume_pending, session_key=session_key, reason=check_reason(reason)
        )
        return await self._write(Actor.RECOVERY, transaction) is not None

    async def clear_resume_pending(self, session_key: str) -> bool:
        """Note that a turn succeeded; False if no cut-off turn was waiting."""
        transaction = partial(lane_changes.clear_resume_pending, session_key=session_key)
        cleared = await self._write(Actor.RECOVERY, transaction)
        await self._parts.restart.refresh()
        return cleared is not None

    async def suspend_recently_active(self, max_age_seconds: float = 120) -> int:
        """Treat sessions used lately as cut off by a crash: for gateways that do not lease lanes."""
        max_age = duration("max_age_seconds", seconds=max_age_seconds)
        marked = await self._parts.restart.suspend_recently_active(max_age)
        await self._shown()
        return len(marked)

    async def prune_old_entries(self, max_age_days: float | None) -> int:
        """Forget lanes not written to for that long; their next message starts without any history."""
        if max_age_days is None or max_age_days <= 0:
            return 0
        pruned = await self._parts.pruner.sweep(duration("max_age_days", days=max_age_days))
        await self._shown()
        return pruned

    async def set_model_override(
        self, session_key: str, override: Mapping[str, object] | None
    ) -> SessionEntry | None:
        """Choose a model for this session; credentials are left out."""
        check_value("override", override, Mapping, NoneType)
        return await self._configure(session_key, "model_override", clean_model_override(override))

    async def set_reset_policy(
        self, session_key: str, policy: SessionResetPolicy | None
    ) -> SessionEntry | None:
        """Give this session a policy of its own."""
        check_value("policy", policy, SessionResetPolicy, NoneType)
        return await self._configure(session_key, "reset_policy", policy)

    async def set_zone(self, session_key: str, zone: str | None) -> SessionEntry | None:
        """Tell in which time zone the people of this chat live."""
        check_value("zone", zone, str, NoneType)
        return await self._configure(session_key, "zone", None if zone is None else zone_named(zone).key)

    # Looking

    async def list_sessions(
        self,
        active_minutes: float | None = None,
        *,
        scope: Scope,
        limit: int = PAGE,
        after: SessionEntry | None = None,
    ) -> list[SessionEntry]:
        """What *scope* may see, the latest written first; *after* is the last of the page before."""
        if limit < 1:
            problem = f"limit = {limit} must be 1 or more"
            raise InvalidInputError(problem)
        since = None
        if active_minutes is not None:
            since = self._clock.now() - duration("active_minutes", minutes=active_minutes)
        return await self._read(partial(lists.list_entries, scope, since, after, limit))

    async def scope_of(self, source: SessionSource) -> Scope:
        """What the person who wrote may see, under the rules of this store and all of their names."""
        self._check_running()
        return await self._parts.routing.scope_of(source)

    async def lookup_by_session_id(self, session_id: str, *, scope: Scope) -> SessionEntry | None:
        """The entry that holds a session now, if *scope* may see it."""
        return await self._read(partial(lists.entry_of_session, session_id, scope)) if session_id else None

    async def get_session(self, session_key: str) -> SessionEntry | None:
        """The lane's entry as it is, without judging it."""
        entry = await self._read(partial(entries.load, session_key, self._cache.get(session_key)))
        return self._remember(entry)

    async def peek_session_id(self, session_key: str) -> str | None:
        """The id of the lane's session, without touching it."""
        entry = await self.get_session(session_key)
        return entry.session_id if entry is not None else None

    async def has_any_sessions(self) -> bool:
        """Whether there has ever been a session."""
        return await self._read(lists.any_session)

    async def explain(self, session_key: str) -> Explanation:
        """Why the lane has the session it has, and what its next message will do."""
        self._check_running()
        context = self._parts.context
        rules = Rules(now=context.clock.now(), policies=context.policies, freshness=context.freshness)
        active_work = await context.active_work(session_key)
        return await explain(context.db, session_key, rules, active_work=active_work)

    def should_notify(self, entry: SessionEntry) -> bool:
        """Whether people should be told that this session replaced one that nobody asked to end."""
        return notice_due(entry, self._parts.context.policy_of(entry).policy)

    def session_prompt(
        self,
        source: SessionSource,
        entry: SessionEntry | None = None,
        *,
        connected: Collection[str] | None = None,
    ) -> str:
        """What to tell an agent about where it talks: a block for its system prompt, stable between turns.

        *connected* names the platforms that are; without it, those that the configuration enables. With
        `privacy.redact_pii`, pseudonyms made with this store's own secret stand for names and ids. A first
        turn after an automatic reset has one more line at the end, which says so.
        """
        secret = self._parts.context.db.ownership.opening.install_secret
        pseudonyms = Pseudonyms(secret) if self.config.privacy.redact_pii else None
        context = build_session_context(source, self.config, entry, connected=connected)
        prompt = build_session_context_prompt(context, pseudonyms=pseudonyms)
        note = reset_note(entry) if entry is not None else None
        return prompt if note is None else f"{prompt}\n\n{note}"

    async def flush(self) -> None:
        """Return when sessions.json shows all that was changed before, else raise `SnapshotError`."""
        self._check_running()
        if self._parts.snapshot is not None:
            await self._parts.snapshot.flush()

    # Inside

    @property
    def _parts(self) -> Parts:
        if self._opened is None:
            self._check_running()
        assert self._opened is not None  # noqa: S101 -- running means opened
        return self._opened

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        assembly = Assembly(
            home=self.home,
            config=self.config,
            clock=self._clock,
            options=self._options,
            isolation=self._isolation,
            cache=self._cache,
            events=self.events,
            flush=self.flush,
            rewrite_files=self._rewrite_files,
        )
        self._opened = await assembly.run(tasks, cleanup)
        self.cluster = self._opened.cluster
        self._erasures = Erasures(self.db, self._clock, self._opened.incidents)
        await self._erasures.look()
        tasks.start_soon(self._erasures.run)
        self._control = Control(self.home, self._opened.context.db, self._clock, self, self._agents)
        await self._control.start(tasks, cleanup)

    async def _finish(self) -> None:
        if self._control is not None:
            await self._control.finish()
        if self._parts.snapshot is not None:
            # A file that cannot be written has been reported, and the database has everything.
            with suppress(SnapshotError):
                await self._parts.snapshot.flush()
        failpoint("before_marker")
        await self._parts.restart.leave_marker()

    async def _overtaking(
        self, session_key: str, transaction: Callable[[Change], Transaction[T]], by: str
    ) -> T:
        self._check_running()
        outcome, _ = await self._parts.ledger.overtaking(session_key, transaction, by=by)
        await self._shown()
        return outcome

    def _new_session_id(self) -> str:
        return self._parts.context.new_session_id()

    async def _configure(self, session_key: str, name: str, value: object) -> SessionEntry | None:
        configure = partial(lane_changes.configure, session_key=session_key, settings={name: value})
        return await self._write(Actor.PERSON, configure)

    async def _write(self, actor: Actor, transaction: Callable[[Change], Transaction[T]]) -> T:
        self._check_running()
        outcome = await self._parts.context.apply(actor, transaction)
        await self._shown()
        return outcome

    async def _read(self, transaction: Callable[[], Transaction[T]]) -> T:
        self._check_running()
        return await self._parts.context.db.read(transaction)

    async def _shown(self) -> None:
        """In mode `sync` a change is in the file before the call returns."""
        if self.config.snapshot_mode is SnapshotMode.SYNC:
            await self.flush()

    def _remember(self, entry: SessionEntry | None) -> SessionEntry | None:
        if entry is not None:
            self._cache.keep(entry)
        return entry
