"""An app in Google Chat with a gateway: a fake Google Chat over real bytes, and what may go wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import Attachment, AttachmentKind, OutboundMessage, ReplyTarget, TextFormat
from gateway_sessions.core.delivery.outbound_messages import Button
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.google_chat import GoogleChatAdapter
from gateway_sessions.integrations.google_chat.adapter import MOST_ATTACHMENT_BYTES
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import CutConnection, RefusedCall
from gateway_sessions.testing.fakes.google_chat import FakeGoogleChat
from gateway_sessions.testing.fakes.token_issuer import FakeIssuer
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.google_chat.test_google_chat_contract import settings_of
from tests.unit.adapters.loopback import loopback, send_endless_file

HELLO = OutboundMessage(text="hello")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeGoogleChat]:
    async with FakeGoogleChat() as fake:
        yield fake


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@asynccontextmanager
async def connected(fake: FakeGoogleChat, inbox: Inbox, **options: Any) -> AsyncIterator[GoogleChatAdapter]:
    adapter = GoogleChatAdapter(settings_of(fake), port=0, **options)
    async with adapter.connect(inbox):
        fake.webhook_url = adapter.url
        yield adapter


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeGoogleChat, tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply:
        if turn.text == "Yes":
            return Reply("It is done.")
        text = f"You said **{turn.text}**."
        return Reply(text, format=TextFormat.MARKDOWN, buttons=(Button("Yes", "confirm:1"),))

    adapter = GoogleChatAdapter(settings_of(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        thread = json.loads(fake.says("bob", "plans", room="team").body)["message"]["thread"]["name"]
        await fake.wait_until(lambda: fake.texts(room="team", thread=thread))
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann"))
        assert fake.texts(room="team", thread=thread) == ["You said *plans*.\n[Yes]"]
        assert fake.texts("ann") == ["You said *hello*.\n[Yes]"]
        assert await fake.is_taken(fake.presses("ann", "Yes"))
        await fake.wait_until(lambda: fake.texts("ann")[1:])
        assert fake.texts("ann")[1:] == ["It is done."]


async def test_commands_of_the_console_reach_the_gateway_and_texts_are_read_in_the_syntax_of_chat(
    fake: FakeGoogleChat, tmp_path: Path
):
    async def agent(turn: TurnContext) -> Reply:
        return Reply(f"**You** said {turn.text} to <users/all>", format=TextFormat.MARKDOWN)

    fake.commands = {"/title": 4}
    adapter = GoogleChatAdapter(settings_of(fake, commands=("status",)), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann"))
        (shown,) = fake.reads("ann")
        assert (shown.text.replace("\u200b", ""), shown.mentions) == ("You said hello to <users/all>", ())
        fake.commands_with("ann", "/title Plans")
        await fake.wait_until(lambda: fake.texts("ann")[1:])
        assert fake.texts("ann")[1] == "This conversation is called “Plans”."
        fake.chooses("ann", 1)
        await fake.wait_until(lambda: fake.texts("ann")[2:])
        assert "“Plans”" in fake.texts("ann")[2]


async def test_what_a_store_does_not_take_is_not_acknowledged(fake: FakeGoogleChat, inbox: Inbox):
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with connected(fake, inbox):
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        inbox.failure = None
        assert await fake.is_taken(delivery)
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_a_message_whose_answer_was_lost_is_not_doubled(fake: FakeGoogleChat, inbox: Inbox):
    target = ReplyTarget(platform="google_chat", chat_id=fake.space("ann")["name"])
    async with connected(fake, inbox) as adapter:
        fake.faults.plan(CutConnection.AFTER, method="create")
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="k")
        assert await adapter.send(target, HELLO, idempotency_key="k") in fake.messages
    assert fake.texts("ann") == ["hello"]


@pytest.mark.parametrize("claims", [{"aud": "https://else"}, {"email": "stranger@e.org"}, {"exp": 1}])
async def test_a_forged_event_is_refused(fake: FakeGoogleChat, inbox: Inbox, claims: dict[str, Any]):
    fake.claims = claims
    async with connected(fake, inbox):
        assert (await fake.settle(fake.says("ann", "hello"))).status == 401
    assert inbox.calls == 0


async def test_a_withdrawn_token_is_replaced(fake: FakeGoogleChat, inbox: Inbox):
    target = ReplyTarget(platform="google_chat", chat_id=fake.space("ann")["name"])
    async with connected(fake, inbox) as adapter:
        fake.withdraw_tokens()
        await adapter.send(target, HELLO, idempotency_key="k")
    assert [call.method for call in fake.calls].count("token") == 2


async def test_a_wrong_key_is_told_in_one_sentence(fake: FakeGoogleChat, inbox: Inbox):
    stranger = FakeIssuer("x")
    stranger.rotate()
    adapter = GoogleChatAdapter(settings_of(fake, private_key=stranger.private_pem()))
    with pytest.raises(AdapterUnavailableError, match=r"check the key of the service account \(Invalid JWT"):
        async with adapter.connect(inbox):
            pass


async def test_what_google_refuses_is_told(fake: FakeGoogleChat, inbox: Inbox):
    known = fake.space(room="team")["name"]
    fake.removed.add(known)
    cases = {known: "not a member of the space", "spaces/unknown": "Space not found"}
    async with connected(fake, inbox) as adapter:
        for space, problem in cases.items():
            target = ReplyTarget(platform="google_chat", chat_id=space)
            with pytest.raises(DeliveryRefusedError, match=problem):
                await adapter.send(target, HELLO, idempotency_key=space)
            with pytest.raises(DeliveryRefusedError, match="Message not found"):
                await adapter.edit(target, f"{space}/messages/client-1", HELLO)


async def test_a_right_that_is_missing_is_told_with_what_to_do(fake: FakeGoogleChat, inbox: Inbox):
    disabled = (
        "Google Chat API has not been used in project 1 before or it is disabled. Enable it by visiting "
        "https://console.example, then retry."
    )
    fake.faults.plan(RefusedCall(403, disabled), method="spaces")
    with pytest.raises(AdapterUnavailableError, match=r"does not accept the account .* Enable it by"):
        async with connected(fake, inbox):
            pass
    fake.removed.add(fake.space(room="team")["name"])
    target = ReplyTarget(platform="google_chat", chat_id=fake.space(room="team")["name"])
    async with connected(fake, inbox) as adapter:
        with pytest.raises(DeliveryRefusedError, match="not a member of the space: add the app to the space"):
            await adapter.send(target, HELLO, idempotency_key="k")


async def test_a_file_is_fetched_with_the_token(fake: FakeGoogleChat, inbox: Inbox):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.sends("ann", "a.png", b"\x89PNG", "image/png"))
        (file,) = inbox.messages[0].attachments
        assert await adapter.fetch(file) == b"\x89PNG"
        fake.media.clear()
        with pytest.raises(InvalidInputError, match="the file cannot be fetched"):
            await adapter.fetch(file)
        for url in ("https://e.org/1", "google-chat:", ""):
            with pytest.raises(InvalidInputError, match="is not kept by Google Chat"):
                await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url=url))
    with pytest.raises(AssertionError, match="sees no button"):
        fake.presses("ann", "Yes")


async def test_a_file_that_is_too_large_is_refused_without_being_read_whole(
    fake: FakeGoogleChat, inbox: Inbox
):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.sends("ann", "a.png", b"x" * 101, "image/png"))
        (photo,) = inbox.messages[0].attachments
        with pytest.raises(InvalidInputError, match=r"^the file cannot be fetched: it has more than 100 b"):
            await adapter.fetch(photo, most=100)
    async with loopback(send_endless_file) as port:
        endless = GoogleChatAdapter(settings_of(fake, api_url=f"http://127.0.0.1:{port}"))
        with pytest.raises(InvalidInputError, match=f"it has more than {MOST_ATTACHMENT_BYTES} bytes"):
            await endless.fetch(photo)
