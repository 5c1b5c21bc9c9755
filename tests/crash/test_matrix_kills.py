"""A Matrix bot that is killed again and again, on a homeserver at its worst, loses and doubles nothing."""

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
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, ServerFault
from gateway_sessions.testing.fakes.matrix import FakeMatrix

ROOT = Path(__file__).parents[2]
CHATS = 10
PATIENCE = 180
MOST_CALLS = 40
"""So many calls a bot makes at most in one life, while there are kills to come."""
MOST_PENDING = 10
FAULTS: tuple[Fault, ...] = (RateLimit(0.1), CutConnection.AFTER, ServerFault(done=True), ServerFault())


class Sweep:
    """People write to a bot that is killed at random moments."""

    def __init__(self, fake: FakeMatrix, home: Path, draw: random.Random) -> None:
        self.fake = fake
        program = [sys.executable, "-m", "tests.crash.matrix_bot"]
        self.arguments = [*program, fake.url, fake.bot.user_id, fake.token, str(home)]
        self.draw = draw
        self.written: Counter[str] = Counter()
        self.kills = self.next_kill = 0

    async def run(self, *, messages: int, kills: int) -> None:
        """Let people write so many messages, kill the bot so often, and wait until everything is answered."""
        process = self.start()
        try:
            # The first sync of a new bot is the place from which on it answers.
            await self.fake.wait_until(lambda: self.fake.synced_to > 0 or self.fake.syncs, seconds=PATIENCE)
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

    async def something_happens(self) -> None:
        """Let somebody write, and sometimes something fail; who is not answered writes no more."""
        unanswered = self.written.total() - sum(len(numbers(self.answers(one))) for one in self.written)
        if unanswered >= MOST_PENDING:
            await asyncio.sleep(0.02)
            return
        person = f"p{self.draw.randrange(CHATS)}"
        self.written[person] += 1
        self.fake.says(person, f"{self.written[person]}")
        if self.draw.random() < 0.1:
            self.fake.faults.plan(self.draw.choice(FAULTS), method="send", times=self.draw.randint(1, 2))
        if self.draw.random() < 0.02:
            self.fake.faults.plan(
                ServerFault(), method=self.draw.choice(["sync", "joined_members", "messages"])
            )
        if self.draw.random() < 0.01:
            async with self.fake.outage():
                await asyncio.sleep(self.draw.uniform(0, 0.3))
        await asyncio.sleep(self.draw.uniform(0, 0.1))

    def answers(self, person: str) -> list[str]:
        """Return what a person was answered, without the notices of the gateway."""
        texts = self.fake.texts(person)
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
    async with FakeMatrix() as fake:
        sweep = Sweep(fake, tmp_path / "home", random.Random(seed))
        await sweep.run(messages=500, kills=50)
        findings = sweep.findings()
    record_property("sweep", f"seed {seed}: {sweep.kills} kills, {findings}")
    assert findings == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}, seed


async def test_three_kills_in_thirty_messages_lose_nothing(tmp_path: Path):
    async with FakeMatrix() as fake:
        sweep = Sweep(fake, tmp_path / "home", random.Random(20261120))
        await sweep.run(messages=30, kills=3)
        findings = sweep.findings()
    assert findings == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}
