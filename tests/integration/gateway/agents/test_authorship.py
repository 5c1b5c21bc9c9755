"""A gateway writes down who said what, in direct chats and in rooms, and who gave a title."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import TurnContext
from tests.integration.gateway.gateway_harness import QUICK, GatewayHarness, open_harness

pytestmark = pytest.mark.asyncio

SHARED = replace(QUICK, group_sessions_per_user=False)


async def nods(_: TurnContext) -> str:
    return "yes"


async def say(harness: GatewayHarness, person: str, text: str, chat: str | None = None) -> None:
    await harness.platform.says(person, text, chat=chat)
    await harness.wait_until_idle()


async def said(harness: GatewayHarness, session_key: str) -> list[tuple[str | None, str | None]]:
    session_id = await harness.store.peek_session_id(session_key)
    assert session_id is not None
    stored = await harness.store.db.get_messages(session_id, include_hidden=True)
    return [(one.author, one.from_lane) for one in stored if one.role == "user"]


async def test_everybody_in_a_room_is_the_author_of_what_they_say(tmp_path: Path):
    async with open_harness(tmp_path, SHARED, agent=nods) as harness:
        for person, chat in (("ann", "den"), ("ben", "den"), ("ann", None)):
            await say(harness, person, f"hello from {person}", chat)
        room, mine = harness.key("ann", "den"), harness.key("ann")
        whose = {
            name: (await harness.store.get_or_create_session(source)).owner
            for name, source in (
                ("ann", harness.platform.source("ann")),
                ("ben", harness.platform.source("ben")),
            )
        }
        assert await said(harness, room) == [(whose["ann"], room), (whose["ben"], room)]
        assert await said(harness, mine) == [(whose["ann"], mine)]


async def test_who_is_erased_takes_along_what_they_called_the_room(tmp_path: Path):
    async with open_harness(tmp_path, SHARED, agent=nods) as harness:
        await say(harness, "ben", "hello", "den")
        await say(harness, "ann", "my xyzzy", "den")
        for command in ("/title About xyzzy", "/new Again xyzzy", "/branch Once more xyzzy"):
            await say(harness, "ann", command, "den")
        assert b"Once more xyzzy" in everything(tmp_path)
        harness.clock.step(timedelta(minutes=1))
        await harness.store.erase(harness.platform.source("ann"))
        left = everything(tmp_path)
        assert (b"xyzzy" in left, b"hello" in left) == (False, True)


def everything(home: Path) -> bytes:
    return b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file())
