"""Two principals never share a session: whatever their ids look like, and whatever was configured before."""

from __future__ import annotations

import json
from itertools import product

import pytest

from gateway_sessions import SessionSource
from gateway_sessions.core.identity.keys import Isolation
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import (
    all_stored_entries,
    dm_source,
    open_store,
    quick_config,
    stored_entry,
)

CHATS = ("", "C", "C:7", "C%3A7", "7", "c", "é", "e\u0301")
SOURCES = [
    SessionSource(platform="slack", chat_type=chat_type, chat_id=chat, user_id=user, thread_id=thread)
    for chat_type, chat, user, thread in product(("dm", "group"), CHATS, (None, "7", "C"), (None, "7"))
    if chat or user or thread
]
FLAGS = list(product((True, False), (True, False)))


def conversation(source: SessionSource, flags: Isolation) -> tuple[object, ...]:
    """Who and where in plain words."""
    place = (source.chat_type, source.chat_id, source.thread_id)
    if source.chat_type == "dm":
        return (*place, None if source.chat_id else source.user_id)
    return (*place, source.user_id if flags.separates_people(source) else None)


async def sessions_of(store, sources=SOURCES) -> list[str]:
    return [(await store.get_or_create_session(source)).session_id for source in sources]


@pytest.mark.parametrize(("group", "thread"), FLAGS)
async def test_sources_share_a_session_exactly_if_they_are_in_one_conversation(home, clock, group, thread):
    flags = Isolation(group_sessions_per_user=group, thread_sessions_per_user=thread)
    config = quick_config(group_sessions_per_user=group, thread_sessions_per_user=thread)
    async with open_store(home, config, clock) as store:
        found = await sessions_of(store)
        again = await sessions_of(store)
    by_conversation = dict(zip([conversation(one, flags) for one in SOURCES], found, strict=True))
    assert [by_conversation[conversation(one, flags)] for one in SOURCES] == found == again
    assert len(set(found)) == len(by_conversation)


async def test_turning_flags_on_and_off_hands_nobody_s_private_session_to_somebody_else(home, clock):
    users: dict[str, set[str | None]] = {}
    private: set[str] = set()
    for group, thread in [*FLAGS, *FLAGS[::-1], *FLAGS]:
        flags = Isolation(group_sessions_per_user=group, thread_sessions_per_user=thread)
        config = quick_config(group_sessions_per_user=group, thread_sessions_per_user=thread)
        async with open_store(home, config, clock) as store:
            for source, session in zip(SOURCES, await sessions_of(store), strict=True):
                if flags.separates_people(source) and source.chat_type == "group" and source.user_id:
                    private.add(session)
                users.setdefault(session, set()).add(source.user_id)
    assert private
    assert {session: users[session] for session in private if len(users[session]) > 1} == {}


async def test_whoever_comes_first_has_the_plain_key_and_keeps_it(store):
    direct, nameless = dm_source("5"), SessionSource(platform="telegram", user_id="5")
    first = await store.get_or_create_session(direct)
    second = await store.get_or_create_session(nameless)
    assert first.session_key == "agent:main:telegram:dm:5"
    assert second.session_key == "agent:main:telegram:dm:%user:5"
    assert (await store.get_or_create_session(direct)).session_id == first.session_id
    assert (await store.get_or_create_session(nameless)).session_id == second.session_id


async def test_who_had_to_give_way_keeps_the_lane_when_the_plain_key_is_free(store, clock):
    direct, nameless = dm_source("5"), SessionSource(platform="telegram", user_id="5")
    first = await store.get_or_create_session(direct)
    second = await store.get_or_create_session(nameless)
    clock.step(days=2)
    await store.update_session(second.session_key)
    assert await store.prune_old_entries(1) == 1
    assert (await store.get_or_create_session(nameless)).session_id == second.session_id
    back = await store.get_or_create_session(direct)
    assert back.session_key == first.session_key
    assert back.session_id != first.session_id


class TestEntriesWithoutAnOrigin:
    """Such come from other programs' files. The first who asks is the owner from then on."""

    KEY = "agent:main:telegram:dm:5"

    async def taken_in(self, home, clock):
        home.mkdir()
        entry = {
            "session_id": "old",
            "created_at": "2026-01-01T00:00:00",
            "updated_at": "2026-01-01T00:00:00",
        }
        (home / "sessions.json").write_text(json.dumps({self.KEY: entry}))
        return open_store(home, clock=clock)

    @pytest.mark.parametrize("touch", [True, False])
    async def test_only_the_first_who_asks_is_given_it(self, home, clock, touch):
        async with await self.taken_in(home, clock) as store:
            first = await store.get_or_create_session(dm_source("5"), touch=touch)
            second = await store.get_or_create_session(SessionSource(platform="telegram", user_id="5"))
            assert first.session_id == "old"
            assert second.session_id != "old"
            assert await stored_entry(store, self.KEY) == first

    async def test_it_belongs_to_who_asked(self, home, clock):
        async with await self.taken_in(home, clock) as store:
            entry = await store.get_or_create_session(dm_source("5"))
        assert entry.origin == dm_source("5")
        assert entry.owner == "main:telegram:user:alice"
        assert execute_sql(home / "sessions.db", "SELECT owner FROM sessions") == [
            ("main:telegram:user:alice",)
        ]


class TestAliases:
    """A person with several ids has one lane, whichever id comes first."""

    NAMES = ("1555@s.whatsapp.net", "999@lid", "+1555", "999:4@lid")

    async def resolve(self, platform: str, identifier: str) -> str:
        return {"999": "1555"}.get(identifier, identifier)

    @pytest.mark.parametrize("first", range(len(NAMES)))
    async def test_all_their_ids_lead_to_one_session(self, home, clock, first):
        names = self.NAMES[first:] + self.NAMES[:first]
        async with open_store(home, clock=clock, aliases=self.resolve) as store:
            for chat_type, member in (("dm", "chat_id"), ("group", "user_id")):
                place = {"chat_type": chat_type, "chat_id": "120@g.us"}
                found = [
                    await store.get_or_create_session(
                        SessionSource(platform="whatsapp", **(place | {member: name}))
                    )
                    for name in (*names, *names)
                ]
                assert len({one.session_id for one in found}) == 1
            assert len(await all_stored_entries(store)) == 2

    async def test_somebody_else_has_another_one(self, home, clock):
        async with open_store(home, clock=clock, aliases=self.resolve) as store:
            found = [
                await store.get_or_create_session(SessionSource(platform="whatsapp", chat_id=f"{name}@lid"))
                for name in ("999", "1555", "1556")
            ]
        assert found[0].session_id == found[1].session_id != found[2].session_id

    async def test_without_aliases_each_id_has_its_own(self, home, clock):
        async with open_store(home, clock=clock) as store:
            found = [
                await store.get_or_create_session(SessionSource(platform="whatsapp", chat_id=name))
                for name in self.NAMES
            ]
        assert len({one.session_id for one in found}) == 2
