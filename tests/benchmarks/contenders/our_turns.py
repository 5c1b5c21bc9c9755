"""Our gateway at whole turns: a message is submitted, an idle agent answers, the reply is sent."""

from __future__ import annotations

import asyncio
import gc
import itertools
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gateway_sessions import Config, SessionStore
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from tests.benchmarks import corpus
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.message_timing import rate
from tests.benchmarks.stalls import watched_loop


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
        source = SessionSource(platform="telegram", chat_id=person, user_id=person)
        await gateway.submit(InboundMessage(source=source, text=text, message_id=f"{person}m{number}"))
        await answered


async def echo(turn: TurnContext) -> str:
    return turn.text


async def one_lane(folder: str, operations: int) -> Figures:
    """One turn after another on one lane, after as many to warm up."""
    texts = itertools.cycle(corpus.said(1_000))
    platform = Platform()
    measured = []
    async with (
        SessionStore.open(folder, Config()) as store,
        Gateway(store, agent=echo, adapters=[platform]) as it,
    ):
        for number in range(2 * operations):
            text = next(texts)
            start = time.perf_counter_ns()
            await platform.turn(it, "p0", number, text)
            measured.append(time.perf_counter_ns() - start)
    return rate(measured[operations:])


async def at_once(folder: str, together: int, lanes: int, seconds: float, pace: float = 0) -> Figures:
    """Each of these lanes has a turn when the one before is answered, in a store with so many lanes.

    With a *pace*, so many turns a second are begun in all, evenly, if the ones before are answered in time.
    How long each takes counts from when it should have begun.
    """
    texts = corpus.said(1_000)
    every = together / pace if pace else 0.0
    platform = Platform()
    measured: list[int] = []
    async with SessionStore.open(folder, Config()) as store:
        for number in range(together, lanes):
            await store.get_or_create_session(
                SessionSource(platform="telegram", chat_id=f"p{number}", user_id=f"p{number}")
            )
        async with Gateway(store, agent=echo, adapters=[platform]) as it, watched_loop() as watch:
            gc.freeze()  # as the guide advises: what is there by now is not looked through again and again
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
            elapsed, stall = time.perf_counter() - start, watch.read_ms()
    figures = rate(measured)
    return figures | {"per second": len(measured) / elapsed, "stall ms": stall}


if __name__ == "__main__":
    answer(
        {
            "one_lane": lambda **task: asyncio.run(one_lane(**task)),
            "at_once": lambda **task: asyncio.run(at_once(**task)),
        }
    )
