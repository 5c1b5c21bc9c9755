"""Who gets a transaction alone, and who shares one: whatever waits when a place becomes free goes together.

Nobody waits in order to have company: as long as there are places, everybody gets one. There are fewer places
than connections, because a server and a program that are both at work gain little by more; what waits for a
place then shares the ways to the server, the commit and the disk. Whoever comes first leads: its task does
the work for all, and if it is cancelled, or the group fails, each of the others goes alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from gateway_sessions.storage.drivers.run import Begun

T = TypeVar("T")


class Member(Generic[T]):
    """A verb that waits for a transaction."""

    def __init__(self, begun: Begun[T], epoch: int | None) -> None:
        self.begun = begun
        self.epoch = epoch
        self.call: asyncio.Future[Sequence[Member[Any]]] = asyncio.get_running_loop().create_future()
        """Done as soon as it is known what becomes of it: those that it leads, or none."""
        self.group: Group | None = None
        """The one that has taken it along."""
        self.outcome: Outcome[T] | None = None
        """What came of it; None: nothing was done, and it goes alone."""

    @property
    def gone(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.call.cancelled()

    def settle(self, outcome: Outcome[T] | None) -> None:
        """Tell it what came of it, unless it has gone."""
        self.outcome = outcome
        if not self.call.done():
            self.call.set_result(())


class Outcome(Generic[T]):
    """A result, or an error."""

    def __init__(self, result: T, error: BaseException | None = None) -> None:
        self._result = result
        self._error = error

    def get(self) -> T:
        """The result; an error is raised."""
        if self._error is not None:
            raise self._error
        return self._result


class Group:
    """Some that share a transaction, the one that leads them first."""

    def __init__(self, members: Sequence[Member[Any]]) -> None:
        self.members = members
        self.ended: asyncio.Future[None] | None = None
        """From the beginning of the commit on: done when it is known whether it stands."""
        self.settled = False
        """Whether everybody knows what came of it."""
        for one in members:
            one.group = self

    @property
    def is_torn(self) -> bool:
        """Whether one of them has gone: what it has done must not stand."""
        return any(one.gone for one in self.members)

    def begin_commit(self) -> None:
        """From now on nobody can be taken out any more."""
        self.ended = asyncio.get_running_loop().create_future()

    def settle(self, outcomes: Sequence[Outcome[Any] | None]) -> None:
        """Tell everybody what came of it."""
        self.settled = True
        if self.ended is not None:
            self.ended.set_result(None)
        for one, outcome in zip(self.members, outcomes, strict=True):
            one.settle(outcome)


class Groups:
    """Gives out places, to one or to all that wait."""

    def __init__(self, places: int, largest: int) -> None:
        self._free = places
        self._largest = largest
        self._waiting: deque[Member[Any]] = deque()

    async def enter(self, member: Member[Any]) -> Sequence[Member[Any]]:
        """Wait for a place. Those that have it, *member* first; none if it was taken along by another one."""
        if self._free:
            self._free -= 1
            return (member,)
        self._waiting.append(member)
        try:
            return await member.call
        except asyncio.CancelledError:
            await self._go(member)
            raise

    def leave(self) -> None:
        """Give the place to whoever waits."""
        together: list[Member[Any]] = []
        while self._waiting and len(together) < self._largest:
            if (one := self._waiting[0]).gone:
                self._waiting.popleft()
                continue
            if together and one.epoch != together[0].epoch:
                break
            together.append(self._waiting.popleft())
        if together:
            together[0].call.set_result(together)
        else:
            self._free += 1

    async def _go(self, member: Member[Any]) -> None:
        """Leave no place behind, and nothing under way of which nobody knows how it ended."""
        if not member.call.cancelled() and (led := member.call.result()):
            self._waiting.extendleft(reversed(led[1:]))
            self.leave()
        elif member.group is not None and (ended := member.group.ended) is not None:
            while not ended.done():
                try:
                    await asyncio.wait({ended})
                except asyncio.CancelledError:
                    continue
