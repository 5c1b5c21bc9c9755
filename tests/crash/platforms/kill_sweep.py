"""People write to a bot that is killed at random moments, on a platform at its worst."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from gateway_sessions.testing.fakes.faults import CutConnection, Fault, RateLimit, ServerFault
from gateway_sessions.testing.fakes.webhook_platform import DeliveryEnd, FakeWebhookPlatform, WebhookDelivery

ROOT = Path(__file__).parents[3]
BOTS = "tests.crash.platforms.bots"
PEOPLE = tuple(f"p{number}" for number in range(10))
PATIENCE = 240
LONG = 3600
SHORT = 2 * PATIENCE
"""The time limits of the tests, in seconds: a sweep has its end, on whatever machine."""
MOST_CALLS = 30
"""So many calls a bot makes at most in one life, while there are kills to come."""
MOST_UNANSWERED = 10
FAULTS: tuple[Fault, ...] = (
    *(RateLimit(0.1), CutConnection.BEFORE, CutConnection.AFTER),
    *(ServerFault(done=True), ServerFault(), ServerFault(503)),
)
SPEED = 600
"""A minute of a platform that calls a webhook is a tenth of a second."""
EACH_MINUTE = (60,) * 10_000
NONE_FOUND = {"lost": 0, "doubled": 0, "reordered": 0, "marked": 0}
_ANSWER = re.compile(r"A:(\d+)$")


class SweptPlatform:
    """A fake of a platform with a bot on it, as a sweep uses it."""

    sends: ClassVar[frozenset[str]]
    """The names of the calls that show a message."""
    reads: ClassVar[tuple[str, ...]] = ()
    """The names of the calls by which the bot learns what was said, or what it needs to speak."""
    may_mark: ClassVar[bool] = False
    """Whether nobody may ever know what became of a send, so that an answer is repeated with a mark."""
    greets: ClassVar[bool] = False
    """Whether the bot finds after a kill only people with whom it has spoken before."""

    def __init__(self, fake: Any, *program: str) -> None:
        """*program* is what follows `python -m`."""
        self.fake = fake
        self.program = program

    def is_begun(self) -> object:
        """Whether the bot has been there, so that it answers what is said from now on."""
        return True

    def says(self, person: str, text: str) -> None:
        self.fake.says(person, text)

    def texts(self, person: str) -> list[str]:
        return self.fake.texts(person)

    def may_say(self, person: str) -> bool:
        """Whether what a person says now comes behind what they said before."""
        return True

    def is_owed(self, person: str, number: int) -> bool:
        """Whether a message has to be answered: not if the platform told the person that it failed."""
        return True

    async def something_happens(self, draw: random.Random) -> None:
        """Let something happen that only this platform does."""

    def has_given_up(self) -> bool:
        """Whether the platform has stopped to deliver a message, which nobody can answer then."""
        return False


class SweptWebhooks(SweptPlatform):
    """A fake that calls the bot at a port, which stays the same from one life to the next.

    It delivers again each minute of its own: with growing pauses, a bot would wait for them and not be
    killed. It promises no order of what it delivers again.
    """

    platform: ClassVar[str]

    def __init__(self, fake: FakeWebhookPlatform, home: Path) -> None:
        self.fake = fake
        port = free_port()
        super().__init__(fake, *self.bot(home, port))
        fake.retry_schedule = EACH_MINUTE
        fake.webhook_url = f"http://127.0.0.1:{port}/{self.platform}"
        self._last: dict[str, WebhookDelivery] = {}

    def bot(self, home: Path, port: int) -> tuple[str, ...]:
        """Return the program of the bot, which listens at a port."""
        return configured_bot(home, self.platform, self.settings(home), port=port)

    def settings(self, home: Path) -> dict[str, Any]:
        """Return what a configuration says of the bot."""
        raise NotImplementedError

    def says(self, person: str, text: str) -> None:
        self._last[person] = self.fake.says(person, text)

    def may_say(self, person: str) -> bool:
        last = self._last.get(person)
        return last is None or last.end is not None

    async def something_happens(self, draw: random.Random) -> None:
        """Let the platform deliver something once more, whether it was taken or not."""
        if draw.random() < 0.05:
            self.fake.again(draw.choice(self.fake.deliveries))

    def has_given_up(self) -> bool:
        return any(one.end is DeliveryEnd.GIVEN_UP for one in self.fake.deliveries)


class WarmBot:
    """A bot that is killed and lives again."""

    def __init__(self, *program: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{BOTS}.warm_bot", *program],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._life = 0

    async def begin_life(self) -> None:
        assert self._process.stdin is not None
        await asyncio.to_thread(self._process.stdin.write, b"\n")
        self._life = int(await self._told())

    async def kill(self) -> None:
        assert not self.has_ended, "the bot has ended by itself"
        os.kill(self._life, signal.SIGKILL)
        assert await self._told() == "ended"

    @property
    def has_ended(self) -> bool:
        """Whether there is a word of the end that nobody has read."""
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    async def _told(self) -> str:
        assert self._process.stdout is not None
        return (await asyncio.to_thread(self._process.stdout.readline)).decode().strip()

    def close(self) -> None:
        """Kill the bot for good."""
        with suppress(ProcessLookupError):
            if self._life and not self.has_ended:
                os.kill(self._life, signal.SIGKILL)
        self._process.communicate()


class KillSweep:
    """One run of a bot's program through kills and faults."""

    def __init__(self, platform: SweptPlatform, draw: random.Random) -> None:
        self.platform = platform
        self.fake = platform.fake
        self.draw = draw
        self.written: Counter[str] = Counter()
        self.kills = self.next_kill = 0
        self.bot: WarmBot

    async def run(self, *, messages: int, kills: int) -> dict[str, int]:
        """Let people write, kill the bot, wait until all is answered; return what was found."""
        self.bot = WarmBot(*self.platform.program)
        try:
            await self.begin()
            while self.owed() < messages or self.kills < kills:
                await self.something_happens()
                assert not self.bot.has_ended, "the bot has ended by itself"
                if self.kills < kills and len(self.fake.calls) >= self.next_kill:
                    await self.bot.kill()
                    self.kills += 1
                    await self.start()
            self.fake.faults.clear()
            await self.answered()
            # An answer may still be repeated, until the next one has come.
            for person in tuple(self.written):
                await self.fake.wait_until(lambda one=person: self.platform.may_say(one), seconds=PATIENCE)
                self.says(person)
            await self.answered()
        finally:
            await asyncio.to_thread(self.bot.close)
        assert not self.platform.has_given_up(), "the platform has given up, and nobody can answer"
        return self.findings()

    async def begin(self) -> None:
        """Start the bot, and wait until it is there: a first start that is cut off has not begun."""
        await self.start()
        await self.fake.wait_until(self.platform.is_begun, seconds=PATIENCE)
        if self.platform.greets:
            for person in PEOPLE:
                self.says(person)
            await self.answered()
        self.plan_kill()

    async def start(self) -> None:
        """Start the bot, which will be killed after some calls, in the middle of its work."""
        await self.bot.begin_life()
        self.plan_kill()

    def plan_kill(self) -> None:
        self.next_kill = len(self.fake.calls) + self.draw.randint(2, MOST_CALLS)

    async def answered(self) -> None:
        """Wait until all is answered; what then is not is lost."""
        with suppress(TimeoutError):
            await self.fake.wait_until(lambda: not self.unanswered() or self.bot.has_ended, seconds=PATIENCE)
        assert not self.bot.has_ended, "the bot has ended by itself"

    async def something_happens(self) -> None:
        """Let somebody write, and sometimes something fail; who is not answered writes no more."""
        person, faults, sends = self.draw.choice(PEOPLE), self.fake.faults, self.platform.sends
        if self.unanswered() >= MOST_UNANSWERED or not self.platform.may_say(person):
            await asyncio.sleep(0.02)
            return
        self.says(person)
        await self.platform.something_happens(self.draw)
        if self.draw.random() < 0.1:
            fault, times = self.draw.choice(FAULTS), self.draw.randint(1, 2)
            faults.plan(fault, matches=lambda method, _: method in sends, times=times)
        if self.platform.reads and self.draw.random() < 0.02:
            faults.plan(ServerFault(), method=self.draw.choice(self.platform.reads))
        if self.draw.random() < 0.01:
            async with self.fake.outage():
                await asyncio.sleep(self.draw.uniform(0, 0.3))
        await asyncio.sleep(self.draw.uniform(0, 0.1))

    def says(self, person: str) -> None:
        self.written[person] += 1
        self.platform.says(person, f"{self.written[person]}")

    def answers(self, person: str) -> list[str]:
        """Return what a person was answered, without the notices of the gateway."""
        return [text for text in self.platform.texts(person) if _ANSWER.search(text)]

    def owed(self) -> int:
        """Return the number of messages that have to be answered."""
        return sum(len(self.owed_to(person)) for person in self.written)

    def owed_to(self, person: str) -> set[int]:
        written = range(1, self.written[person] + 1)
        return {number for number in written if self.platform.is_owed(person, number)}

    def unanswered(self) -> int:
        return sum(len(self.owed_to(one).difference(numbers(self.answers(one)))) for one in self.written)

    def findings(self) -> dict[str, int]:
        """Return what was lost, doubled without a mark, out of order, and repeated with a mark."""
        found: Counter[str] = Counter(NONE_FOUND)
        for person in self.written:
            answers = self.answers(person)
            first_of_each = numbers(answers)
            found["lost"] += len(self.owed_to(person).difference(first_of_each))
            found["reordered"] += first_of_each != sorted(first_of_each)
            unmarked = Counter(text for text in answers if _ANSWER.match(text))
            found["doubled"] += sum(times - 1 for times in unmarked.values())
            found["marked"] += len(answers) - unmarked.total()
        return dict(found)


