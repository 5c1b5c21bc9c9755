"""A number at Twilio with a gateway: a fake Twilio over real bytes, and what may go wrong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Gateway, SessionStore, TurnContext
from gateway_sessions.adapters import Attachment, AttachmentKind, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import DeliveryStatus
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.twilio import TwilioAdapter
from gateway_sessions.integrations.twilio.adapter import MEDIA_HOSTS
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.http_server import FakeResponse
from gateway_sessions.testing.fakes.twilio import FakeTwilio
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.twilio.test_twilio_contract import settings_of

HELLO = OutboundMessage(text="hello")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeTwilio]:
    async with FakeTwilio() as fake:
        yield fake


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@asynccontextmanager
async def connected(fake: FakeTwilio, inbox: Inbox, **options: Any) -> AsyncIterator[TwilioAdapter]:
    adapter = TwilioAdapter(settings_of(fake), port=0, **options)
    async with adapter.connect(inbox):
        fake.webhook_url = adapter.url
        yield adapter


async def test_a_conversation_goes_both_ways_and_a_stop_ends_it(fake: FakeTwilio, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        return f"You said: {turn.text}"

    adapter = TwilioAdapter(settings_of(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("ann", "hello")
        await fake.wait_until(lambda: fake.texts("ann"))
        stop = fake.says("ann", "Stop")
        assert await fake.is_taken(stop)
        fake.says("bob", "hello")
        await fake.wait_until(lambda: fake.texts("bob"))
    assert (fake.texts("ann"), fake.texts("bob")) == (["You said: hello"], ["You said: hello"])
    assert b"<Response></Response>" in stop.attempts[0].body
    assert fake.sent[0]["From"] == fake.number


async def test_what_a_store_does_not_take_comes_again(fake: FakeTwilio, inbox: Inbox):
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with connected(fake, inbox):
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        inbox.failure = None
        assert await fake.is_taken(delivery)
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_who_has_stopped_gets_nothing(fake: FakeTwilio, inbox: Inbox):
    target = ReplyTarget(platform="twilio", chat_id=fake.person("ann"))
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.says("ann", "STOP"))
        with pytest.raises(DeliveryRefusedError, match="has replied STOP"):
            await adapter.send(target, HELLO, idempotency_key="k")
        assert await fake.is_taken(fake.says("ann", "START"))
        await adapter.send(target, HELLO, idempotency_key="k2")
    assert (inbox.messages, fake.texts("ann")) == ([], ["hello"])


async def test_what_became_of_a_message_is_told(
    fake: FakeTwilio, inbox: Inbox, caplog: pytest.LogCaptureFixture
):
    told: list[DeliveryStatus] = []

    async def listen(status: DeliveryStatus) -> None:
        told.append(status)

    async with connected(fake, inbox, on_status=listen):
        assert await fake.is_taken(fake.reports("SM1", "delivered"))
        assert await fake.is_taken(fake.reports("SM2", "undelivered", ErrorCode="30003"))
    assert [str(one.state) for one in told] == ["delivered", "failed"]
    assert "will not be shown: the phone is switched off or out of reach (error 30003)" in caplog.text


async def test_a_forged_request_is_refused_and_the_operator_told(
    fake: FakeTwilio, inbox: Inbox, caplog: pytest.LogCaptureFixture
):
    async with connected(fake, inbox):
        fake.public_url = "https://another.example/twilio"
        assert (await fake.settle(fake.says("ann", "hello"))).status == 401
    assert inbox.calls == 0
    assert "if twilio made it, correct auth_token and public_url" in caplog.text


async def test_a_file_is_fetched_without_telling_the_secret_elsewhere(
    fake: FakeTwilio, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
):
    async with connected(fake, inbox) as adapter:
        assert await fake.is_taken(fake.sends("ann", b"\x89PNG", "image/png", "look"))
        (photo,) = inbox.messages[0].attachments
        assert (photo.kind, await adapter.fetch(photo)) == (AttachmentKind.PHOTO, b"\x89PNG")
        with pytest.raises(InvalidInputError, match="more than 1 bytes"):
            await adapter.fetch(photo, most=1)
        fake.media.clear()
        with pytest.raises(InvalidInputError, match="the file cannot be fetched"):
            await adapter.fetch(photo)
        with pytest.raises(InvalidInputError, match="is not kept by Twilio for this account"):
            await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url="https://e.org/1"))

        def lead_away(*_: object) -> FakeResponse:
            return FakeResponse(307, b"", {"location": "http://169.254.169.254/latest"})

        monkeypatch.setattr(fake, "_outcome", lead_away)
        with pytest.raises(InvalidInputError, match="leads to a host that is none of its own"):
            await adapter.fetch(photo)
    assert all(host.startswith(".") for host in MEDIA_HOSTS)


async def test_a_wrong_secret_is_told_in_one_sentence(fake: FakeTwilio, inbox: Inbox):
    adapter = TwilioAdapter(settings_of(fake, auth_token="wrong"))
    with pytest.raises(AdapterUnavailableError, match="Authenticate"):
        async with adapter.connect(inbox):
            pass


@pytest.mark.parametrize("target", ["", "ann"])
async def test_a_number_that_is_none_is_refused(fake: FakeTwilio, inbox: Inbox, target: str):
    async with connected(fake, inbox) as adapter:
        with pytest.raises(DeliveryRefusedError, match="the number of the person is none"):
            await adapter.send(ReplyTarget(platform="twilio", chat_id=target), HELLO, idempotency_key="k")
