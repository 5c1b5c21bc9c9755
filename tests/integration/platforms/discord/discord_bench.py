"""A fake Discord with one person, and an adapter to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import discord

from gateway_sessions.core.delivery.retry_policy import SendFailure
from gateway_sessions.integrations.discord_py import DiscordAdapter
from gateway_sessions.testing.contract.adapter import AdapterBench
from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RefusedCall

FAULTS: dict[SendFailure, Fault] = {
    SendFailure.REFUSED: RefusedCall(403, "50013: Missing Permissions"),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}
_ESCAPED = re.compile(r"\\([\\*_~`|\[<>#+=.)-])")


class DiscordBench(AdapterBench):
    """The person is called ann."""

    def __init__(self, fake: FakeDiscord) -> None:
        self.fake = fake
        intents = discord.Intents.default()
        intents.message_content = True
        self.client = discord.Client(intents=intents, guild_ready_timeout=0.01)
        self.adapter: DiscordAdapter = DiscordAdapter(self.client, fake.token)

    async def says(self, text: str) -> bool:
        self.fake.says("ann", text)
        return True

    async def writes_unheard(self, text: str) -> None:
        self.fake.says("ann", text)

    async def delivers_again(self) -> bool:
        place = self.fake.place("ann")
        self.fake.guilds.dispatch(
            "MESSAGE_CREATE", self.fake.guilds.as_event(place, list(place.messages.values())[-1])
        )
        return True

    async def garbles(self) -> bool:
        self.fake.says("ann", "", type=6)  # somebody pinned a message
        return True

    async def presses(self, label: str) -> None:
        self.fake.presses("ann", label)

    async def shown(self) -> str:
        return "\n".join(as_seen(self.fake, message) for message in self.fake.shown("ann"))

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        async with self._with_fault(Delay(1000)):
            yield

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        if how is SendFailure.UNAVAILABLE:
            return self.fake.outage()
        return self._with_fault(FAULTS[how])

    @asynccontextmanager
    async def _with_fault(self, fault: Fault) -> AsyncIterator[None]:
        self.fake.faults.plan(fault, method="create_message", times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()
            await asyncio.sleep(0)


def as_seen(fake: FakeDiscord, message: dict[str, Any]) -> str:
    """Return the text of a message without its escapes, its buttons, and the names and addresses of files."""
    buttons = [one["label"] for row in message["components"] for one in row["components"]]
    files = [one["filename"] for one in message["attachments"]]
    pictures = [one["image"]["url"] for one in message["embeds"]]
    return " ".join([_ESCAPED.sub(r"\1", message["content"]), *buttons, *files, *pictures])
