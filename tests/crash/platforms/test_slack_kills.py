"""An app of Slack that is killed again and again, on a Slack at its worst, loses and doubles nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.slack import FakeSlack, SlackTiming
from tests.crash.platforms.kill_sweep import (
    BOTS,
    EACH_MINUTE,
    LONG,
    SHORT,
    SPEED,
    SweptPlatform,
    configured_bot,
    free_port,
    sweep_long,
    sweep_short,
)

TIMING = SlackTiming(retries=(0.0, *EACH_MINUTE), speed=SPEED)
"""A Slack that does not give up: what it gives up nobody can answer."""


class SweptSlack(SweptPlatform):
    """Half of the people write to the app, and the others in a thread of a channel each."""

    sends = frozenset({"chat.postMessage"})
    reads = ("users.info", "conversations.replies", "conversations.history", "auth.test")

    def __init__(self, fake: FakeSlack, *program: str) -> None:
        super().__init__(fake, *program)
        self._last: dict[str, str] = {}
        self._threads: dict[str, str] = {}

    def says(self, person: str, text: str) -> None:
        people, thread = self.fake.people, self._threads.get(person)
        if int(person[1:]) % 2:
            self._last[person] = people.says(person, text)
        elif thread is not None:
            self._last[person] = people.says(person, text, channel="team", thread=thread)
        else:
            self._last[person] = people.says(person, f"@helper {text}", channel="team")
            self._threads[person] = self._last[person]

    def texts(self, person: str) -> list[str]:
        thread = self._threads.get(person)
        return self.fake.texts(person, channel=None if thread is None else "team", thread=thread)

    def may_say(self, person: str) -> bool:
        """Slack promises no order of what it delivers again."""
        last = self._last.get(person)
        return all(one.taken for one in self.fake.deliveries.all if one.ts == last)

    async def something_happens(self, draw: random.Random) -> None:
        """Let Slack deliver something once more, whether it was taken or not."""
        if draw.random() < 0.05:
            self.fake.deliveries.again(draw.choice(list(self._last.values())))

    def has_given_up(self) -> bool:
        return any(one.given_up for one in self.fake.deliveries.all)


def swept(fake: FakeSlack, door: str, home: Path) -> SweptSlack:
    port = free_port()
    if door == "no library":
        fake.listen_at(f"http://127.0.0.1:{port}/slack")
        secrets = {"token": fake.token, "signing_secret": fake.signing_secret}
        settings = {**secrets, "api_url": fake.api_url}
        return SweptSlack(fake, *configured_bot(home, "slack", settings, port=port))
    if door == "Bolt":
        fake.listen_at(f"http://127.0.0.1:{port}/slack/events")
        return SweptSlack(fake, f"{BOTS}.slack_bot", str(home), str(port), fake.api_url)
    return SweptSlack(fake, f"{BOTS}.slack_bot", str(home), "0", fake.api_url)


@pytest.mark.soak
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("door", ["Bolt", "Socket Mode", "no library"])
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    door: str, tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeSlack(timing=TIMING) as fake:
        await sweep_long(swept(fake, door, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeSlack(timing=TIMING) as fake:
        await sweep_short(swept(fake, "Bolt", tmp_path))
