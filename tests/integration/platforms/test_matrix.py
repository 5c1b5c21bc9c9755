"""Bots on Matrix with a gateway: the real matrix-nio, a fake homeserver, and what may go wrong."""

from __future__ import annotations

import asyncio
import base64
import importlib
import logging
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nio
import pytest

from gateway_sessions import Gateway, Reply, SessionSource, SessionStore, TurnContext, build_session_key
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
from gateway_sessions.integrations.matrix import RoomInvite
from gateway_sessions.integrations.matrix_nio import MatrixAdapter, NioApi
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, RateLimit, RefusedCall, ServerFault
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from tests.integration.gateway.gateway_harness import QUICK


@pytest.fixture
async def fake() -> AsyncGenerator[FakeMatrix]:
    async with FakeMatrix() as fake:
        yield fake


@asynccontextmanager
async def door(fake: FakeMatrix, **options: Any) -> AsyncIterator[MatrixAdapter]:
    async with client_of(fake) as client:
        yield MatrixAdapter(client, **options)


@asynccontextmanager
async def client_of(fake: FakeMatrix) -> AsyncIterator[nio.AsyncClient]:
    client = nio.AsyncClient(fake.url)
    client.restore_login(fake.bot.user_id, "BOTDEVICE", fake.token)
    try:
        yield client
    finally:
        await client.close()


def ann(fake: FakeMatrix, **more: Any) -> ReplyTarget:
    return ReplyTarget(platform="matrix", chat_id=fake.room("ann").id, **more)


def joined(fake: FakeMatrix, room_id: str) -> bool:
    return fake.rooms.rooms[room_id].membership(fake.bot.user_id) == "join"


async def echo(turn: TurnContext) -> Reply:
    return Reply(f"You said **{turn.text}**.", format=TextFormat.MARKDOWN)


# With a gateway


