"""Batching: transactions of different lanes that wait at the same moment share one on the server.

Who gets a transaction alone, and who shares one: whatever waits when a place becomes free goes together.

Nobody waits in order to have company: as long as there are places, everybody gets one. There are fewer places
than connections, because a server and a program that are both at work gain little by more; what waits for a
place then shares the ways to the server, the commit and the disk. Whoever comes first leads: its task does
the work for all, and if it is cancelled, or the group fails, each of the others goes alone.

A server on which transactions of different lanes share a commit, if they wait at the same moment.

A message costs a few ways to the server and one to its disk, however little there is to write. Transactions
of different lanes have nothing in common; so those that wait at the same moment go the ways together.

Several transactions with one commit, a step of each at a time: what they ask alike is asked at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from gateway_sessions._failpoints import failpoint
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.ports import Row, Statement, TransactionFactory
from gateway_sessions.storage.engines.server.driver import IN_DOUBT, ServerConnection, ServerDriver
from gateway_sessions.storage.engines.server.executor import (
    BegunTransaction,
    Executor,
    TransactionRun,
    step,
    values_of,
)
from gateway_sessions.storage.tables.locks import is_of_lane

T = TypeVar("T")


class WaitingTransaction(Generic[T]):
    """A transaction that waits for its turn to be committed."""

    def __init__(self, begun: BegunTransaction[T], epoch: int | None) -> None:
        self.begun = begun
        self.epoch = epoch
        self.call: asyncio.Future[Sequence[WaitingTransaction[Any]]] = (
            asyncio.get_running_loop().create_future()
        )
        """Done as soon as it is known what becomes of it: those that it leads, or none."""
        self.group: TransactionGroup | None = None
        """The one that has taken it along."""
        self.outcome: TransactionOutcome[T] | None = None
        """What came of it; None: nothing was done, and it goes alone."""

    @property
    def gone(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.call.cancelled()

    def settle(self, outcome: TransactionOutcome[T] | None) -> None:
        """Tell it what came of it, unless it has gone."""
        self.outcome = outcome
        if not self.call.done():
            self.call.set_result(())


class TransactionOutcome(Generic[T]):
    """A result, or an error."""

    def __init__(self, result: T, error: BaseException | None = None) -> None:
        self._result = result
        self._error = error

    def get(self) -> T:
        """The result; an error is raised."""
        if self._error is not None:
            raise self._error
        return self._result


class TransactionGroup:
    """Some that share a transaction, the one that leads them first."""

    def __init__(self, members: Sequence[WaitingTransaction[Any]]) -> None:
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

    def settle(self, outcomes: Sequence[TransactionOutcome[Any] | None]) -> None:
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
        self._waiting: deque[WaitingTransaction[Any]] = deque()

    async def enter(self, member: WaitingTransaction[Any]) -> Sequence[WaitingTransaction[Any]]:
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
        together: list[WaitingTransaction[Any]] = []
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

    async def _go(self, member: WaitingTransaction[Any]) -> None:
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


class ManyExecutor(Executor, Protocol):
    """A connection that can be asked the same for many at once."""

    async def take_all(self, locks: Sequence[str]) -> None:
        """Wait until nobody else has any of the locks, which are taken in one order everywhere."""
        ...

    async def fetch_each(self, sql: str, params: Sequence[Sequence[object]]) -> Sequence[Row]:
        """The one row that a query answers with, for each of these rows of parameters."""
        ...


class ParallelTransaction:
    """A transaction on its way."""

    def __init__(self, run: TransactionRun, begun: BegunTransaction[Any]) -> None:
        self.run = run
        self._transaction = begun.transaction
        self.statement = begun.statement
        """What it asks; None if it has come to its end."""
        self.result: Any = begun.result
        self.error: Exception | None = None
        """Why it ended without a result. It has changed nothing then."""

    def go_on(self, rows: Sequence[Row]) -> None:
        """Take a step. If it fails after it has changed something, that is everybody's failure."""
        try:
            following = step(self._transaction, rows)
        except Exception as error:
            if self.run.wrote:
                raise
            self.statement, self.error = None, error
            return
        if isinstance(following, Statement):
            self.statement = following
        else:
            self.statement, self.result = None, following.value

    def close(self) -> None:
        """Leave the transaction wherever it is."""
        self._transaction.close()


async def run_side_by_side(executor: ManyExecutor, walkers: Sequence[ParallelTransaction]) -> None:
    """Run all of them to their ends; whatever goes wrong for more than one of them is raised."""
    try:
        while walking := [one for one in walkers if one.statement is not None]:
            await _take_locks(executor, walking)
            alike: dict[Hashable, list[tuple[ParallelTransaction, Statement]]] = {}
            for one in walking:
                if one.statement is not None:
                    statement = await one.run.ready(one.statement)
                    alike.setdefault(_kind(statement), []).append((one, statement))
            for some in alike.values():
                answers = await _ask(executor, some)
                for (one, _), rows in zip(some, answers, strict=True):
                    one.go_on(rows)
    finally:
        for one in walkers:
            one.close()


