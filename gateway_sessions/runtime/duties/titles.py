"""The duty that gives new sessions a title, from their first words or by a titler.

The end of a turn only adds the session to a set in memory. A session is looked at after its first turns only,
and a title that it has is never changed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias

from cachetools import LRUCache

from gateway_sessions.core.checks import plain_text
from gateway_sessions.core.sessions.titles import title_from_messages
from gateway_sessions.errors import StorageError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.alarm import Alarm
from gateway_sessions.runtime.duty import failure_reporter, repeat_sweep
from gateway_sessions.runtime.user_code import problem_within
from gateway_sessions.storage.database import SessionDB
from gateway_sessions.storage.transactions.sessions import titles

logger: Final = logging.getLogger(__name__)

MAX_TEXT: Final = 500
"""The characters of each side that a titler gets."""
MAX_PEOPLE: Final = 2
"""The most messages of people after which a session still gets a title."""
MAX_TRIES: Final = 4
MAX_WAITING: Final = 256
REMEMBERED: Final = 4096
TIMEOUT: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class FirstExchange:
    """The first messages of a session and the answer, each cut to 500 characters."""

    session_id: str
    messages: tuple[str, ...]
    answer: str
    """The answer of the agent."""


Titler: TypeAlias = Callable[[FirstExchange], Awaitable[str | None]]
"""Proposes a title for a session, or None; it may ask a model, and has half a minute."""


async def plain_titler(exchange: FirstExchange) -> str | None:
    """Return the first three to seven words that say something, without asking a model."""
    return title_from_messages(exchange.messages)


class Titling:
    """Keeps the sessions that may lack a title, and gives them one."""

    def __init__(self, db: SessionDB, clock: Clock, titler: Titler | None) -> None:
        self._db = db
        self._clock = clock
        self._titler = titler
        self._waiting: dict[str, None] = {}
        self._tries: LRUCache[str, int] = LRUCache(REMEMBERED)
        self._alarm = Alarm(clock)

    def consider_session(self, session_id: str) -> None:
        """Let a session get a title after a turn; if too many wait, a later turn does that."""
        if self._titler is None or self._tries.get(session_id, 0) >= MAX_TRIES:
            return
        if len(self._waiting) < MAX_WAITING:
            self._waiting[session_id] = None
            self._alarm.ring()

    async def run(self) -> None:
        """Give waiting sessions titles, one after another, until cancelled."""

        async def sweep() -> None:
            self._alarm.reset()
            await self.sweep()

        failed = failure_reporter(logger, "sessions could not be given titles", {"action": "title_failed"})
        await repeat_sweep(sweep, self._alarm.wait, failed=failed)

    async def sweep(self) -> int:
        """Look at all waiting sessions; return the number of those that got a title."""
        titled = 0
        while self._waiting:
            session_id = next(iter(self._waiting))
            del self._waiting[session_id]
            titled += await self._title_session(session_id)
        return titled

    async def _title_session(self, session_id: str) -> bool:
        """Give a session a title if it has none; return whether it got one."""
        self._tries[session_id] = self._tries.get(session_id, 0) + 1
        try:
            return await self._find_and_set_title(session_id)
        except StoreStoppedError:
            raise
        except StorageError:
            logger.warning(
                "a session could not be given a title", exc_info=True, extra=_log_facts(session_id, "storage")
            )
            return False

    async def _find_and_set_title(self, session_id: str) -> bool:
        said = await self._db.read(partial(titles.first_exchange, session_id, MAX_TEXT))
        if said is None or len(said[0]) > MAX_PEOPLE:
            self._tries[session_id] = MAX_TRIES
            return False
        people, answers = said
        if not people or not answers:
            return False
        proposed = await self._ask_titler(FirstExchange(session_id, tuple(people), answers[0]))
        titled = proposed is not None and await self._db.set_auto_title_if_empty(session_id, proposed)
        if titled or len(people) == MAX_PEOPLE:  # later turns need not look again
            self._tries[session_id] = MAX_TRIES
        return titled

    async def _ask_titler(self, exchange: FirstExchange) -> str | None:
        """Return the titler's proposal; None if it fails or takes too long."""
        assert self._titler is not None  # noqa: S101 -- nothing waits without one
        if self._titler is plain_titler:
            return await plain_titler(exchange)
        titler, proposed = self._titler, list[str | None]()

        async def ask() -> None:
            proposed.append(await titler(exchange))

        problem = await problem_within(TIMEOUT, self._clock, ask)
        if problem is not None:
            logger.warning("a titler failed", extra=_log_facts(exchange.session_id, problem))
            return None
        return _as_text(proposed[0]) if proposed[0] else None


def _as_text(title: object) -> str:
    """Return what a titler proposed as a text: it is foreign code, and may return anything."""
    return plain_text(title) if isinstance(title, str) else str(title)


def _log_facts(session_id: str, problem: str) -> dict[str, str]:
    return {"action": "title_failed", "session_id": session_id, "problem": problem}
