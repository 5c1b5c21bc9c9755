"""Bots on Mattermost with a gateway: a fake server, and what may go wrong."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Gateway, Reply, SessionStore, TurnContext
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    MessageKind,
    OutboundMessage,
    ProcessMemory,
    ReplyTarget,
    TextFormat,
)
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    RateLimitedError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.mattermost import MattermostAdapter
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.mattermost import FakeMattermost
from tests.integration.gateway.gateway_harness import QUICK


@pytest.fixture
async def fake() -> AsyncGenerator[FakeMattermost]:
    async with FakeMattermost() as fake:
        yield fake


def door(fake: FakeMattermost, **options: Any) -> MattermostAdapter:
    return MattermostAdapter(fake.url, fake.token, look_seconds=0.02, **options)


def ann(fake: FakeMattermost, **more: Any) -> ReplyTarget:
    return ReplyTarget(platform="mattermost", chat_id=fake.channel("ann").id, **more)


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said **{turn.text}**.", format=TextFormat.MARKDOWN)


# With a gateway


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeMattermost, tmp_path: Path):
    fake.says("ann", "before the bot was there")
    async with SessionStore.open(tmp_path, QUICK) as store, Gateway(store, agent=echo, adapters=[door(fake)]):
        await fake.is_read()
        fake.says("ann", "hello")
        root = fake.says("bob", "@helper hi", channel="team")
        fake.says("bob", "not for the bot", channel="team")
        await fake.wait_until(lambda: fake.texts("ann") and fake.texts(channel="team"))
        fake.says("carol", "and this?", channel="team", thread=root)
        await fake.wait_until(lambda: len(fake.texts(channel="team")) == 2)
    assert fake.texts("ann") == ["You said **hello**."]
    assert fake.texts(channel="team", thread=root) == ["You said **hi**.", "You said **and this?**."]


async def test_a_gateway_that_was_down_answers_what_was_said_meanwhile(fake: FakeMattermost, tmp_path: Path):
    for _ in range(2):
        async with (
            SessionStore.open(tmp_path, QUICK) as store,
            Gateway(store, agent=echo, adapters=[door(fake)]),
        ):
            await fake.is_read()
            await fake.wait_until(lambda: len(fake.texts("ann")) == len(fake.texts("bob")))
        if not fake.texts("ann"):
            fake.says("ann", "while you were away")
            fake.says("bob", "me too")
    assert fake.texts("ann") == ["You said **while you were away**."]
    assert fake.texts("bob") == ["You said **me too**."]


async def test_a_reply_grows_in_one_post(fake: FakeMattermost, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        stream = turn.stream()
        for word in ("one ", "two ", "three"):
            await stream.write(word)
            await asyncio.sleep(0.05)
        return "one two three"

    async with (
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=agent, adapters=[door(fake)]),
    ):
        await fake.is_read()
        fake.says("ann", "count")
        await fake.wait_until(lambda: fake.texts("ann") == ["one two three"])


# What is received


async def test_what_a_store_does_not_take_is_fetched_again(
    fake: FakeMattermost, caplog: pytest.LogCaptureFixture
):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with door(fake).connect(inbox):
        fake.says("ann", "hello")
        fake.says("bob", "hi")
        await fake.wait_until(lambda: "posts could not be stored and are fetched again" in caplog.text)
        inbox.failure = None
        await inbox.wait_for_text("hello")
        await inbox.wait_for_text("hi")


async def test_edits_and_deletions_are_noticed_soon(fake: FakeMattermost):
    inbox = Inbox()
    async with door(fake).connect(inbox):
        await fake.is_read()
        said = fake.says("ann", "helo")
        await inbox.wait_for_text("helo")
        fake.edits(said, "hello")
        await inbox.wait_for_text("hello")
        fake.deletes(said)
        await inbox.wait_for(3)
        await fake.is_read()
    assert [(one.kind, one.text) for one in inbox.messages] == [
        (MessageKind.NEW, "helo"),
        (MessageKind.EDIT, "hello"),
        (MessageKind.DELETE, ""),
    ]


async def test_more_posts_than_one_answer_holds_are_fetched_in_their_order(fake: FakeMattermost):
    inbox = Inbox()
    adapter = door(fake)
    async with adapter.connect(inbox):
        await fake.is_read()
        fake.says("ann", "0")
        await inbox.wait_for_text("0")
        await fake.is_read()
    for number in range(1, 1101):
        fake.says("ann", str(number))
    async with adapter.connect(inbox):
        await inbox.wait_for_text("1100")
    assert [one.text for one in inbox.messages] == [str(number) for number in range(1101)]


async def test_an_answer_that_is_too_large_is_fetched_in_pages(fake: FakeMattermost):
    inbox = Inbox()
    adapter = door(fake)
    async with adapter.connect(inbox):
        await fake.is_read()
    for number in range(300):
        fake.says("ann", f"{number} " + "x" * 16_000)
    async with adapter.connect(inbox):
        await inbox.wait_for(300)
    assert [int(one.text.partition(" ")[0]) for one in inbox.messages] == list(range(300))


async def test_what_was_said_before_the_bot_came_in_is_not_for_it(fake: FakeMattermost):
    inbox = Inbox()
    async with door(fake).connect(inbox):
        await fake.is_read()
        fake.channel("bob", "old", with_bot=False)
        fake.says("bob", "@helper are you here?", channel="old")
        fake.adds_bot("bob", "old")
        fake.says("bob", "@helper now?", channel="old")
        fake.says("dave", "hello, we never met")
        await inbox.wait_for(2)
        await fake.is_read()
    assert sorted(one.text for one in inbox.messages) == ["hello, we never met", "now?"]


async def test_what_cannot_be_read_is_kept_in_a_file(
    fake: FakeMattermost, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async with door(fake, unreadable=tmp_path).connect(Inbox()):
        await fake.is_read()
        at = fake.workspace.now()
        fake.delivers("ann", {"id": "broken", "create_at": at, "user_id": "seven\n", "channel_id": []})
        await fake.wait_until(lambda: "an update could not be read and was put aside" in caplog.text)
        await fake.is_read()
    assert caplog.text.count("put aside") == 1
    (kept,) = tmp_path.iterdir()
    assert '"broken"' in kept.read_text()


async def test_people_and_threads_that_are_gone_stop_nobody(fake: FakeMattermost):
    inbox = Inbox()
    async with door(fake).connect(inbox):
        await fake.is_read()
        fake.faults.plan(RefusedCall(404, "gone"), method="user")
        fake.faults.plan(RefusedCall(404, "gone"), method="thread")
        root = fake.says("bob", "nothing", channel="team")
        fake.says("bob", "@helper hi", channel="team", thread=root)
        await inbox.wait_for_text("hi")
    assert inbox.messages[0].source.user_name is None


async def test_one_channel_that_fails_stops_no_other(fake: FakeMattermost):
    inbox = Inbox()
    async with door(fake).connect(inbox):
        await fake.is_read()
        broken = fake.channel("ann").id
        fake.faults.plan(ServerFault(), matches=lambda _, given: given.get("channel") == broken, times=1)
        fake.says("ann", "first")
        fake.says("bob", "second")
        await inbox.wait_for_text("second")
        await inbox.wait_for_text("first")


# What is sent


async def test_a_post_is_found_by_its_key_also_when_the_server_has_forgotten_it(fake: FakeMattermost):
    adapter = door(fake)
    async with adapter.connect(Inbox()):
        asked = fake.says("ann", "question")
        target = ann(fake, reply_to=asked)
        assert await adapter.find(target, idempotency_key="k") is None
        sent = await adapter.send(target, OutboundMessage(text="answer"), idempotency_key="k")
        for number in range(150):
            fake.says("ann", str(number))
        fake.forget_pending()
        assert await adapter.find(target, idempotency_key="k") == sent
        assert await adapter.find(target, idempotency_key="other") is None
        assert await adapter.find(ann(fake), idempotency_key="other") is None
        for number in range(1500):
            fake.says("ann", str(number))
        with pytest.raises(DeliveryRefusedError, match="too far back to be looked for"):
            await adapter.find(target, idempotency_key="k")


async def test_files_come_and_go_by_content_in_one_post(fake: FakeMattermost):
    inbox, content = Inbox(), bytes(range(256))
    adapter = door(fake)
    async with adapter.connect(inbox):
        await fake.is_read()
        fake.sends("ann", content, name="in.bin", text="look")
        (message,) = await inbox.wait_for(1)
        (attachment,) = message.attachments
        assert (attachment.name, await adapter.fetch(attachment)) == ("in.bin", content)
        for wrong, problem in (
            (attachment, "has 256 bytes, at most 100 are fetched"),
            (Attachment(kind=AttachmentKind.DOCUMENT, url=attachment.url), "more than 100 bytes"),
            (Attachment(kind=AttachmentKind.DOCUMENT, url="mattermost:gone"), "cannot be fetched"),
            (Attachment(kind=AttachmentKind.DOCUMENT, url="/etc/passwd"), "is no file of Mattermost"),
        ):
            with pytest.raises(InvalidInputError, match=problem):
                await adapter.fetch(wrong, most=100)
        url = "data:application/x;base64," + base64.b64encode(content).decode()
        files = (
            Attachment(kind=AttachmentKind.DOCUMENT, url=url, name="out.bin"),
            Attachment(kind=AttachmentKind.DOCUMENT, url=attachment.url),
            Attachment(kind=AttachmentKind.DOCUMENT, url="https://example.org/a.pdf", name="a.pdf"),
        )
        await adapter.send(ann(fake), OutboundMessage(text="here", attachments=files), idempotency_key="k")
    (shown,) = fake.shown("ann")
    assert shown["message"] == "here\n[document: a.pdf https://example.org/a.pdf]"
    kept = [fake.workspace.files[one["id"]] for one in shown["metadata"]["files"]]
    assert [one.content for one in kept] == [content, content]
    assert kept[1].id != attachment.url.removeprefix("mattermost:")


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "", "data:;base64,%%%"])
async def test_a_path_or_a_damaged_address_is_refused(fake: FakeMattermost, url: str):
    adapter, file = door(fake), Attachment(kind=AttachmentKind.DOCUMENT, url=url, name="secret")
    async with adapter.connect(Inbox()):
        with pytest.raises(
            DeliveryRefusedError, match=r"has no address that Mattermost can show|cannot be read"
        ):
            await adapter.send(ann(fake), OutboundMessage(attachments=(file,)), idempotency_key="k")
        many = (Attachment(kind=AttachmentKind.DOCUMENT, url="data:,x"),) * 11
        with pytest.raises(DeliveryRefusedError, match="a post may have 10 files"):
            await adapter.send(ann(fake), OutboundMessage(attachments=many), idempotency_key="k")
    assert fake.shown("ann") == []


async def test_typing_is_shown_where_the_answer_will_stand(fake: FakeMattermost):
    adapter = door(fake)
    async with adapter.connect(Inbox()):
        await adapter.typing(ann(fake))
        await adapter.typing(ann(fake, thread_id="post1"))
    assert fake.channel("ann").typing == ["", "post1"]


async def test_extras_of_mattermost_are_added(fake: FakeMattermost):
    extra = {"mattermost": {"props": {"card": "more"}}, "slack": {"blocks": []}}
    adapter = door(fake)
    async with adapter.connect(Inbox()):
        await adapter.send(ann(fake), OutboundMessage(text="x", extra=extra), idempotency_key="k")
    (shown,) = fake.shown("ann")
    assert shown["props"]["card"] == "more"


# What may go wrong


async def test_a_channel_without_the_bot_or_its_right_to_write_is_told_with_what_to_do(fake: FakeMattermost):
    adapter = door(fake)
    target = ReplyTarget(platform="mattermost", chat_id="unknown")
    async with adapter.connect(Inbox()):
        with pytest.raises(DeliveryRefusedError, match="permissions: make the bot a member of the team and"):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (RefusedCall(403, "You do not have the appropriate permissions."), DeliveryRefusedError),
        (RefusedCall(413, "too large"), DeliveryRefusedError),
        (RateLimit(0.01), RateLimitedError),
        (ServerFault(502), ConnectionError),
        (ServerFault(403), AdapterUnavailableError),
        (ServerFault(200, "<html>captive portal</html>"), ValueError),
    ],
    ids=range(6),
)
async def test_each_answer_has_its_meaning(fake: FakeMattermost, fault: Any, error: type[Exception]):
    adapter = door(fake)
    async with adapter.connect(Inbox()):
        target = ann(fake)
        fake.faults.plan(fault, method="create_post")
        with pytest.raises(error):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")


async def test_an_edit_of_what_was_deleted_is_refused(fake: FakeMattermost):
    adapter = door(fake)
    async with adapter.connect(Inbox()):
        message_id = await adapter.send(ann(fake), OutboundMessage(text="draft"), idempotency_key="k")
        assert message_id is not None
        fake.deletes(message_id)
        with pytest.raises(DeliveryRefusedError, match="Unable to get the post"):
            await adapter.edit(ann(fake), message_id, OutboundMessage(text="final"))
        root = ann(fake, thread_id=message_id)
        with pytest.raises(DeliveryRefusedError, match="Invalid RootId"):
            await adapter.send(root, OutboundMessage(text="x"), idempotency_key="k2")


async def test_a_wrong_token_and_a_server_that_is_away_are_told(
    fake: FakeMattermost, caplog: pytest.LogCaptureFixture
):
    with pytest.raises(AdapterUnavailableError, match="does not know this token"):
        async with MattermostAdapter(fake.url, "another").connect(Inbox()):
            pass
    fake.faults.plan(ServerFault(), method="me")
    with pytest.raises(AdapterUnavailableError, match="cannot be reached"):
        async with door(fake).connect(Inbox()):
            pass
    inbox, adapter = Inbox(), door(fake)
    with pytest.raises(AdapterUnavailableError, match="is not connected"):
        await adapter.send(ann(fake), OutboundMessage(text="x"), idempotency_key="k")
    async with adapter.connect(inbox):
        async with fake.outage():
            await fake.wait_until(
                lambda: "posts could not be fetched: mattermost: cannot be reached" in caplog.text
            )
        fake.says("ann", "hello")
        await inbox.wait_for_text("hello")


async def test_a_server_that_asks_for_a_pause_is_left_alone(fake: FakeMattermost):
    inbox = Inbox()
    async with door(fake).connect(inbox):
        await fake.is_read()
        fake.faults.plan(RateLimit(0.2), method="channels")
        fake.says("ann", "hello")
        await inbox.wait_for_text("hello")
    (refused,) = [call for call in fake.calls if call.status == 429]
    after = [call.at for call in fake.calls if call.method == "channels" and call.at > refused.at]
    assert min(after) - refused.at >= 0.19


@pytest.mark.parametrize(
    ("url", "token", "problem"),
    [
        ("chat.example.org", "t", "begins with https://"),
        ("https://chat.example.org", " ", "the token is none of Mattermost's"),
        ("https://chat.example.org", "t\n", "the token is none of Mattermost's"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(url: str, token: str, problem: str):
    with pytest.raises(InvalidInputError, match=problem):
        MattermostAdapter(url, token)


async def test_places_are_kept_in_the_memory_of_the_gateway(fake: FakeMattermost):
    memory, inbox = ProcessMemory(), Inbox()
    fake.says("ann", "before")
    first = door(fake)
    first.remember_in(memory)
    async with first.connect(Inbox()):
        await fake.is_read()
    fake.says("ann", "between")
    second = door(fake)
    second.remember_in(memory)
    async with second.connect(inbox):
        await inbox.wait_for_text("between")
    assert [one.text for one in inbox.messages] == ["between"]