async def test_a_conversation_goes_both_ways_in_its_places(fake: FakeMatrix, tmp_path: Path):
    fake.says("ann", "before the bot was there")
    async with (
        door(fake) as adapter,
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=echo, adapters=[adapter]),
    ):
        await fake.wait_until(lambda: fake.syncs)
        question = fake.says("ann", "hello")
        root = fake.says("bob", "Helper: hi", room="team", mentions=True)
        fake.says("bob", "Helper: and here", room="team", mentions=True, thread=root)
        fake.says("bob", "not for the bot", room="team")
        await fake.wait_until(lambda: fake.texts("ann") and len(fake.texts(room="team")) == 2)
        assert fake.texts("ann") == ["You said hello."]
        assert fake.texts(room="team", thread=root) == ["You said and here."]
        (shown,) = fake.shown("ann")
        assert shown["content"]["formatted_body"] == "<p>You said <strong>hello</strong>.</p>"
        assert shown["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == question
        private = SessionSource(platform="matrix", chat_id=fake.room("ann").id, user_id="@ann:fake.example")
        assert await store.peek_session_id(build_session_key(private)) is not None
    assert fake.endpoints.markup_problems == []


async def test_a_gateway_that_was_down_answers_what_was_said_meanwhile(fake: FakeMatrix, tmp_path: Path):
    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with (
            door(fake) as adapter,
            SessionStore.open(tmp_path, QUICK) as store,
            Gateway(store, agent=echo, adapters=[adapter]),
        ):
            yield

    async with running():
        await fake.wait_until(lambda: fake.syncs)
    for person in ("ann", "bob"):
        fake.says(person, "while you were away")
    async with running():
        await fake.wait_until(lambda: fake.texts("ann") and fake.texts("bob"))
    assert fake.texts("ann") == ["You said while you were away."]


async def test_a_reply_grows_in_one_message(fake: FakeMatrix, tmp_path: Path):
    async def agent(turn: TurnContext) -> str:
        stream = turn.stream()
        for word in ("one ", "two ", "three"):
            await stream.write(word)
            await asyncio.sleep(0.05)
        return "one two three"

    async with (
        door(fake) as adapter,
        SessionStore.open(tmp_path, QUICK) as store,
        Gateway(store, agent=agent, adapters=[adapter]),
    ):
        await fake.wait_until(lambda: fake.syncs)
        fake.says("ann", "count")
        await fake.wait_until(lambda: fake.texts("ann") == ["one two three"])


# What is received


async def test_what_a_store_does_not_take_is_synced_again(fake: FakeMatrix, caplog: pytest.LogCaptureFixture):
    inbox = Inbox()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with door(fake) as adapter, adapter.connect(inbox):
        first = fake.says("ann", "hello")
        fake.says("bob", "hi")
        assert not await fake.is_taken(first)
        inbox.failure = None
        await inbox.wait_for_text("hello")
        await inbox.wait_for_text("hi")
        await fake.wait_until(lambda: fake.pending == 0)
    assert "messages could not be stored and are fetched again" in caplog.text


async def test_what_a_sync_leaves_out_is_fetched_in_its_order(fake: FakeMatrix):
    inbox = Inbox()
    async with door(fake) as adapter:
        async with adapter.connect(inbox):
            await fake.wait_until(lambda: fake.syncs)
            assert await fake.is_taken(fake.says("ann", "0"))
        for number in range(1, 260):
            fake.says("ann", str(number))
        fake.faults.plan(ServerFault(), method="messages")
        async with adapter.connect(inbox):
            await inbox.wait_for_text("259")
    assert [one.text for one in inbox.messages] == [str(number) for number in range(260)]


async def test_a_gap_that_cannot_be_filled_is_told_and_passed_over(
    fake: FakeMatrix, caplog: pytest.LogCaptureFixture
):
    inbox = Inbox()
    async with door(fake) as adapter:
        async with adapter.connect(inbox):
            await fake.wait_until(lambda: fake.syncs)
        for number in range(60):
            fake.says("ann", str(number))
        fake.faults.plan(RefusedCall(403, "history is not visible"), method="messages", times=ALWAYS)
        async with adapter.connect(inbox):
            await inbox.wait_for_text("59")
    assert [one.text for one in inbox.messages] == [str(number) for number in range(10, 60)]
    assert "messages of a room were left out and could not be fetched: history is not visible" in caplog.text


async def test_edits_deletions_and_answers_are_told_as_such(fake: FakeMatrix):
    inbox = Inbox()
    async with door(fake) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        said = fake.says("ann", "helo", room="team", mentions=True)
        await inbox.wait_for_text("helo")
        fake.edits(said, "hello")
        fake.edits(said, "what bob says she said", by="bob")
        fake.deletes(said)
        own = await adapter.send(
            ReplyTarget(platform="matrix", chat_id=fake.room("ann", "team").id),
            OutboundMessage(text="a question"),
            idempotency_key="k",
        )
        fake.says("bob", "an answer", room="team", reply_to=own)
        fake.reacts("bob", said)
        await inbox.wait_for_text("an answer")
    kinds = [(one.kind, one.text, one.message_id) for one in inbox.messages[:3]]
    assert kinds == [
        (MessageKind.NEW, "helo", said),
        (MessageKind.EDIT, "hello", said),
        (MessageKind.DELETE, "", said),
    ]
    answered = inbox.messages[3].reply_to
    assert answered is not None
    assert (answered.text, answered.own, answered.author_name) == ("a question", True, "Helper")


async def test_what_is_answered_may_be_older_than_the_process(fake: FakeMatrix):
    old = fake.says("carol", "an old message", room="team")
    inbox = Inbox()
    async with door(fake, groups="all") as adapter:
        async with adapter.connect(inbox):
            pass
        for _ in range(60):
            fake.says("bob", "chatter", room="team")
        async with adapter.connect(inbox):
            await inbox.wait_for(60)
        fresh = Inbox()
        async with door(fake, groups="all") as another, another.connect(fresh):
            await fake.wait_until(lambda: fake.syncs)
            fake.says("bob", "about that", room="team", reply_to=old)
            fake.edits(old, "an old message, edited")
            fake.says("bob", "about nothing", room="team", reply_to="$nothing")
            await fresh.wait_for_text("about nothing")
    first, edited, nothing = fresh.messages
    assert first.reply_to is not None
    assert (first.reply_to.text, first.reply_to.author_name) == ("an old message", "Carol")
    assert edited.kind is MessageKind.EDIT
    assert nothing.reply_to is not None
    assert nothing.reply_to.text is None


async def test_what_cannot_be_read_is_kept_in_a_file(fake: FakeMatrix, tmp_path: Path):
    async with door(fake, unreadable=tmp_path) as adapter, adapter.connect(Inbox()):
        await fake.wait_until(lambda: fake.syncs)
        assert await fake.is_taken(fake.delivers("ann", {"type": "m.room.message", "content": "seven"}))
    (kept,) = tmp_path.iterdir()
    assert '"seven"' in kept.read_text()


async def test_what_is_encrypted_is_kept_and_told_once(fake: FakeMatrix, tmp_path: Path):
    async with door(fake, unreadable=tmp_path) as adapter:
        fake.encrypts("ann")
        for _ in range(2):
            async with adapter.connect(Inbox()):
                await fake.wait_until(lambda: fake.syncs)
                for _ in range(2):
                    assert await fake.is_taken(fake.says_encrypted("ann"))
                with pytest.raises(DeliveryRefusedError, match="the room is encrypted"):
                    await adapter.send(ann(fake), OutboundMessage(text="secret"), idempotency_key="k")
    assert len([*tmp_path.iterdir()]) == 4
    (told,) = fake.shown("ann")
    assert told["content"]["msgtype"] == "m.notice"
    assert told["content"]["body"].startswith("Messages in this room are encrypted, and I cannot read them.")


async def test_that_a_room_is_encrypted_is_told_later_if_it_cannot_be_told_now(fake: FakeMatrix):
    fake.faults.plan(RefusedCall(403, "no"), method="send")
    async with door(fake) as adapter, adapter.connect(Inbox()):
        await fake.wait_until(lambda: fake.syncs)
        assert await fake.is_taken(fake.says_encrypted("ann"))
        assert fake.texts("ann") == []
        assert await fake.is_taken(fake.says_encrypted("ann"))
    assert len(fake.texts("ann")) == 1


# Invitations and upgrades


async def test_an_invitation_is_followed_if_that_is_wanted(fake: FakeMatrix):
    asked: list[RoomInvite] = []

    def decide(invite: RoomInvite) -> bool:
        asked.append(invite)
        return invite.inviter.startswith("@bob:")

    inbox = Inbox()
    async with door(fake, join_invites=decide) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        fake.says("bob", "old talk", room="team")
        invited = fake.invites("bob", room="plans", text="hello bot, welcome")
        other = fake.invites("ann")
        fake.says("bob", "Helper: hi", room="plans", mentions=True)
        await inbox.wait_for_text("hi")
        assert joined(fake, invited)
        assert not joined(fake, other)
    assert [(one.room_id, one.room_name) for one in asked] == [(invited, "plans"), (other, None)]


async def test_what_is_said_with_the_invitation_is_answered(fake: FakeMatrix):
    inbox = Inbox()
    async with door(fake, join_invites=True) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        fake.invites("ann", text="hello bot")
        for number in range(70):
            fake.says("ann", str(number))
        await inbox.wait_for_text("69")
    assert [one.text for one in inbox.messages] == ["hello bot", *map(str, range(70))]


async def test_a_join_that_fails_for_now_is_tried_again(fake: FakeMatrix, caplog: pytest.LogCaptureFixture):
    fake.faults.plan(ServerFault(), method="join")
    async with door(fake, join_invites=True) as adapter:
        async with adapter.connect(Inbox()):
            await fake.wait_until(lambda: fake.syncs)
            room = fake.invites("ann")
            await fake.wait_until(lambda: any(call.method == "join" for call in fake.calls))
        async with adapter.connect(Inbox()):
            await fake.wait_until(lambda: joined(fake, room))
            fake.faults.plan(RefusedCall(403, "You are banned"), method="join")
            fake.invites("bob")
            await fake.wait_until(
                lambda: "an invitation could not be followed: You are banned" in caplog.text
            )


async def test_a_function_that_decides_badly_stops_nobody(fake: FakeMatrix, caplog: pytest.LogCaptureFixture):
    def fail(invite: RoomInvite) -> bool:
        raise LookupError(invite)

    inbox = Inbox()
    async with door(fake, join_invites=fail) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        fake.invites("bob")
        fake.says("ann", "hello")
        await inbox.wait_for_text("hello")
        await fake.wait_until(lambda: "a function that decides on invitations failed" in caplog.text)


async def test_a_conversation_goes_on_in_the_upgrade_of_its_room(fake: FakeMatrix):
    inbox = Inbox()
    old = fake.room("ann").id
    async with door(fake) as adapter:
        async with adapter.connect(inbox):
            await fake.wait_until(lambda: fake.syncs)
            fake.says("ann", "one")
            await inbox.wait_for_text("one")
            new = fake.upgrades("ann")
            await fake.wait_until(lambda: joined(fake, new))
        async with adapter.connect(inbox):
            fake.says("ann", "two")
            await inbox.wait_for_text("two")
            target = ReplyTarget.answering(inbox.messages[0])
            await adapter.send(target, OutboundMessage(text="answer"), idempotency_key="k")
    assert [one.source.chat_id for one in inbox.messages] == [old, old]
    assert fake.texts("ann") == ["answer"]
    assert fake.room("ann").id == new


async def test_a_room_that_claims_to_be_an_upgrade_is_none(fake: FakeMatrix):
    inbox = Inbox()
    async with door(fake) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        secret = fake.room("ann").id
        claims = fake.rooms.create(fake.rooms.person("bob"), {"predecessor": {"room_id": secret}})
        fake.rooms.change_member(claims, fake.bot.user_id, "join", by=fake.bot.user_id)
        fake.rooms.add(
            claims, "m.room.message", "@bob:fake.example", {"msgtype": "m.text", "body": "what did ann say?"}
        )
        await inbox.wait_for_text("what did ann say?")
    assert inbox.messages[0].source.chat_id == claims.id


# Callbacks of the bot's own


async def test_callbacks_of_the_client_see_everything(fake: FakeMatrix, caplog: pytest.LogCaptureFixture):
    inbox, seen = Inbox(), list[str]()

    async def on_message(room: nio.MatrixRoom, event: nio.RoomMessageText) -> None:
        seen.append(f"{room.user_name(event.sender)}: {event.body}")
        if event.body == "!broken":
            raise LookupError(event.body)

    def is_ours(event: Any) -> bool:
        return str(event["content"].get("body", "")).startswith("!")

    async with client_of(fake) as client:
        client.add_event_callback(on_message, nio.RoomMessageText)
        client.add_response_callback(lambda _: seen.append("synced"), nio.SyncResponse)
        async with MatrixAdapter(client, taken=is_ours).connect(inbox):
            for text in ("!help", "!broken", "hello"):
                await fake.is_taken(fake.says("ann", text))
            await inbox.wait_for_text("hello")
            await fake.wait_until(lambda: "Ann: hello" in seen)
            assert fake.room("ann").id in client.rooms
    assert [one.text for one in inbox.messages] == ["hello"]
    assert [one for one in seen if one != "synced"] == ["Ann: !help", "Ann: !broken", "Ann: hello"]
    assert "a callback of the client failed" in caplog.text
    assert "synced" in seen


# What is sent


async def test_a_message_is_found_by_its_key_also_when_the_server_has_forgotten_it(fake: FakeMatrix):
    file = Attachment(kind=AttachmentKind.DOCUMENT, url="data:,x", name="a.txt")
    async with door(fake) as adapter, adapter.connect(Inbox()):
        asked = fake.says("ann", "question")
        target = ann(fake, reply_to=asked)
        assert await adapter.find(target, idempotency_key="k") is None
        whole = OutboundMessage(text="answer", attachments=(file,))
        fake.faults.plan(RefusedCall(403, "no"), matches=lambda name, given: given.get("msgtype") == "m.file")
        with pytest.raises(DeliveryRefusedError):
            await adapter.send(target, whole, idempotency_key="k")
        assert await adapter.find(target, idempotency_key="k") is None, "only a part of it was sent"
        sent = await adapter.send(target, whole, idempotency_key="k")
        for number in range(250):
            fake.says("ann", str(number))
        assert await adapter.find(target, idempotency_key="k") == sent
        assert await adapter.find(ann(fake), idempotency_key="another") is None
        for number in range(2000):
            fake.says("ann", str(number))
        with pytest.raises(DeliveryRefusedError, match="too far back to be looked for"):
            await adapter.find(target, idempotency_key="k")
    assert len(fake.texts("ann")) == 2


async def test_an_edit_of_what_was_deleted_is_refused(fake: FakeMatrix):
    async with door(fake) as adapter, adapter.connect(Inbox()):
        message_id = await adapter.send(ann(fake), OutboundMessage(text="draft"), idempotency_key="k")
        assert message_id is not None
        await adapter.edit(ann(fake), message_id, OutboundMessage(text="x" * 20_000))
        assert fake.texts("ann") == ["x" * 20_000]
        await fake.is_taken(fake.deletes(message_id))
        with pytest.raises(DeliveryRefusedError, match="was deleted"):
            await adapter.edit(ann(fake), message_id, OutboundMessage(text="final"))


async def test_typing_is_shown(fake: FakeMatrix):
    async with door(fake) as adapter, adapter.connect(Inbox()):
        await adapter.typing(ann(fake))
        assert fake.room("ann").typing == {fake.bot.user_id}


async def test_notices_look_like_notices_and_extras_are_added(fake: FakeMatrix):
    extra = {"matrix": {"org.example.mood": "calm"}, "slack": {"blocks": []}}
    async with door(fake) as adapter, adapter.connect(Inbox()):
        notice = OutboundMessage(text="maintenance", is_notice=True, extra=extra)
        await adapter.send(ann(fake), notice, idempotency_key="k")
    (shown,) = fake.shown("ann")
    assert shown["content"]["msgtype"] == "m.notice"
    assert shown["content"]["org.example.mood"] == "calm"
    assert "blocks" not in shown["content"]


async def test_markup_goes_where_an_event_has_no_room_for_it(fake: FakeMatrix):
    text = '"' * 19_000
    async with door(fake) as adapter, adapter.connect(Inbox()):
        await adapter.send(ann(fake), OutboundMessage(text=text, markup=text), idempotency_key="k1")
        with pytest.raises(DeliveryRefusedError, match="an event may have 65535 bytes"):
            await adapter.send(ann(fake), OutboundMessage(text="\x01" * 15_000), idempotency_key="k2")
    (shown,) = fake.shown("ann")
    assert "formatted_body" not in shown["content"]


async def test_files_come_and_go_by_content(fake: FakeMatrix):
    inbox, content = Inbox(), bytes(range(256))
    async with door(fake) as adapter, adapter.connect(inbox):
        fake.sends("ann", "document", content, caption="look", name="in.bin")
        (message,) = await inbox.wait_for(1)
        (attachment,) = message.attachments
        assert (attachment.name, await adapter.fetch(attachment)) == ("in.bin", content)
        with pytest.raises(InvalidInputError, match="has 256 bytes, at most 100 are fetched"):
            await adapter.fetch(attachment, most=100)
        untold = Attachment(kind=AttachmentKind.DOCUMENT, url=attachment.url)
        with pytest.raises(InvalidInputError, match="the file has more than 100 bytes"):
            await adapter.fetch(untold, most=100)
        gone = Attachment(kind=AttachmentKind.DOCUMENT, url="mxc://fake.example/gone")
        with pytest.raises(DeliveryRefusedError, match="Not found"):
            await adapter.fetch(gone)
        with pytest.raises(InvalidInputError, match="is no file of Matrix"):
            await adapter.fetch(Attachment(kind=AttachmentKind.DOCUMENT, url="/etc/passwd"))
        url = "data:application/x;base64," + base64.b64encode(content).decode()
        files = (
            Attachment(kind=AttachmentKind.VOICE, url=url, name="out.ogg"),
            Attachment(kind=AttachmentKind.PHOTO, url=attachment.url, media_type="image/png"),
            Attachment(kind=AttachmentKind.LOCATION, url="geo:1,2", name="home"),
            Attachment(kind=AttachmentKind.DOCUMENT, url="https://example.org/a.pdf", name="a.pdf"),
        )
        await adapter.send(ann(fake), OutboundMessage(text="here", attachments=files), idempotency_key="k")
    text, voice, photo, place, link = [one["content"] for one in fake.shown("ann")]
    assert (text["body"], voice["info"]) == ("here", {"mimetype": "application/x", "size": 256})
    assert fake.endpoints.media[voice["url"].rpartition("/")[2]].content == content
    assert "org.matrix.msc3245.voice" in voice
    assert (photo["msgtype"], photo["url"], photo["info"]) == (
        "m.image", attachment.url, {"mimetype": "image/png"}
    )  # fmt: skip
    assert (place["geo_uri"], link["body"]) == ("geo:1,2", "[document: a.pdf https://example.org/a.pdf]")


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "", "data:;base64,%%%"])
async def test_a_path_or_a_damaged_address_is_refused(fake: FakeMatrix, url: str):
    file = Attachment(kind=AttachmentKind.DOCUMENT, url=url, name="secret")
    async with door(fake) as adapter, adapter.connect(Inbox()):
        with pytest.raises(DeliveryRefusedError, match=r"has no address that Matrix can show|cannot be read"):
            await adapter.send(ann(fake), OutboundMessage(attachments=(file,)), idempotency_key="k")
    assert fake.shown("ann") == []


