"""A server on which verbs of different lanes share a transaction, if they wait at the same moment.

A message costs a few ways to the server and one to its disk, however little there is to write. Verbs of
different lanes have nothing in common; so those that wait at the same moment go the ways together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar, cast

from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import VerbFactory
from gateway_sessions.storage.drivers.abreast import ManyExecutor, Walker, walk_abreast
from gateway_sessions.storage.drivers.groups import Group, Groups, Member, Outcome
from gateway_sessions.storage.drivers.run import Begun
from gateway_sessions.storage.drivers.server import IN_DOUBT, Link, ServerDriver
from gateway_sessions.storage.verbs.locks import is_of_lane

T = TypeVar("T")

PLACES: Final = 3
"""Transactions of lanes that are under way at once."""
LARGEST: Final = 32
"""Verbs that share one: what all of them do next keeps the loop from anything else."""


class GroupLink(Link, ManyExecutor, Protocol):
    """A connection that several verbs can share."""

    async def begin_together(self, held: Sequence[str], epoch: int | None) -> None:
        """Begin a transaction that has all these locks."""
        ...


class GroupingDriver(ServerDriver):
    """Runs verbs on a database, and those of different lanes together. It can say several queries as one."""

    _groups: Groups | None = None

    async def _write_begun(self, verb: VerbFactory[T], begun: Begun[T], epoch: int | None) -> T:
        if begun.lock is None or not is_of_lane(begun.lock):
            return await super()._write_begun(verb, begun, epoch)
        groups = self._groups = self._groups or Groups(min(PLACES, self._limits.connections), LARGEST)
        member = Member(begun, epoch)
        if led := await groups.enter(member):
            try:
                if len(led) == 1:
                    return await super()._write_begun(verb, begun, epoch)
                await self._write_together(Group(led))
            finally:
                groups.leave()
        if member.outcome is not None:
            return member.outcome.get()
        return await super()._write_begun(verb, Begun(verb()), epoch)

    async def _write_together(self, group: Group) -> None:
        """Run all of them in one transaction. Whatever happens, each learns what came of it."""
        try:
            cancelled = await self._transact(group)
        except asyncio.CancelledError:
            if not group.settled:
                group.settle([self._cut_off(group) for _ in group.members])
            raise
        except Exception as error:
            if group.settled:
                raise
            # Handed on to everybody, who would meet it again alone.
            group.settle([self._failed(group, error) for _ in group.members])
            return
        if cancelled is not None:
            raise cancelled

    async def _transact(self, group: Group) -> asyncio.CancelledError | None:
        """Do it. What stands is settled before the connection is given back, which may go wrong by itself."""
        locks = [one.begun.lock for one in group.members if one.begun.lock is not None]
        epoch = group.members[0].epoch

        async def begin(link: Link) -> None:
            await cast("GroupLink", link).begin_together(locks, epoch)

        async with self._transaction(begin) as link:
            held = set(locks)
            walkers = [Walker(self._run(link, held), one.begun) for one in group.members]
            await walk_abreast(cast("GroupLink", link), walkers)
            failpoint("before_commit")
            if group.is_torn:
                raise TornError
            group.begin_commit()
            cancelled = await self._commit(link)
            try:
                failpoint("after_commit")
                self._tell([one.run for one in walkers])
            finally:
                group.settle([Outcome(one.result, one.error) for one in walkers])
        return cancelled

    def _cut_off(self, group: Group) -> Outcome[Any] | None:
        """What everybody is told when the one that leads was cancelled; None: each goes alone."""
        if group.ended is None:
            return None
        return Outcome(None, StorageUnavailableError(self.troubles.what, IN_DOUBT, in_doubt=True))

    def _failed(self, group: Group, error: Exception) -> Outcome[Any] | None:
        """What everybody is told; None: each should try alone."""
        if isinstance(error, self.troubles.foreign):
            slow = self.troubles.is_end(error) and not self.troubles.was_cut(error)
            return Outcome(None, self.troubles.translate(error)) if slow else None
        if (
            type(error) is StorageUnavailableError
        ):  # not what says something of a node: each hears it by itself
            return Outcome(None, StorageUnavailableError(error.what, error.problem, in_doubt=error.in_doubt))
        return None


class TornError(Exception):
    """One of a group was cancelled before its commit: nothing of it must stand."""
