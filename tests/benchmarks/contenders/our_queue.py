"""Our queue on a server: messages are taken in from many lanes at once, then each has its turn."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Final

import asyncpg

from gateway_sessions import Config, SessionStore
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.busy_modes import BusyRules
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage
from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.servers import own_database

MANY: Final = 1_000_000
"""More than ever waits here."""
TEXTS: Final = corpus.said(1_000)
ANSWER: Final = {"role": "assistant", "content": "done"}
IDLE_LANES: Final = """
    INSERT INTO lanes (session_key, next_seq, lease_token)
        SELECT 'agent:main:telegram:dm:idle-' || n, 2, 1 FROM generate_series(1, $1) AS n;
"""
IDLE_ENTRIES: Final = """
    INSERT INTO entries
        (entry_id, session_key, session_id, owner, platform, state, due_at, policy_fingerprint, record)
        SELECT -n, 'agent:main:telegram:dm:idle-' || n, 'idle-' || n, 'main:telegram:person:idle-' || n,
            'telegram', 'active', 9000000000000000, 'none', $2 FROM generate_series(1, $1) AS n;
"""
IDLE_CLOCKS: Final = """
    INSERT INTO clocks (entry_id, version, updated_at)
        SELECT -n, 1, 1700000000000000 + n FROM generate_series(1, $1) AS n;