# What may go wrong


@pytest.mark.parametrize(
    ("soft", "told"), [(False, "log in again"), (True, "log in again with the same device id")]
)
async def test_a_revoked_token_is_told_in_one_sentence(
    fake: FakeMatrix, caplog: pytest.LogCaptureFixture, soft: bool, told: str
):
    async with door(fake) as adapter:
        async with adapter.connect(Inbox()):
            await fake.wait_until(lambda: fake.syncs)
            fake.revoke(soft=soft)
            fake.says("ann", "hello")
            await fake.wait_until(lambda: f"does not know this access token any more: {told}" in caplog.text)
            with pytest.raises(AdapterUnavailableError, match=told):
                await adapter.send(ann(fake), OutboundMessage(text="x"), idempotency_key="k")
        with pytest.raises(AdapterUnavailableError, match=told):
            async with adapter.connect(Inbox()):
                pass


async def test_a_room_without_the_bot_or_its_right_to_write_is_told_with_what_to_do(fake: FakeMatrix):
    fake.room("news").is_read_only = True
    async with door(fake) as adapter, adapter.connect(Inbox()):
        for room, problem in ((fake.room("news").id, "have permission"), ("!other:fake", "not in room")):
            target = ReplyTarget(platform="matrix", chat_id=room)
            with pytest.raises(DeliveryRefusedError, match=f"{problem}.*: invite the bot into the room, and"):
                await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")


