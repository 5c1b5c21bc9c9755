"""The webhook for Discord's interactions keeps the contract of adapters, with a bot's token and without."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import ClassVar

import pytest

from gateway_sessions.adapters import OutboundMessage, ReplyTarget
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.integrations.discord.interactions_adapter import DiscordInteractionsAdapter
from gateway_sessions.integrations.discord.interactions_platform import DiscordInteractionSettings
from gateway_sessions.testing.contract.adapter import (
    Ability,
    AdapterBench,
    AdapterContract,
    Inbox,
    SendFailure,
)
from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit, RefusedCall
from tests.integration.platforms.discord.discord_bench import as_seen

FAULTS: Mapping[SendFailure, Fault] = {
    SendFailure.RATE_LIMITED: RateLimit(0),
    SendFailure.REFUSED: RefusedCall(403, "50013: Missing Permissions"),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}
SENDING = frozenset({"edit_original", "follow_up", "create_message"})
PATIENCE = 10


class ListeningAdapter(DiscordInteractionsAdapter):
    """Tells a fake Discord where it listens, as people tell Discord once."""

    def __init__(self, fake: FakeDiscord, *, bot_token: str) -> None:
        settings = DiscordInteractionSettings(
            application_id=str(fake.guilds.bot.id),
            public_key=fake.endpoint.public_key,
            bot_token=bot_token,
            command="ask",
            api_url=fake.api_url,
        )
        super().__init__(settings, port=0)
        self.fake = fake

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        async with super().connect(submit):
            self.fake.endpoint.url = self.url
            yield


class InteractionsBench(AdapterBench):
    """Ann uses the command /ask in her private channel with the bot."""

    def __init__(self, fake: FakeDiscord, *, bot_token: str) -> None:
        self.fake = fake
        self.adapter = ListeningAdapter(fake, bot_token=bot_token)
        fake.rest.commands["ask"] = {"id": "1", "name": "ask"}

    async def _settles(self, count: int) -> bool:
        statuses = self.fake.endpoint.statuses
        await self.fake.wait_until(lambda: len(statuses) > count, seconds=PATIENCE)
        return statuses[count] == 200

    async def says(self, text: str) -> bool:
        count = len(self.fake.endpoint.statuses)
        self.fake.commands("ann", "ask", what=text)
        return await self._settles(count)

    async def delivers_again(self) -> bool:
        count = len(self.fake.endpoint.statuses)
        self.fake.endpoint.add_again()
        return await self._settles(count)

    async def garbles(self) -> bool:
        count = len(self.fake.endpoint.statuses)
        interaction, event = self.fake.make_interaction("ann", self.fake.place("ann"), 2, {"name": "ask"})
        self.fake.endpoint.add(interaction, {**event, "id": "seven"})
        return await self._settles(count)

    async def presses(self, label: str) -> None:
        count = len(self.fake.endpoint.statuses)
        self.fake.presses("ann", label)
        assert await self._settles(count)

    async def shown(self) -> str:
        return "\n".join(as_seen(self.fake, message) for message in self.fake.shown("ann"))

    @asynccontextmanager
    async def _planned(self, fault: Fault) -> AsyncIterator[None]:
        self.fake.faults.plan(fault, matches=lambda method, _: method in SENDING, times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()

    def hanging(self) -> AbstractAsyncContextManager[None]:
        return self._planned(Delay(60))

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        return self.fake.outage() if how is SendFailure.UNAVAILABLE else self._planned(FAULTS[how])


class TestInteractionsWithBotToken(AdapterContract):
    # Discord learns whether an interaction was taken; it tells the person, and does not post it again.
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures: ClassVar[frozenset[SendFailure]] = frozenset(SendFailure)

    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeDiscord() as fake:
            yield InteractionsBench(fake, bot_token=fake.token)

    async def test_what_is_sent_with_one_key_is_shown_once_if_that_is_claimed(
        self, bench: AdapterBench, inbox: Inbox
    ) -> None:
        """The message where a command waits is shown once, also where nothing is claimed."""
        async with self.talking(bench, inbox) as target:
            for key in ("k1", "k1", "k2", "k2"):
                await bench.adapter.send(target, OutboundMessage(text=f"[{key}]"), idempotency_key=key)
            shown = await bench.shown()
        assert bench.adapter.capabilities.idempotent_for is None
        assert (shown.count("[k1]"), shown.count("[k2]")) == (1, 2)


class TestInteractionsWithoutBotToken(TestInteractionsWithBotToken):
    @pytest.fixture
    async def bench(self) -> AsyncGenerator[AdapterBench]:
        async with FakeDiscord() as fake:
            yield InteractionsBench(fake, bot_token="")

    async def test_what_is_unasked_finds_its_way(self, bench: AdapterBench, inbox: Inbox) -> None:
        """Nothing but the token of an interaction opens a channel, and the refusal says what would."""
        async with self.talking(bench, inbox):
            target = ReplyTarget.at(inbox.messages[0].source, account=bench.adapter.name)
            with pytest.raises(DeliveryRefusedError, match="set bot_token"):
                await bench.adapter.send(target, OutboundMessage(text="by the way"), idempotency_key="k1")
            assert await bench.shown() == ""
