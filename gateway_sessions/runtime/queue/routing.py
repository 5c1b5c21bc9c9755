"""The way of a message to its session: the lane, the cached entry, one shared lookup for many callers.

Nearly every message goes on with a session that is in the cache and not due for anything. For those one
statement is enough, and it changes nothing unless the database agrees that the session is still the same. All
others are decided inside the database transaction.

A remembered entry may be out of date: a transaction that writes by it compares its version with the database.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from datetime import datetime
from functools import partial
from typing import Final, Generic, NamedTuple, TypeVar

from gateway_sessions.core.identity.keys import (
    NO_ALIASES,
    Isolation,
    ids_to_resolve,
    session_key,
    session_owner,
)
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import StorageError
from gateway_sessions.ports import AliasResolver, Transaction
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    ActiveWorkUnknown,
    AliasesUnknown,
    SessionIdTaken,
    SessionRequest,
    find_lane_and_owner,
    find_or_create_session,
    needs_only_touch,
    touch_statement,
)


class EntryCache:
    """Entries by session key; the entry that was put in longest ago makes room."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._entries: OrderedDict[str, SessionEntry] = OrderedDict()

    def get(self, session_key: str) -> SessionEntry | None:
        """Return the lane's entry as it was when it was put in."""
        return self._entries.get(session_key)

    def put(self, entry: SessionEntry) -> None:
        """Remember the lane's entry, longer than any other entry."""
        self._entries[entry.session_key] = entry
        self._entries.move_to_end(entry.session_key)
        if len(self._entries) > self._room:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()


