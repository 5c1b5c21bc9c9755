"""The bare driver: what our queue has said to a server is said again by asyncpg alone.

Lane by lane, transaction by transaction, with the values that were sent then, to a database that is new
again. Nothing is decided, and nothing is made of the answers.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import asyncpg

from gateway_sessions import SessionStore
from gateway_sessions.storage.engines.server.driver import USUAL
from gateway_sessions.storage.tables.sql_files import load_migrations
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.contenders import our_queue
from tests.benchmarks.servers import own_database

FENCE: Final = "SELECT 1 / count(*)"
"""Ends the transaction of who may not write any more: nobody is known here who may."""
OF_THE_DRIVER: Final = "typeinfo_tree"
"""In what asyncpg asks by itself: it asks again."""


class Said(NamedTuple):
    """A statement and its values."""

    sql: str
    values: Sequence[Any]

    @property
    def many(self) -> bool:
        """Whether there are several rows of values."""
        return "$1" in self.sql and all(type(one) in (tuple, list) for one in self.values)


Work = list[list[Said]]
"""Transactions, one after the other."""


class Recorder:
    """Hears what is said on every connection of a pool."""

    def __init__(self) -> None:
        self._said: list[tuple[int, Said]] = []
        self._make_pool = asyncpg.create_pool

    def make_pool(self, *args: Any, **options: Any) -> Awaitable[asyncpg.Pool]:
        return self._make_pool(*args, **options, init=self._listen)

    async def _listen(self, connection: asyncpg.Connection) -> None:
        number = id(connection)

        def hear(one: Any) -> None:
            if OF_THE_DRIVER not in one.query:
                self._said.append((number, Said(one.query.replace(FENCE, "SELECT count(*)"), one.args)))

        connection.add_query_logger(hear)

    async def listening(self, work: Awaitable[object]) -> Work:
        """The transactions in which that was done."""
        self._said.clear()
        await work
        found: dict[int, list[Said]] = {}
        whole: Work = []
        for number, said in self._said:
            begun = found.setdefault(number, [])
            begun.append(said)
            if said.sql == "COMMIT":
                whole.append(found.pop(number))
        return whole


Parts = dict[str, list[list[Work]]]
"""By kind of work: for each lane the work of each of its messages."""


@asynccontextmanager
async def recorded() -> AsyncGenerator[tuple[SessionStore, Recorder]]:
    """A store that our queue works in, and who hears what it says."""
    recorder = Recorder()
    with ExitStack() as patched:
        patched.enter_context(patch.object(asyncpg, "create_pool", recorder.make_pool))
        async with (
            own_database(f"gateway_sessions_bench_{os.getpid()}") as address,
            SessionStore.open(address, our_queue.config()) as store,
        ):
            yield store, recorder


async def record(lanes: int, each: int) -> tuple[Work, Parts]:
    """What makes the database what it is before, and the work of each message of each lane."""
    parts: Parts = {"enqueue": [], "turns": []}
    async with recorded() as (store, recorder):
        before: Work = []
        for step in (our_queue.enqueue, our_queue.turns):
            before += await recorder.listening(step(store, range(lanes), 1))
        for lane in range(lanes):
            for kind, work in (await one_by_one(store, recorder, lane, each, first=1)).items():
                parts[kind].append(work)
    return before, parts


async def record_backlog(waiting: int, each: int) -> tuple[Work, Parts, Work, Parts]:
    """One lane: its first message, more of them and their turns, then all that wait, and more again."""
    async with recorded() as (store, recorder):
        first = await recorder.listening(our_queue.enqueue(store, range(1), 1))
        before = await one_by_one(store, recorder, 0, each, first=1)
        filling = await recorder.listening(our_queue.enqueue(store, range(1), waiting, first=1 + each))
        after = await one_by_one(store, recorder, 0, each, first=1 + each + waiting)
    return (
        first,
        {kind: [work] for kind, work in before.items()},
        filling,
        {kind: [work] for kind, work in after.items()},
    )


async def one_by_one(
    store: SessionStore, recorder: Recorder, lane: int, each: int, first: int
) -> dict[str, list[Work]]:
    """So many messages come in on a lane and have their turns, each heard by itself."""
    here = range(lane, lane + 1)
    coming = [partial(our_queue.enqueue, store, here, 1, first=first + n) for n in range(each)]
    turns: list[Callable[[], Awaitable[object]]] = [partial(our_queue.turns, store, here, 1)] * each
    return {
        "enqueue": [await recorder.listening(one()) for one in coming],
        "turns": [await recorder.listening(one()) for one in turns],
    }


async def say(connection: asyncpg.pool.PoolConnectionProxy | asyncpg.Connection, said: Said) -> None:
    if said.many:
        await connection.executemany(said.sql, said.values)
    elif said.values:
        await connection.fetch(said.sql, *said.values)
    else:
        await connection.execute(said.sql)


async def again(pool: asyncpg.Pool, lanes: list[list[Work]]) -> Figures:
    """All lanes do their work at once, each one message after another."""
    measured: list[int] = []

    async def do(lane: list[Work]) -> None:
        for transactions in lane:
            before = time.perf_counter_ns()
            for transaction in transactions:
                async with pool.acquire() as connection:
                    for said in transaction:
                        await say(connection, said)
            measured.append(time.perf_counter_ns() - before)

    start = time.perf_counter()
    await asyncio.gather(*(do(lane) for lane in lanes))
    return {"per second": len(measured) / (time.perf_counter() - start)} | latencies(measured)


async def nothing_to_reset(_: asyncpg.Connection) -> None:
    """As our own pool does."""


@asynccontextmanager
async def new_again(before: Work) -> AsyncGenerator[tuple[str, asyncpg.Pool]]:
    """A database in which that was said, and a pool like our own."""
    async with own_database(f"gateway_sessions_bench_{os.getpid()}") as address:
        connection = await asyncpg.connect(address)
        for step in load_migrations("postgresql"):
            await connection.execute(step.script)
        for transaction in before:
            for said in transaction:
                await say(connection, said)
        await connection.close()
        async with asyncpg.create_pool(
            address,
            min_size=1,
            max_size=USUAL.connections,
            statement_cache_size=512,
            reset=nothing_to_reset,
        ) as pool:
            yield address, pool


async def queue(folder: str, lanes: int, each: int, idle: int = 0) -> Figures:
    """The work of our queue, by hand."""
    os.environ["XDG_STATE_HOME"] = folder
    before, parts = await record(lanes, each)
    async with new_again(before) as (address, pool):
        if idle:
            await our_queue.add_idle_lanes(address, idle)
        figures = {kind: await again(pool, parts[kind]) for kind in parts}
    return {f"{kind}: {name}": value for kind, some in figures.items() for name, value in some.items()}


async def backlog(folder: str, waiting: int, each: int) -> Figures:
    """The same, on one lane on which so many messages wait."""
    os.environ["XDG_STATE_HOME"] = folder
    first, usual, filling, later = await record_backlog(waiting, each)
    async with new_again(first) as (address, pool):
        before = {kind: await again(pool, usual[kind]) for kind in usual}
        await again(pool, [[filling]])
        await our_queue.tidied(address)
        after = {kind: await again(pool, later[kind]) for kind in later}
    return our_queue.grown(before, after)


if __name__ == "__main__":
    answer(
        {
            "queue": lambda **task: asyncio.run(queue(**task)),
            "backlog": lambda **task: asyncio.run(backlog(**task)),
        }
    )
