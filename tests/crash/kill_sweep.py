"""People write to a bot that is killed at random moments, on a platform at its worst."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, ServerFault
from gateway_sessions.testing.fakes.platform_server import FakePlatformServer

ROOT = Path(__file__).parents[2]
CHATS = 10
PATIENCE = 180
MOST_CALLS = 40
"""So many calls a bot makes at most in one life, while there are kills to come."""
MOST_PENDING = 10
FAULTS: tuple[Fault, ...] = (RateLimit(0.1), CutConnection.AFTER, ServerFault(done=True), ServerFault())
NONE_FOUND = {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}


@dataclass(frozen=True)
class SweptPlatform:
    """A fake with people who write to a bot alone."""

    fake: FakePlatformServer
    says: Callable[[str, str], object]
    texts: Callable[[str], list[str]]
    is_begun: Callable[[], object]
    """Whether the bot has been there, so that it answers what is said from now on."""
    sends: str
    """The name of the call that shows a message."""
    reads: tuple[str, ...]
    """The names of calls by which the bot learns what was said."""


class KillSweep:
    """One run of a bot's program through kills and faults."""

    def __init__(self, platform: SweptPlatform, draw: random.Random, *program: str) -> None:
        self.platform = platform
        self.fake = platform.fake
        self.arguments = [sys.executable, "-m", *program]
        self.draw = draw
        self.written: Counter[str] = Counter()
        self.kills = self.next_kill = 0

    async def run(self, *, messages: int, kills: int) -> dict[str, int]:
        """Let people write, kill the bot, wait until all is answered; return what was found."""
        process = self.start()
        try:
            await self.fake.wait_until(self.platform.is_begun, seconds=PATIENCE)
            self.next_kill += len(self.fake.calls)  # a first start that is cut off has not begun
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
        return self.findings()

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
        self.platform.says(person, f"{self.written[person]}")
        faults = self.fake.faults
        if self.draw.random() < 0.1:
            faults.plan(self.draw.choice(FAULTS), method=self.platform.sends, times=self.draw.randint(1, 2))
        if self.draw.random() < 0.02:
            faults.plan(ServerFault(), method=self.draw.choice(self.platform.reads))
        if self.draw.random() < 0.01:
            async with self.fake.outage():
                await asyncio.sleep(self.draw.uniform(0, 0.3))
        await asyncio.sleep(self.draw.uniform(0, 0.1))

    def answers(self, person: str) -> list[str]:
        """Return what a person was answered, without the notices of the gateway."""
        texts = self.platform.texts(person)
        return [text for text in texts if text.removeprefix(f"{REPEATED}\n").startswith("A:")]

    def all_answered(self) -> bool:
        return all(len(numbers(self.answers(person))) == count for person, count in self.written.items())

    def findings(self) -> dict[str, int]:
        """Return what was lost, doubled without a mark, out of order, and repeated with a mark."""
        found: Counter[str] = Counter(NONE_FOUND)
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
