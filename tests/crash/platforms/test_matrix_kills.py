"""A Matrix bot that is killed again and again, on a homeserver at its worst, loses and doubles nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions.testing.fakes.matrix import FakeMatrix
from tests.crash.platforms.kill_sweep import (
    BOTS,
    LONG,
    PEOPLE,
    SHORT,
    SweptPlatform,
    sweep_long,
    sweep_short,
)
from tests.integration.platforms.matrix.person import person


class SweptMatrix(SweptPlatform):
    sends = frozenset({"send"})
    reads: tuple[str, ...] = ("sync", "joined_members", "messages")

    def __init__(self, fake: FakeMatrix, home: Path, *options: str) -> None:
        account = (fake.url, fake.bot.user_id, fake.token)
        super().__init__(fake, f"{BOTS}.matrix_bot", str(home), *account, *options)

    def is_begun(self) -> object:
        return self.fake.syncs


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_five_hundred_messages_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeMatrix() as fake:
        await sweep_long(SweptMatrix(fake, tmp_path), record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_twenty_messages_lose_nothing(tmp_path: Path):
    async with FakeMatrix() as fake:
        await sweep_short(SweptMatrix(fake, tmp_path))


# In encrypted rooms


class SweptEncryptedMatrix(SweptMatrix):
    """People have clients of their own: what they cannot read was not said.

    The calls that exchange keys do not fail here: people make them as well, and matrix-nio never gives a key
    out again that a failing call was to bring.
    """

    def __init__(self, fake: FakeMatrix, home: Path, people: Mapping[str, Any]) -> None:
        super().__init__(fake, home, "encrypted")
        self._people = people

    def is_begun(self) -> object:
        return self.fake.syncs and all(one.devices_of_bot for one in self._people.values())

    def says(self, person: str, text: str) -> None:
        self._people[person].will_say(text)

    def texts(self, person: str) -> list[str]:
        return self._people[person].texts


@asynccontextmanager
async def encrypted(fake: FakeMatrix, home: Path) -> AsyncIterator[SweptEncryptedMatrix]:
    async with AsyncExitStack() as stack:
        people = {name: await stack.enter_async_context(person(fake, name)) for name in PEOPLE}
        yield SweptEncryptedMatrix(fake, home, people)
        assert {name: one.unreadable for name, one in people.items()} == {name: [] for name in PEOPLE}


@pytest.mark.soak
@pytest.mark.timeout(LONG)
async def test_fifty_kills_in_encrypted_rooms_lose_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
):
    async with FakeMatrix() as fake, encrypted(fake, tmp_path) as swept:
        await sweep_long(swept, record_property)


@pytest.mark.timeout(SHORT)
async def test_three_kills_in_encrypted_rooms_lose_nothing(tmp_path: Path):
    async with FakeMatrix() as fake, encrypted(fake, tmp_path) as swept:
        await sweep_short(swept)
