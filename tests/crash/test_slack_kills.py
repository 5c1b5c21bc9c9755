"""An app of Slack that is killed again and again, on a Slack at its worst, loses and doubles nothing."""

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
from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming

ROOT = Path(__file__).parents[2]
DOORS = ("bolt", "socket mode", "without bolt")
CHATS = 10
PATIENCE = 240
MOST_CALLS = 40
"""So many calls an app makes at most in one life, while there are kills to come."""
MOST_PENDING = 10
FAULTS: tuple[Fault, ...] = (
    *(RateLimit(0.1), CutConnection.AFTER, CutConnection.BEFORE),
    *(ServerFault(done=True), ServerFault()),
)
TIMING = SlackTiming(retries=(0.0, *(60.0,) * 600), speed=60)
"""A Slack that tries again each second, and does not give up: what it gives up nobody can answer, and an app
that dies as often as here is not there for most of the time."""


class Sweep:
    """People write to an app that is killed at random moments."""

    def __init__(self, slack: FakeSlack, door: str, home: Path, draw: random.Random) -> None:
        self.slack = slack
        self.arguments = [sys.executable, "-m", "tests.crash.slack_bot", door, slack.api_url, str(home)]
        self.draw = draw
        self.written: Counter[str] = Counter()
        self.last: dict[str, str] = {}
        self.threads: dict[str, str] = {}
        """The threads in which people write who write in the channel."""
        self.kills = self.next_kill = 0

    async def run(self, *, messages: int, kills: int) -> None:
        """Let people write so many messages, kill the app so often, and wait until everything is answered."""
        process = self.start()
        try:
            while self.written.total() < messages or self.kills < kills:
                await self.something_happens()
                if self.kills < kills and len(self.slack.calls) >= self.next_kill:
                    process.send_signal(signal.SIGKILL)
                    await asyncio.to_thread(process.wait)
                    self.kills += 1
                    process = self.start()
            self.slack.faults.clear()
            await self.slack.wait_until(
                lambda: self.all_answered() or process.poll() is not None, seconds=PATIENCE
            )
            assert process.poll() is None, "the app has ended by itself"
            assert not [one for one in self.slack.deliveries.all if one.given_up], "Slack has given up"
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)

    def start(self) -> subprocess.Popen[str]:
        """Start the app, which will be killed after some calls, in the middle of its work."""
        self.next_kill = len(self.slack.calls) + self.draw.randint(2, MOST_CALLS)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            self.arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        threading.Thread(target=self.follow, args=[process], daemon=True).start()
        return process

    def follow(self, process: subprocess.Popen[str]) -> None:
        """Tell Slack each address at which an app says it listens."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self.slack.listen_at(line.strip())

    async def something_happens(self) -> None:
        """Let somebody write, and sometimes something fail.

        Slack promises no order of what it delivers again, so nobody writes before their last message was
        taken.
        """
        person = f"p{self.draw.randrange(CHATS)}"
        unanswered = self.written.total() - sum(len(numbers(self.answers(one))) for one in self.written)
        if unanswered >= MOST_PENDING or not self.is_taken(person):
            await asyncio.sleep(0.02)
            return
        self.written[person] += 1
        self.writes(person, f"{self.written[person]}")
        if self.draw.random() < 0.1:
            self.slack.faults.plan(self.draw.choice(FAULTS), method="chat.postMessage")
        if self.draw.random() < 0.02:
            asked = ("users.info", "conversations.replies", "conversations.history")
            self.slack.faults.plan(ServerFault(), method=self.draw.choice(asked))
        if self.draw.random() < 0.01:
            async with self.slack.outage():
                await asyncio.sleep(self.draw.uniform(0, 0.3))
        await asyncio.sleep(self.draw.uniform(0, 0.1))

    def is_taken(self, person: str) -> bool:
        ts = self.last.get(person)
        return all(one.taken for one in self.slack.deliveries.all if one.ts == ts)

    def writes(self, person: str, text: str) -> None:
        """Let half of the people write to the app, and the others in a thread of a channel each."""
        if int(person[1:]) % 2:
            self.last[person] = self.slack.people.says(person, text)
        elif person in self.threads:
            self.last[person] = self.slack.people.says(
                person, text, channel="team", thread=self.threads[person]
            )
        else:
            self.last[person] = self.slack.people.says(person, f"@helper {text}", channel="team")
            self.threads[person] = self.last[person]

    def answers(self, person: str) -> list[str]:
        """Return what a person was answered, without the notices of the gateway."""
        thread = self.threads.get(person)
        channel = "team" if thread is not None else None
        texts = self.slack.texts(person, channel=channel, thread=thread)
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
@pytest.mark.parametrize("door", DOORS)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    door: str, tmp_path: Path, record_property: Callable[[str, object], None]
):
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    async with FakeSlack(timing=TIMING) as slack:
        sweep = Sweep(slack, door, tmp_path / "home", random.Random(seed))
        await sweep.run(messages=500, kills=50)
        findings = sweep.findings()
    record_property("sweep", f"door {door}, seed {seed}: {sweep.kills} kills, {findings}")
    assert findings == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}, seed


@pytest.mark.timeout(300)
async def test_three_kills_in_thirty_messages_lose_nothing(tmp_path: Path):
    async with FakeSlack(timing=TIMING) as slack:
        sweep = Sweep(slack, "bolt", tmp_path / "home", random.Random(20261120))
        await sweep.run(messages=30, kills=3)
        findings = sweep.findings()
    assert findings == {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}
