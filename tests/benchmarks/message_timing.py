"""Times those who store and load messages without an event loop: they are called one after the other."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sized

from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, latencies

Say = Callable[[str, str, str], object]
"""Stores a message: session, role, text."""


def one_after_another(say: Say, session_id: str, operations: int) -> Figures:
    """So many messages in one session, after as many to warm up."""
    texts = itertools.cycle(corpus.said(1_000))
    measured = []
    for number in range(2 * operations):
        text = next(texts)
        start = time.perf_counter_ns()
        say(session_id, corpus.role_of(number), text)
        measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


def in_turn(say: Say, sessions: list[str], seconds: float) -> Figures:
    """Messages in these sessions in turn for some seconds; each text ends with its own word, `mark<n>`."""
    texts = itertools.cycle(corpus.said(1_000))
    measured: list[int] = []
    start = time.perf_counter()
    while (before := time.perf_counter()) - start < seconds:
        number = len(measured)
        session_id = sessions[number % len(sessions)]
        say(session_id, corpus.role_of(number), f"{next(texts)} mark{number}")
        measured.append(int((time.perf_counter() - before) * 1e9))
    elapsed = time.perf_counter() - start
    return {"messages": len(measured), "per second": len(measured) / elapsed} | latencies(measured)


def loaded(ways: Mapping[str, Callable[[], Sized]], messages: int, times: int) -> Figures:
    """How long each way to load all messages takes, after one to warm up."""
    figures: Figures = {}
    for kind, load in ways.items():
        measured = []
        for _ in range(times + 1):
            start = time.perf_counter_ns()
            found = load()
            measured.append(time.perf_counter_ns() - start)
            assert len(found) == messages
            del found  # before the next one is timed
        figures |= {f"{kind}: {name}": value for name, value in latencies(measured[1:]).items()}
    return figures


def rate(nanoseconds: list[int]) -> Figures:
    """What one after the other comes to."""
    return {"per second": len(nanoseconds) / sum(nanoseconds) * 1e9} | latencies(nanoseconds)
