"""Batching: transactions of different lanes that wait at the same moment share one on the server.

A small transaction costs a few round trips to the server and one write of its disk, however little it
changes. Transactions of different lanes share no rows, so those that wait at the same moment can make the
round trips together: one step of each at a time, the same query of all of them at once, and one commit.

No transaction waits in order to have company: as long as there are free places, it runs alone at once. There
are fewer places than connections, because more of them at work would gain little. When a place becomes free,
all that wait for one form a group. The first of them leads: its task does the work of the group. If it is
cancelled, or the group fails, each of the others runs alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.ports import Row, Statement, TransactionFactory
from gateway_sessions.storage.engines.server.driver import IN_DOUBT, ServerConnection, ServerDriver
from gateway_sessions.storage.engines.server.executor import (
    BegunTransaction,
    Executor,
    TransactionRun,
    parameters_of,
    send_rows,
)
from gateway_sessions.storage.tables.statements import is_lane_lock

T = TypeVar("T")


class WaitingTransaction(Generic[T]):
    """A transaction that waits for a place."""

    def __init__(self, begun: BegunTransaction[T], epoch: int | None) -> None:
        self.begun = begun
        self.epoch = epoch
        self.call: asyncio.Future[Sequence[WaitingTransaction[Any]]] = (
            asyncio.get_running_loop().create_future()
        )
        """Done when a place is free: holds the group that this transaction leads, or nothing if another one
        led it."""
        self.group: TransactionGroup | None = None
        """The group that it runs in."""
        self.outcome: TransactionOutcome[T] | None = None
        """The result of its group's run; None if nothing was committed, so that it has to run alone."""

    @property
    def is_cancelled(self) -> bool:
        """Return True if its caller was cancelled."""
        return self.call.cancelled()

    def set_outcome(self, outcome: TransactionOutcome[T] | None) -> None:
        """Set the outcome, and wake the caller unless it is gone."""
        self.outcome = outcome
        if not self.call.done():
            self.call.set_result(())


class TransactionOutcome(Generic[T]):
    """Holds the result of a transaction, or its error."""

    def __init__(self, result: T, error: BaseException | None = None) -> None:
        self._result = result
        self._error = error

    def result_or_raise(self) -> T:
        """Return the result, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._result


class TransactionGroup:
    """Transactions that share a transaction of the database; the first one leads."""

    def __init__(self, members: Sequence[WaitingTransaction[Any]]) -> None:
        self.members = members
        self.ended: asyncio.Future[None] | None = None
        """Set when the commit begins; done when the outcome of the commit is known."""
        self.has_outcomes: bool = False
        """True once all members have their outcome."""
        for one in members:
            one.group = self

    @property
    def has_cancelled_member(self) -> bool:
        """Return True if a member's caller was cancelled: its changes must not be committed."""
        return any(one.is_cancelled for one in self.members)

    def begin_commit(self) -> None:
        """Note that from now on no member can be taken out."""
        self.ended = asyncio.get_running_loop().create_future()

    def set_outcomes(self, outcomes: Sequence[TransactionOutcome[Any] | None]) -> None:
        """Give each member its outcome."""
        self.has_outcomes = True
        if self.ended is not None:
            self.ended.set_result(None)
        for one, outcome in zip(self.members, outcomes, strict=True):
            one.set_outcome(outcome)


class PlacesForGroups:
    """Gives a free place to one transaction, or to a group of all that wait."""

    def __init__(self, places: int, largest: int) -> None:
        self._free = places
        self._largest = largest
        self._waiting: deque[WaitingTransaction[Any]] = deque()

    async def wait_for_place(self, member: WaitingTransaction[Any]) -> Sequence[WaitingTransaction[Any]]:
        """Wait for a place; return the group to run, *member* first, or nothing if another one has led it."""
        if self._free:
            self._free -= 1
            return (member,)
        self._waiting.append(member)
        try:
            return await member.call
        except asyncio.CancelledError:
            await self._give_up_waiting(member)
            raise

    def free_place(self) -> None:
        """Give the place to the transactions that wait."""
        together: list[WaitingTransaction[Any]] = []
        while self._waiting and len(together) < self._largest:
            if (one := self._waiting[0]).is_cancelled:
                self._waiting.popleft()
                continue
            # Transactions of one group are checked as one node, so they must have the same epoch.
            if together and one.epoch != together[0].epoch:
                break
            together.append(self._waiting.popleft())
        if together:
            together[0].call.set_result(together)
        else:
            self._free += 1

    async def _give_up_waiting(self, member: WaitingTransaction[Any]) -> None:
        """Pass the place on, and wait for the end of a commit that is under way.

        A cancelled caller must not return while its changes may or may not stand.
        """
        if not member.call.cancelled() and (led := member.call.result()):
            self._waiting.extendleft(reversed(led[1:]))
            self.free_place()
        elif member.group is not None and (ended := member.group.ended) is not None:
            while not ended.done():
                try:
                    await asyncio.wait({ended})
                except asyncio.CancelledError:
                    continue


