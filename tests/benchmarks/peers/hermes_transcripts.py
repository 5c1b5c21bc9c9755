"""The peer's own transcripts at the same work: called directly, in its own environment."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.message_timing import in_turn, loaded, one_after_another
from tests.benchmarks.searching import Answer, compared, timed


def opened(folder: str) -> Any:
    """The peer's database. It reads its home at import, so that comes first."""
    os.environ["HERMES_HOME"] = folder
    from hermes_state import SessionDB  # type: ignore[import-not-found]  # only in the peer's environment  # noqa: PLC0415

    return SessionDB(Path(folder, "state.db"))


def append(folder: str, operations: int) -> Figures:
    """Say one thing after another in one session."""
    with closing(opened(folder)) as database:
        database.create_session("only", "telegram", user_id="u1")
        return one_after_another(database.append_message, "only", operations)


def append_at_once(folder: str, together: int, seconds: float) -> Figures:
    """As many sessions in turn: its lock lets one write at a time, and threads only slow it down."""
    sessions = [f"session_{number}" for number in range(together)]
    with closing(opened(folder)) as database:
        for number, session_id in enumerate(sessions):
            database.create_session(session_id, "telegram", user_id=f"u{number}")
        figures = in_turn(database.append_message, sessions, seconds)
        last = int(figures["messages"])
        for number in range(max(0, last - together), last):
            found = database.search_messages(f"mark{number}")
            assert len(found) == 1, f"mark{number} was found {len(found)} times"
    return figures | {"findable per second": figures["per second"]}  # its triggers index what they store


def seed_load(folder: str, messages: int) -> Figures:
    """Leave a database with one long session."""
    with closing(opened(folder)) as database:
        database.create_session("long", "telegram", user_id="u1")
        database.replace_messages("long", corpus.transcript(messages))
    return {}


def load(folder: str, messages: int, times: int) -> Figures:
    """Load it whole, as it goes to a model and as it is stored."""
    with closing(opened(folder)) as database:
        ways = {
            "conversation": partial(database.get_messages_as_conversation, "long"),
            "messages": partial(database.get_messages, "long"),
        }
        return loaded(ways, messages, times)


def seed_search(folder: str, messages: int) -> Figures:
    """Leave a database in which so much was said, through its own way to store many messages at once."""
    texts = corpus.said(messages)
    corpus.write_questions(folder, corpus.questions(texts))
    with closing(opened(folder)) as database:
        start = time.perf_counter()
        for name, numbers in corpus.sessions(texts):
            database.create_session(name, "telegram", user_id=f"u{numbers.start // 10_000}")
            database.replace_messages(name, [message(number, texts[number]) for number in numbers])
        elapsed = time.perf_counter() - start
    return {
        "append s": elapsed,
        "index s": 0.0,  # its triggers index what they store
        "findable per second": messages / elapsed,
        "bytes each": corpus.bytes_each(folder, messages),
    }


def message(number: int, text: str) -> dict[str, Any]:
    return {"role": corpus.role_of(number), "content": text, "timestamp": corpus.sent_at(number)}


def search(folder: str, times: int) -> Figures:
    """Search for everything that it has a way to look for."""
    return asyncio.run(searched(folder, times))


async def searched(folder: str, times: int) -> Figures:
    asked = corpus.read_questions(folder)
    for kind in (corpus.SUBSTRING, corpus.INSIDE):
        del asked[kind]
    with closing(opened(folder)) as database:

        async def best(_kind: str, text: str) -> object:
            return database.search_messages(text)

        async def newest(_kind: str, text: str, limit: int) -> Answer:
            found = database.search_messages(text, sort="newest", limit=limit)
            return Answer([corpus.number_of(one["timestamp"]) for one in found])

        return await timed(asked, times, best) | await compared(asked, newest)


if __name__ == "__main__":
    answer({task.__name__: task for task in (append, append_at_once, seed_load, load, seed_search, search)})