async def test_a_client_that_is_not_logged_in_is_told(fake: FakeMatrix):
    client = nio.AsyncClient(fake.url)
    with pytest.raises(AdapterUnavailableError, match="log in again"):
        async with MatrixAdapter(client).connect(Inbox()):
            pass
    await client.close()


async def test_a_homeserver_that_is_away_is_unavailable(fake: FakeMatrix):
    async with door(fake) as adapter, fake.outage():
        with pytest.raises(AdapterUnavailableError, match="matrix: cannot be reached"):
            async with adapter.connect(Inbox()):
                pass


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (RefusedCall(413, "event too large"), DeliveryRefusedError),
        (RefusedCall(404, "Unknown room"), DeliveryRefusedError),
        (RateLimit(0.01), RateLimitedError),
        (ServerFault(502), ConnectionError),
        (ServerFault(403), AdapterUnavailableError),
        (ServerFault(200, "<html>captive portal</html>"), ValueError),
    ],
    ids=range(6),
)
async def test_each_answer_has_its_meaning(fake: FakeMatrix, fault: Any, error: type[Exception]):
    async with door(fake) as adapter, adapter.connect(Inbox()):
        target = ann(fake)
        fake.faults.plan(fault, method="send")
        with pytest.raises(error):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
        fake.faults.plan(fault, method="upload")
        file = Attachment(kind=AttachmentKind.DOCUMENT, url="data:,x", name="a.txt")
        with pytest.raises(error):
            await adapter.send(target, OutboundMessage(attachments=(file,)), idempotency_key="k2")