"""
"""What lanes leave that nobody uses any more, as nearly as it matters."""

LOG: Final = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8"
SIZES: Final = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


def config() -> Config:
    """Nothing is merged and nothing refused."""
    whole = Config()
    rules = BusyRules(debounce=timedelta(0), max_queued=MANY, acknowledge=False)
    return replace(
        whole,
        busy=rules,
        gateway=replace(whole.gateway, max_waiting=MANY, max_waiting_per_owner=MANY),
    )


def message(lane: int, number: int, text: str) -> InboundMessage:
    """The message of that number on a lane."""
    person = f"p{lane}"
    source = SessionSource(platform="telegram", chat_id=person, user_id=person)
    return InboundMessage(source=source, text=text, message_id=f"{person}m{number}")


def key(lane: int) -> str:
    """What we call the lane."""
    return f"agent:main:telegram:dm:p{lane}"


@asynccontextmanager
async def store_with(folder: str, idle: int) -> AsyncGenerator[tuple[SessionStore, str]]:
    """A store on a server, with so many lanes that nobody uses, and where it is."""
    os.environ["XDG_STATE_HOME"] = folder
    async with own_database(f"gateway_sessions_bench_{os.getpid()}") as address:
        async with SessionStore.open(address, config()) as store:
            await store.get_or_create_session(message(0, 0, "").source)
        if idle:
            await add_idle_lanes(address, idle)
        async with SessionStore.open(address, config()) as store:
            yield store, address


async def add_idle_lanes(address: str, idle: int) -> None:
    """So many lanes that somebody has used once."""
    connection = await asyncpg.connect(address)
    try:
        record = await connection.fetchval("SELECT record FROM entries LIMIT 1")
        await connection.execute(IDLE_LANES, idle)
        await connection.execute(IDLE_ENTRIES, idle, record)
        await connection.execute(IDLE_CLOCKS, idle)
    finally:
        await connection.close()
    await tidied(address)


async def tidied(address: str) -> None:
    """Let the server look at what it has, as it would by itself a minute later."""
    connection = await asyncpg.connect(address)
    try:
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


async def enqueue(store: SessionStore, lanes: Iterable[int], each: int, first: int = 0) -> Figures:
    """All lanes write at once, each one message after another, numbered from *first* on."""
    measured: list[int] = []

    async def write(lane: int) -> None:
        for number in range(first, first + each):
            before = time.perf_counter_ns()
            receipt = await store.enqueue(message(lane, number, TEXTS[(lane + number) % len(TEXTS)]))
            measured.append(time.perf_counter_ns() - before)
            assert isinstance(receipt, Accepted), receipt

    start = time.perf_counter()
    await asyncio.gather(*(write(lane) for lane in lanes))
    return {"per second": len(measured) / (time.perf_counter() - start)} | latencies(measured)


async def turns(store: SessionStore, lanes: Iterable[int], each: int) -> Figures:
    """All lanes have their turns at once, each one turn after another, with an agent that does nothing."""
    measured: list[int] = []

    async def work(lane: int) -> None:
        for _ in range(each):
            before = time.perf_counter_ns()
            turn = await store.claim(key(lane))
            assert turn is not None
            async with turn:
                await turn.commit([ANSWER])
            measured.append(time.perf_counter_ns() - before)

    start = time.perf_counter()
    await asyncio.gather(*(work(lane) for lane in lanes))
    return {"per second": len(measured) / (time.perf_counter() - start)} | latencies(measured)


async def queue(folder: str, lanes: int, each: int, idle: int = 0) -> Figures:
    """Messages come in on all lanes at once; then all lanes have their turns."""
    async with store_with(folder, idle) as (store, _):
        every = range(lanes)
        await enqueue(store, every, 1)
        await turns(store, every, 1)
        gc.freeze()
        figures = {
            "enqueue": await enqueue(store, every, each, first=1),
            "turns": await turns(store, every, each),
        }
    return {f"{kind}: {name}": value for kind, some in figures.items() for name, value in some.items()}


async def backlog(folder: str, waiting: int, each: int) -> Figures:
    """One lane on which so many messages wait: more come in, and then as many have their turn."""
    lane = range(1)
    async with store_with(folder, 0) as (store, address):
        await enqueue(store, lane, 1)
        before = {
            "enqueue": await enqueue(store, lane, each, first=1),
            "turns": await turns(store, lane, each),
        }
        await enqueue(store, lane, waiting, first=1 + each)
        await tidied(address)
        gc.freeze()
        after = {
            "enqueue": await enqueue(store, lane, each, first=1 + each + waiting),
            "turns": await turns(store, lane, each),
        }
    return grown(before, after)


def grown(before: Mapping[str, Figures], after: Mapping[str, Figures]) -> Figures:
    """What was measured after, and how many times as long it took."""
    figures: Figures = {}
    for kind, some in after.items():
        figures |= {f"{kind}: {name}": value for name, value in some.items()}
        figures[f"{kind}: slower"] = some["p50 ms"] / before[kind]["p50 ms"]
    return figures


async def room(folder: str, lanes: int, each: int, idle: int) -> Figures:
    """What messages, turns and lanes take: in the server's log, and on its disk with all indexes."""
    os.environ["XDG_STATE_HOME"] = folder
    async with (
        own_database(f"gateway_sessions_bench_{os.getpid()}") as address,
        SessionStore.open(address, config()) as store,
    ):
        every = range(lanes)
        await enqueue(store, every, 1)
        await turns(store, every, 1)
        connection = await asyncpg.connect(address)
        before, held = await connection.fetchval(LOG), await _sizes(connection)
        await enqueue(store, every, each, first=1)
        between = await connection.fetchval(LOG)
        await turns(store, every, each)
        after, full = await connection.fetchval(LOG), await _sizes(connection)
        for number in range(lanes, lanes + idle):
            await store.get_or_create_session(message(number, 0, "").source)
        sizes = await _sizes(connection)
        await connection.close()
    many = lanes * each
    figures = {"log of a message": (between - before) / many, "log of a turn": (after - between) / many}
    grown = {table: (size - held[table]) / many for table, size in full.items()}
    figures |= {f"{table} for each turn": size for table, size in grown.items() if size > 1}
    figures["a session"] = sum(sizes[one] - full[one] for one in sizes) / idle
    return {f"bytes: {name}": size for name, size in figures.items()}


async def _sizes(connection: asyncpg.Connection) -> dict[str, int]:
    return {row[0]: row[1] for row in await connection.fetch(SIZES)}


if __name__ == "__main__":
    answer(
        {
            "queue": lambda **task: asyncio.run(queue(**task)),
            "backlog": lambda **task: asyncio.run(backlog(**task)),
            "room": lambda **task: asyncio.run(room(**task)),
        }
    )
