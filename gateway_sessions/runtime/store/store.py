"""`SessionStore`: finds and changes the session of each conversation; a gateway runs on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.config import Config
from gateway_sessions.ports import AliasResolver, Clock, HasActiveProcesses
from gateway_sessions.runtime.duties.session_hooks import Hook, name_hooks
from gateway_sessions.runtime.duties.titles import Titler, plain_titler
from gateway_sessions.runtime.store.account_lanes import AccountMethods
from gateway_sessions.runtime.store.conversation_api import ConversationMethods
from gateway_sessions.runtime.store.database_opening import locate_store
from gateway_sessions.runtime.store.hermes_import import HermesMethods
from gateway_sessions.runtime.store.opening import StoreOptions
from gateway_sessions.runtime.store.privacy_api import PrivacyMethods
from gateway_sessions.runtime.store.queue_api import QueueMethods
from gateway_sessions.runtime.store.session_api import SessionMethods


class SessionStore(
    SessionMethods, ConversationMethods, QueueMethods, HermesMethods, PrivacyMethods, AccountMethods
):
    """The sessions of one gateway. Open it with `async with SessionStore.open(directory) as store`."""

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
        """Return a store in a directory, made if need be. Another owner is waited for up to *wait* seconds.

        It is told so: its `drain_requested` is set, and it decides itself when it ends. A server that is away
        is waited for as long. *path* may also be
        an address of a server; the directory is then one among what programs keep. A *pool* of asyncpg that
        the program made for that address is used, and never closed. *hooks* are called for each session that
        ends; a mapping gives them names that outlive a refactoring. Without *upkeep* no session is ended or
        forgotten because its time has come: for programs that only visit, and have not those hooks.
        """
        options = StoreOptions(
            has_active_processes=has_active_processes,
            hooks=name_hooks(hooks),
            aliases=aliases,
            titler=titler,
            wait=wait,
            pool=pool,
            upkeep=upkeep,
        )
        home, settings = locate_store(path, config or Config())
        settings.require_for_store()
        return cls(home, settings, clock or SystemClock(), options)