class ComposingExecutor(Executor, Protocol):
    """A connection that can run one query for several transactions at once."""

    async def take_locks(self, locks: Sequence[str]) -> None:
        """Wait for all of these locks, and take them in the order that all transactions keep."""
        ...

    async def fetch_each(self, sql: str, params: Sequence[Sequence[object]]) -> Sequence[Row]:
        """Return the only row of a query for each row of parameters."""
        ...


class ParallelTransaction:
    """Holds how far one transaction of a group has come."""

    def __init__(self, run: TransactionRun, begun: BegunTransaction[Any]) -> None:
        self.run = run
        self._transaction = begun.transaction
        self.statement = begun.statement
        """The statement to run next; None at its end."""
        self.result: Any = begun.result
        self.error: Exception | None = None
        """The error that ended it before it had changed anything."""

    def take_step(self, rows: Sequence[Row]) -> None:
        """Take one step. An error after a change is raised: it ends the whole group."""
        try:
            following = send_rows(self._transaction, rows)
        except Exception as error:
            if self.run.may_have_written:
                raise
            self.statement, self.error = None, error
            return
        if isinstance(following, Statement):
            self.statement = following
        else:
            self.statement, self.result = None, following.value

    def close(self) -> None:
        """Close the generator."""
        self._transaction.close()


async def run_side_by_side(executor: ComposingExecutor, walkers: Sequence[ParallelTransaction]) -> None:
    """Run all transactions to their ends, a step of each at a time.

    An error that concerns more than one of them is raised.
    """
    try:
        while walking := [one for one in walkers if one.statement is not None]:
            await _take_locks_of_steps(executor, walking)
            alike: dict[Hashable, list[tuple[ParallelTransaction, Statement]]] = {}
            for one in walking:
                if one.statement is not None:
                    statement = await one.run.prepare_statement(one.statement)
                    alike.setdefault(_query_key(statement), []).append((one, statement))
            for some in alike.values():
                answers = await _run_alike(executor, some)
                for (one, _), rows in zip(some, answers, strict=True):
                    one.take_step(rows)
    finally:
        for one in walkers:
            one.close()


async def _take_locks_of_steps(executor: ComposingExecutor, walking: Sequence[ParallelTransaction]) -> None:
    """Take all locks that the next steps need, in one round trip."""
    wanted = [
        (one.run, lock)
        for one in walking
        if one.statement is not None
        for lock in one.run.missing_locks_of(one.statement)
    ]
    if wanted:
        await executor.take_locks(sorted({lock for _, lock in wanted}))
    for run, lock in wanted:
        run.note_lock(lock)


def _query_key(statement: Statement) -> Hashable:
    """Return a key that is the same for statements which can run as one query."""
    return statement.name, statement.many is None, tuple(one.name for one in statement.parts)


async def _run_alike(
    executor: ComposingExecutor, alike: Sequence[tuple[ParallelTransaction, Statement]]
) -> Sequence[Sequence[Row]]:
    (first, statement), *others = alike
    if not others:
        return [await first.run.execute(statement)]
    if statement.many is not None:
        return await _change_many(executor, alike)
    sql = first.run.composed_sql_of(statement)
    rows = await executor.fetch_each(sql, [parameters_of(one) for _, one in alike])
    return [walker.run.split_answer(one, row) for (walker, one), row in zip(alike, rows, strict=True)]


async def _change_many(
    executor: ComposingExecutor, alike: Sequence[tuple[ParallelTransaction, Statement]]
) -> Sequence[Sequence[Row]]:
    """Change the rows of all statements at once; each is told its number of rows, see `Executor.change`."""
    rows = [row for _, statement in alike for row in statement.many or ()]
    walker, statement = alike[0]
    await executor.change(walker.run.plain_sql_of(statement), rows)
    return [walker.run.note_change(one, len(one.many or ())) for walker, one in alike]


