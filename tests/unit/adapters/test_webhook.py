"""What a webhook takes and refuses, over real sockets, and what becomes of its replies."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions._process.streams import accept_connection
from gateway_sessions.adapters import _http
from gateway_sessions.adapters import webhook as webhook_module
from gateway_sessions.adapters.webhook import Webhook, WebhookSettings
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget, TextFormat
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Attachment,
    AttachmentKind,
    Disposition,
    Duplicate,
    InboundMessage,
    MessageKind,
    Receipt,
    Rejected,
    RejectReason,
    ReplyTo,
)
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.testing import FakeClock
from tests.contract.webhook_bench import SECRET, WebhookBench

BODY = b'{"source": {"chat_id": "desk"}, "text": "hello"}'
TARGET = ReplyTarget(platform="webhook", chat_id="desk", reply_to="m1", metadata={"ticket": 7})
ACCEPTED = Accepted(seq=3, session_key="k", session_id="s", disposition=Disposition.QUEUED, depth=2)


class Gateway:
    """Gives the receipt, or the error, that a test wants."""

    def __init__(self) -> None:
        self.result: Receipt | Exception = ACCEPTED
        self.messages: list[InboundMessage] = []

    async def __call__(self, message: InboundMessage) -> Receipt:
        self.messages.append(message)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock("2026-06-10T12:00:00+00:00")


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
async def bench(clock: FakeClock) -> AsyncIterator[WebhookBench]:
    async with WebhookBench(clock=clock).listening() as bench:
        yield bench


@pytest.fixture
async def connected(bench: WebhookBench, gateway: Gateway) -> AsyncIterator[WebhookBench]:
    """Within one task, as a connection has to be; the two halves of a fixture run in different ones."""
    opened, closing = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with bench.adapter.connect(gateway):
            opened.set()
            await closing.wait()

    holding = asyncio.create_task(hold())
    await opened.wait()
    yield bench
    closing.set()
    await holding


async def post(bench: WebhookBench, body: bytes = BODY, **options: Any) -> tuple[int, bytes]:
    """Post it, signed."""
    headers = bench.signer.headers("w1", body, bench.clock.now()) | options.pop("headers", {})
    return await bench.post(body, headers, **options)


# Messages


async def test_a_message_is_read_with_all_that_it_says(connected: WebhookBench, gateway: Gateway):
    body = json.dumps(
        {
            "source": {
                "chat_id": "room",
                "chat_name": "Room",
                "chat_type": "group",
                "user_id": "ann",
                "user_name": "Ann",
                "thread_id": "t",
                "is_bot": True,
            },
            "text": "look",
            "message_id": "m1",
            "kind": "edit",
            "revision": 2,
            "sent_at": "2026-06-10T11:59:00Z",
            "attachments": [
                {"kind": "photo", "url": "https://host/a.png", "media_type": "image/png", "size": 5}
            ],
            "reply_to": {"message_id": "m0", "own": True},
            "metadata": {"ticket": 7},
        }
    ).encode()
    assert (await post(connected, body))[0] == 202
    assert gateway.messages == [
        InboundMessage(
            source=SessionSource(
                platform="webhook",
                chat_id="room",
                chat_name="Room",
                chat_type="group",
                user_id="ann",
                user_name="Ann",
                thread_id="t",
                is_bot=True,
            ),
            text="look",
            message_id="m1",
            kind=MessageKind.EDIT,
            revision=2,
            sent_at=datetime(2026, 6, 10, 11, 59, tzinfo=UTC),
            attachments=(
                Attachment(
                    kind=AttachmentKind.PHOTO, url="https://host/a.png", media_type="image/png", size=5
                ),
            ),
            reply_to=ReplyTo(message_id="m0", own=True),
            metadata={"ticket": 7},
        )
    ]


async def test_a_message_without_an_id_has_that_of_its_request(connected: WebhookBench, gateway: Gateway):
    await post(connected)
    await post(connected)
    assert [one.message_id for one in gateway.messages] == ["w1", "w1"]


async def test_several_webhooks_have_names_and_platforms(gateway: Gateway, clock: FakeClock):
    settings = WebhookSettings(secrets=[SECRET], callback_url="http://127.0.0.1:9/", port=0)
    bench = WebhookBench(clock=clock)
    bench.adapter = Webhook(settings, name="shop", platform=" Shop ", clock=clock)
    async with bench.adapter.connect(gateway):
        await post(bench)
    assert (gateway.messages[0].source.platform, gateway.messages[0].account) == ("shop", "shop")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b'{"source": {"chat_id": 5}}',
        b'{"source": {"chat_id": "a"}, "txet": "typo"}',
        b'{"source": {"chat_id": "a", "platform": "telegram"}}',
        b'{"source": {"chat_id": "a"}, "internal": true}',
        b'{"source": {"chat_id": "a\\u0000"}}',
        b'{"source": {"chat_id": "a"}, "text": "\\ud800"}',
        b'{"source": {"chat_id": "a"}, "text": "\xff"}',
        b'{"source": {"chat_id": "a"}, "kind": "rumour"}',
        b'{"source": {"chat_id": "a"}, "kind": "delete"}',
        b'{"source": {"chat_id": "a"}, "message_id": ""}, "kind": "edit"}',
        b'{"source": {"chat_id": "a"}, "sent_at": "yesterday"}',
        b'{"source": {"chat_id": "a"}, "metadata": {"a": ' + b"[" * 9000 + b"]" * 9000 + b"}}",
    ],
)
async def test_what_is_no_message_is_told_so(connected: WebhookBench, gateway: Gateway, body: bytes):
    status, answer = await post(connected, body)
    assert status == 422
    assert json.loads(answer)["error"]
    assert gateway.messages == []


async def test_what_is_no_message_is_kept_where_its_sender_would_bring_nothing_else(
    clock: FakeClock, gateway: Gateway, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    aside = tmp_path / "unreadable"
    async with (
        WebhookBench(clock=clock, unreadable=aside).listening() as bench,
        bench.adapter.connect(gateway),
    ):
        for _ in range(2):
            status, answer = await post(bench, b'{"source": 5, "text": "\xff"}')
            assert (status, json.loads(answer)["receipt"]) == (200, "put_aside")
        gateway.result = InvalidInputError("no identifier")
        assert (await post(bench))[0] == 200
        gateway.result = StorageUnavailableError("sessions.db", "is away")
        assert (await post(bench))[0] == 503
    kept = [json.loads(one.read_text("utf-8")) for one in sorted(aside.iterdir())]
    bodies = {one["update"]["body"] for one in kept}
    assert bodies == {BODY.decode(), '{"source": 5, "text": "\ufffd"}'}
    assert {one["update"]["id"] for one in kept} == {"w1"}
    assert len([one for one in caplog.records if getattr(one, "action", "") == "update_put_aside"]) == 3


async def test_what_can_be_kept_nowhere_stays_with_its_sender(
    clock: FakeClock, gateway: Gateway, tmp_path: Path
):
    (tmp_path / "file").touch()
    async with (
        WebhookBench(clock=clock, unreadable=tmp_path / "file" / "no").listening() as bench,
        bench.adapter.connect(gateway),
    ):
        assert (await post(bench, b"hello"))[0] == 503


async def test_what_is_refused_for_good_is_logged(connected: WebhookBench, caplog: pytest.LogCaptureFixture):
    assert (await post(connected, b"hello"))[0] == 422
    assert [getattr(one, "action", "") for one in caplog.records] == ["webhook_unreadable"]


async def test_a_problem_is_named(connected: WebhookBench):
    _, answer = await post(connected, b'{"source": {"chat_id": "a"}, "revision": "two"}')
    assert json.loads(answer) == {"error": "Expected `int`, got `str` - at `$.revision`"}


# Receipts


def rejected(reason: RejectReason, retry_after: float | None = None) -> Rejected:
    return Rejected(reason=reason, text="not now", retry_after=retry_after, session_key="k")


@pytest.mark.parametrize(
    ("result", "status", "told"),
    [
        (
            ACCEPTED,
            202,
            {"receipt": "accepted", "seq": 3, "session_id": "s", "disposition": "queued", "depth": 2},
        ),
        (Duplicate(seq=3, session_key="k"), 200, {"receipt": "duplicate", "seq": 3}),
        (rejected(RejectReason.BUSY), 429, {"receipt": "rejected", "reason": "busy", "text": "not now"}),
        (rejected(RejectReason.QUEUE_FULL), 429, {"reason": "queue_full"}),
        (rejected(RejectReason.OVERLOADED), 429, {"reason": "overloaded"}),
        (rejected(RejectReason.TOO_LARGE), 413, {"reason": "too_large"}),
        (rejected(RejectReason.DRAINING), 503, {"reason": "draining"}),
        (rejected(RejectReason.ERASED), 410, {"reason": "erased"}),
        (rejected(RejectReason.NOT_ALLOWED), 403, {"reason": "not_allowed"}),
        (rejected(RejectReason.EMPTY), 422, {"reason": "empty"}),
        (rejected(RejectReason.UNKNOWN), 422, {"reason": "unknown"}),
    ],
)
async def test_a_message_is_answered_with_its_receipt(
    connected: WebhookBench, gateway: Gateway, result: Receipt, status: int, told: dict[str, Any]
):
    gateway.result = result
    answered, answer = await post(connected)
    assert answered == status
    assert json.loads(answer).items() >= told.items()
    assert "content-type: application/json" in connected.head
    assert "retry-after" not in connected.head


def test_every_reason_has_its_status():
    assert {webhook_module.response_to_receipt(rejected(one)).status for one in RejectReason} <= set(
        range(400, 600)
    )


async def test_whoever_has_to_wait_is_told_how_long(connected: WebhookBench, gateway: Gateway):
    gateway.result = rejected(RejectReason.QUEUE_FULL, 2.1)
    assert (await post(connected))[0] == 429
    assert "retry-after: 3\r\n" in connected.head


async def test_a_store_that_is_away_keeps_the_message_with_its_sender(
    connected: WebhookBench, gateway: Gateway, caplog: pytest.LogCaptureFixture
):
    gateway.result = StorageUnavailableError("sessions.db", "is locked")
    assert await post(connected) == (503, b"")
    assert "retry-after: 5\r\n" in connected.head
    assert caplog.records == []


async def test_a_mistake_of_ours_is_logged_and_keeps_the_message_with_its_sender(
    connected: WebhookBench, gateway: Gateway, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    gateway.result = ZeroDivisionError("a secret detail")
    assert await post(connected) == (503, b"")
    assert [getattr(one, "action", None) for one in caplog.records] == ["webhook_failed"]


async def test_a_source_that_is_refused_is_the_senders_mistake(connected: WebhookBench, gateway: Gateway):
    gateway.result = InvalidInputError("no identifier")
    assert await post(connected) == (422, b'{"error":"no identifier"}')


async def test_a_store_that_hangs_is_not_waited_for_for_ever(
    bench: WebhookBench, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(webhook_module, "SUBMIT_SECONDS", 0.01)

    async def hang(message: InboundMessage) -> Receipt:
        await asyncio.sleep(60)
        return ACCEPTED

    async with bench.adapter.connect(hang):
        assert (await post(bench))[0] == 503


# Requests


@pytest.mark.parametrize(
    ("first", "status"),
    [
        ("GET /messages HTTP/1.1", 405),
        ("PUT /messages HTTP/1.1", 405),
        ("POST / HTTP/1.1", 404),
        ("POST /messages/ HTTP/1.1", 404),
        ("POST /messages?a=b HTTP/1.1", 202),
        ("POST /messages", 400),
    ],
)
async def test_only_posts_to_its_path_are_messages(connected: WebhookBench, first: str, status: int):
    assert (await post(connected, first=first))[0] == status
    assert status != 405 or "allow: post\r\n" in connected.head


@pytest.mark.parametrize(
    "headers",
    [
        {"webhook-signature": ""},
        {"webhook-signature": "v1,AAAA"},
        {"webhook-timestamp": "1"},
        {"webhook-id": "w2"},
        {"webhook-id": ""},
    ],
)
async def test_nothing_of_a_stranger_is_taken(
    connected: WebhookBench, gateway: Gateway, headers: dict[str, str]
):
    assert await post(connected, headers=headers) == (401, b"")
    assert gateway.messages == []


async def test_a_request_is_good_for_some_minutes_only(
    connected: WebhookBench, gateway: Gateway, clock: FakeClock
):
    headers = connected.signer.headers("w1", BODY, clock.now())
    clock.step(minutes=5)
    assert (await connected.post(BODY, headers))[0] == 202
    clock.step(seconds=1)
    assert (await connected.post(BODY, headers))[0] == 401


@pytest.mark.parametrize("claimed", [None, "1048577", "999999999999"])
async def test_a_body_that_is_too_large_is_not_even_read(
    connected: WebhookBench, gateway: Gateway, claimed: str | None
):
    body = b" " * (1 << 20) + BODY
    options = {"headers": {"content-length": claimed}} if claimed else {}
    status, answer = await post(connected, body, **options)
    assert (status, answer) == (413, b"a body may have 1048576 bytes")
    assert gateway.messages == []


async def test_a_limit_can_be_set(gateway: Gateway, clock: FakeClock):
    bench = WebhookBench(clock=clock)
    bench.adapter = Webhook(
        WebhookSettings(secrets=[SECRET], callback_url="http://host/", port=0, max_body=len(BODY)),
        clock=clock,
    )
    async with bench.adapter.connect(gateway):
        assert (await post(bench))[0] == 202
        assert (await post(bench, BODY + b" "))[0] == 413


async def test_whoever_says_nothing_loses_its_place(
    bench: WebhookBench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_http, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(_http, "ARRIVAL_SECONDS", 0.25)
    async with bench.adapter.connect(gateway):
        assert bench.adapter.address is not None
        silent = [await asyncio.open_connection(*bench.adapter.address) for _ in range(2)]
        assert (await post(bench))[0] == 202
        for reader, writer in silent:
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()


async def test_whoever_leaves_in_the_middle_disturbs_nobody(connected: WebhookBench, gateway: Gateway):
    assert connected.adapter.address is not None
    for begun in (b"", b"POST /mess", b"POST /messages HTTP/1.1\r\ncontent-length: 9\r\n\r\nhi"):
        _, writer = await asyncio.open_connection(*connected.adapter.address)
        writer.write(begun)
        writer.close()
        await writer.wait_closed()
    assert (await post(connected))[0] == 202
    assert len(gateway.messages) == 1


async def test_it_goes_on_when_nobody_could_be_let_in_for_a_moment(
    bench: WebhookBench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_http, "PAUSE_SECONDS", 0)
    failures = [OSError(24, "too many open files")]

    async def fail_once(listener: socket.socket) -> socket.socket:
        if failures:
            raise failures.pop()
        return await accept_connection(listener)

    monkeypatch.setattr(_http, "accept_connection", fail_once)
    async with bench.adapter.connect(gateway):
        assert (await post(bench))[0] == 202
    assert failures == []


async def test_an_address_that_is_taken_is_told(connected: WebhookBench, clock: FakeClock):
    assert connected.adapter.address is not None
    host, port = connected.adapter.address
    settings = WebhookSettings(secrets=[SECRET], callback_url="http://host/", host=host, port=port)
    with pytest.raises(AdapterUnavailableError, match=f"cannot listen at 127.0.0.1:{port}"):
        async with Webhook(settings, clock=clock).connect(Gateway()):
            pass


@pytest.mark.parametrize(
    ("host", "family"),
    [
        ("127.0.0.1", socket.AF_INET),
        ("localhost", socket.AF_INET),
        ("::1", socket.AF_INET6),
        ("::", socket.AF_INET6),
    ],
)
def test_it_listens_on_the_kind_of_address_it_is_given(
    monkeypatch: pytest.MonkeyPatch, host: str, family: socket.AddressFamily
):
    asked: list[Any] = []
    with socket.socket() as stand_in:
        monkeypatch.setattr(
            socket, "create_server", lambda address, **options: asked.append((address, options)) or stand_in
        )
        assert _http.listening_socket(host, 7) is stand_in
        assert not stand_in.getblocking()
    assert [(address, options["family"]) for address, options in asked] == [((host, 7), family)]


async def test_a_webhook_that_waits_does_not_hold_up_a_fake_clock(gateway: Gateway, clock: FakeClock):
    settings = WebhookSettings(secrets=[SECRET], callback_url="http://host/", port=0)
    async with Webhook(settings, clock=clock).connect(gateway), asyncio.timeout(2):
        await clock.advance(hours=1)


# Replies


async def send(bench: WebhookBench, text: str = "hi", key: str = "reply:7") -> str | None:
    return await bench.adapter.send(TARGET, OutboundMessage(text=text), idempotency_key=key)


async def test_a_reply_says_what_and_where_to(bench: WebhookBench):
    message = OutboundMessage(text="**hi**", format=TextFormat.MARKDOWN, is_notice=True)
    assert await bench.adapter.send(TARGET, message, idempotency_key="reply:7") == "r0"
    ((headers, body),) = bench.told
    assert json.loads(body) == {
        "target": {"platform": "webhook", "chat_id": "desk", "reply_to": "m1", "metadata": {"ticket": 7}},
        "message": {"text": "**hi**", "format": "markdown", "is_notice": True},
    }
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == "reply:7"
    assert headers["webhook-timestamp"] == str(int(bench.clock.now().timestamp()))


async def test_a_key_that_no_header_can_hold_stands_there_in_another_form(bench: WebhookBench):
    for key in ("a b", "a b", "ä"):
        await send(bench, key=key)
    first, again, other = (headers["webhook-id"] for headers, _ in bench.told)
    assert first == again != other
    assert len(first) == 64


@pytest.mark.parametrize(
    ("answer", "error", "told"),
    [
        ("429 Slow Down\r\nretry-after: 7.5\r\n", RateLimitedError, 7.5),
        ("429 Slow Down\r\n", RateLimitedError, None),
        ("429 Slow Down\r\nretry-after: Wed, 10 Jun 2026 12:00:00 GMT\r\n", RateLimitedError, None),
        ("429 Slow Down\r\nretry-after: -1\r\n", RateLimitedError, None),
        ("429 Slow Down\r\nretry-after: nan\r\n", RateLimitedError, None),
        ("503 Later\r\nretry-after: 9\r\n", RateLimitedError, 9),
        ("503 Later\r\n", AdapterUnavailableError, "status 503"),
        ("301 Moved\r\nlocation: /\r\n", DeliveryRefusedError, "status 301"),
        ("400 No\r\n", DeliveryRefusedError, "status 400"),
        ("410 Gone\r\n", DeliveryRefusedError, "status 410"),
        ("500 Oops\r\n", ConnectionError, "status 500"),
        ("502 Oops\r\n", ConnectionError, "status 502"),
    ],
)
async def test_a_receiver_that_does_not_take_a_reply_says_why(
    bench: WebhookBench, answer: str, error: type[Exception], told: object
):
    bench.answer = answer
    with pytest.raises(error) as failure:
        await send(bench)
    if isinstance(failure.value, RateLimitedError):
        assert failure.value.retry_after == told
    else:
        assert str(told) in str(failure.value)


@pytest.mark.parametrize(
    ("answer", "message_id"),
    [
        ("204 No Content\r\n", None),
        ("200 OK\r\ncontent-length: 2\r\n\r\nok", None),
        ('200 OK\r\n\r\n{"message_id": 7}', None),
        ('200 OK\r\n\r\n{"message_id": "\xff"}', None),
        ('200 OK\r\n\r\n{"message_id": "r7", "more": 1}', "r7"),
        ("200 OK\r\n\r\n{}", None),
    ],
)
async def test_a_receiver_need_not_say_much(bench: WebhookBench, answer: str, message_id: str | None):
    bench.answer = answer
    assert await send(bench) == message_id


async def test_a_receiver_that_is_away_has_certainly_nothing(clock: FakeClock):
    async with WebhookBench(clock=clock).listening() as bench:
        pass
    with pytest.raises(AdapterUnavailableError, match="cannot be reached"):
        await send(bench)


async def test_a_receiver_is_spoken_to_in_private_where_its_address_says_so(clock: FakeClock):
    async with WebhookBench(clock=clock).listening() as bench:
        url = f"https://127.0.0.1:{bench.port}/"
    adapter = Webhook(WebhookSettings(secrets=[SECRET], callback_url=url), clock=clock)
    for _ in range(2):
        with pytest.raises(AdapterUnavailableError):
            await adapter.send(TARGET, OutboundMessage(text="hi"), idempotency_key="k")


@pytest.mark.parametrize(
    "settings",
    [
        {"secrets": ["short"]},
        {"callback_url": "ftp://host/"},
        {"path": "messages"},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]):
    good: dict[str, Any] = {"secrets": [SECRET], "callback_url": "http://host/"}
    with pytest.raises(InvalidInputError):
        Webhook(WebhookSettings(**good | settings))


def test_a_secret_is_not_shown():
    assert SECRET not in repr(WebhookSettings(secrets=[SECRET], callback_url="http://host/"))
