"""The adapter to Matrix passes the contract in an encrypted room, with real clients on both sides."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from blockbuster import BlockBuster
from nio.crypto.attachments import decrypt_attachment

from gateway_sessions.integrations.matrix_nio import DeviceStore, MatrixAdapter, logged_in_client
from gateway_sessions.testing.contract.adapter import (
    PATIENCE_SECONDS,
    Ability,
    AdapterBench,
    AdapterContract,
    SendFailure,
)
from gateway_sessions.testing.fakes.matrix import FakeMatrix
from tests.contract.platforms.matrix_bench import MatrixBench
from tests.integration.platforms.matrix.person import MatrixPerson, person


class EncryptedBench(MatrixBench):
    """The person is called ann, and has a client of her own."""

    def __init__(self, fake: FakeMatrix, adapter: MatrixAdapter, ann: MatrixPerson) -> None:
        super().__init__(fake, adapter)
        self.ann = ann

    async def says(self, text: str) -> bool:
        await self.writes_unheard(text)
        return await self.fake.is_taken(self.last, seconds=PATIENCE_SECONDS)

    async def writes_unheard(self, text: str) -> None:
        self.last = await self.ann.says(text)

    async def shown(self) -> str:
        await self.ann.has_seen_all()
        return "\n".join(map(self.as_read, self.ann.heard.values()))

    def as_read(self, content: dict[str, object]) -> str:
        """Return the text of a message, and the address, name and content of its file."""
        match content:
            case {
                "body": body,
                "file": {"url": str(url), "key": {"k": k}, "iv": iv, "hashes": {"sha256": h}},
            }:
                kept = self.fake.endpoints.media[url.rpartition("/")[2]].content
                return f"{body} {url} {decrypt_attachment(kept, k, h, iv).decode()}"
            case _:
                return f"{content['body']} {content.get('url', content.get('geo_uri', ''))}"


class TestEncryptedRoom(AdapterContract):
    abilities = frozenset({Ability.ACKNOWLEDGES, Ability.REDELIVERS})
    failures = frozenset(SendFailure)

    @pytest.fixture
    async def bench(self, blockbuster: BlockBuster, tmp_path: Path) -> AsyncGenerator[AdapterBench]:
        blockbuster.deactivate()  # the library writes its keys in the event loop
        async with FakeMatrix() as fake, person(fake, "ann") as ann:
            store = DeviceStore(tmp_path, "BOTDEVICE", "a passphrase")
            client = logged_in_client(fake.url, fake.bot.user_id, fake.token, store=store)
            yield EncryptedBench(fake, MatrixAdapter(client), ann)
            await client.close()
        blockbuster.activate()