async def test_a_cut_download_and_upload_are_told(fake: FakeMatrix):
    async with door(fake) as adapter, adapter.connect(Inbox()):
        file = Attachment(kind=AttachmentKind.DOCUMENT, url="data:,x", name="a.txt")
        fake.faults.plan(CutConnection.BEFORE, method="upload", times=2)
        with pytest.raises(ConnectionError):
            await adapter.send(ann(fake), OutboundMessage(attachments=(file,)), idempotency_key="k")
        fake.faults.plan(CutConnection.BEFORE, method="download", times=2)
        with pytest.raises(ConnectionError):
            await adapter.fetch(Attachment(kind=AttachmentKind.DOCUMENT, url="mxc://fake.example/m"))


async def test_a_place_that_the_homeserver_has_lost_is_found_anew(
    fake: FakeMatrix, caplog: pytest.LogCaptureFixture
):
    inbox = Inbox()
    memory = ProcessMemory()
    await memory.put(f"next_batch:{fake.bot.user_id}", "lost")
    async with door(fake) as adapter:
        adapter.remember_in(memory)
        with caplog.at_level(logging.ERROR):
            async with adapter.connect(inbox):
                await fake.wait_until(lambda: fake.syncs, seconds=20)
                fake.says("ann", "hello")
                await inbox.wait_for_text("hello")
    assert "the homeserver has lost the place in the sync" in caplog.text


