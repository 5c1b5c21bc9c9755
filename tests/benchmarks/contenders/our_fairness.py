"""Our gateway beside those who write more than it takes: how much of it ordinary people keep.

Quiet and crowded times take turns in one run and on one store: a slow moment of the machine hits both.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from gateway_sessions import Config, SessionStore
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Accepted, InboundMessage, Receipt, Rejected
from gateway_sessions.runtime.agents.turn_context import TurnContext
from gateway_sessions.runtime.gateway.gateway import Gateway
from tests.benchmarks.child import Figures, answer
from tests.benchmarks.contenders.our_turns import Platform, echo

CONFIG: Final[dict[str, Any]] = {
    "session_reset": "never",
    "busy": {"debounce_seconds": 0, "acknowledge": False, "max_queued": 8},
    "backups": {"interval_days": 0},
    "sessions_json": "off",
}
ORDINARY: Final = 20


class Quiet(Platform):
    """Tells whoever waits for an answer that it came."""

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        answered = None if message.is_notice else self.waiting.pop(target.chat_id, None)
        if answered is not None and not answered.done():
            answered.set_result(message.text)
        return idempotency_key


@dataclass
class Time:
    """What happened in some seconds."""

    ordinary: Counter[str] = field(default_factory=Counter[str])
    latencies: list[float] = field(default_factory=list[float])
    turns: int = 0
    refused: int = 0
    untold: int = 0
    """Refusals without a time after which another try makes sense."""
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def ordinary_per_second(self) -> float:
        return self.ordinary.total() / self.seconds

    @property
    def p99_ms(self) -> float:
        ordered = sorted(self.latencies)
        return ordered[math.ceil(0.99 * len(ordered)) - 1] * 1000 if ordered else math.inf


class Stage:
    """People who write to one gateway."""

    def __init__(self, gateway: Gateway, platform: Quiet) -> None:
        self.gateway = gateway
        self.platform = platform
        self.numbers = itertools.count()
        self.now = Time()

    async def agent(self, turn: TurnContext) -> str:
        self.now.turns += 1
        return await echo(turn)

    async def submit(self, person: str) -> Receipt:
        source = SessionSource(platform="telegram", chat_id=person, user_id=person)
        receipt = await self.gateway.submit(
            InboundMessage(source=source, text="hi", message_id=f"m{next(self.numbers)}")
        )
        if isinstance(receipt, Rejected):
            self.now.refused += 1
            self.now.untold += not receipt.retry_after
        return receipt

    async def ordinary(self, person: str) -> None:
        """Write, wait for the answer, and write again."""
        while True:
            begun = time.perf_counter()
            self.platform.waiting[person] = answered = asyncio.get_running_loop().create_future()
            receipt = await self.submit(person)
            while isinstance(receipt, Rejected):
                await asyncio.sleep(0.01)
                receipt = await self.submit(person)
            await answered
            self.now.ordinary[person] += 1
            self.now.latencies.append(time.perf_counter() - begun)

    async def crowd(self, person: str, pause: float, *, waits: bool) -> None:
        """Write again and again, and after each refusal at once; *waits* for the answer to what was taken."""
        while True:
            answered = None
            if waits:
                self.platform.waiting[person] = answered = asyncio.get_running_loop().create_future()
            if not isinstance(await self.submit(person), Accepted):
                await asyncio.sleep(pause)
            elif answered is not None:
                await answered

    async def times(self, seconds: float, crowd: Callable[[], list[Coroutine[Any, Any, None]]]) -> Time:
        """Let ordinary people write for so long, beside others."""
        tasks = [asyncio.create_task(self.ordinary(f"p{n}")) for n in range(ORDINARY)]
        tasks += [asyncio.create_task(one) for one in crowd()]
        await asyncio.sleep(seconds / 4)  # until everybody is at it
        self.now, begun, cpu = Time(), time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        measured, self.now = self.now, Time()
        measured.seconds = time.perf_counter() - begun
        measured.cpu = time.process_time() - cpu
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        self.platform.waiting.clear()
        await self.gateway.settled()
        return measured


async def beside(
    folder: str, crowd: int, seconds: float, rounds: int, pause: float, waits: bool, one: bool, room: int
) -> Figures:
    """Ordinary people alone, and beside *crowd* submits in flight of *one* person or of as many people.

    So many turns may wait as there is *room*.
    """
    platform = Quiet()
    stage: list[Stage] = []

    async def agent(turn: TurnContext) -> str:
        return await stage[0].agent(turn)

    quiet: list[Time] = []
    loud: list[Time] = []
    async with (
        SessionStore.open(folder, Config.from_mapping(CONFIG | {"gateway": {"max_waiting": room}})) as store,
        Gateway(store, agent=agent, adapters=[platform]) as gateway,
    ):
        stage.append(Stage(gateway, platform))
        people = ["flooder"] * crowd if one else [f"c{n}" for n in range(crowd)]
        await stage[0].times(seconds / 4, list)  # to warm up
        for _ in range(rounds):
            quiet.append(await stage[0].times(seconds, list))
            loud.append(
                await stage[0].times(
                    seconds, lambda: [stage[0].crowd(one, pause, waits=waits) for one in people]
                )
            )
    return figures(quiet, loud, ORDINARY + (1 if one else crowd))


def figures(quiet: list[Time], loud: list[Time], people: int) -> Figures:
    """Compare each crowded time with the quiet one before it."""

    def median(of: Callable[[Time, Time], float]) -> float:
        return statistics.median(of(calm, busy) for calm, busy in zip(quiet, loud, strict=True))

    def per_second(one: Time) -> float:
        return one.turns / one.seconds

    return {
        "quiet/s": statistics.median(one.ordinary_per_second for one in quiet),
        "ordinary/s": statistics.median(one.ordinary_per_second for one in loud),
        "ordinary x": median(lambda calm, busy: busy.ordinary_per_second / calm.ordinary_per_second),
        "all x": median(lambda calm, busy: per_second(busy) / per_second(calm)),
        "p99 ms": statistics.median(one.p99_ms for one in loud),
        "p99 x": median(lambda calm, busy: busy.p99_ms / calm.p99_ms),
        "least share x": statistics.median(
            min((one.ordinary[f"p{n}"] for n in range(ORDINARY)), default=0) / (one.turns / people)
            for one in loud
        ),
        "refused/s": statistics.median(one.refused / one.seconds for one in loud),
        "untold": sum(one.untold for one in loud),
        "cpu/turn x": median(lambda calm, busy: busy.cpu / busy.turns * calm.turns / calm.cpu),
    }


if __name__ == "__main__":
    answer({"beside": lambda **task: asyncio.run(beside(**task))})