def numbers(answers: list[str]) -> list[int]:
    """Return the numbers of the messages that were answered, in the order of their first answers."""
    return list(dict.fromkeys(int(text.rpartition(":")[2]) for text in answers))


async def sweep_long(platform: SweptPlatform, record_property: Callable[[str, object], None]) -> None:
    """Find nothing after fifty kills in five hundred messages."""
    seed = int(os.environ.get("SWEEP_SEED", time.time_ns() % 10**6))
    sweep, began = KillSweep(platform, random.Random(seed)), time.monotonic()
    found = await sweep.run(messages=500, kills=50)
    told = sweep.written.total() - sweep.owed()
    failed = f" and {told} that failed" if told else ""
    said = f"seed {seed}: {sweep.kills} kills, {sweep.owed()} messages{failed}, {found}"
    record_property("sweep", f"{said}, {time.monotonic() - began:.0f} seconds")
    check(platform, found, said)


async def sweep_short(platform: SweptPlatform) -> None:
    """Find nothing after three kills in twenty messages."""
    found = await KillSweep(platform, random.Random(20261120)).run(messages=20, kills=3)
    check(platform, found)


def check(platform: SweptPlatform, found: Mapping[str, int], said: str = "") -> None:
    marked = found["marked"] if platform.may_mark else 0
    assert found == {**NONE_FOUND, "marked": marked}, said


def configured_bot(
    home: Path, platform: str, settings: Mapping[str, Any], *, port: int = 0
) -> tuple[str, ...]:
    """Return the program of a bot whose adapter has the settings that a configuration gives it."""
    return (f"{BOTS}.configured_bot", str(home), str(port), platform, json.dumps(settings))


def free_port() -> int:
    """Return a port for a bot in all its lives, which the system gives to nobody else meanwhile."""
    while True:
        port = random.randrange(20_000, 30_000)  # below the ports of connections that nobody has named
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
