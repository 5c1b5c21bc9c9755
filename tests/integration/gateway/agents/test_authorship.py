"""A gateway writes down who said what, in direct chats and in rooms, and who gave a title."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway_sessions import TurnContext
from tests.integration.gateway.gateway_harness import QUICK, House, open_house

pytestmark = pytest.mark.asyncio

SHARED = replace(QUICK, group_sessions_per_user=False)


async def nods(_: TurnContext) -> str:
    return "yes"


async def say(house: House, person: str, text: str, chat: str | None = None) -> None:
    await house.platform.says(person, text, chat=chat)
    await house.wait_until_idle()


async def said(house: House, session_key: str) -> list[tuple[str | None, str | None]]:
    session_id = await house.store.peek_session_id(session_key)
    assert session_id is not None
    stored = await house.store.db.get_messages(session_id, include_hidden=True)
    return [(one.author, one.from_lane) for one in stored if one.role == "user"]


async def test_everybody_in_a_room_is_the_author_of_what_they_say(tmp_path: Path):
    async with open_house(tmp_path, SHARED, agent=nods) as house:
        for person, chat in (("ann", "den"), ("ben", "den"), ("ann", None)):
            await say(house, person, f"hello from {person}", chat)
        room, mine = house.key("ann", "den"), house.key("ann")
        whose = {
            name: (await house.store.get_or_create_session(source)).owner
            for name, source in (("ann", house.platform.source("ann")), ("ben", house.platform.source("ben")))
        }
        assert await said(house, room) == [(whose["ann"], room), (whose["ben"], room)]
        assert await said(house, mine) == [(whose["ann"], mine)]


async def test_who_is_erased_takes_along_what_they_called_the_room(tmp_path: Path):
    async with open_house(tmp_path, SHARED, agent=nods) as house:
        await say(house, "ben", "hello", "den")
        await say(house, "ann", "my xyzzy", "den")
        for command in ("/title About xyzzy", "/new Again xyzzy", "/branch Once more xyzzy"):
            await say(house, "ann", command, "den")
        assert b"Once more xyzzy" in everything(tmp_path)
        house.clock.step(timedelta(minutes=1))
        await house.store.erase(house.platform.source("ann"))
        left = everything(tmp_path)
        assert (b"xyzzy" in left, b"hello" in left) == (False, True)


def everything(home: Path) -> bytes:
    return b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file())
