"""What becomes of a call is told truthfully: a fake platform on loopback with planned faults."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import anyio
import httpx2
import pytest

from gateway_sessions.adapters import Attachment, AttachmentKind, OutboundMessage, ReplyTarget
from gateway_sessions.adapters.webhooks import ApiCall, PlatformAnswer, SendingPace
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox, nothing_left
from gateway_sessions.testing.fakes.faults import (
    ALWAYS,
    CutConnection,
    Delay,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.http_server import FakeResponse
from tests.unit.adapters.webhooks.example_platform import ExampleRules, FakeExample

ANN, BOB = (ReplyTarget(platform="example", chat_id=chat) for chat in ("ann", "bob"))
HELLO = OutboundMessage(text="hello")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeExample]:
    async with FakeExample() as fake:
        yield fake


@pytest.fixture
async def adapter(fake: FakeExample) -> AsyncGenerator[WebhookAdapter]:
    adapter = WebhookAdapter(ExampleRules(fake.url))
    async with adapter.connect(Inbox()):
        yield adapter


async def test_a_message_is_shown_and_its_id_returned(fake: FakeExample, adapter: WebhookAdapter):
    assert await adapter.send(ANN, HELLO, idempotency_key="1") == "s1"
    await adapter.edit(ANN, "s1", HELLO)
    await adapter.typing(ANN)
    assert [one.method for one in fake.calls] == ["messages", "edits", "typing"]
    assert fake.texts == [("ann", "hello")]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (RefusedCall(400, "no"), DeliveryRefusedError),
        (RefusedCall(403, "no"), DeliveryRefusedError),
        (RefusedCall(302, "elsewhere"), DeliveryRefusedError),
        (RefusedCall(401, "who are you"), AdapterUnavailableError),
        (RefusedCall(503, "not now"), AdapterUnavailableError),
        (RefusedCall(408, "too slow"), ConnectionError),
        (ServerFault(), ConnectionError),
        (ServerFault(done=True), ConnectionError),
        (CutConnection.BEFORE, ConnectionError),
        (CutConnection.AFTER, ConnectionError),
        (RateLimit(0), RateLimitedError),
    ],
)
async def test_each_failure_has_one_meaning(
    fake: FakeExample, adapter: WebhookAdapter, fault: RefusedCall, error: type[Exception]
):
    fake.faults.plan(fault)
    with pytest.raises(error):
        await adapter.send(ANN, HELLO, idempotency_key="1")
    assert await adapter.send(ANN, HELLO, idempotency_key="1") is not None


async def test_an_unreachable_platform_has_got_nothing(fake: FakeExample, adapter: WebhookAdapter):
    async with fake.outage():
        with pytest.raises(AdapterUnavailableError, match="cannot be reached"):
            await adapter.send(ANN, HELLO, idempotency_key="1")
    assert await adapter.send(ANN, HELLO, idempotency_key="1") == "s1"


async def test_an_address_that_is_none_is_told():
    adapter = WebhookAdapter(ExampleRules("http://[::nowhere"))
    async with adapter.connect(Inbox()):
        with pytest.raises(InvalidInputError, match="has an address that is none"):
            await adapter.send(ANN, HELLO, idempotency_key="1")


# Pauses


async def test_a_pause_of_a_chat_holds_up_all_that_concerns_it_and_nobody_else(
    fake: FakeExample, adapter: WebhookAdapter
):
    fake.faults.plan(RateLimit(60), matches=lambda _, given: given["chat"] == "ann")
    with pytest.raises(RateLimitedError) as first:
        await adapter.send(ANN, HELLO, idempotency_key="1")
    assert first.value.retry_after == 60
    for work in (
        adapter.send(ANN, HELLO, idempotency_key="2"),
        adapter.typing(ANN),
        adapter.edit(ANN, "s1", HELLO),
    ):
        with pytest.raises(RateLimitedError) as again:
            await work
        assert again.value.retry_after is not None
        assert 50 < again.value.retry_after <= 60
    assert len(fake.calls) == 1  # the platform was left alone
    assert await adapter.send(BOB, HELLO, idempotency_key="3") == "s1"


async def test_a_pause_of_the_account_holds_up_everybody(fake: FakeExample, adapter: WebhookAdapter):
    fake.limited = _limited_everywhere  # type: ignore[method-assign]
    fake.faults.plan(RateLimit(60))
    for target in (ANN, BOB):
        with pytest.raises(RateLimitedError):
            await adapter.send(target, HELLO, idempotency_key=target.chat_id)
    assert len(fake.calls) == 1


async def test_a_platform_asks_who_calls_within_its_pause_for_a_longer_one(fake: FakeExample):
    fake.faults.plan(RateLimit(60))
    async with httpx2.AsyncClient() as client:

        async def asked(chat: str) -> str | None:
            sent = await client.post(f"{fake.url}/messages", json={"chat": chat, "text": "hello"})
            return sent.headers.get("retry-after")

        assert [await asked("ann"), await asked("ann"), await asked("ann")] == ["60", "120", "240"]
        assert await asked("bob") is None


def _limited_everywhere(retry_after: float) -> FakeResponse:
    headers = {"retry-after": str(retry_after), "x-everywhere": "1"}
    return FakeResponse.of_json({}, status=429, headers=headers)


@asynccontextmanager
async def paced(fake: FakeExample, clock: FakeClock, **pace: object):
    rules = ExampleRules(fake.url, pace=SendingPace(**pace))  # type: ignore[arg-type]
    adapter = WebhookAdapter(rules, clock=clock)
    async with adapter.connect(Inbox()):
        yield adapter


async def test_a_known_pace_is_kept_and_a_long_wait_is_told(fake: FakeExample):
    clock = FakeClock()
    async with paced(fake, clock, chat_interval=timedelta(seconds=1.5)) as adapter:
        await adapter.send(ANN, HELLO, idempotency_key="1")
        await adapter.typing(ANN)  # nobody counts these
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: adapter.send(ANN, HELLO, idempotency_key="2"))
                await fake.wait_until(lambda: len(fake.calls) == 2)
                await anyio.sleep(0.05)
                assert len(fake.texts) == 1  # it waits
                with pytest.raises(RateLimitedError) as told:
                    await adapter.send(ANN, HELLO, idempotency_key="3")
                assert told.value.retry_after == 3
                assert await adapter.send(BOB, HELLO, idempotency_key="4") == "s2"
                await clock.advance(seconds=1.5)
        assert fake.texts == [("ann", "hello"), ("bob", "hello"), ("ann", "hello")]


async def test_the_pace_of_an_account_counts_all_its_chats(fake: FakeExample):
    clock = FakeClock()
    async with paced(fake, clock, per_second=0.1) as adapter:
        await adapter.send(ANN, HELLO, idempotency_key="1")
        with pytest.raises(RateLimitedError) as told:
            await adapter.send(BOB, HELLO, idempotency_key="2")
        assert told.value.retry_after == 10
        await clock.advance(seconds=10)
        await adapter.send(BOB, HELLO, idempotency_key="2")


async def test_pauses_without_a_length_grow_until_a_call_goes_well(fake: FakeExample):
    clock, asked = FakeClock(), list[float | None]()
    fake.limited = lambda retry_after: _limited_without_length()  # type: ignore[method-assign]
    async with paced(fake, clock) as adapter:
        for at in range(8):
            fake.faults.plan(RateLimit(0))
            with pytest.raises(RateLimitedError) as told:
                await adapter.send(ANN, HELLO, idempotency_key=str(at))
            asked.append(told.value.retry_after)
            await clock.advance(seconds=told.value.retry_after or 0)
        await adapter.send(ANN, HELLO, idempotency_key="well")
        fake.faults.plan(RateLimit(0))
        with pytest.raises(RateLimitedError) as told:
            await adapter.send(ANN, HELLO, idempotency_key="again")
    assert asked == [1, 2, 4, 8, 16, 32, 60, 60]
    assert told.value.retry_after == 1


def _limited_without_length() -> FakeResponse:
    return FakeResponse.of_json({}, status=429)


# Several calls


async def test_a_message_of_several_calls_goes_on_where_it_failed(fake: FakeExample, adapter: WebhookAdapter):
    photos = tuple(Attachment(kind=AttachmentKind.PHOTO, url=f"u{at}") for at in (1, 2))
    message = OutboundMessage(text="look", attachments=photos)
    fake.faults.plan(CutConnection.BEFORE, matches=lambda _, given: given["text"] == "u1")
    with pytest.raises(ConnectionError):
        await adapter.send(ANN, message, idempotency_key="1")
    assert await adapter.send(ANN, message, idempotency_key="1") == "s1"
    assert [text for _, text in fake.texts] == ["look", "u1", "u2"]


async def test_refused_markup_is_sent_plain(
    fake: FakeExample, adapter: WebhookAdapter, caplog: pytest.LogCaptureFixture
):
    await adapter.send(ANN, OutboundMessage(text="*good*"), idempotency_key="1")
    await adapter.send(ANN, OutboundMessage(text="**bad"), idempotency_key="2")
    assert [text for _, text in fake.texts] == ["*good*", "**bad"]
    assert len(fake.calls) == 3
    assert "a text is sent without its markup" in caplog.text


async def test_what_would_be_refused_is_not_sent(fake: FakeExample, adapter: WebhookAdapter):
    with pytest.raises(DeliveryRefusedError):
        await adapter.send(ANN, OutboundMessage(text="x" * 1001), idempotency_key="1")
    assert fake.calls == []


async def test_a_call_that_follows_is_not_lost_when_it_fails(fake: FakeExample):
    class Uploading(ExampleRules):
        def render(self, message, target, *, idempotency_key):  # type: ignore[no-untyped-def]
            def follow(answer: PlatformAnswer) -> ApiCall:
                return self._call("messages", target.chat_id, text=f"file {answer.status}")

            yet = ApiCall.of_form(f"{self.api_url}/upload", {"a": "b"}, name="upload", shows=False)
            return [replace(yet, then=follow)]

    adapter = WebhookAdapter(Uploading(fake.url))
    async with adapter.connect(Inbox()):
        fake.faults.plan(CutConnection.BEFORE, method="messages")
        with pytest.raises(ConnectionError):
            await adapter.send(ANN, HELLO, idempotency_key="1")
        assert await adapter.send(ANN, HELLO, idempotency_key="1") == "s1"
    assert [one.method for one in fake.calls] == ["upload", "messages"]
    assert fake.texts == [("ann", "file 200")]


# Tokens


async def test_a_token_is_fetched_once_and_renewed_when_it_has_ended(fake: FakeExample):
    adapter = WebhookAdapter(ExampleRules(fake.url, tokens=True))
    async with adapter.connect(Inbox()):
        async with anyio.create_task_group() as tasks:
            for at in range(5):
                tasks.start_soon(lambda at=at: adapter.send(ANN, HELLO, idempotency_key=str(at)))
        assert [one.method for one in fake.calls].count("token") == 1
        fake.token = "t2"
        await adapter.send(ANN, HELLO, idempotency_key="again")
    assert len(fake.texts) == 6


async def test_without_a_token_nothing_is_sent(fake: FakeExample):
    adapter = WebhookAdapter(ExampleRules(fake.url, tokens=True))
    async with adapter.connect(Inbox()):
        for fault in (CutConnection.AFTER, ServerFault(), RefusedCall(400, "no")):
            fake.faults.plan(fault, method="token")
            with pytest.raises(AdapterUnavailableError, match="gave no token"):
                await adapter.send(ANN, HELLO, idempotency_key="1")
        fake.faults.plan(RefusedCall(401, "no"), method="messages", times=ALWAYS)
        with pytest.raises(AdapterUnavailableError, match="401"):
            await adapter.send(ANN, HELLO, idempotency_key="1")
    assert [one.method for one in fake.calls].count("messages") == 2


# Before anything


async def test_an_account_that_does_not_work_is_told_at_the_start(fake: FakeExample):
    class Checked(ExampleRules):
        def check_call(self) -> ApiCall:
            return ApiCall(url=f"{self.api_url}/me", method="GET", name="me", shows=False)

    adapter = WebhookAdapter(Checked(fake.url), port=0)
    for fault in (RefusedCall(401, "who"), RefusedCall(403, "no"), CutConnection.BEFORE):
        fake.faults.plan(fault)
        with pytest.raises(AdapterUnavailableError):
            async with adapter.connect(Inbox()):
                pass
    async with adapter.connect(Inbox()):
        assert adapter.url.startswith("http://127.0.0.1:")
        assert await adapter.make(ApiCall(url=f"{fake.url}/me")) == {}


async def test_a_slow_answer_is_waited_for(fake: FakeExample, adapter: WebhookAdapter):
    begun = time.monotonic()
    fake.faults.plan(Delay(0.2))
    assert await adapter.send(ANN, HELLO, idempotency_key="1") == "s1"
    assert time.monotonic() - begun > 0.1


async def test_what_is_sent_without_a_connection_leaves_nothing_open(fake: FakeExample):
    adapter = WebhookAdapter(ExampleRules(fake.url))
    async with nothing_left():
        await adapter.send(ANN, HELLO, idempotency_key="k")
        await adapter.typing(ANN)
    assert "hello" in str(fake.texts)
