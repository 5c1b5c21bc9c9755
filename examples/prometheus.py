"""A gateway whose events become numbers for Prometheus: `python examples/prometheus.py`.

`Metrics` counts what the stream of events tells, and `served` answers a scraper with it: take both along.
They need nothing but this package and the standard library. Here people on a fake platform make the numbers,
and the clock is a fake, so that every run prints the same.
"""

from __future__ import annotations

import asyncio
import bisect
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.events import EventKind, GatewayEvent
from gateway_sessions.testing import FakeClock, FakePlatform

COUNTED = {
    EventKind.TURN_ENDED: ("gateway_sessions_turns_total", "outcome"),
    EventKind.MESSAGE_REJECTED: ("gateway_sessions_messages_rejected_total", "reason"),
    EventKind.SESSION_ENDED: ("gateway_sessions_sessions_ended_total", "reason"),
    EventKind.BUDGET_STOP: ("gateway_sessions_budget_stops_total", "budget"),
}
"""What is counted by one of its facts as well. Each has few values: no chat or person is among them."""
BOUNDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0)
"""Seconds of a turn, by which long ones are told from short ones."""
ROOM = 10_000
"""So many events wait to be counted while the loop is busy."""
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
SECONDS = 5
"""So long may a scraper take to ask and to read."""


class Metrics:
    """Counts events, and writes the counts down as Prometheus reads them."""

    def __init__(self) -> None:
        self._events: Counter[EventKind] = Counter(dict.fromkeys(EventKind, 0))
        self._counted: Counter[tuple[EventKind, str]] = Counter()
        self._turns = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0
        self._missed = 0

    async def listen(self, events: AsyncIterator[GatewayEvent]) -> None:
        """Count for as long as something happens."""
        async for event in events:
            self.count(event)

    def count(self, event: GatewayEvent) -> None:
        """Count one."""
        self._events[event.kind] += 1
        if event.kind in COUNTED:
            _, fact = COUNTED[event.kind]
            self._counted[event.kind, str(event.facts[fact])] += 1
        if event.kind is EventKind.TURN_ENDED:
            self._turns[bisect.bisect_left(BOUNDS, event.facts["seconds"])] += 1
            self._seconds += event.facts["seconds"]
        if event.kind is EventKind.MISSED:
            self._missed += event.facts["missed"]

    async def text(self, store: SessionStore) -> str:
        """All numbers, with those that the store knows at this moment."""
        return "\n".join([*self._of_events(), *self._of_turns(), *await self._of_now(store), ""])

    def _of_events(self) -> Iterator[str]:
        yield from described("gateway_sessions_events_total", "counter", "What has happened.")
        for kind, number in self._events.items():
            yield line("gateway_sessions_events_total", number, kind=kind)
        for kind, (name, fact) in COUNTED.items():
            yield from described(name, "counter", f"{kind} by its {fact}.")
            for (one, value), number in sorted(self._counted.items()):
                if one is kind:
                    yield line(name, number, **{fact: value})
        yield from described(
            "gateway_sessions_events_missed_total", "counter", "Came too fast to be counted."
        )
        yield line("gateway_sessions_events_missed_total", self._missed)

    def _of_turns(self) -> Iterator[str]:
        name = "gateway_sessions_turn_seconds"
        yield from described(name, "histogram", "How long turns took.")
        below = 0
        for bound, number in zip((*map(str, BOUNDS), "+Inf"), self._turns, strict=True):
            below += number
            yield line(f"{name}_bucket", below, le=bound)
        yield line(f"{name}_sum", self._seconds)
        yield line(f"{name}_count", below)

    async def _of_now(self, store: SessionStore) -> list[str]:
        now = await store.control.status()
        numbers: dict[str, tuple[str, float]] = {"gateway_sessions_lanes": ("With a session.", now.lanes)}
        if now.agents is not None:
            numbers["gateway_sessions_agents_at_work"] = ("Agents in a turn.", now.agents.lent)
            numbers["gateway_sessions_agents_warm"] = ("Agents that wait for one.", now.agents.idle)
        if now.loop is not None:
            worst = now.loop.worst_ms / 1000
            numbers["gateway_sessions_loop_late_seconds"] = ("At worst, in the last minute.", worst)
        lines: list[str] = []
        for name, (about, number) in numbers.items():
            lines += [*described(name, "gauge", about), line(name, number)]
        return lines


def described(name: str, kind: str, about: str) -> tuple[str, str]:
    """The two lines that stand before the numbers of one name."""
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def line(name: str, number: float, **labels: str) -> str:
    """One number."""
    told = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{told}}} {number}" if told else f"{name} {number}"


@asynccontextmanager
async def served(metrics: Metrics, store: SessionStore, port: int) -> AsyncGenerator[int]:
    """Answer every request within the block with the numbers; gives the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever goes away, or asks for too much or too slowly, gets no answer.
        with closing(writer), suppress(OSError, EOFError, asyncio.LimitOverrunError):
            async with asyncio.timeout(SECONDS):
                await reader.readuntil(b"\r\n\r\n")
                body = (await metrics.text(store)).encode()
                writer.write(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    async with server:
        yield server.sockets[0].getsockname()[1]


# What follows makes numbers.


async def main() -> None:
    """Let some things happen, then scrape the numbers as Prometheus does."""
    clock = FakeClock()
    platform = FakePlatform(clock=clock)

    async def answer(turn: TurnContext) -> str:
        clock.step(seconds=20 if "long" in turn.text else 2)
        return turn.text

    metrics = Metrics()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            SessionStore.open(folder, clock=clock) as store,
            store.events.listen(room=ROOM) as events,
            asyncio.TaskGroup() as tasks,
        ):
            counting = tasks.create_task(metrics.listen(events))
            async with Gateway(store, agent=answer, adapters=[platform]), served(metrics, store, 0) as port:
                for text in ("hello", "a long story", "/new", "hello again"):
                    await platform.says("ann", text)
                    await platform.wait_until_idle()
                for one in (await scrape(port)).splitlines():
                    # How late the loop was is another number each time.
                    if not one.startswith(("#", "gateway_sessions_loop_late_seconds")) and not one.endswith(
                        " 0"
                    ):
                        print(one)
            counting.cancel()


async def scrape(port: int) -> str:
    """What a scraper is told."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("\r\n\r\n")[2]


if __name__ == "__main__":
    asyncio.run(main())
