"""An application on Discord without a connection to its gateway: signed interactions, posted to a webhook."""

from __future__ import annotations

import base64
import json
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
from gateway_sessions.events import EventKind
from gateway_sessions.integrations.discord.interactions_adapter import DiscordInteractionsAdapter
from gateway_sessions.integrations.discord.interactions_platform import (
    DiscordInteractionSettings,
    DiscordInteractionsPlatform,
)
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.discord import FakeDiscord
from gateway_sessions.testing.fakes.discord.rest import ANSWER_SECONDS
from tests.integration.gateway.gateway_harness import QUICK

PATIENCE = 30
OTHER_KEY = Ed25519PrivateKey.generate()


@pytest.fixture
async def fake() -> AsyncGenerator[FakeDiscord]:
    async with FakeDiscord() as fake:
        for name in ("ask", "new"):
            fake.rest.commands[name] = {"id": "1", "name": name}
        yield fake


def settings_of(fake: FakeDiscord, **more: Any) -> DiscordInteractionSettings:
    facts = {"public_key": fake.endpoint.public_key, "api_url": fake.api_url, **more}
    return DiscordInteractionSettings(application_id=str(fake.guilds.bot.id), **facts)


def signed_by(key: Ed25519PrivateKey, body: bytes, *, at: int) -> dict[str, str]:
    """Return the headers of a request that somebody else has signed."""
    signature = key.sign(str(at).encode() + body).hex()
    return {"x-signature-ed25519": signature, "x-signature-timestamp": str(at)}


@asynccontextmanager
async def connected(
    fake: FakeDiscord, submit: Callable[..., Any], clock: FakeClock | None = None, **more: Any
) -> AsyncGenerator[DiscordInteractionsAdapter]:
    adapter = DiscordInteractionsAdapter(settings_of(fake, **more), port=0, clock=clock)
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


async def test_files_that_are_given_to_a_command_are_fetched_from_discord_alone(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox, command="ask", bot_token=fake.token) as adapter:
        fake.commands("ann", "ask", files={"notes.txt": b"abc", "more.txt": b"de"}, what="look at these")
        (message,) = await inbox.wait_for(1)
        assert message.text == "look at these"
        notes, more = message.attachments
        assert (notes.name, notes.size, more.name) == ("notes.txt", 3, "more.txt")
        assert await adapter.fetch(notes) == b"abc"
        with pytest.raises(InvalidInputError, match="has 3 bytes, at most 2"):
            await adapter.fetch(notes, most=2)
        with pytest.raises(InvalidInputError, match="no file of Discord"):
            await adapter.fetch(Attachment(kind=AttachmentKind.DOCUMENT, url="https://elsewhere.example/x"))


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


