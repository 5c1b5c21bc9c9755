"""An application on Discord without a connection to its gateway: signed interactions, posted to a webhook."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import Attachment, AttachmentKind, Button, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import PassedOver, Request, UnreadableEvent, Verdict
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.discord.interactions_adapter import DiscordInteractionsAdapter
from gateway_sessions.integrations.discord.interactions_platform import (
    DiscordInteractionSettings,
    DiscordInteractionsPlatform,
)
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.discord import FakeDiscord
from tests.integration.gateway.gateway_harness import QUICK

PATIENCE = 30


@pytest.fixture
async def fake() -> AsyncGenerator[FakeDiscord]:
    async with FakeDiscord() as fake:
        for name in ("ask", "new"):
            fake.rest.commands[name] = {"id": "1", "name": name}
        yield fake


def settings_of(fake: FakeDiscord) -> DiscordInteractionSettings:
    return DiscordInteractionSettings(
        application_id=str(fake.guilds.bot.id), public_key=fake.endpoint.public_key, api_url=fake.api_url
    )


@asynccontextmanager
async def connected(
    fake: FakeDiscord, submit: Callable[..., Any]
) -> AsyncGenerator[DiscordInteractionsAdapter]:
    adapter = DiscordInteractionsAdapter(settings_of(fake), port=0)
    async with adapter.connect(submit):
        fake.endpoint.url = adapter.url
        yield adapter


async def test_a_command_is_answered_where_it_waits(fake: FakeDiscord, tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply:
        return Reply(f"You said {turn.text}")

    adapter = DiscordInteractionsAdapter(settings_of(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address is not None, seconds=PATIENCE)
        fake.endpoint.url = adapter.url
        used = fake.commands("ann", "ask", channel="general", what="hello")
        await fake.wait_until(lambda: used.original is not None, seconds=PATIENCE)
        assert used.response == 5
        assert fake.texts(channel="general") == ["You said /ask hello"]


async def test_what_follows_is_shown_behind_it(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox) as adapter:
        used = fake.commands("ann", "ask", channel="general")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: used.is_answered, seconds=PATIENCE)
        target = ReplyTarget.answering(message)
        data = "data:text/plain;base64," + base64.b64encode(b"abc").decode()
        file = Attachment(kind=AttachmentKind.DOCUMENT, url=data, name="a.txt")
        first = OutboundMessage(text="one", attachments=(file,), buttons=(Button("Go", "go"),))
        sent = await adapter.send(target, first, idempotency_key="1")
        await adapter.send(target, OutboundMessage(text="two"), idempotency_key="2")
        assert fake.texts(channel="general") == ["one", "two"]
        assert sent == str(used.original)
        assert b"abc" in fake.files.values()
        await adapter.edit(target, sent, OutboundMessage(text="one!"))
        assert fake.texts(channel="general") == ["one!", "two"]
        await adapter.typing(target)
        pressed = fake.presses("ann", "Go", channel="general")
        await inbox.wait_for(2)
        await fake.wait_until(lambda: pressed.response == 6, seconds=PATIENCE)
        assert inbox.messages[1].action == "go"
        answer = ReplyTarget.answering(inbox.messages[1])
        await adapter.send(answer, OutboundMessage(text="three"), idempotency_key="3")
        assert fake.texts(channel="general") == ["one!", "two", "three"]


async def test_an_answer_that_overtakes_the_acknowledgement_is_sent_again(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox) as adapter:
        late = fake.commands("ann", "ask")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: late.is_answered, seconds=PATIENCE)
        late.response = None  # as if Discord had not heard of it yet
        target = ReplyTarget.answering(message)
        with pytest.raises(AdapterUnavailableError, match="still on its way"):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
        late.response = 5
        await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
        late.began -= 16 * 60
        with pytest.raises(DeliveryRefusedError, match="fifteen minutes"):
            await adapter.send(target, OutboundMessage(text="y"), idempotency_key="y")
    assert fake.texts("ann") == ["x"]


async def test_what_cannot_be_stored_is_not_acknowledged(fake: FakeDiscord):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with connected(fake, inbox):
        used = fake.commands("ann", "ask")
        await fake.wait_until(lambda: fake.endpoint.statuses, seconds=PATIENCE)
    assert (fake.endpoint.statuses, used.is_answered) == ([503], False)
    fake.endpoint.url = "http://127.0.0.1:9"
    fake.commands("ann", "ask")
    await fake.wait_until(lambda: fake.endpoint.statuses == [503, 0], seconds=PATIENCE)


async def test_strangers_are_refused_and_pings_are_answered(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox) as adapter, aiohttp.ClientSession() as session:
        ping = b'{"type": 1}'
        for headers, body, status in (
            (fake.endpoint.signed(ping), ping, 200),
            (fake.endpoint.signed(ping), b'{"type": 2}', 401),
            ({**fake.endpoint.signed(ping), "x-signature-ed25519": "no"}, ping, 401),
            ({}, ping, 401),
        ):
            async with session.post(adapter.url, data=body, headers=headers) as answer:
                assert answer.status == status
                assert status != 200 or await answer.json() == {"type": 1}
        for kind, expected in ((4, {"type": 8, "data": {"choices": []}}), (5, {"type": 6})):
            body = json.dumps({"id": "1", "type": kind, "user": {"id": "8"}}).encode()
            async with session.post(adapter.url, data=body, headers=fake.endpoint.signed(body)) as answer:
                assert await answer.json() == expected
    assert inbox.messages == []


async def test_only_interactions_are_answered(fake: FakeDiscord):
    adapter = DiscordInteractionsAdapter(settings_of(fake))
    nobody = ReplyTarget(platform="discord", chat_id="1")
    async with adapter.connect(Inbox()):
        with pytest.raises(DeliveryRefusedError, match="only answers to interactions"):
            await adapter.send(nobody, OutboundMessage(text="x"), idempotency_key="k")
        message = OutboundMessage(text="x", buttons=(Button("y", "z" * 200),))
        with pytest.raises(DeliveryRefusedError, match="too long"):
            await adapter.send(nobody, message, idempotency_key="k")
        old = ReplyTarget(platform="discord", chat_id="1", reply_to="4194304", metadata={"interaction": "t"})
        with pytest.raises(DeliveryRefusedError, match="fifteen minutes"):
            await adapter.send(old, OutboundMessage(text="x"), idempotency_key="k")


def test_a_key_that_is_none_is_refused():
    settings = DiscordInteractionSettings(application_id="1", public_key="beef")
    with pytest.raises(InvalidInputError, match="public_key is no key"):
        DiscordInteractionsPlatform(settings, clock=FakeClock())


async def test_whatever_is_posted_is_forged_or_read(fake: FakeDiscord):
    draw = random.Random(20261120)
    platform = DiscordInteractionsPlatform(settings_of(fake), clock=FakeClock())
    _, event = fake.make_interaction("ann", fake.place(channel="general"), 2, {"name": "ask", "options": []})
    good, now = json.dumps(event).encode(), datetime.now(UTC)
    headers = fake.endpoint.signed(good)
    genuine = Request("POST", "/discord", headers, good)
    assert platform.verify(genuine, now) is Verdict.GENUINE
    assert platform.verify(genuine, now + timedelta(minutes=6)) is Verdict.FORGED
    found = dict.fromkeys([InboundMessage, UnreadableEvent, PassedOver], 0)
    for _ in range(10_000):
        spoiled = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            spoiled[draw.randrange(len(spoiled))] = draw.randrange(256)
        body = bytes(spoiled)
        assert (platform.verify(Request("POST", "/discord", headers, body), now) is Verdict.GENUINE) == (
            body == good
        )
        request = Request("POST", "/discord", {}, body if draw.random() < 0.9 else draw.randbytes(40))
        (one,) = platform.parse(request)
        found[type(one)] += 1
        assert platform.response(request, ()).status == 200
    assert min(found[InboundMessage], found[UnreadableEvent]) > 1000
