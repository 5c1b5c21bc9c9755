"""Several verbs in one transaction, a step of each at a time: what they ask alike is asked at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

from gateway_sessions.ports import Row, Statement
from gateway_sessions.storage.drivers.run import Begun, Executor, Run, step, values_of


class ManyExecutor(Executor, Protocol):
    """A connection that can be asked the same for many at once."""

    async def take_all(self, locks: Sequence[str]) -> None:
        """Wait until nobody else has any of the locks, which are taken in one order everywhere."""
        ...

    async def fetch_each(self, sql: str, params: Sequence[Sequence[object]]) -> Sequence[Row]:
        """The one row that a query answers with, for each of these rows of parameters."""
        ...


class Walker:
    """A verb on its way."""

    def __init__(self, run: Run, begun: Begun[Any]) -> None:
        self.run = run
        self._verb = begun.verb
        self.statement = begun.statement
        """What it asks; None if it has come to its end."""
        self.result: Any = begun.result
        self.error: Exception | None = None
        """Why it ended without a result. It has changed nothing then."""

    def go_on(self, rows: Sequence[Row]) -> None:
        """Take a step. If it fails after it has changed something, that is everybody's failure."""
        try:
            following = step(self._verb, rows)
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
        """Leave the verb wherever it is."""
        self._verb.close()


async def walk_abreast(executor: ManyExecutor, walkers: Sequence[Walker]) -> None:
    """Run all of them to their ends; whatever goes wrong for more than one of them is raised."""
    try:
        while walking := [one for one in walkers if one.statement is not None]:
            await _take_locks(executor, walking)
            alike: dict[Hashable, list[tuple[Walker, Statement]]] = {}
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


async def _take_locks(executor: ManyExecutor, walking: Sequence[Walker]) -> None:
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


async def _ask(executor: ManyExecutor, alike: Sequence[tuple[Walker, Statement]]) -> Sequence[Sequence[Row]]:
    (first, statement), *others = alike
    if not others:
        return [await first.run.execute(statement)]
    if statement.many is not None:
        return await _change_many(executor, alike)
    sql = first.run.sql_of(statement)
    rows = await executor.fetch_each(sql, [values_of(one) for _, one in alike])
    return [walker.run.answer(one, row) for (walker, one), row in zip(alike, rows, strict=True)]


async def _change_many(
    executor: ManyExecutor, alike: Sequence[tuple[Walker, Statement]]
) -> Sequence[Sequence[Row]]:
    """Change many rows for each of them. How many that were is not asked: see `Executor.change`."""
    rows = [row for _, statement in alike for row in statement.many or ()]
    walker, statement = alike[0]
    await executor.change(walker.run.plain_sql_of(statement), rows)
    return [walker.run.changed(one, len(one.many or ())) for walker, one in alike]
