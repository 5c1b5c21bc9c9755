"""Our own transcripts: what `SessionDB` does with messages, at full durability and with its index at work."""

from __future__ import annotations

import asyncio
import itertools
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gateway_sessions import Message, Scope, SessionDB
from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer, latencies
from tests.benchmarks.contenders.ours import in_a_loop
from tests.benchmarks.memory import resident_mb
from tests.benchmarks.message_timing import rate
from tests.benchmarks.searching import Answer, compared, timed

EVERYTHING: Final = Scope.operator()
TOGETHER: Final = 8
"""So many sessions are filled at once."""


def opened(folder: str) -> SessionDB:
    """The database in that folder, to be entered."""
    return SessionDB.open(Path(folder, "state.db"))


async def append(folder: str, operations: int) -> Figures:
    """Say one thing after another in one session."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    async with opened(folder) as database:
        await database.create_session("only", "telegram", user_id="u1")
        for number in range(2 * operations):  # the first half warms up
            text = next(texts)
            start = time.perf_counter_ns()
            await database.append_message("only", corpus.role_of(number), text)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


async def append_at_once(folder: str, together: int, seconds: float) -> Figures:
    """As many sessions, each of which says something when what it said before was stored; then the index."""
    texts = corpus.said(1_000)
    marks: list[str] = []
    async with opened(folder) as database:
        for number in range(together):
            await database.create_session(f"session_{number}", "telegram", user_id=f"u{number}")
        start = time.perf_counter()

        async def lane(number: int) -> list[int]:
            measured: list[int] = []
            coming = itertools.cycle(texts[number:])
            mark = f"mark{number}"
            while (before := time.perf_counter()) - start < seconds:
                mark = f"mark{number}x{len(measured)}"
                text = f"{next(coming)} {mark}"
                await database.append_message(f"session_{number}", corpus.role_of(len(measured)), text)
                measured.append(int((time.perf_counter() - before) * 1e9))
            marks.append(mark)
            return measured

        every = list(itertools.chain(*await asyncio.gather(*map(lane, range(together)))))
        appended = time.perf_counter() - start
        await database.catch_up_search_index()
        findable = time.perf_counter() - start
        for mark in marks:
            found = await database.search_messages(mark, scope=EVERYTHING)
            assert len(found.hits) == 1, f"{mark} was found {len(found.hits)} times"
    return {
        "messages": len(every),
        "per second": len(every) / appended,
        "findable per second": len(every) / findable,
    } | latencies(every)


async def seed_load(folder: str, messages: int) -> Figures:
    """Leave a store with one long session."""
    async with opened(folder) as database:
        await database.create_session("long", "telegram", user_id="u1")
        await database.append_messages("long", corpus.transcript(messages))
        await database.catch_up_search_index()
    return {}


async def load(folder: str, messages: int, times: int) -> Figures:
    """Load it whole, as it goes to a model and as it is stored."""
    figures: Figures = {}
    async with opened(folder) as database:
        for name, read in (
            ("conversation", database.get_messages_as_conversation),
            ("messages", database.get_messages),
        ):
            measured = []
            for _ in range(times + 1):  # the first one warms up
                start = time.perf_counter_ns()
                loaded = await read("long")
                measured.append(time.perf_counter_ns() - start)
                assert len(loaded) == messages
                del loaded
            figures |= {f"{name}: {key}": value for key, value in latencies(measured[1:]).items()}
    return figures


async def seed_search(folder: str, messages: int) -> Figures:
    """Leave a store in which so much was said, and what is to be found in it."""
    texts = corpus.said(messages)
    corpus.write_questions(folder, corpus.questions(texts))
    sessions = corpus.sessions(texts)
    async with opened(folder) as database:
        start = time.perf_counter()

        async def fill() -> None:
            for name, numbers in sessions:
                await database.create_session(name, "telegram", user_id=f"u{numbers.start // 10_000}")
                await database.append_messages(name, [message(number, texts[number]) for number in numbers])

        await asyncio.gather(*(fill() for _ in range(TOGETHER)))
        appended = time.perf_counter()
        await database.catch_up_search_index()
        indexed = time.perf_counter()
    return {
        "append s": appended - start,
        "index s": indexed - appended,
        "findable per second": messages / (indexed - start),
        "bytes each": corpus.bytes_each(folder, messages),
    }


def message(number: int, text: str) -> Message:
    """A message of the corpus."""
    moment = datetime.fromtimestamp(corpus.sent_at(number), UTC)
    return Message(corpus.role_of(number), text, sent_at=moment)


async def search(folder: str, times: int) -> Figures:
    """Search for everything; what is found must be what a look at every text finds."""
    asked = corpus.read_questions(folder)
    async with opened(folder) as database:
        await database.catch_up_search_index()

        async def best(kind: str, text: str) -> object:
            return await database.search_messages(text, scope=EVERYTHING, mode=mode_of(kind))

        async def newest(kind: str, text: str, limit: int) -> Answer:
            found = await database.search_messages(
                text, scope=EVERYTHING, mode=mode_of(kind), sort="newest", limit=limit
            )
            numbers = [corpus.number_of(hit.timestamp.timestamp()) for hit in found.hits]
            return Answer(numbers, admits_gaps=found.degraded)

        figures = await timed(asked, times, best)
        figures |= resident_mb()
        return figures | await compared(asked, newest, must_fit=True)


def mode_of(kind: str) -> str:
    return "substring" if kind in {corpus.SUBSTRING, corpus.INSIDE} else "words"


if __name__ == "__main__":
    answer(
        {
            task.__name__: in_a_loop(task)
            for task in (append, append_at_once, seed_load, load, seed_search, search)
        }
    )
