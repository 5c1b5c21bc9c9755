"""Our gateway at whole turns: a message is submitted, an agent answers, the reply is sent.

A *working* agent does what agents of people do: it is made for its session, reads the end of the
conversation and reports its use of a model. An *idle* one is a function that all sessions share.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from gateway_sessions import Config, SessionEntry, SessionStore
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from tests.benchmarks import corpus
from tests.benchmarks.call_counter import CallCounter
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.message_timing import rate
from tests.benchmarks.stalls import watched_loop


def source_of(person: str) -> SessionSource:
    return SessionSource(platform="telegram", chat_id=person, user_id=person)


class Platform:
    """Shows nothing, and tells when a reply has come."""

    name = ""
    platform = "telegram"
    capabilities = AdapterCapabilities()

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[str]] = {}

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        yield

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        self.waiting.pop(target.chat_id).set_result(message.text)
        return idempotency_key

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        raise NotImplementedError

    async def typing(self, target: ReplyTarget) -> None:
        raise NotImplementedError

    async def turn(self, gateway: Gateway, person: str, number: int, text: str) -> None:
        """Say something and wait for the answer."""
        self.waiting[person] = answered = asyncio.get_running_loop().create_future()
        await gateway.submit(
            InboundMessage(source=source_of(person), text=text, message_id=f"{person}m{number}")
        )
        await answered


READ: Final = 20
"""So many messages a working agent reads."""
COUNTED_LANES: Final = 64
WARM_TURNS: Final = 4
COUNTED_TURNS: Final = 16
"""So many turns of each lane have their calls counted, after those that fill what is kept at hand."""
CALLS: Final = {"call": "Python", "c_call": "built-in"}


async def echo(turn: TurnContext) -> str:
    return turn.text


class WorkingAgent:
    """Reads the conversation, reports its use, and answers at once."""

    async def run_turn(self, turn: TurnContext) -> str:
        await turn.history(READ)
        turn.report_usage(model="small", provider="made-up", input_tokens=900, output_tokens=100)
        return turn.text


async def make_working_agent(entry: SessionEntry, history: Sequence[Mapping[str, Any]]) -> WorkingAgent:
    """Return an agent of one session, which needs nothing of what was said before."""
    return WorkingAgent()


def gateway_with(store: SessionStore, agent: str, platform: Platform) -> Gateway:
    """Return a gateway whose agent is `idle` or `working`."""
    if agent == "working":
        return Gateway(store, agent_factory=make_working_agent, adapters=[platform])
    return Gateway(store, agent=echo, adapters=[platform])


async def one_lane(folder: str, operations: int, agent: str) -> Figures:
    """One turn after another on one lane, after as many to warm up."""
    texts = itertools.cycle(corpus.said(1_000))
    platform = Platform()
    measured = []
    async with (
        SessionStore.open(folder, Config()) as store,
        gateway_with(store, agent, platform) as it,
    ):
        for number in range(2 * operations):
            text = next(texts)
            start = time.perf_counter_ns()
            await platform.turn(it, "p0", number, text)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


async def at_once(
    folder: str, together: int, lanes: int, seconds: float, agent: str, pace: float = 0
) -> Figures:
    """Each of these lanes has a turn when the one before is answered, in a store with so many lanes.

    The turns count until a search finds the last of them by the index. With a *pace*, so many turns a second
    are begun in all, evenly, if the ones before are answered in time. How long each takes counts from when
    it should have begun.
    """
    texts = corpus.said(1_000)
    every = together / pace if pace else 0.0
    platform = Platform()
    measured: list[int] = []
    async with SessionStore.open(folder, Config()) as store:
        for number in range(together, lanes):
            await store.get_or_create_session(source_of(f"p{number}"))
    before_turns = bytes_in(folder)
    async with (
        SessionStore.open(folder, Config()) as store,
        gateway_with(store, agent, platform) as it,
        watched_loop() as watch,
    ):
        start = time.perf_counter()

        async def lane(number: int) -> None:
            coming = itertools.cycle(texts[number:])
            for turn in itertools.count():
                before = time.perf_counter()
                if every:
                    before = start + every * (turn + number / together)
                    await asyncio.sleep(max(0.0, before - time.perf_counter()))
                if before - start > seconds:
                    return
                await platform.turn(it, f"p{number}", turn, next(coming))
                measured.append(int((time.perf_counter() - before) * 1e9))

        await asyncio.gather(*(lane(number) for number in range(together)))
        answered, stall = time.perf_counter() - start, watch.read_ms()
        await store.db.catch_up_search_index()
        findable = time.perf_counter() - start
    figures = rate(measured) | {"stall ms": stall}
    figures |= {"answered per second": len(measured) / answered, "per second": len(measured) / findable}
    return figures | {"bytes per turn": (bytes_in(folder) - before_turns) / len(measured)}


def bytes_in(folder: str) -> int:
    """Return what a closed store takes of the disk."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def calls(folder: str, agent: str) -> Figures:
    """Calls for each turn, by kind."""
    counted = asyncio.run(count_calls(Path(folder), agent))
    return {name: counted[event] / (COUNTED_LANES * COUNTED_TURNS) for event, name in CALLS.items()}


async def count_calls(folder: Path, agent: str) -> Counter[str]:
    """Count all calls of some turns of all lanes, until a search finds them by the index."""
    texts, platform, counter = corpus.said(1_000), Platform(), CallCounter()

    async def lane(number: int, first: int, turns: int) -> None:
        for turn in range(first, first + turns):
            text = texts[(number * 31 + turn) % len(texts)]
            await platform.turn(gateway, f"p{number}", turn, text)

    with counter.watching():
        async with (
            SessionStore.open(folder, Config()) as store,
            gateway_with(store, agent, platform) as gateway,
        ):
            for first, turns in ((0, WARM_TURNS), (WARM_TURNS, COUNTED_TURNS)):
                counter.counting = first > 0
                await asyncio.gather(*(lane(number, first, turns) for number in range(COUNTED_LANES)))
                await store.db.catch_up_search_index()
            counter.counting = False
    return counter.total


if __name__ == "__main__":
    answer(
        {
            "one_lane": lambda **task: asyncio.run(one_lane(**task)),
            "at_once": lambda **task: asyncio.run(at_once(**task)),
            "calls": calls,
        }
    )
