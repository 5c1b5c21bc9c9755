"""A number on WhatsApp with a gateway, on a fake WhatsApp: conversations, choices, files, reports, faults."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    Button,
    OutboundMessage,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.webhooks import DeliveryState, DeliveryStatus
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.whatsapp import WhatsApp
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection
from gateway_sessions.testing.fakes.whatsapp import FakeWhatsApp, graph_error
from tests.contract.platforms.whatsapp_bench import VERIFY_TOKEN, settings_for
from tests.integration.gateway.gateway_harness import QUICK

HELLO = OutboundMessage(text="hello")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeWhatsApp]:
    async with FakeWhatsApp() as fake:
        fake.person("ann")
        yield fake


@asynccontextmanager
async def connected(fake: FakeWhatsApp, inbox: Inbox, **options: Any) -> AsyncGenerator[WhatsApp]:
    adapter = WhatsApp(settings_for(fake), port=0, **options)
    async with adapter.connect(inbox):
        fake.webhook_url = adapter.url
        yield adapter


@asynccontextmanager
async def talking(fake: FakeWhatsApp, **options: Any) -> AsyncGenerator[tuple[WhatsApp, ReplyTarget]]:
    """Let ann write, and yield the target of an answer."""
    inbox = Inbox()
    async with connected(fake, inbox, **options) as adapter:
        fake.says("ann", "hi")
        (message,) = await inbox.wait_for(1)
        yield adapter, ReplyTarget.answering(message)


def shown(fake: FakeWhatsApp) -> list[dict[str, Any]]:
    return fake.person("ann").shown


# With a gateway


async def test_a_conversation_goes_both_ways(fake: FakeWhatsApp, tmp_path: Path):
    async def agent(turn: TurnContext) -> Reply:
        if turn.messages[0].action is not None:
            return Reply(f"You chose {turn.messages[0].action}")
        return Reply(
            f"You said **{turn.text}**.", format=TextFormat.MARKDOWN, buttons=(Button("Yes", "y:1"),)
        )

    adapter = WhatsApp(settings_for(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        assert await fake.is_taken(fake.says("ann", "hello"))
        await fake.wait_until(lambda: fake.texts("ann"))
        assert fake.texts("ann") == ["You said *hello*."]
        question = shown(fake)[0]
        assert (question["to"], question["recipient"]) == (
            fake.person("ann").phone,
            fake.person("ann").user_id,
        )
        assert question["context"] == {"message_id": "wamid.000001"}
        fake.presses("ann", "Yes")
        await fake.wait_until(lambda: len(fake.texts("ann")) == 2)
        assert fake.texts("ann")[1] == "You chose y:1"
        key = f"agent:main:whatsapp:dm:{fake.person('ann').user_id}"
        assert await store.peek_session_id(key) is not None


async def test_a_person_who_hides_the_number_goes_on_in_the_same_session(fake: FakeWhatsApp, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        return str(len([one for one in await turn.history() if one["role"] == "user"]))

    adapter = WhatsApp(settings_for(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.says("ann", "one")
        await fake.wait_until(lambda: fake.texts("ann") == ["1"])
        fake.person("ann").hides_phone = True
        fake.says("ann", "two")
        await fake.wait_until(lambda: fake.texts("ann") == ["1", "2"])
        assert "to" not in shown(fake)[1]


async def test_what_the_store_does_not_take_comes_again_for_days(fake: FakeWhatsApp):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with connected(fake, inbox):
        delivery = fake.says("ann", "hello")
        await fake.wait_until(lambda: len(delivery.attempts) >= 2)
        inbox.failure = None
        assert await fake.is_taken(delivery)
    assert [one.text for one in inbox.messages] == ["hello"]


async def test_meta_is_answered_when_the_webhook_is_set_up(fake: FakeWhatsApp):
    async with connected(fake, Inbox()) as adapter, httpx2.AsyncClient() as client:
        asked = {"hub.mode": "subscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "1158201444"}
        answer = await client.get(adapter.url, params=asked)
        assert (answer.status_code, answer.text) == (200, "1158201444")
        assert (await client.get(adapter.url, params={**asked, "hub.verify_token": "x"})).status_code == 401


# Out


async def test_buttons_are_buttons_a_list_or_words(fake: FakeWhatsApp):
    async with talking(fake) as (adapter, target):

        async def ask(text: str, *buttons: Button) -> list[dict[str, Any]]:
            before = len(shown(fake))
            message = OutboundMessage(text=text, buttons=buttons)
            await adapter.send(target, message, idempotency_key=f"{before}")
            return shown(fake)[before:]

        (three,) = await ask("Sure?", *map(Button, "abc"))
        assert three["interactive"]["type"] == "button"
        (listed,) = await ask("Which?", *(Button(f"{at} is a label with many words") for at in range(4)))
        row = listed["interactive"]["action"]["sections"][0]["rows"][0]
        assert (len(row["title"]), row["description"]) == (24, "0 is a label with many words")
        (many,) = await ask("Which?", *(Button(f"b{at}") for at in range(12)))
        assert len(many["interactive"]["action"]["sections"][0]["rows"]) == 10
        assert many["interactive"]["body"]["text"] == "Which?\n- b10\n- b11"
        (link,) = await ask("See", Button("Our site", url="https://example.org"))
        assert link["interactive"]["type"] == "cta_url"
        (mixed,) = await ask("See", Button("Site", url="https://example.org"), Button("No"))
        assert mixed["interactive"]["body"]["text"] == "See\n- Site: https://example.org"
        (words,) = await ask("See", *(Button(f"s{at}", url=f"https://{at}.example") for at in range(2)))
        assert words["text"]["body"] == "See\n- s0: https://0.example\n- s1: https://1.example"
        long, question = await ask("x" * 3000, Button("Yes"))
        assert (len(long["text"]["body"]), question["interactive"]["body"]["text"]) == (3000, "…")
        with pytest.raises(DeliveryRefusedError, match="200 characters"):
            await ask("?", Button("Yes", "v" * 201))


async def test_files_go_by_address_by_id_and_by_content(fake: FakeWhatsApp):
    async with talking(fake) as (adapter, target):
        files = (
            Attachment(kind=AttachmentKind.PHOTO, url="https://example.org/a.png"),
            Attachment(kind=AttachmentKind.DOCUMENT, url="data:text/plain;base64,aGVsbG8=", name="a.txt"),
            Attachment(kind=AttachmentKind.LOCATION, url="geo:48.1,11.5", name="Pub"),
        )
        await adapter.send(target, OutboundMessage(text="look", attachments=files), idempotency_key="1")
        text, photo, document, place = shown(fake)
        assert (text["text"]["body"], photo["image"]) == ("look", {"link": "https://example.org/a.png"})
        stored = fake.files[document["document"]["id"]]
        assert (stored.content, stored.media_type) == (b"hello", "text/plain")
        assert document["document"]["filename"] == "a.txt"
        assert place["location"] == {"latitude": "48.1", "longitude": "11.5", "name": "Pub"}
        keys = [one["biz_opaque_callback_data"] for one in shown(fake)]
        assert keys == ["1#1", "1#2", "1#3", "1"]
        again = Attachment(kind=AttachmentKind.DOCUMENT, url=f"whatsapp:{document['document']['id']}")
        await adapter.send(target, OutboundMessage(text="it", attachments=(again,)), idempotency_key="2")
        assert shown(fake)[-1]["document"]["caption"] == "it"


@pytest.mark.parametrize(
    ("url", "kind"),
    [("/etc/passwd", "photo"), ("data:image/png;base64,*", "photo"), ("https://x", "location")],
)
async def test_what_whatsapp_cannot_show_is_refused(fake: FakeWhatsApp, url: str, kind: str):
    async with talking(fake) as (adapter, target):
        attachment = Attachment(kind=AttachmentKind(kind), url=url)
        with pytest.raises(DeliveryRefusedError):
            await adapter.send(target, OutboundMessage(attachments=(attachment,)), idempotency_key="1")
        with pytest.raises(DeliveryRefusedError, match="4096"):
            await adapter.send(target, OutboundMessage(text="x" * 4097), idempotency_key="2")
        with pytest.raises(DeliveryRefusedError, match="neither a number nor an id"):
            await adapter.send(ReplyTarget(platform="whatsapp"), HELLO, idempotency_key="3")


async def test_a_file_that_somebody_sent_can_be_fetched(fake: FakeWhatsApp):
    inbox = Inbox()
    async with connected(fake, inbox) as adapter:
        fake.sends("ann", "document", b"hello", filename="a.txt", caption="it")
        (message,) = await inbox.wait_for(1)
        (file,) = message.attachments
        assert await adapter.fetch(file) == b"hello"
        with pytest.raises(InvalidInputError, match="more than 4 bytes"):
            await adapter.fetch(file, most=4)
        with pytest.raises(InvalidInputError, match="no file of WhatsApp"):
            await adapter.fetch(Attachment(kind=AttachmentKind.PHOTO, url="https://x"))
        fake.url_of_files = "http://elsewhere.example"
        with pytest.raises(InvalidInputError, match="where the file is"):
            await adapter.fetch(file)


async def test_typing_marks_what_is_answered_as_read(fake: FakeWhatsApp):
    async with talking(fake) as (adapter, target):
        await adapter.typing(target)
        assert fake.typing == [target.reply_to]
        await adapter.typing(ReplyTarget(platform="whatsapp", chat_id=target.chat_id))
        await adapter.typing(ReplyTarget(platform="whatsapp", chat_id="a-group", reply_to="x"))
        assert len(fake.typing) == 1


async def test_a_group_is_written_to_as_a_group(fake: FakeWhatsApp):
    async with talking(fake) as (adapter, _):
        group = ReplyTarget(platform="whatsapp", chat_id="Y2FwaV9ncm91cDox")
        with pytest.raises(DeliveryRefusedError):  # this fake has no groups
            await adapter.send(group, HELLO, idempotency_key="1")
        call = fake.calls[-1].parameters
        assert (call["recipient_type"], call["to"]) == ("group", "Y2FwaV9ncm91cDox")


# After a day


async def test_after_a_day_only_a_template_is_shown_and_the_operator_is_told(
    fake: FakeWhatsApp, caplog: pytest.LogCaptureFixture
):
    told: list[DeliveryStatus] = []

    async def listen(status: DeliveryStatus) -> None:
        told.append(status)

    async with talking(fake, on_status=listen) as (adapter, target):
        fake.person("ann").wrote_at = fake.clock.now() - timedelta(hours=25)
        await adapter.send(target, HELLO, idempotency_key="late")
        await fake.wait_until(lambda: told)
        assert (told[0].state, told[0].idempotency_key) == (DeliveryState.FAILED, "late")
        assert "takes only templates then" in caplog.text
        template = {"type": "template", "template": {"name": "hello", "language": {"code": "en"}}}
        message = OutboundMessage(text="hello", extra={"whatsapp": template})
        await adapter.send(target, message, idempotency_key="template")
        assert shown(fake)[-1]["template"]["name"] == "hello"
        own = OutboundMessage(text="hello", extra={"whatsapp": {"text": {"body": "x", "preview_url": True}}})
        fake.person("ann").wrote_at = fake.clock.now()
        await adapter.send(target, own, idempotency_key="own")
        assert shown(fake)[-1]["text"]["preview_url"] is True


# Failures


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (131047, DeliveryRefusedError, "takes only templates"),
        (131026, DeliveryRefusedError, "cannot deliver to this person"),
        (100, DeliveryRefusedError, "it was planned"),
        (131056, RateLimitedError, "for 6 s"),
        (130429, RateLimitedError, "for 1 s"),
        (80007, RateLimitedError, "for 60 s"),
        (190, AdapterUnavailableError, "system user"),
        (10, AdapterUnavailableError, "whatsapp_business_messaging"),
        (200, AdapterUnavailableError, "it was planned"),
        (131042, AdapterUnavailableError, "billing page"),
        (131000, ConnectionError, "it was planned"),
    ],
)
async def test_each_code_has_a_meaning_and_says_what_to_do(
    fake: FakeWhatsApp, code: int, error: type[Exception], words: str
):
    async with talking(fake) as (adapter, target):
        fake.faults.plan(graph_error(code))
        with pytest.raises(error, match=words):
            await adapter.send(target, HELLO, idempotency_key="1")


async def test_a_server_error_of_meta_is_unknown(fake: FakeWhatsApp):
    async with talking(fake) as (adapter, target):
        fake.faults.plan(graph_error(4711, status=500))
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="1")


async def test_a_wrong_token_is_told_at_the_start(fake: FakeWhatsApp):
    fake.faults.plan(graph_error(190, "Error validating access token", status=401), times=ALWAYS)
    adapter = WhatsApp(settings_for(fake))
    with pytest.raises(AdapterUnavailableError, match="has ended: make one of a system user"):
        async with adapter.connect(Inbox()):
            pass


# What was sent is known


async def test_a_send_without_an_answer_is_found_by_metas_report(fake: FakeWhatsApp):
    memory = ProcessMemory()
    async with talking(fake) as (adapter, target):
        adapter.remember_in(memory)
        fake.faults.plan(CutConnection.AFTER, method="messages")
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="cut")
        sent = shown(fake)[0]["id"]
        await fake.wait_until(lambda: fake.deliveries[-1].end)
        assert await adapter.find(target, idempotency_key="cut") == sent
    restarted = WhatsApp(settings_for(fake))
    restarted.remember_in(memory)
    assert await restarted.find(target, idempotency_key="cut") == sent
    assert await restarted.find(target, idempotency_key="never tried") is None


async def test_without_a_report_nobody_knows_and_after_a_while_nobody_will(fake: FakeWhatsApp):
    clock = FakeClock(fake.clock.now())
    fake.reports, memory = False, ProcessMemory()
    async with talking(fake, clock=clock) as (adapter, target):
        adapter.remember_in(memory)
        fake.faults.plan(CutConnection.AFTER, method="messages")
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="cut")
        with pytest.raises(ConnectionError, match="has not reported yet"):
            await adapter.find(target, idempotency_key="cut")
        await clock.advance(seconds=31)
        with pytest.raises(DeliveryRefusedError, match="has not reported whether"):
            await adapter.find(target, idempotency_key="cut")
    # What nobody listened to is delivered again: after a restart, the wait begins anew.
    with pytest.raises(ConnectionError, match="has not reported yet"):
        await adapter.find(target, idempotency_key="cut")
    async with connected(fake, Inbox(), clock=clock) as restarted:
        restarted.remember_in(memory)
        with pytest.raises(ConnectionError, match="has not reported yet"):
            await restarted.find(target, idempotency_key="cut")
        await clock.advance(seconds=31)
        with pytest.raises(DeliveryRefusedError):
            await restarted.find(target, idempotency_key="cut")


async def test_an_old_attempt_whose_place_was_taken_is_not_called_unsent(
    fake: FakeWhatsApp, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.adapters.webhooks.sent_evidence.SLOTS", 1)
    async with talking(fake) as (adapter, target):
        fake.faults.plan(CutConnection.BEFORE, method="messages")
        with pytest.raises(ConnectionError):
            await adapter.send(target, HELLO, idempotency_key="first")
        await adapter.send(target, HELLO, idempotency_key="second")
        with pytest.raises(DeliveryRefusedError, match="too many messages"):
            await adapter.find(target, idempotency_key="first")


async def test_a_reply_that_was_cut_off_is_shown_once_and_without_a_mark(
    fake: FakeWhatsApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)

    async def agent(turn: TurnContext) -> str:
        return f"A:{turn.text}"

    adapter = WhatsApp(settings_for(fake), port=0)
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=agent, adapters=[adapter]):
        await fake.wait_until(lambda: adapter.address)
        fake.webhook_url = adapter.url
        fake.faults.plan(CutConnection.AFTER, method="messages")
        fake.says("ann", "one")
        await fake.wait_until(lambda: fake.texts("ann") == ["A:one"])
        fake.says("ann", "two")
        await fake.wait_until(lambda: len(fake.texts("ann")) == 2, seconds=30)
    assert fake.texts("ann") == ["A:one", "A:two"]


OTHER_NUMBER = "206540352242922"


async def test_numbers_of_one_app_share_a_webhook_and_each_takes_its_own(fake: FakeWhatsApp):
    fake.numbers.add(OTHER_NUMBER)
    first, second = Inbox(), Inbox()
    sales = WhatsApp(settings_for(fake), name="sales", path="/whatsapp")
    support = WhatsApp(settings_for(fake, phone_number_id=OTHER_NUMBER), name="support", path="/whatsapp")
    server = WebhookServer(sales, support, port=WebhookPort(0))
    async with server.listening(), sales.connect(first):
        assert server.address is not None
        fake.webhook_url = f"http://{server.address[0]}:{server.address[1]}/whatsapp"
        to_sales = fake.says("ann", "hello")
        assert (await fake.settle(to_sales)).status == 503, "support is not connected: nothing may be lost"
        async with support.connect(second):
            assert await fake.is_taken(to_sales)
            body = json.loads(fake.says("ann", "help").body)
            body["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = OTHER_NUMBER
            assert await fake.is_taken(fake.deliver(body))
            challenge = {"hub.mode": "subscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "42"}
            async with httpx2.AsyncClient() as client:
                assert (await client.get(fake.webhook_url, params=challenge)).text == "42"
    assert {one.text for one in first.messages} == {"hello", "help"}
    assert [(one.text, one.account) for one in second.messages] == [("help", "support")]


@pytest.mark.parametrize("changed", [{}, {"app_secret": "of another app"}, {"verify_token": "another word"}])
def test_only_numbers_of_one_app_share_a_path(fake: FakeWhatsApp, changed: dict[str, str]):
    number = {} if not changed else {"phone_number_id": OTHER_NUMBER}
    one, other = WhatsApp(settings_for(fake)), WhatsApp(settings_for(fake, **number, **changed))
    with pytest.raises(InvalidInputError, match="only different numbers of one WhatsApp app"):
        WebhookServer(one, other)
