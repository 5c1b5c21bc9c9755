"""A person on a fake homeserver with a client of their own, which encrypts as real ones do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nio
from nio.store import SqliteMemoryStore

from gateway_sessions.testing.fakes.matrix import FakeMatrix

_numbers = itertools.count(1)


class MatrixPerson:
    """Writes to the bot in an encrypted room for the two of them, and reads what it writes."""

    def __init__(self, fake: FakeMatrix, name: str, device: str) -> None:
        self.fake, self.name = fake, name
        config = nio.AsyncClientConfig(store=SqliteMemoryStore)
        self.client = nio.AsyncClient(fake.url, config=config)
        self.user_id = fake.rooms.person(name).user_id
        self.client.restore_login(self.user_id, device, fake.logs_in(name, device))
        self.client.add_event_callback(self._hear, nio.RoomMessage)
        self.client.add_event_callback(self._cannot_hear, nio.MegolmEvent)
        self.heard: dict[str, dict[str, Any]] = {}
        self.unreadable: list[str] = []
        self.seen: set[str] = set()
        self._order: asyncio.Queue[str] = asyncio.Queue()
        self._work: list[asyncio.Task[None]] = []

    @property
    def texts(self) -> list[str]:
        """What the bot has said, with its last edits, without notices."""
        for task in self._work:
            if task.done():
                task.result()
        return [one["body"] for one in self.heard.values() if one["msgtype"] != "m.notice"]

    @property
    def notices(self) -> list[str]:
        return [one["body"] for one in self.heard.values() if one["msgtype"] == "m.notice"]

    @property
    def devices_of_bot(self) -> list[str]:
        return [one.id for one in self.client.device_store.active_user_devices(self.fake.bot.user_id)]

    async def has_seen_all(self) -> None:
        """Wait until all that the bot has written was read."""

        def written() -> set[str]:
            events = [one.json for one in self.fake.room(self.name).events]
            sent = [one for one in events if one["type"] in ("m.room.message", "m.room.encrypted")]
            return {one["event_id"] for one in sent if one["sender"] == self.fake.bot.user_id}

        await self.fake.wait_until(lambda: written() <= self.seen)

    async def says(self, text: str, **content: Any) -> str:
        """Write a message; return the id of its event."""
        return await self.sends({"msgtype": "m.text", "body": text, **content})

    async def sends(self, content: dict[str, Any], kind: str = "m.room.message") -> str:
        await self._has_learned_devices()
        room_id, transaction = self.fake.room(self.name).id, f"{self.name}{next(_numbers)}"
        while True:
            sent = await self.client.room_send(
                room_id, kind, dict(content), transaction, ignore_unverified_devices=True
            )
            if isinstance(sent, nio.RoomSendResponse):
                return sent.event_id
            await asyncio.sleep(0.01)

    async def _has_learned_devices(self) -> None:
        """Wait until the client knows the bot's devices: it gives its keys to no others.

        A client learns of a new device by a sync and a query behind it. Who writes before that writes what
        the device cannot read.
        """
        there = self.fake.endpoints.keys.devices
        await self.fake.wait_until(
            lambda: {*there.get(self.fake.bot.user_id, {})} <= {*self.devices_of_bot}, seconds=30
        )

    def will_say(self, text: str) -> None:
        """Write as soon as the messages before are written."""
        self._order.put_nowait(text)

    async def _sync(self) -> None:
        """Sync as `sync_forever` does, in this task alone."""
        client = self.client
        await client.sync(full_state=True)
        while True:
            if client.should_upload_keys:
                await client.keys_upload()
            if client.should_query_keys:
                await client.keys_query()
            if client.should_claim_keys:
                await client.keys_claim(client.get_users_for_key_claiming())
            for message in [*client.outgoing_to_device_messages]:
                await client.to_device(message)
            await client.sync(timeout=1000)

    async def _write(self) -> None:
        while True:
            await self.says(await self._order.get())

    def _hear(self, room: nio.MatrixRoom, event: nio.RoomMessage) -> None:
        if event.sender != self.fake.bot.user_id:
            return
        assert event.decrypted, "the bot has written in plain text"
        self.seen.add(event.event_id)
        content = event.source["content"]
        relation = content.get("m.relates_to", {})
        if relation.get("rel_type") == "m.replace":
            self.heard[relation["event_id"]] = content["m.new_content"]
        else:
            self.heard[event.event_id] = content

    def _cannot_hear(self, room: nio.MatrixRoom, event: nio.MegolmEvent) -> None:
        if event.sender == self.fake.bot.user_id:
            self.unreadable.append(event.event_id)

    @asynccontextmanager
    async def online(self) -> AsyncIterator[None]:
        syncing = asyncio.create_task(self._sync())
        writing = asyncio.create_task(self._write())
        self._work = [syncing, writing]
        try:
            known = self.fake.endpoints.keys.devices
            await self.fake.wait_until(
                lambda: self.client.device_id in known.get(self.user_id, {}), seconds=30
            )
            yield
        finally:
            for task in (syncing, writing):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await self.client.close()


@asynccontextmanager
async def person(fake: FakeMatrix, name: str, device: str = "PHONE") -> AsyncIterator[MatrixPerson]:
    """A person whose room with the bot is encrypted."""
    one = MatrixPerson(fake, name, f"{name}-{device}")
    if not fake.room(name).state().get(("m.room.encryption", "")):
        fake.encrypts(name)
    async with one.online():
        yield one