async def _take_locks(executor: ManyExecutor, walking: Sequence[ParallelTransaction]) -> None:
    """Take what all of them need for their next steps."""
    wanted = [
        (one.run, lock)
        for one in walking
        if one.statement is not None
        for lock in one.run.locks_of(one.statement)
    ]
    if wanted:
        await executor.take_all(sorted({lock for _, lock in wanted}))
    for run, lock in wanted:
        run.hold(lock)


def _kind(statement: Statement) -> Hashable:
    """Statements of the same kind can be asked at once."""
    return statement.name, statement.many is None, tuple(one.name for one in statement.parts)


async def _ask(
    executor: ManyExecutor, alike: Sequence[tuple[ParallelTransaction, Statement]]
) -> Sequence[Sequence[Row]]:
    (first, statement), *others = alike
    if not others:
        return [await first.run.execute(statement)]
    if statement.many is not None:
        return await _change_many(executor, alike)
    sql = first.run.sql_of(statement)
    rows = await executor.fetch_each(sql, [values_of(one) for _, one in alike])
    return [walker.run.answer(one, row) for (walker, one), row in zip(alike, rows, strict=True)]


async def _change_many(
    executor: ManyExecutor, alike: Sequence[tuple[ParallelTransaction, Statement]]
) -> Sequence[Sequence[Row]]:
    """Change many rows for each of them. How many that were is not asked: see `Executor.change`."""
    rows = [row for _, statement in alike for row in statement.many or ()]
    walker, statement = alike[0]
    await executor.change(walker.run.plain_sql_of(statement), rows)
    return [walker.run.changed(one, len(one.many or ())) for walker, one in alike]


PLACES: Final = 3
"""Transactions of lanes that are under way at once."""
LARGEST: Final = 32
"""Transactions that share one: what all of them do next keeps the loop from anything else."""


class GroupLink(ServerConnection, ManyExecutor, Protocol):
    """A connection that several transactions can share."""

    async def begin_together(self, held: Sequence[str], epoch: int | None) -> None:
        """Begin a transaction that has all these locks."""
        ...


class GroupingDriver(ServerDriver):
    """Runs transactions on a database, and those of different lanes together.

    It can say several queries as one.
    """

    _groups: Groups | None = None

    async def _write_begun(
        self, transaction: TransactionFactory[T], begun: BegunTransaction[T], epoch: int | None
    ) -> T:
        if begun.lock is None or not is_of_lane(begun.lock):
            return await super()._write_begun(transaction, begun, epoch)
        groups = self._groups = self._groups or Groups(min(PLACES, self._limits.connections), LARGEST)
        member = WaitingTransaction(begun, epoch)
        if led := await groups.enter(member):
            try:
                if len(led) == 1:
                    return await super()._write_begun(transaction, begun, epoch)
                await self._write_together(TransactionGroup(led))
            finally:
                groups.leave()
        if member.outcome is not None:
            return member.outcome.get()
        return await super()._write_begun(transaction, BegunTransaction(transaction()), epoch)

    async def _write_together(self, group: TransactionGroup) -> None:
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

    async def _transact(self, group: TransactionGroup) -> asyncio.CancelledError | None:
        """Do it. What stands is settled before the connection is given back, which may go wrong by itself."""
        locks = [one.begun.lock for one in group.members if one.begun.lock is not None]
        epoch = group.members[0].epoch

        async def begin(link: ServerConnection) -> None:
            await cast("GroupLink", link).begin_together(locks, epoch)

        async with self._transaction(begin) as link:
            held = set(locks)
            walkers = [ParallelTransaction(self._run(link, held), one.begun) for one in group.members]
            await run_side_by_side(cast("GroupLink", link), walkers)
            failpoint("before_commit")
            if group.is_torn:
                raise TornError
            group.begin_commit()
            cancelled = await self._commit(link)
            try:
                failpoint("after_commit")
                self._tell([one.run for one in walkers])
            finally:
                group.settle([TransactionOutcome(one.result, one.error) for one in walkers])
        return cancelled

    def _cut_off(self, group: TransactionGroup) -> TransactionOutcome[Any] | None:
        """What everybody is told when the one that leads was cancelled; None: each goes alone."""
        if group.ended is None:
            return None
        return TransactionOutcome(None, StorageUnavailableError(self.troubles.what, IN_DOUBT, in_doubt=True))

    def _failed(self, group: TransactionGroup, error: Exception) -> TransactionOutcome[Any] | None:
        """What everybody is told; None: each should try alone."""
        if isinstance(error, self.troubles.foreign):
            slow = self.troubles.is_end(error) and not self.troubles.was_cut(error)
            return TransactionOutcome(None, self.troubles.translate(error)) if slow else None
        if (
            type(error) is StorageUnavailableError
        ):  # not what says something of a node: each hears it by itself
            return TransactionOutcome(
                None, StorageUnavailableError(error.what, error.problem, in_doubt=error.in_doubt)
            )
        return None


class TornError(Exception):
    """One of a group was cancelled before its commit: nothing of it must stand."""
