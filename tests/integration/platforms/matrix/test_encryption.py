"""Bots in encrypted rooms: real clients on both sides, a homeserver between them, and what may go wrong."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import nio
import pytest
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment

from gateway_sessions import Gateway, SessionStore
from gateway_sessions.adapters import (
    Attachment,
    AttachmentKind,
    MessageKind,
    OutboundMessage,
    ProcessMemory,
    ReplyTarget,
)
from gateway_sessions.cli.adapter_health import examine_adapters
from gateway_sessions.config import load_config
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
    StorageUnavailableError,
)
from gateway_sessions.integrations.matrix_nio import DeviceStore, MatrixAdapter, logged_in_client
from gateway_sessions.runtime.operator.health import Health
from gateway_sessions.testing.contract.adapter import Inbox
from gateway_sessions.testing.fakes.faults import CutConnection, Delay, ServerFault
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from gateway_sessions.testing.fakes.matrix.endpoints import MediaFile
from tests.integration.command_line.platforms.served_programs import program, read_until
from tests.integration.gateway.gateway_harness import QUICK
from tests.integration.platforms.matrix.person import person
from tests.integration.platforms.test_matrix import ann, echo
from tests.programs import PATIENCE

pytestmark = pytest.mark.usefixtures("blocking_allowed")


@pytest.fixture
async def fake() -> AsyncGenerator[FakeMatrix]:
    async with FakeMatrix() as fake:
        yield fake


@asynccontextmanager
async def door(fake: FakeMatrix, folder: Path, **options: Any) -> AsyncIterator[MatrixAdapter]:
    """The adapter of a process that has the keys in a folder."""
    store = DeviceStore(folder / "keys", "BOTDEVICE", "a passphrase")
    client = logged_in_client(fake.url, fake.bot.user_id, fake.token, store=store)
    try:
        yield MatrixAdapter(client, **options)
    finally:
        await client.close()


async def test_a_conversation_in_an_encrypted_room_goes_both_ways(fake: FakeMatrix, tmp_path: Path):
    async with person(fake, "ann") as ann_herself:
        for number in range(2):  # the second process has the keys of the first
            async with (
                door(fake, tmp_path) as adapter,
                SessionStore.open(tmp_path / "state", QUICK) as store,
                Gateway(store, agent=echo, adapters=[adapter]),
            ):
                await fake.wait_until(lambda: fake.syncs)
                await ann_herself.says(f"hello {number}")
                await fake.wait_until(lambda n=number: len(ann_herself.texts) == n + 1)
        assert ann_herself.texts == ["You said hello 0.", "You said hello 1."]
        assert ann_herself.unreadable == []
    assert fake.texts("ann") == [], "nothing was said in plain text"
    folder = tmp_path / "keys"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


async def test_a_person_gives_the_key_to_a_device_that_came_a_moment_ago(fake: FakeMatrix, tmp_path: Path):
    inbox, bot = Inbox(), fake.bot.user_id
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter:
        await fake.wait_until(lambda: bot in ann_herself.client.olm.tracked_users)  # and has no device yet
        # Her present sync ends by what is said; the next one tells of the bot's device when a second is over.
        fake.faults.plan(Delay(1), matches=lambda _, given: given.get("timeout") == "1000", times=2)
        fake.says("ann", "this ends a sync")
        await fake.wait_until(lambda: ann_herself.client.next_batch == f"s{fake.rooms.position}")
        async with adapter.connect(inbox):
            await ann_herself.says("hello")
            await inbox.wait_for_text("hello")


async def test_a_few_lines_of_yaml_are_a_bot_in_encrypted_rooms(fake: FakeMatrix, tmp_path: Path):
    keys = {"device": "BOTDEVICE", "encryption_store": "keys", "encryption_key": "${PASSPHRASE}"}
    account = {"homeserver": fake.url, "user": fake.bot.user_id, "access_token": fake.token}
    adapter = {"platform": "matrix", **account, **keys}
    (tmp_path / "config.yaml").write_text(json.dumps({"serve": {"adapters": [adapter]}}))
    async with person(fake, "ann") as ann_herself:
        async with program(tmp_path, "serve", PASSPHRASE="a passphrase") as process:
            await read_until(process.stderr, "Serving matrix.")
            await ann_herself.says("hello")
            await fake.wait_until(lambda: ann_herself.texts, seconds=PATIENCE)
        async with program(tmp_path, "doctor", "--quick", "--online", PASSPHRASE="another") as asked:
            output, _ = await asyncio.wait_for(asked.communicate(), PATIENCE)
    assert (tmp_path / "keys").is_dir()
    assert b"they need the passphrase that they were made with" in output


async def test_a_key_is_kept_before_the_place_moves(fake: FakeMatrix, tmp_path: Path):
    """The homeserver gives a key out once, and forgets it with the next sync."""
    inbox, memory = Inbox(), ProcessMemory()
    inbox.failure = StorageUnavailableError("sessions.db", "is away")
    async with person(fake, "ann") as ann_herself:
        async with door(fake, tmp_path) as adapter:
            adapter.remember_in(memory)
            async with adapter.connect(inbox):
                await fake.wait_until(lambda: fake.syncs)
                said = [await ann_herself.says(str(number)) for number in range(5)]
                assert not await fake.is_taken(said[0])
        inbox.failure = None
        fake.endpoints.keys.waiting.clear()  # as if the place had moved
        async with door(fake, tmp_path) as adapter:
            adapter.remember_in(memory)
            async with adapter.connect(inbox):
                await inbox.wait_for_text("4")
                assert await fake.is_taken(said[-1])
    assert [one.text for one in inbox.messages] == ["0", "1", "2", "3", "4"]


async def test_a_sync_that_is_asked_for_again_brings_the_same_keys(fake: FakeMatrix, tmp_path: Path):
    inbox = Inbox()
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        inbox.failure = StorageUnavailableError("sessions.db", "is away")
        said = await ann_herself.says("hello")
        assert not await fake.is_taken(said)
        inbox.failure = None
        await inbox.wait_for_text("hello")
        await ann_herself.says("and again")
        await inbox.wait_for_text("and again")


async def test_edits_answers_and_deletions_are_told_as_such(fake: FakeMatrix, tmp_path: Path):
    inbox = Inbox()
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter:
        async with adapter.connect(inbox):
            await fake.wait_until(lambda: fake.syncs)
            own = await adapter.send(ann(fake), OutboundMessage(text="a question"), idempotency_key="k")
            assert await adapter.find(ann(fake), idempotency_key="k") == own
            said = await ann_herself.says("helo")
            assert await fake.is_taken(said)
        # What is answered or changed may be older than the process: it is fetched, and is encrypted as well.
        async with adapter.connect(inbox):
            new = {"msgtype": "m.text", "body": "hello"}
            relation = {"rel_type": "m.replace", "event_id": said}
            await ann_herself.says("* hello", **{"m.new_content": new, "m.relates_to": relation})
            await ann_herself.says("an answer", **{"m.relates_to": {"m.in_reply_to": {"event_id": own}}})
            await inbox.wait_for_text("an answer")
            fake.deletes(said)
            await inbox.wait_for(4)
    _, edit, answer, deletion = inbox.messages
    assert (edit.kind, edit.text, edit.message_id) == (MessageKind.EDIT, "hello", said)
    assert answer.reply_to is not None
    assert (answer.reply_to.text, answer.reply_to.own) == ("a question", True)
    assert (deletion.kind, deletion.message_id) == (MessageKind.DELETE, said)


async def test_files_are_encrypted_both_ways(fake: FakeMatrix, tmp_path: Path):
    inbox, content = Inbox(), bytes(range(256))
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        hidden, key = encrypt_attachment(content)
        url = fake.endpoints.add_media(hidden, "application/octet-stream")
        info = {"mimetype": "image/png", "size": len(content)}
        await ann_herself.sends(
            {"msgtype": "m.image", "body": "in.png", "info": info, "file": {**key, "url": url}}
        )
        (message,) = await inbox.wait_for(1)
        (attachment,) = message.attachments
        assert (attachment.kind, attachment.name) == (AttachmentKind.PHOTO, "in.png")
        assert await adapter.fetch(attachment) == content
        with pytest.raises(InvalidInputError, match="has 256 bytes, at most 100 are fetched"):
            await adapter.fetch(attachment, most=100)
        fake.endpoints.media[url.rpartition("/")[2]] = MediaFile(b"something else", "image/png")
        with pytest.raises(InvalidInputError, match="the file cannot be decrypted"):
            await adapter.fetch(attachment)
        data = "data:application/x;base64," + base64.b64encode(content).decode()
        files = (
            Attachment(kind=AttachmentKind.DOCUMENT, url=data, name="out.bin"),
            attachment,
        )
        await adapter.send(ann(fake), OutboundMessage(text="here", attachments=files), idempotency_key="k")
        await fake.wait_until(lambda: len(ann_herself.heard) == 3)
        text, sent, forwarded = ann_herself.heard.values()
    assert text["body"] == "here"
    assert "url" not in sent
    kept = fake.endpoints.media[sent["file"]["url"].rpartition("/")[2]]
    assert (kept.name, kept.media_type) == ("", "application/octet-stream")
    keys = sent["file"]["key"]["k"], sent["file"]["hashes"]["sha256"], sent["file"]["iv"]
    assert decrypt_attachment(kept.content, *keys) == content
    assert {**forwarded["file"], "key": key["key"]} == {**key, "url": url}


async def test_a_reply_whose_answer_was_lost_is_shown_once(fake: FakeMatrix, tmp_path: Path):
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter, adapter.connect(Inbox()):
        await fake.wait_until(lambda: fake.syncs)
        reply = OutboundMessage(text="once")
        for method in ("keys_query", "keys_claim", "send_to_device", "send"):
            fake.faults.plan(CutConnection.AFTER, method=method, times=2)
            with suppress(ConnectionError):  # her own client may meet the fault as well
                await adapter.send(ann(fake), reply, idempotency_key="k")
        await adapter.send(ann(fake), reply, idempotency_key="k")
        await fake.wait_until(lambda: ann_herself.texts)
        assert ann_herself.texts == ["once"]
        assert ann_herself.unreadable == []


# Keys that are missing


async def test_a_message_whose_key_comes_later_is_taken_then(fake: FakeMatrix, tmp_path: Path):
    inbox, memory, keys = Inbox(), ProcessMemory(), fake.endpoints.keys
    async with person(fake, "ann") as ann_herself:
        async with door(fake, tmp_path, unreadable=tmp_path / "odd") as adapter:
            adapter.remember_in(memory)
            async with adapter.connect(inbox):
                await fake.wait_until(lambda: fake.syncs)
                await ann_herself.says("the first")
                await inbox.wait_for_text("the first")
                ann_herself.client.invalidate_outbound_session(fake.room("ann").id)
                keys.holds_back_from = fake.bot.user_id
                said = [await ann_herself.says(text) for text in ("one", "two")]
                assert await fake.is_taken(said[-1]), "nobody waits for it"
                await fake.wait_until(lambda: any(one.method == "send_to_device" for one in fake.calls))
        assert len([*(tmp_path / "odd").iterdir()]) == 2
        async with door(fake, tmp_path) as adapter:  # what waits is known after a restart
            adapter.remember_in(memory)
            async with adapter.connect(inbox):
                await fake.wait_until(lambda: fake.syncs)
                keys.release()
                await inbox.wait_for_text("two")
                assert await memory.get("waiting_for_keys") == "{}"
        await fake.wait_until(lambda: ann_herself.notices)
        (notice,) = ann_herself.notices
    assert [one.text for one in inbox.messages] == ["the first", "one", "two"]
    assert "did not give me its key" in notice


async def test_a_message_whose_key_came_too_late_is_passed_over(
    fake: FakeMatrix, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    inbox, keys = Inbox(), fake.endpoints.keys
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter, adapter.connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        keys.holds_back_from = fake.bot.user_id
        said = await ann_herself.says("one")
        assert await fake.is_taken(said)
        fake.room("ann").events[:] = [one for one in fake.room("ann").events if one.event_id != said]
        keys.release()
        fake.faults.plan(ServerFault(), method="event")
        await ann_herself.says("two")
        await inbox.wait_for_text("two")
    assert "a message whose key came late is gone" in caplog.text
    assert [one.text for one in inbox.messages] == ["two"]


async def test_what_nobody_can_read_stops_nothing(fake: FakeMatrix, tmp_path: Path):
    inbox, bot = Inbox(), fake.bot.user_id
    async with (
        person(fake, "ann") as ann_herself,
        door(fake, tmp_path, unreadable=tmp_path / "odd") as adapter,
        adapter.connect(inbox),
    ):
        await fake.wait_until(lambda: fake.syncs)
        await ann_herself.says("hello")
        await inbox.wait_for_text("hello")
        content: Any
        for content in ({}, {"ciphertext": {}}, {"sender_key": "k", "ciphertext": {"k": {}}}, []):
            message = {bot: {"BOTDEVICE": content}}
            fake.endpoints.keys.send("@eve:e", "m.room.encrypted", {"messages": message}, ("E", f"{content}"))
        own = fake.endpoints.keys.devices[bot]["BOTDEVICE"]["keys"]["curve25519:BOTDEVICE"]
        garbled = {
            "algorithm": "m.olm.v1.curve25519-aes-sha2",
            "sender_key": own,
            "ciphertext": {own: {"type": 0, "body": "AwgA"}},
        }
        fake.endpoints.keys.send(
            "@eve:e", "m.room.encrypted", {"messages": {bot: {"BOTDEVICE": garbled}}}, ("E", "g")
        )
        said = fake.room("ann").events[-1].json["content"]
        fake.delivers("ann", event_of(ann_herself.user_id, "$damaged", {**said, "ciphertext": "AwgA"}))
        fake.delivers("ann", event_of(ann_herself.user_id, "$copy", said))
        fake.delivers("ann", event_of(ann_herself.user_id, "$gone", {}))
        await ann_herself.sends({"redacts": "$copy"}, "m.room.redaction")
        await ann_herself.sends({"msgtype": 7, "body": "no type"})
        await ann_herself.says("and again")
        await inbox.wait_for_text("and again")
    assert [one.text for one in inbox.messages] == ["hello", "and again"]
    told = "".join(file.read_text() for file in (tmp_path / "odd").iterdir())
    assert len([*(tmp_path / "odd").iterdir()]) == 4
    assert "replay attack" in told
    assert "nobody may encrypt a m.room.redaction" in told


def event_of(sender: str, event_id: str, content: dict[str, Any]) -> dict[str, Any]:
    facts = {"sender": sender, "event_id": event_id, "origin_server_ts": 1}
    return {"type": "m.room.encrypted", "content": content, **facts}


# Who can read


async def test_who_is_new_reads_what_is_new_and_who_has_left_nothing_more(fake: FakeMatrix, tmp_path: Path):
    def says(text: str) -> Any:
        return adapter.send(ann(fake), OutboundMessage(text=text), idempotency_key=text)

    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter, adapter.connect(Inbox()):
        await fake.wait_until(lambda: fake.syncs)
        await says("one")
        async with person(fake, "ann", "LAPTOP") as laptop:
            await fake.wait_until(lambda: fake.synced_to >= fake.rooms.position)
            await says("two")
            await fake.wait_until(lambda: laptop.texts and len(ann_herself.texts) == 2)
            assert laptop.texts == ["two"]
        await says("three")
        room, bob = fake.room("ann"), fake.rooms.person("bob")
        joins = fake.rooms.change_member(room, bob.user_id, "join", by=bob.user_id)
        assert await fake.is_taken(joins.event_id)
        await says("four")
        leaves = fake.rooms.change_member(room, bob.user_id, "leave", by=bob.user_id)
        assert await fake.is_taken(leaves.event_id)
        await says("five")
        sessions = [
            one.json["content"]["session_id"] for one in room.events if "session_id" in one.json["content"]
        ]
        assert sessions[1] == sessions[2], "nobody has come or gone"
    assert len({*sessions}) == 4


async def test_a_bot_that_wants_verified_devices_writes_to_no_other(fake: FakeMatrix, tmp_path: Path):
    async with (
        person(fake, "ann"),
        door(fake, tmp_path, ignore_unverified_devices=False) as adapter,
        adapter.connect(Inbox()),
    ):
        with pytest.raises(DeliveryRefusedError, match="is not verified"):
            await adapter.send(ann(fake), OutboundMessage(text="secret"), idempotency_key="k")


async def test_nothing_is_said_plainly_before_the_first_sync_tells_that_a_room_is_encrypted(
    fake: FakeMatrix, tmp_path: Path
):
    async with person(fake, "ann") as ann_herself, door(fake, tmp_path) as adapter:
        await adapter.send(ann(fake), OutboundMessage(text="early"), idempotency_key="k")
        await fake.wait_until(lambda: ann_herself.texts)
    assert fake.texts("ann") == []


# One device


async def test_two_processes_cannot_use_the_keys_of_one_device(fake: FakeMatrix, tmp_path: Path):
    async with door(fake, tmp_path) as adapter, door(fake, tmp_path) as other:
        async with adapter.connect(Inbox()):
            with pytest.raises(AdapterUnavailableError, match="another process uses the keys of this device"):
                async with other.connect(Inbox()):
                    pass
        async with other.connect(Inbox()):
            pass


async def test_keys_of_another_device_than_that_of_the_token_are_refused(fake: FakeMatrix, tmp_path: Path):
    client = logged_in_client(
        fake.url, fake.bot.user_id, fake.token, store=DeviceStore(tmp_path, "OTHER", "p")
    )
    try:
        with pytest.raises(AdapterUnavailableError, match="to the device BOTDEVICE, and the keys to OTHER"):
            async with MatrixAdapter(client).connect(Inbox()):
                pass
    finally:
        await client.close()


async def test_keys_are_not_opened_with_another_passphrase(fake: FakeMatrix, tmp_path: Path):
    for passphrase in ("right", "right"):
        client = logged_in_client(fake.url, "@b:e", "t", store=DeviceStore(tmp_path, "D", passphrase))
        await client.close()
    with pytest.raises(InvalidInputError, match="they need the passphrase that they were made with"):
        logged_in_client(fake.url, "@b:e", "t", store=DeviceStore(tmp_path, "D", "wrong"))


async def test_one_time_keys_are_filled_up(fake: FakeMatrix, tmp_path: Path):
    keys = fake.endpoints.keys

    def left() -> int:
        return sum(keys.counts(fake.bot.user_id, "BOTDEVICE").values())

    fake.faults.plan(CutConnection.AFTER, method="keys_upload")
    async with door(fake, tmp_path) as adapter:
        with pytest.raises(AdapterUnavailableError):
            async with adapter.connect(Inbox()):
                pass
    async with door(fake, tmp_path) as adapter, adapter.connect(Inbox()):
        await fake.wait_until(lambda: fake.syncs)
        filled = left()
        for _ in range(filled):
            keys.claim({"one_time_keys": {fake.bot.user_id: {"BOTDEVICE": "signed_curve25519"}}})
        fake.says("ann", "something happens")
        await fake.wait_until(lambda: left() >= 50)
    assert filled >= 50


async def test_callbacks_see_what_was_encrypted(fake: FakeMatrix, tmp_path: Path):
    inbox, seen = Inbox(), list[str]()
    store = DeviceStore(tmp_path / "keys", "BOTDEVICE", "p")
    client = logged_in_client(fake.url, fake.bot.user_id, fake.token, store=store)
    client.add_event_callback(lambda room, event: seen.append(event.body), nio.RoomMessageText)
    client.add_to_device_callback(lambda event: seen.append(type(event).__name__), nio.RoomKeyEvent)
    async with person(fake, "ann") as ann_herself, MatrixAdapter(client).connect(inbox):
        await fake.wait_until(lambda: fake.syncs)
        await ann_herself.says("hello")
        await fake.wait_until(lambda: "hello" in seen)
    await client.close()
    assert seen == ["RoomKeyEvent", "hello"]


# Without keys


async def test_doctor_says_what_to_set_up(fake: FakeMatrix, tmp_path: Path):
    account = {"homeserver": fake.url, "user": fake.bot.user_id, "access_token": fake.token}
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps({"serve": {"adapters": [{"platform": "matrix", **account}]}}))
    config = load_config(file)
    for health in (Health.GOOD, Health.WARNING):
        (found,) = [one async for one in examine_adapters(config, None, online=True)]
        assert (found.told, found.health) == ("connects", health)
        fake.encrypts("ann")
    assert found.what_next is not None
    assert "messages in 1 encrypted room cannot be read: pip install" in found.what_next


async def test_a_bot_without_keys_says_what_to_set_up(
    fake: FakeMatrix, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    client = nio.AsyncClient(fake.url)
    client.restore_login(fake.bot.user_id, "BOTDEVICE", fake.token)
    adapter = MatrixAdapter(client)
    fake.encrypts("ann")
    async with adapter.connect(Inbox()):
        await fake.wait_until(lambda: fake.syncs)
        assert "messages in 1 encrypted room cannot be read: pip install" in caplog.text
        assert adapter.advice() is not None
        fake.encrypts("bob")
        await fake.wait_until(lambda: "messages in 2 encrypted rooms cannot be read" in caplog.text)
        file = Attachment(kind=AttachmentKind.DOCUMENT, url="mxc://fake.example/m#key=a&iv=b&sha256=c")
        fake.endpoints.media["m"] = MediaFile(b"x", "image/png")
        with pytest.raises(InvalidInputError, match="the file is encrypted, and this account has no keys"):
            await adapter.fetch(file)
        target = ReplyTarget(platform="matrix", chat_id=fake.room("bob").id)
        with pytest.raises(DeliveryRefusedError, match="the room is encrypted, and this account cannot"):
            await adapter.send(target, OutboundMessage(text="x"), idempotency_key="k")
    await client.close()
