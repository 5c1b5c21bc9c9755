"""A bot on WhatsApp that is killed again and again, on a WhatsApp at its worst, loses and doubles nothing."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.core.delivery.message_parts import REPEATED
from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, ServerFault
from gateway_sessions.testing.fakes.webhook_platform import DeliveryEnd, WebhookDelivery
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp
from tests.crash.test_telegram_kills import numbers

ROOT = Path(__file__).parents[3]
CHATS = 8
PATIENCE = 240
MOST_CALLS = 20
"""So many calls a bot makes at most in one life, while there are kills to come."""
MOST_UNANSWERED = 8
FAULTS: tuple[Fault, ...] = (
    *(RateLimit(0.1), CutConnection.AFTER, CutConnection.BEFORE),
    *(ServerFault(done=True), ServerFault()),
)
SPEED = 600
"""A minute is a tenth of a second."""


class PatientWhatsApp(FakeWhatsApp):
    """Delivers again every minute: with growing pauses, a bot would wait for them and not be killed."""

    retry_schedule = (60,) * 5000


class Sweep:
    """People write to a bot that is killed at random moments."""

    def __init__(self, fake: FakeWhatsApp, home: Path, draw: random.Random) -> None:
        self.fake = fake
        self.arguments = [sys.executable, "-m", "tests.crash.webhooks.whatsapp_bot", fake.url, str(home)]
        self.draw = draw
        self.written: Counter[str] = Counter()
        self.last: dict[str, WebhookDelivery] = {}
        self.kills = self.next_kill = 0

    async def run(self, *, messages: int, kills: int) -> None:
        """Let people write so many messages, kill the bot so often, and wait until everything is answered."""
        process = self.start()
        try:
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
            assert not [one for one in self.fake.deliveries if one.end is DeliveryEnd.GIVEN_UP]
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)

    def start(self) -> subprocess.Popen[str]:
        """Start the bot, which will be killed after some calls, in the middle of its work."""
        self.next_kill = len(self.fake.calls) + self.draw.randint(2, MOST_CALLS)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            self.arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self.follow, args=[process], daemon=True).start()
        return process

    def follow(self, process: subprocess.Popen[str]) -> None:
        """Tell WhatsApp the address at which a bot says it listens."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.fake.webhook_url = line.strip()

    async def something_happens(self) -> None:
        """Let somebody write, and sometimes something fail.

        WhatsApp promises no order of what it delivers again, so nobody writes before their last message was
        taken.
        """
        person = f"p{self.draw.randrange(CHATS)}"
        last = self.last.get(person)
        unanswered = self.written.total() - sum(len(numbers(self.answers(one))) for one in self.written)
        if unanswered >= MOST_UNANSWERED or (last is not None and last.end is None):
            await asyncio.sleep(0.02)
            return
        self.written[person] += 1
        self.last[person] = self.fake.says(person, f"{self.written[person]}")
        if self.draw.random() < 0.1:
            self.fake.faults.plan(self.draw.choice(FAULTS), method="messages")
        if self.draw.random() < 0.05:
            self.fake.again(self.draw.choice(self.fake.deliveries))
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


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    async with PatientWhatsApp(speed=SPEED) as fake:
        sweep = Sweep(fake, tmp_path / "home", random.Random(seed))
        await sweep.run(messages=500, kills=50)
        findings = sweep.findings()
    record_property("sweep", f"seed {seed}: {sweep.kills} kills, {findings}")
    assert {**findings, "marked": 0} == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}, seed


@pytest.mark.timeout(2 * PATIENCE)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with PatientWhatsApp(speed=SPEED) as fake:
        sweep = Sweep(fake, tmp_path / "home", random.Random(20261120))
        await sweep.run(messages=20, kills=3)
        findings = sweep.findings()
    assert {**findings, "marked": 0} == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}
