"""A Discord bot that is killed again and again, on a Discord at its worst, loses and doubles nothing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, ServerFault

ROOT = Path(__file__).parents[2]
CHATS = 10
PATIENCE = 180
MOST_CALLS = 30
"""So many calls a bot makes at most in one life, while there are kills to come."""
MOST_PENDING = 10
FAULTS: tuple[Fault, ...] = (
    RateLimit(0.1),
    CutConnection.AFTER,
    CutConnection.BEFORE,
    ServerFault(done=True),
)


class Sweep:
    """People write to a bot that is killed at random moments: in private, in channels and in threads."""

    def __init__(self, fake: FakeDiscord, home: Path, draw: random.Random) -> None:
        self.fake = fake
        program = [sys.executable, "-m", "tests.crash.discord_bot"]
        self.arguments = [*program, fake.api_url, fake.gateway_url, fake.token, str(home)]
        self.draw = draw
        self.written: Counter[str] = Counter()
        self.people = [f"p{number}" for number in range(CHATS)]
        self.kills = self.next_kill = 0

    def place_of(self, person: str) -> dict[str, str]:
        """Return where a person writes: every second one in private, every fifth one in a thread."""
        number = int(person[1:])
        if number % 2 == 0:
            return {}
        return {"channel": f"c{number}", "thread": "t"} if number % 5 == 0 else {"channel": f"c{number}"}

    async def run(self, *, messages: int, kills: int) -> None:
        """Let people write so many messages, kill the bot so often, and wait until everything is answered."""
        process = self.start()
        try:
            await self.fake.wait_until(lambda: self.fake.gateway.connected, seconds=PATIENCE)
            # Nobody can find a private channel in which the bot was never spoken to.
            for person in self.people:
                self.says(person)
            await self.fake.wait_until(self.all_answered, seconds=PATIENCE)
            self.next_kill += len(self.fake.calls)
            while self.written.total() < messages or self.kills < kills:
                await self.something_happens()
                if self.kills < kills and len(self.fake.calls) >= self.next_kill:
                    process.send_signal(signal.SIGKILL)
                    await asyncio.to_thread(process.wait)
                    self.kills += 1
                    process = self.start()
            self.fake.faults.clear()
            await self.fake.wait_until(
                lambda: self.all_answered() or process.poll() is not None, seconds=PATIENCE
            )
            assert process.poll() is None, "the bot has ended by itself"
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the bot, which will be killed after some calls, in the middle of its work."""
        self.next_kill = len(self.fake.calls) + self.draw.randint(2, MOST_CALLS)
        return subprocess.Popen(self.arguments, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})

    def says(self, person: str) -> None:
        self.written[person] += 1
        self.fake.says(person, f"{self.written[person]}", **self.place_of(person))

    async def something_happens(self) -> None:
        """Let somebody write, and sometimes something fail; who is not answered writes no more."""
        unanswered = self.written.total() - sum(len(numbers(self.answers(one))) for one in self.written)
        if unanswered >= MOST_PENDING:
            await asyncio.sleep(0.02)
            return
        self.says(self.draw.choice(self.people))
        if self.draw.random() < 0.1:
            self.fake.faults.plan(self.draw.choice(FAULTS), method="create_message")
        if self.draw.random() < 0.03:
            self.fake.faults.plan(ServerFault(), method="get_messages")
        gateway = self.fake.gateway
        if gateway.connected and self.draw.random() < 0.1:
            broken = [gateway.cut, gateway.invalidate, gateway.forget_sessions, gateway.ask_to_reconnect]
            await self.fake.on_gateway(self.draw.choice(broken))
        if self.draw.random() < 0.005:
            async with self.fake.outage():
                await asyncio.sleep(self.draw.uniform(0, 0.3))
        await asyncio.sleep(self.draw.uniform(0, 0.1))

    def answers(self, person: str) -> list[str]:
        """Return what a person was answered, without the notices of the gateway."""
        texts = self.fake.texts(person, **self.place_of(person))
        return [text for text in texts if text.removeprefix(f"{REPEATED}\n").startswith("A:")]

    def all_answered(self) -> bool:
        return all(len(numbers(self.answers(person))) == count for person, count in self.written.items())

    def findings(self) -> dict[str, int]:
        """Return what was lost, doubled without a mark, out of order, and repeated with a mark."""
        found: Counter[str] = Counter(lost=0, doubled=0, reordered=0, marked=0)
        for person, count in self.written.items():
            answers = self.answers(person)
            first_of_each = numbers(answers)
            found["lost"] += count - len(first_of_each)
            found["reordered"] += first_of_each != sorted(first_of_each)
            unmarked = Counter(text for text in answers if not text.startswith(REPEATED))
            found["doubled"] += sum(times - 1 for times in unmarked.values())
            found["marked"] += sum(text.startswith(REPEATED) for text in answers)
        return dict(found)


def numbers(answers: list[str]) -> list[int]:
    """Return the numbers of the messages that were answered, in the order of their first answers."""
    return list(dict.fromkeys(int(text.rpartition(":")[2]) for text in answers))


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    async with FakeDiscord() as fake:
        sweep = Sweep(fake, tmp_path / "home", random.Random(seed))
        await sweep.run(messages=500, kills=50)
        findings = sweep.findings()
    record_property("sweep", f"seed {seed}: {sweep.kills} kills, {findings}")
    assert findings == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}, seed


async def test_three_kills_in_thirty_messages_lose_nothing(tmp_path: Path):
    async with FakeDiscord() as fake:
        sweep = Sweep(fake, tmp_path / "home", random.Random(20261120))
        await sweep.run(messages=30, kills=3)
        findings = sweep.findings()
    assert findings == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}
