"""The cluster run: people write to several gateways, which are killed, paused and cut off meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tests.cluster.checker import Absence, Verdict, judge, nothing_is_left
from tests.cluster.databases import address_through_port, database_at
from tests.cluster.proxy import Proxy
from tests.cluster.server import Server

ANSWER_SECONDS = 8.0
START_SECONDS = 60.0
MISHAPS = ("kill", "kill", "kill", "kill", "pause", "stall", "cut", "cut", "update")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much happens."""

    nodes: int = 4
    lanes: int = 64
    seconds: float = 60.0
    calm_seconds: float = 120.0
    """How long everything may take to come to its end after the last mishap."""
    turn_seconds: float = 0.3
    pause_seconds: float = 0.2
    """Between two messages of a lane."""
    duplicates: float = 0.1
    mishap_seconds: float = 2.0
    """Between two mishaps."""
    restart_seconds: float = 20.0
    """Between two ends of the server."""
    ttl: float = 5.0
    heartbeat: float = 1.0
    seed: int = 1


class Node:
    """One gateway process, and the way to it."""

    def __init__(self, name: str, address: str, home: Path, effects: Path, plan: Plan) -> None:
        self.name = name
        self._command = [
            *(sys.executable, "-m", "tests.cluster.worker", address, str(home), name, str(effects)),
            msgspec.json.encode(
                {"heartbeat": plan.heartbeat, "ttl": plan.ttl, "sticky": 0.2, "poll": 0.5}
            ).decode(),
            str(plan.turn_seconds),
        ]
        self._log = home.with_suffix(".log")
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[int, asyncio.Future[str]] = {}
        self._count = 0
        self.ready = asyncio.Event()

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        self._reading = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if line == b"ready\n":
                self.ready.set()
                continue
            told = msgspec.json.decode(line)
            waiting = self._asked.pop(told["id"], None)
            if waiting is not None and not waiting.done():
                waiting.set_result(told["result"])
        self.ready.clear()
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_result("gone")
        self._asked.clear()

    async def hand_over_message(self, lane: str, text: str) -> str:
        """Hand a message over; what was answered, if anything was in time."""
        if self._process is None or self._process.stdin is None or not self.ready.is_set():
            return "not there"
        self._count += 1
        answer = self._asked[self._count] = asyncio.get_running_loop().create_future()
        line = msgspec.json.encode({"id": self._count, "lane": lane, "text": text})
        try:
            self._process.stdin.write(line + b"\n")
            async with asyncio.timeout(ANSWER_SECONDS):
                return await answer
        except (TimeoutError, OSError):
            return "silent"

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            os.kill(self._process.pid, number)

    async def ended(self) -> int | None:
        if self._process is None:
            return None
        code = await self._process.wait()
        if self._reading is not None:
            await self._reading
        return code

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def end_in_order(self) -> int | None:
        """Let it come to its end in order."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                return await self.ended()
        self.send(signal.SIGKILL)
        return await self.ended()


@dataclass
class Run:
    """One run: who is there, and what was said."""

    plan: Plan
    address: str
    proxy: Proxy
    server: Server | None
    nodes: list[Node]
    chance: random.Random
    accepted: dict[str, list[str]] = field(default_factory=dict)
    receipts: dict[str, int] = field(default_factory=dict)
    mishaps: dict[str, int] = field(default_factory=dict)
    absences: list[Absence] = field(default_factory=list)
    to_come: list[str] = field(default_factory=list)
    recoveries: list[float] = field(default_factory=list)
    stopping: bool = False
    away: asyncio.Lock = field(default_factory=asyncio.Lock)

    def count(self, where: dict[str, int], what: str) -> None:
        where[what] = where.get(what, 0) + 1

    async def write_as_person(self, lane: str) -> None:
        """Says one thing after another, each as often as it takes."""
        texts = self.accepted[lane] = []
        while not self.stopping:
            text = f"{lane} {len(texts)}"
            await self._say(lane, text)
            texts.append(text)
            await asyncio.sleep(self.chance.expovariate(1 / self.plan.pause_seconds))

    async def _say(self, lane: str, text: str) -> None:
        while True:
            first, second = self.chance.sample(self.nodes, 2)
            asked = [first.hand_over_message(lane, text)]
            if self.chance.random() < self.plan.duplicates:
                asked.append(second.hand_over_message(lane, text))
            results = await asyncio.gather(*asked)
            for result in results:
                self.count(self.receipts, result)
            if {"Accepted", "Duplicate"} & set(results):
                return
            await asyncio.sleep(0.2)

    async def cause_mishap(self) -> None:
        """Something goes wrong, and is over when this returns."""
        if not self.to_come:  # each has its turn, in any order
            self.to_come = self.chance.sample(MISHAPS, len(MISHAPS))
        what = self.to_come.pop()
        self.count(self.mishaps, what)
        node = self.chance.choice(self.nodes)
        match what:
            case "kill":
                self.absences.append(Absence(node=node.name, at=time.monotonic(), killed=True))
                node.send(signal.SIGKILL)
                await node.ended()
                await asyncio.sleep(self.plan.ttl * self.chance.choice((0.1, 2)))
                await self.start_node(node)
            case "pause":
                self.absences.append(Absence(node=node.name, at=time.monotonic(), killed=False))
                node.send(signal.SIGSTOP)
                await asyncio.sleep(self.plan.ttl + 3)
                node.send(signal.SIGCONT)
            case "stall":
                node.send(signal.SIGSTOP)
                await asyncio.sleep(1)
                node.send(signal.SIGCONT)
            case "cut":
                self.proxy.to_cut += 3
            case _:
                await node.end_in_order()
                await self.start_node(node)

    async def start_node(self, node: Node) -> None:
        """Start a process, again if the server is away."""
        while not self.stopping or not node.alive:
            await node.start()
            waiting = asyncio.create_task(node.ready.wait())
            ending = asyncio.create_task(node.ended())
            await asyncio.wait({waiting, ending}, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                ending.cancel()
                return
            waiting.cancel()
            node.send(signal.SIGKILL)
            await ending
            await asyncio.sleep(0.5)

    async def restart_server(self, server: Server) -> None:
        while not self.stopping:
            await asyncio.sleep(self.plan.restart_seconds)
            if self.stopping:
                return
            self.count(self.mishaps, "server stopped without a word")
            async with self.away:
                await server.stop()
                await asyncio.sleep(self.chance.uniform(0.5, 3))
                began = time.monotonic()
                await server.start()
                self.recoveries.append(time.monotonic() - began)

    async def write_and_wait(self) -> None:
        """People write and things go wrong for some time; then all that was accepted is waited for."""
        plan = self.plan
        await asyncio.gather(*(self.start_node(node) for node in self.nodes))
        async with asyncio.TaskGroup() as tasks:
            for number in range(plan.lanes):
                tasks.create_task(self.write_as_person(f"lane{number}"))
            trouble = [tasks.create_task(self.trouble())]
            if self.server is not None:
                trouble.append(tasks.create_task(self.restart_server(self.server)))
            await asyncio.sleep(plan.seconds)
            self.stopping = True
        for node in self.nodes:
            if not node.alive:
                await self.start_node(node)
        self.proxy.to_cut = 0
        async with asyncio.timeout(plan.calm_seconds):
            while not await nothing_is_left(self.address):  # noqa: ASYNC110 -- only the database knows
                await asyncio.sleep(0.3)

    async def trouble(self) -> None:
        while not self.stopping:
            await asyncio.sleep(self.chance.expovariate(1 / self.plan.mishap_seconds))
            await self.cause_mishap()


@asynccontextmanager
async def prepared_run(plan: Plan, address: str, home: Path, server: Server | None) -> AsyncIterator[Run]:
    """Nodes that reach the server through a proxy, not started yet; ended, whatever happens."""
    place, database = urlsplit(address), database_at(address)
    way = Proxy(str(place.hostname), place.port or database.port, database.commit)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(way.running())
        effects = home / "effects.jsonl"
        effects.touch()
        nodes = [
            Node(
                f"node{number}",
                address_through_port(address, proxy.port),
                home / f"node{number}",
                effects,
                plan,
            )
            for number in range(plan.nodes)
        ]
        run = Run(plan, address, proxy, server, nodes, random.Random(plan.seed))
        try:
            yield run
        finally:
            for node in nodes:
                node.send(signal.SIGCONT)
                node.send(signal.SIGKILL)
            await asyncio.gather(*(node.ended() for node in nodes if node.alive))


async def cluster_run(plan: Plan, address: str, home: Path, server: Server | None = None) -> Verdict:
    """Run it, and judge what came of it."""
    async with prepared_run(plan, address, home, server) as run:
        problem: str | None = None
        try:
            await run.write_and_wait()
        except TimeoutError:
            problem = "what was accepted did not come to its end in time"
        codes = await asyncio.gather(*(node.end_in_order() for node in run.nodes))
        verdict = await judge(address, run.accepted, _effects(home), run.absences)
        verdict.judge_ends(dict(zip((node.name for node in run.nodes), codes, strict=True)))
    verdict.figures |= {
        "receipts": run.receipts,
        "mishaps": {**run.mishaps, "commits nobody heard of": run.proxy.cut},
        "server back after": [round(one, 2) for one in run.recoveries],
        "exit codes": list(codes),
    }
    if problem is not None:
        verdict.lost.append(problem)
    return verdict


def _effects(home: Path) -> list[dict[str, Any]]:
    lines = (home / "effects.jsonl").read_bytes().splitlines()
    return sorted((msgspec.json.decode(line) for line in lines), key=lambda one: one["at"])