async def test_an_agent_that_takes_its_time_is_acknowledged_at_once(fake: FakeDiscord, tmp_path: Path):
    ready = anyio.Event()

    async def agent(turn: TurnContext) -> Reply:
        await ready.wait()
        return Reply("at last")

    adapter = DiscordInteractionsAdapter(settings_of(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address is not None, seconds=PATIENCE)
        fake.endpoint.url = adapter.url
        used = fake.commands("ann", "ask")
        await fake.wait_until(lambda: used.is_answered, seconds=PATIENCE)
        assert (used.response, used.original) == (5, None)
        assert time.monotonic() - used.began < ANSWER_SECONDS
        ready.set()
        await fake.wait_until(lambda: used.original is not None, seconds=PATIENCE)
    assert fake.texts("ann") == ["at last"]


async def test_a_store_that_takes_its_time_is_told_as_a_failure_within_three_seconds(fake: FakeDiscord):
    inbox = Inbox()
    inbox.open.clear()
    async with connected(fake, inbox):
        used = fake.commands("ann", "ask")
        await fake.wait_until(lambda: fake.endpoint.statuses, seconds=PATIENCE)
    # The answer comes before Discord stops waiting, which would be a 0.
    assert (fake.endpoint.statuses, used.is_answered, inbox.messages) == ([503], False, [])


@pytest.mark.parametrize("who_knows", ["the clock", "discord"])
@pytest.mark.parametrize("with_bot", [True, False])
async def test_an_answer_after_fifteen_minutes_is_shown_by_the_bot_or_kept_with_the_reason(
    fake: FakeDiscord, tmp_path: Path, caplog: pytest.LogCaptureFixture, who_knows: str, with_bot: bool
):
    clock = FakeClock(datetime.now(UTC))

    async def agent(turn: TurnContext) -> Reply:
        await fake.wait_until(lambda: used.is_answered, seconds=PATIENCE)
        used.began -= 16 * 60
        if who_knows == "the clock":
            await clock.advance(minutes=16)
        return Reply("better late than never")

    settings = settings_of(fake, bot_token=fake.token if with_bot else "")
    adapter = DiscordInteractionsAdapter(settings, port=0, clock=clock)
    async with (
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=agent, adapters=[adapter]) as gateway,
        gateway.events.listen(kinds=[EventKind.REPLY_GIVEN_UP, EventKind.REPLY_SENT]) as listener,
    ):
        await fake.wait_until(lambda: adapter.address is not None, seconds=PATIENCE)
        fake.endpoint.url = adapter.url
        used = fake.commands("ann", "ask", channel="general")
        with anyio.fail_after(PATIENCE):
            event = await anext(aiter(listener))
    if with_bot:
        assert event.kind is EventKind.REPLY_SENT
        assert fake.texts(channel="general") == ["better late than never"]
        assert used.original is None
    else:
        assert event.kind is EventKind.REPLY_GIVEN_UP
        assert fake.texts(channel="general") == []
        (told,) = [one for one in caplog.records if getattr(one, "action", "") == "reply_given_up"]
        assert "fifteen minutes: set bot_token" in vars(told)["problem"]


async def test_an_answer_to_what_was_never_acknowledged_is_shown_by_the_bot_or_refused(fake: FakeDiscord):
    inbox, clock = Inbox(), FakeClock(datetime.now(UTC))
    token = fake.token
    async with connected(fake, inbox, clock) as bare, connected(fake, inbox, clock, bot_token=token) as full:
        used = fake.commands("ann", "ask")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: used.is_answered, seconds=PATIENCE)
        used.response = None
        await clock.advance(seconds=11)
        target, text = ReplyTarget.answering(message), OutboundMessage(text="x")
        with pytest.raises(DeliveryRefusedError, match="within three seconds"):
            await bare.send(target, text, idempotency_key="k")
        shown = await full.send(target, text, idempotency_key="k")
        assert fake.texts("ann") == ["x"]
        await full.edit(target, shown or "", OutboundMessage(text="y"))
        assert fake.texts("ann") == ["y"]
        await clock.advance(minutes=16)
        with pytest.raises(DeliveryRefusedError, match="fifteen minutes"):
            await bare.edit(target, shown or "", OutboundMessage(text="z"))


async def test_a_late_answer_to_a_press_stands_at_the_message_with_the_button(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox, bot_token=fake.token) as adapter:
        place = ReplyTarget(platform="discord", chat_id=str(fake.place(channel="general").id))
        question = OutboundMessage(text="Sure?", buttons=(Button("Yes", "yes"),))
        asked = await adapter.send(place, question, idempotency_key="1")
        pressed = fake.presses("ann", "Yes", channel="general")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: pressed.is_answered, seconds=PATIENCE)
        pressed.began -= 16 * 60
        await adapter.send(ReplyTarget.answering(message), OutboundMessage(text="Done"), idempotency_key="2")
    last = fake.shown(channel="general")[-1]
    assert (last["content"], last["message_reference"]["message_id"]) == ("Done", asked)