T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The first caller works, the others wait for its outcome; if it is cancelled, one of them takes over."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Future[T] | None] = {}
        """Work under way; the future is made by the first who waits for it, and mostly nobody does."""

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Return the outcome of *work*, or of the same work that is under way already."""
        while key in self._flights:
            flight = await self._wait_for_flight(key)
            if not flight.cancelled():
                return flight.result()
        self._flights[key] = None
        try:
            outcome = await work()
        except Exception as error:
            if (waited_for := self._flights.pop(key)) is not None:
                waited_for.set_exception(error)
                waited_for.exception()  # the one who waits may be gone, and that is no reason to complain
            raise
        except BaseException:
            if (waited_for := self._flights.pop(key)) is not None:
                waited_for.cancel()
            raise
        if (waited_for := self._flights.pop(key)) is not None:
            waited_for.set_result(outcome)
        return outcome

    async def _wait_for_flight(self, key: Hashable) -> asyncio.Future[T]:
        """Wait for the work under way, however it ends."""
        flight = self._flights[key] or asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        await asyncio.wait({flight})
        return flight


MAX_TRIES: Final = 8
"""Ids that are taken and entries that have moved on are met by trying again; more than this is a fault."""


class RoutedMessage(NamedTuple):
    """A message with its lane, as the database is asked about it."""

    source: SessionSource
    key: str
    aliases: Mapping[str, str]
    force_new: bool
    touched: bool


class Routing:
    """Finds the session for a message."""

    def __init__(
        self,
        context: StoreContext,
        isolation: Isolation,
        aliases: AliasResolver | None,
        cache: EntryCache,
    ) -> None:
        self._context = context
        self._isolation = isolation
        self.alias_of = aliases
        """The resolver of the one id that all ids of a person share; None: each id stands for itself."""
        self._cache = cache
        self._flights: SingleFlight[SessionEntry] = SingleFlight()

    async def session_for(self, source: SessionSource, *, force_new: bool, touched: bool) -> SessionEntry:
        """Return the session that goes on, or the new one in its place. Callers at the same time share it."""
        message = (await self.route_message(source, touched=touched))._replace(force_new=force_new)
        alike = (message.key, source.chat_id, source.thread_id, source.participant_id, force_new, touched)
        return await self._flights.share(alike, partial(self._find_or_touch, message))

    async def _find_or_touch(self, message: RoutedMessage) -> SessionEntry:
        now, entry = self._context.clock.now(), self._cache.get(message.key)
        if (
            entry is not None
            and self._only_touches(entry, message, now)
            and await self._context.db.change(touch_statement(entry, now))
        ):
            entry = entry.evolve(now, last_interaction_at=now)
        else:
            entry = await self._find_or_create(message)
        self._cache.put(entry)
        return entry

    def _only_touches(self, entry: SessionEntry, message: RoutedMessage, now: datetime) -> bool:
        """Return whether the message only touches the session, so that nothing else is to be written."""
        if message.force_new or not message.touched:
            return False
        asks = (message.source, self._isolation, message.aliases)
        return needs_only_touch(entry, asks, self._context.policy_of(entry), now)

    async def _find_or_create(self, message: RoutedMessage) -> SessionEntry:
        return (await self.run_until_answered(message, find_or_create_session)).entry

    async def route_message(self, source: SessionSource, *, touched: bool) -> RoutedMessage:
        """Return a message of that origin with its lane."""
        aliases = NO_ALIASES if self.alias_of is None else await self._resolve_aliases(source)
        key = session_key(source, self._isolation, aliases)
        return RoutedMessage(source, key, aliases, force_new=False, touched=touched)

    async def run_until_answered(
        self,
        message: RoutedMessage,
        transaction: Callable[
            [SessionRequest, Change], Transaction[T | ActiveWorkUnknown | AliasesUnknown | SessionIdTaken]
        ],
    ) -> T:
        """Run a transaction until it has an answer: it may first need active work, an alias or another id."""
        asked: ActiveWorkUnknown | None = None
        active_work = False
        for _ in range(MAX_TRIES):
            change = self._context.make_change(Actor.POLICY)
            request = SessionRequest(
                source=message.source,
                key=message.key,
                flags=self._isolation,
                aliases=message.aliases,
                touch=message.touched,
                force_new=message.force_new,
                new_session_id=self._context.new_session_id(),
                known=self._cache.get(message.key),
                active_work=active_work if asked is not None else None,
                asked_version=asked.version if asked is not None else None,
            )
            outcome = await self._context.db.write(partial(transaction, request, change))
            match outcome:
                case ActiveWorkUnknown():
                    asked, active_work = outcome, await self._context.has_active_work(outcome.session_key)
                case AliasesUnknown(owner=owner):
                    message = message._replace(
                        aliases={**message.aliases, **await self._resolve_aliases(owner)}
                    )
                case SessionIdTaken():
                    continue
                case _:
                    return outcome
        raise StorageError(message.key, f"could not be settled in {MAX_TRIES} tries")

    @property
    def isolation(self) -> Isolation:
        """Who shares a lane with whom."""
        return self._isolation

    def owner_of_message(self, message: RoutedMessage) -> str:
        """Return the owner of the message's lane, as far as memory tells."""
        known = self._cache.get(message.key)
        return (
            session_owner(message.source, self._isolation, message.aliases) if known is None else known.owner
        )

    def owner_of_lane(self, session_key: str, source: SessionSource) -> str:
        """Return the owner of the lane of that plain key, as far as memory tells."""
        known = self._cache.get(session_key)
        return session_owner(source, self._isolation, NO_ALIASES) if known is None else known.owner

    async def lane_of(self, source: SessionSource) -> tuple[str, str]:
        """Return the lane that a message of that origin belongs to, whichever name is used, and its owner."""
        found: tuple[str, str] = await self.run_until_answered(
            await self.route_message(source, touched=False), find_lane_and_owner
        )
        return found

    def known_entry(self, session_key: str) -> SessionEntry | None:
        """Return the remembered entry of a lane; only the database knows whether it is current."""
        return self._cache.get(session_key)

    def remember_entry(self, entry: SessionEntry) -> None:
        """Remember the lane's entry."""
        self._cache.put(entry)

    async def scope_of(self, source: SessionSource) -> Scope:
        """Return the scope of the person who wrote, under all of their names."""
        return Scope.of(source, self._isolation, await self._resolve_aliases(source))

    async def _resolve_aliases(self, source: SessionSource) -> Mapping[str, str]:
        resolve = self.alias_of
        if resolve is None:
            return NO_ALIASES
        return {one: await resolve(source.platform, one) for one in ids_to_resolve(source)}
