"""What a platform posts is safe before it hears so: on a port of our own, with real bytes on loopback."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from gateway_sessions.adapters import InboundMessage
from gateway_sessions.adapters.webhooks import DeliveryStatus, WebhookPort, WebhookServer
from gateway_sessions.adapters.webhooks.adapter import WebhookAdapter
from gateway_sessions.adapters.webhooks.engine import TAKEN
from gateway_sessions.core.queue.inbound import Receipt, Rejected, RejectReason
from gateway_sessions.errors import AdapterUnavailableError, InvalidInputError, StorageUnavailableError
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import CutConnection, ServerFault
from tests.integration.webhooks.example_world import FailingInbox, own_port
from tests.unit.adapters.webhooks.example_platform import SECRET, ExampleRules, FakeExample, signature

AWAY = StorageUnavailableError("sessions.db", "is away")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeExample]:
    async with FakeExample() as fake:
        yield fake


async def test_success_comes_after_the_message_is_stored(fake: FakeExample):
    inbox = Inbox()
    async with own_port(fake, inbox):
        inbox.open.clear()
        delivery = fake.says("ann", "hello", "you")
        await inbox.wait_for_call()
        assert delivery.attempts == []
        inbox.open.set()
        assert await fake.is_taken(delivery)
    assert [one.text for one in inbox.messages] == ["hello", "you"]
    assert (delivery.attempts[0].status, delivery.attempts[0].headers[TAKEN]) == (200, "durable")


async def test_what_the_store_does_not_take_comes_again(fake: FakeExample):
    inbox = FailingInbox(two=AWAY)
    async with own_port(fake, inbox):
        delivery = fake.says("ann", "one", "two", "three")
        assert await fake.is_taken(delivery)
    assert [one.status for one in delivery.attempts] == [503, 200]
    assert TAKEN not in delivery.attempts[0].headers
    assert delivery.attempts[0].headers["retry-after"] == "5"
    assert [one.text for one in inbox.messages] == ["one", "one", "two", "three"]


@pytest.mark.parametrize("failure", [AWAY, LookupError("a mistake"), OSError("no disk")])
async def test_no_failure_is_success(fake: FakeExample, failure: Exception):
    async with own_port(fake, FailingInbox(hello=failure)):
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        assert await fake.is_taken(delivery)


async def test_a_platform_gives_up_when_its_schedule_ends(fake: FakeExample):
    inbox = Inbox()
    inbox.failure = AWAY
    async with own_port(fake, inbox):
        delivery = fake.says("ann", "hello")
        assert not await fake.is_taken(delivery)
    assert [one.status for one in delivery.attempts] == [503] * 4


async def test_what_is_too_slow_to_store_comes_again(fake: FakeExample, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ExampleRules, "answer_seconds", 0.05)
    inbox = Inbox()
    async with own_port(fake, inbox):
        inbox.open.clear()
        delivery = fake.says("ann", "hello")
        assert (await fake.settle(delivery)).status == 503
        inbox.open.set()
        assert await fake.is_taken(delivery)


async def test_a_rejected_message_is_settled_unless_the_gateway_is_about_to_end(fake: FakeExample):
    answers = [
        Rejected(reason=RejectReason.DRAINING, text="wait", retry_after=1),
        Rejected(reason=RejectReason.BUSY, text="busy", retry_after=1),
    ]

    async def submit(message: InboundMessage) -> Receipt:
        return answers.pop(0)

    adapter = WebhookAdapter(ExampleRules(fake.url), port=0)
    async with adapter.connect(submit):
        fake.webhook_url = adapter.url
        delivery = fake.says("ann", "hello")
        assert await fake.is_taken(delivery)
    assert [one.status for one in delivery.attempts] == [503, 200]


@pytest.mark.parametrize("stranger", [{}, {"x-signature": "of somebody else"}])
async def test_the_operator_is_told_once_why_requests_are_refused(
    fake: FakeExample, stranger: dict[str, str], caplog: pytest.LogCaptureFixture
):
    refused = {"x-signature": "", **stranger}
    async with own_port(fake, Inbox()):
        for headers in (refused, refused, {}, refused):
            await fake.settle(fake.deliver({"events": []}, headers=headers))
    told = [one for one in caplog.records if getattr(one, "action", "") == "webhook_forged"]
    assert len(told) == 2, "once, and once more after a genuine request"
    assert "if example made it, correct its secret" in told[0].getMessage()


# What cannot be read


async def test_what_cannot_be_read_is_put_aside_and_the_rest_goes_on(fake: FakeExample, tmp_path: Path):
    inbox = FailingInbox(odd=InvalidInputError("too odd for a store"))
    async with own_port(fake, inbox, unreadable=tmp_path / "aside"):
        good = {"id": "m", "chat": "ann", "text": "hello"}
        odd = {"id": "o", "chat": "ann", "text": "odd"}
        first = fake.deliver({"events": [7, odd, good]})
        assert await fake.is_taken(first)
        assert first.attempts[0].headers[TAKEN] == "durable"
        for body in (b"\xff", b"[" * 10_000, b'{"events": ["crash"]}'):
            assert await fake.is_taken(fake.deliver(body))
    assert [one.text for one in inbox.messages] == ["hello"]
    kept = [json.loads(one.read_text()) for one in (tmp_path / "aside").iterdir()]
    assert len(kept) == 5
    assert {"no event", "too odd for a store"} <= {one["problem"].partition(": ")[2] for one in kept}


async def test_without_a_folder_what_cannot_be_read_is_logged_and_the_platform_goes_on(
    fake: FakeExample, caplog: pytest.LogCaptureFixture
):
    async with own_port(fake, Inbox()):
        delivery = fake.deliver({"events": [7]})
        assert await fake.is_taken(delivery)
    assert delivery.attempts[0].headers[TAKEN] == "logged"
    assert "no event" in caplog.text


async def test_what_cannot_be_kept_either_comes_again(fake: FakeExample, tmp_path: Path):
    folder = tmp_path / "aside"
    folder.write_text("no folder")
    async with own_port(fake, Inbox(), unreadable=folder):
        delivery = fake.deliver({"events": [7]})
        assert (await fake.settle(delivery)).status == 503
        folder.unlink()
        assert await fake.is_taken(delivery)


async def test_what_became_of_messages_is_told(fake: FakeExample, caplog: pytest.LogCaptureFixture):
    told: list[DeliveryStatus] = []

    async def listen(status: DeliveryStatus) -> None:
        told.append(status)
        raise LookupError(status.message_id)

    async with own_port(fake, Inbox(), on_status=listen):
        events = [
            {"id": "s1", "status": "sent"},
            {"id": "s2", "status": "failed", "why": "the number is gone"},
        ]
        assert await fake.is_taken(fake.deliver({"events": [*events, {"joined": True}]}))
    assert [one.message_id for one in told] == ["s1", "s2"]
    assert "will not be shown: the number is gone" in caplog.text
    assert "a listener for delivery statuses failed" in caplog.text


async def test_nobody_needs_to_listen_for_what_became_of_messages(fake: FakeExample):
    async with own_port(fake, Inbox()):
        assert await fake.is_taken(fake.deliver({"events": [{"id": "s1", "status": "failed"}]}))


# Strangers


async def test_a_stranger_learns_nothing(fake: FakeExample):
    inbox = Inbox()
    async with own_port(fake, inbox) as adapter, httpx2.AsyncClient() as client:
        body = b'{"events": [{"id": "1", "chat": "ann", "text": "hi"}]}'
        answers = [
            await client.post(adapter.url, content=body),
            await client.post(adapter.url, content=body, headers={"x-signature": signature(body + b" ")}),
            await client.post(f"{adapter.url}/else", content=body, headers={"x-signature": signature(body)}),
            await client.put(adapter.url, content=body, headers={"x-signature": signature(body)}),
            await client.get(adapter.url, params={"secret": "guess", "challenge": "7"}),
        ]
    assert [one.status_code for one in answers] == [401, 401, 404, 405, 401]
    assert all(TAKEN not in one.headers for one in answers)
    assert answers[3].headers["allow"] == "GET, POST"
    assert inbox.calls == 0


async def test_a_challenge_is_answered(fake: FakeExample):
    async with own_port(fake, Inbox()) as adapter, httpx2.AsyncClient() as client:
        answer = await client.get(f"{adapter.url}/", params={"secret": SECRET, "challenge": "7"})
    assert (answer.status_code, answer.text) == (200, "7")


async def test_what_is_too_large_is_not_read(fake: FakeExample):
    async with own_port(fake, Inbox()) as adapter, httpx2.AsyncClient() as client:
        large = b" " * (ExampleRules.max_body + 1)
        answer = await client.post(adapter.url, content=large, headers={"x-signature": signature(large)})
    assert answer.status_code == 413


async def test_keys_are_fetched_once_for_many_requests_and_not_for_every_guess(fake: FakeExample):
    inbox = Inbox()
    async with own_port(fake, inbox):
        body = {"events": [{"id": "1", "chat": "ann", "text": "hi"}]}
        many = [fake.deliver(body, headers={"x-key": "k1"}) for _ in range(5)]
        for one in many:
            assert await fake.is_taken(one)
        guesses = [fake.deliver(body, headers={"x-key": f"guess{at}"}) for at in range(5)]
        for one in guesses:
            assert (await fake.settle(one)).status == 401
    assert [one.method for one in fake.calls].count("keys") <= 2


async def test_while_keys_cannot_be_fetched_the_platform_delivers_again(fake: FakeExample):
    async with own_port(fake, Inbox()):
        fake.faults.plan(CutConnection.BEFORE, method="keys")
        fake.faults.plan(ServerFault(), method="keys")
        delivery = fake.deliver({"events": []}, headers={"x-key": "k1"})
        assert await fake.is_taken(delivery)
    assert [one.status for one in delivery.attempts] == [503, 503, 200]


# Ports


async def test_several_webhooks_share_a_port(fake: FakeExample):
    inboxes = [Inbox(), Inbox()]
    adapters = [WebhookAdapter(ExampleRules(fake.url), name=name) for name in ("", "sales")]
    assert [one.path for one in adapters] == ["/example", "/example/sales"]
    async with WebhookServer(*adapters, port=WebhookPort(0)).listening() as server:
        assert server.address is not None
        fake.webhook_url = f"http://127.0.0.1:{server.address[1]}"
        event = {"events": [{"id": "1", "chat": "ann", "text": "hi"}]}
        early = fake.deliver(event, path="/example/sales")
        assert (await fake.settle(early)).status == 503  # nobody is connected yet
        async with adapters[0].connect(inboxes[0]), adapters[1].connect(inboxes[1]):
            assert await fake.is_taken(early)
            assert await fake.is_taken(fake.deliver(event, path="/example"))
    assert [len(one.messages) for one in inboxes] == [1, 1]


def test_two_webhooks_need_two_paths():
    adapters = [WebhookAdapter(ExampleRules()) for _ in range(2)]
    with pytest.raises(InvalidInputError, match="two webhooks have the path '/example'"):
        WebhookServer(*adapters)
    with pytest.raises(InvalidInputError, match="there is no webhook"):
        WebhookServer()
    with pytest.raises(InvalidInputError, match="must begin with a slash"):
        WebhookAdapter(ExampleRules(), path="hook")


async def test_a_taken_port_is_told(fake: FakeExample):
    async with own_port(fake, Inbox()) as adapter:
        assert adapter.address is not None
        other = WebhookAdapter(ExampleRules(), port=adapter.address[1])
        with pytest.raises(AdapterUnavailableError, match="cannot listen at"):
            async with other.connect(Inbox()):
                pass
        with pytest.raises(AdapterUnavailableError, match="does not listen"):
            assert other.url


async def test_logs_say_what_comes_again(fake: FakeExample, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        async with own_port(fake, FailingInbox(hello=AWAY)):
            assert await fake.is_taken(fake.says("ann", "hello"))
    assert "a webhook was not taken, and will come again: sessions.db" in caplog.text