async def test_after_a_restart_nothing_takes_the_place_of_an_answer(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox) as adapter:
        used = fake.commands("ann", "ask")
        (message,) = await inbox.wait_for(1)
        await fake.wait_until(lambda: used.is_answered, seconds=PATIENCE)
        target = ReplyTarget.answering(message)
        await adapter.send(target, OutboundMessage(text="the first part"), idempotency_key="1")
    async with connected(fake, inbox) as adapter:
        await adapter.send(target, OutboundMessage(text="the second part"), idempotency_key="2")
    assert fake.texts("ann") == ["the first part", "the second part"]


async def test_one_command_may_carry_what_people_say(fake: FakeDiscord):
    inbox = Inbox()
    async with connected(fake, inbox, command="/ask"):
        fake.commands("ann", "ask", what="hello")
        fake.commands("ann", "ask", what="/new Trip")
        fake.commands("ann", "ask")
        fake.commands("ann", "new", what="Trip")
        texts = [one.text for one in await inbox.wait_for(4)]
    assert texts == ["hello", "/new Trip", "/ask", "/new Trip"]


async def test_a_reply_grows_where_a_command_waits(fake: FakeDiscord, tmp_path: Path):
    seen: list[list[str]] = []

    async def agent(turn: TurnContext) -> Reply:
        await turn.show("One")
        await fake.wait_until(lambda: fake.texts("ann") == ["One"], seconds=PATIENCE)
        seen.append(fake.texts("ann"))
        return Reply("One, two")

    adapter = DiscordInteractionsAdapter(settings_of(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address is not None, seconds=PATIENCE)
        fake.endpoint.url = adapter.url
        fake.commands("ann", "ask")
        await fake.wait_until(lambda: fake.texts("ann") == ["One, two"], seconds=PATIENCE)
    assert seen == [["One"]]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"bot_token": "MTIz.of.another"}, "does not know this token: copy it anew from the page of the bot"),
        ({"api_url": "http://127.0.0.1:9"}, "cannot be reached"),
    ],
)
async def test_what_is_wrong_with_the_account_is_told_in_one_sentence(
    fake: FakeDiscord, wrong: dict[str, str], told: str
):
    settings = settings_of(fake, **{"bot_token": fake.token, **wrong})
    adapter = DiscordInteractionsAdapter(settings, port=0)
    with pytest.raises(AdapterUnavailableError) as failure:
        async with adapter.connect(Inbox()):
            raise AssertionError(settings)
    assert told in str(failure.value)
    assert fake.token not in repr(settings)


async def test_a_channel_that_is_closed_to_the_bot_is_told_with_what_to_do(fake: FakeDiscord):
    fake.place(channel="general").may_write = False
    nowhere = ReplyTarget(platform="discord", user_id="7")
    place = ReplyTarget(platform="discord", chat_id=str(fake.place(channel="general").id))
    async with connected(fake, Inbox(), bot_token=fake.token) as adapter:
        with pytest.raises(DeliveryRefusedError, match="permissions Send Messages"):
            await adapter.send(place, OutboundMessage(text="x"), idempotency_key="k")
        with pytest.raises(DeliveryRefusedError, match="needs a channel"):
            await adapter.send(nowhere, OutboundMessage(text="x"), idempotency_key="k")


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
        now = int(time.time())
        for headers, body, status in (
            (fake.endpoint.signed(ping), ping, 200),
            (signed_by(OTHER_KEY, ping, at=now), ping, 401),
            ({**fake.endpoint.signed(ping), "x-signature-timestamp": str(now + 1)}, ping, 401),
            (fake.endpoint.signed(ping, at=now - 3600), ping, 401),
            (fake.endpoint.signed(ping, at=now + 3600), ping, 401),
            ({**fake.endpoint.signed(ping), "x-signature-timestamp": "soon"}, ping, 401),
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
    later = platform.why_forged(genuine, now + timedelta(minutes=6))
    assert "is the clock of this machine right?" in later
    assert "correct the application's public key" in platform.why_forged(genuine, now)
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
