"""A Discord bot that is killed again and again, on a Discord at its worst, loses and doubles nothing.

Discord posts an interaction to a webhook once. If the application does not acknowledge it, Discord tells the
person that it failed, and never posts it again: nobody owes an answer then, and the sweep counts only what
was acknowledged. What was stored and not acknowledged is answered if a bot's token allows it, once and in
order.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.discord.rest import FakeInteraction
from tests.crash.platforms.kill_sweep import (
    BOTS,
    LONG,
    SHORT,
    SweptPlatform,
    free_port,
    sweep_long,
    sweep_short,
)


class SweptDiscord(SweptPlatform):
    """People write in private, in channels and in threads, and the gateway of Discord breaks."""

    sends = frozenset({"create_message"})
    reads = ("get_messages",)
    # Nobody can find a private channel in which the bot was never spoken to.
    greets = True

    def __init__(self, fake: FakeDiscord, home: Path) -> None:
        addresses = (fake.api_url, fake.gateway_url)
        super().__init__(fake, f"{BOTS}.discord_bot", str(home), *addresses, fake.token)

    def is_begun(self) -> object:
        return self.fake.gateway.connected

    def says(self, person: str, text: str) -> None:
        self.fake.says(person, text, **place_of(person))

    def texts(self, person: str) -> list[str]:
        return self.fake.texts(person, **place_of(person))

    async def something_happens(self, draw: random.Random) -> None:
        gateway = self.fake.gateway
        if gateway.connected and draw.random() < 0.1:
            broken = [gateway.cut, gateway.invalidate, gateway.forget_sessions, gateway.ask_to_reconnect]
            await self.fake.on_gateway(draw.choice(broken))


class SweptInteractions(SweptPlatform):
    """People use a command, in private and in channels, and see at once if it failed."""

    sends = frozenset({"edit_original", "follow_up", "create_message"})
    reads = ("get_me",)
    may_mark = True  # nobody can find an answer again that is not in its place

    def __init__(self, fake: FakeDiscord, home: Path, token: str) -> None:
        """*token* is that of a bot in the guild; empty: there is none."""
        self._port = port = free_port()
        facts = (str(fake.guilds.bot.id), fake.endpoint.public_key, token)
        super().__init__(fake, f"{BOTS}.discord_interactions_bot", str(home), str(port), fake.api_url, *facts)
        fake.rest.commands["ask"] = {"id": "1", "name": "ask"}
        fake.endpoint.url = f"http://127.0.0.1:{port}/discord"
        self._used: dict[str, list[FakeInteraction]] = {}

    def says(self, person: str, text: str) -> None:
        used = self.fake.commands(person, "ask", channel=place_of(person).get("channel"), what=text)
        self._used.setdefault(person, []).append(used)

    def texts(self, person: str) -> list[str]:
        return self.fake.texts(person, channel=place_of(person).get("channel"))

    def is_begun(self) -> object:
        return listens(self._port)

    def may_say(self, person: str) -> bool:
        """Whether a command was taken; who saw that it failed waits until the application is back."""
        return all(
            one.is_answered or (one.has_failed and listens(self._port))
            for one in self._used.get(person, [])[-1:]
        )

    def is_owed(self, person: str, number: int) -> bool:
        return not self._used[person][number - 1].has_failed

    async def something_happens(self, draw: random.Random) -> None:
        """Let a machine in front of the webhook post the last interaction once more."""
        if draw.random() < 0.05:
            self.fake.endpoint.add_again()


def listens(port: int) -> bool:
    """Return whether somebody takes connections at a port."""
    with socket.socket() as probe:
        probe.setblocking(False)
        probe.connect_ex(("127.0.0.1", port))
        return probe.connect_ex(("127.0.0.1", port)) == 0  # the second call tells what the first one began


def place_of(person: str) -> dict[str, str]:
    """Return where a person writes: every second one in private, every fifth one in a thread."""
    number = int(person[1:])
    if number % 2 == 0:
        return {}
    return {"channel": f"c{number}", "thread": "t"} if number % 5 == 0 else {"channel": f"c{number}"}


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeDiscord() as fake:
        await sweep_long(SweptDiscord(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeDiscord() as fake:
        await sweep_short(SweptDiscord(fake, tmp_path))


@pytest.mark.soak
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("has_bot", [True, False])
async def test_fifty_kills_in_five_hundred_commands_lose_nothing(
    *, has_bot: bool, tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeDiscord() as fake:
        swept = SweptInteractions(fake, tmp_path, fake.token if has_bot else "")
        await sweep_long(swept, record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_commands_lose_nothing(tmp_path: Path):
    async with FakeDiscord() as fake:
        await sweep_short(SweptInteractions(fake, tmp_path, fake.token))