async def test_a_room_whose_members_nobody_tells_is_a_group(fake: FakeMatrix):
    inbox = Inbox()
    async with door(fake) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        fake.faults.plan(RefusedCall(403, "no"), method="joined_members")
        fake.says("ann", "hello", mentions=True)
        await inbox.wait_for_text("hello")
        fake.says("ann", "and again")
        await inbox.wait_for_text("and again")
    assert [one.source.chat_type for one in inbox.messages] == ["group", "dm"]


async def test_a_homeserver_that_fails_for_a_moment_makes_no_group_of_a_private_chat(fake: FakeMatrix):
    inbox = Inbox()
    async with door(fake) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        fake.faults.plan(ServerFault(), method="joined_members")
        fake.says("ann", "hello")
        await inbox.wait_for_text("hello")
    assert [one.source.chat_type for one in inbox.messages] == ["dm"]


async def test_an_answer_that_breaks_off_says_nothing_for_certain():
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(break_off, "127.0.0.1", 0)
    async with server:
        client = nio.AsyncClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        client.restore_login("@helper:e.org", "D", "t")
        adapter = MatrixAdapter(client)
        target = ReplyTarget(platform="matrix", chat_id="!r:e.org")
        file = Attachment(kind=AttachmentKind.DOCUMENT, url="data:,x", name="a.txt")
        try:
            with pytest.raises(ConnectionError):
                await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
            with pytest.raises(ConnectionError):
                await adapter.send(target, OutboundMessage(attachments=(file,)), idempotency_key="k")
            with pytest.raises(ConnectionError):
                await adapter.fetch(Attachment(kind=AttachmentKind.DOCUMENT, url="mxc://e.org/m"))
        finally:
            await client.close()


async def test_a_sync_that_the_library_cannot_read_is_told_to_its_callbacks(fake: FakeMatrix):
    seen = list[str]()
    async with client_of(fake) as client:
        client.add_response_callback(lambda answer: seen.append(type(answer).__name__), nio.SyncError)
        await NioApi(client).hand_on({"next_batch": 7})
    assert seen == ["SyncError"]


def test_without_the_library_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "nio", None)
    monkeypatch.delitem(sys.modules, "gateway_sessions.integrations.matrix_nio")
    with pytest.raises(InvalidInputError, match=r"pip install 'gateway-sessions\[matrix\]'"):
        importlib.import_module("gateway_sessions.integrations.matrix_nio")
