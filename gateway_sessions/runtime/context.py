"""`StoreContext`: the database, clock, policies and random ids that all parts of an open store share."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, Self, TypeVar

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.config import Config
from gateway_sessions.core.identity.pseudonyms import Pseudonyms
from gateway_sessions.core.sessions.entry import SessionEntry, session_id_at
from gateway_sessions.core.sessions.policy_rules import PolicyBook, ResolvedPolicy
from gateway_sessions.core.sessions.recovery import CrashLoopLimits
from gateway_sessions.core.sessions.state_machine import policy_for
from gateway_sessions.ports import Clock, HasActiveProcesses, Transaction
from gateway_sessions.runtime.user_code import answer_within
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.tables.change import Actor, Change

AT_ONCE: Final = 1024
"""Random bytes that the system is asked for at a time: each time is expensive."""


class RandomDigits:
    """Gives out random digits, none of them twice."""

    __slots__ = ("_at", "_digits")

    def __init__(self) -> None:
        self._digits = ""
        self._at = 0

    def hex_digits(self, count: int) -> str:
        """Return that many hexadecimal digits."""
        if self._at + count > len(self._digits):
            self._digits, self._at = os.urandom(AT_ONCE).hex(), 0
        self._at += count
        return self._digits[self._at - count : self._at]


T = TypeVar("T")

ID_DIGITS: Final = 8
TO_TELL: Final = timedelta(seconds=1)
"""The time limit of `has_active_processes`: a person's message waits for the answer."""

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreContext:
    """The parts that the duties and the queue of a store share, instead of the store itself."""

    db: SessionDB
    clock: Clock
    policies: PolicyBook
    pseudonyms: Pseudonyms
    """Pseudonyms for names and ids of people, made with the secret of this store."""
    freshness: timedelta | None
    restart_limit: int
    crash_loop: CrashLoopLimits = field(default_factory=CrashLoopLimits)
    longest_debounce: timedelta = timedelta()
    """The longest pause within a burst that any rule allows."""
    hook_names: Collection[str]
    """The names of the registered hooks, as they are at any moment."""
    has_active_processes: HasActiveProcesses | None = None
    entropy: RandomDigits = field(default_factory=RandomDigits)

    @classmethod
    def configured(
        cls,
        config: Config,
        *,
        db: SessionDB,
        clock: Clock,
        policies: PolicyBook,
        hook_names: Collection[str],
        has_active_processes: HasActiveProcesses | None,
    ) -> Self:
        """Return the context of a store with that configuration, of which *policies* were made."""
        gateway = config.gateway
        return cls(
            db=db,
            clock=clock,
            policies=policies,
            pseudonyms=Pseudonyms(db.ownership.opening.install_secret),
            freshness=config.agent.gateway_auto_continue_freshness,
            restart_limit=config.agent.max_restart_attempts,
            crash_loop=CrashLoopLimits(starts=gateway.crash_loop_starts, window=gateway.crash_loop_window),
            longest_debounce=config.busy_book().longest_debounce,
            hook_names=hook_names,
            has_active_processes=has_active_processes,
        )

    def policy_of(self, entry: SessionEntry) -> ResolvedPolicy:
        """The policy that judges this entry."""
        return policy_for(entry, self.policies)

    def new_session_id(self) -> str:
        """An id for a session that begins now; the database refuses it should it exist."""
        return session_id_at(self.clock.now(), self.entropy.hex_digits(ID_DIGITS))

    def make_change(self, actor: Actor) -> Change:
        """Return the facts of a change that is made now by *actor*."""
        return Change(
            now=self.clock.now(),
            ids=self.db.ownership.change_ids,
            entry_ids=self.db.ownership.entry_ids,
            actor=actor,
            policies=self.policies,
            freshness=self.freshness,
            epoch=self.db.ownership.epoch,
            id_above=None if self.db.ownership.shared is None else self.db.ownership.shared.id_above,
            hooks=tuple(self.hook_names),
        )

    async def apply(self, actor: Actor, transaction: Callable[[Change], Transaction[T]]) -> T:
        """Run a changing transaction now, on behalf of *actor*."""
        change = self.make_change(actor)
        outcome = await self.db.write(partial(transaction, change))
        failpoint("change_committed")
        return outcome

    async def has_active_work(self, session_key: str) -> bool:
        """Return whether work runs that a reset would cut off; True if `has_active_processes` fails."""
        if self.has_active_processes is None:
            return False
        try:
            answer = self.has_active_processes(session_key)
            if inspect.isawaitable(answer):
                coming: Awaitable[bool] = answer
                what = "has_active_processes"
                answer = await answer_within(TO_TELL, what, lambda: coming, self.clock, grace=timedelta())
            return bool(answer)
        except Exception:  # foreign code: its failure must not cost a session, nor keep anybody waiting
            logger.warning(
                "has_active_processes failed", exc_info=True, extra={"action": "active_work_unknown"}
            )
            return True