PLACES: Final = 3
"""The number of groups that run at once. More of them hardly raise the throughput of a server, and make
groups smaller."""
LARGEST: Final = 32
"""The most transactions in a group: all their callers wake at once, and the loop has others to serve."""


class GroupConnection(ServerConnection, ComposingExecutor, Protocol):
    """A connection on which several transactions can share a transaction of the database."""

    async def begin_together(self, held: Sequence[str], epoch: int | None) -> None:
        """Begin to write under all these locks."""
        ...


class GroupingDriver(ServerDriver):
    """Runs transactions of different lanes in groups, on a database that can compose queries."""

    _groups: PlacesForGroups | None = None

    async def _write_with_retries(
        self, transaction: TransactionFactory[T], begun: BegunTransaction[T], epoch: int | None
    ) -> T:
        if begun.lock is None or not is_lane_lock(begun.lock):
            return await super()._write_with_retries(transaction, begun, epoch)
        groups = self._groups = self._groups or PlacesForGroups(
            min(PLACES, self._limits.connections), LARGEST
        )
        member = WaitingTransaction(begun, epoch)
        if led := await groups.wait_for_place(member):
            try:
                if len(led) == 1:
                    return await super()._write_with_retries(transaction, begun, epoch)
                await self._write_group(TransactionGroup(led))
            finally:
                groups.free_place()
        if member.outcome is not None:
            return member.outcome.result_or_raise()
        return await super()._write_with_retries(transaction, BegunTransaction(transaction()), epoch)

    async def _write_group(self, group: TransactionGroup) -> None:
        """Run a group, and give each member its outcome, whatever happens."""
        try:
            cancelled = await self._commit_group(group)
        except asyncio.CancelledError:
            if not group.has_outcomes:
                group.set_outcomes([self._outcome_after_cancellation(group) for _ in group.members])
            raise
        except Exception as error:
            if group.has_outcomes:
                raise
            # Each member gets the error as its outcome; raised here, only the leader would.
            group.set_outcomes([self._outcome_after_error(group, error) for _ in group.members])
            return
        if cancelled is not None:
            raise cancelled

    async def _commit_group(self, group: TransactionGroup) -> asyncio.CancelledError | None:
        """Run and commit a group; return a cancellation that arrived during the commit.

        The members get their outcomes before the connection is returned to its pool, which may fail by
        itself.
        """
        locks = [one.begun.lock for one in group.members if one.begun.lock is not None]
        epoch = group.members[0].epoch

        async def begin(link: ServerConnection) -> None:
            await cast("GroupConnection", link).begin_together(locks, epoch)

        async with self._transaction(begin) as link:
            held = set(locks)
            walkers = [
                ParallelTransaction(self._transaction_run(link, held), one.begun) for one in group.members
            ]
            await run_side_by_side(cast("GroupConnection", link), walkers)
            failpoint("before_commit")
            if group.has_cancelled_member:
                raise TornError
            group.begin_commit()
            cancelled = await self._commit_to_the_end(link)
            try:
                failpoint("after_commit")
                self._tell_listeners([one.run for one in walkers])
            finally:
                group.set_outcomes([TransactionOutcome(one.result, one.error) for one in walkers])
        return cancelled

    def _outcome_after_cancellation(self, group: TransactionGroup) -> TransactionOutcome[Any] | None:
        """Return the outcome of all members after their leader was cancelled; None: each runs alone."""
        if group.ended is None:
            return None
        return TransactionOutcome(None, StorageUnavailableError(self.troubles.what, IN_DOUBT, in_doubt=True))

    def _outcome_after_error(
        self, group: TransactionGroup, error: Exception
    ) -> TransactionOutcome[Any] | None:
        """Return the outcome of all members after an error; None: each runs alone."""
        if isinstance(error, self.troubles.driver_errors):
            slow = self.troubles.ends_connection(error) and not self.troubles.was_cut_before_answer(error)
            return TransactionOutcome(None, self.troubles.translate(error)) if slow else None
        # Not a subclass: `NodeSilentError` says something of the node, and each member meets it alone.
        if type(error) is StorageUnavailableError:
            return TransactionOutcome(
                None, StorageUnavailableError(error.what, error.problem, in_doubt=error.in_doubt)
            )
        return None


class TornError(Exception):
    """A caller in a group was cancelled before the commit: none of the group's changes may stand."""
