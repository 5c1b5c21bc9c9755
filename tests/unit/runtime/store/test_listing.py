"""Reads that cross lanes show exactly what the one who asks may see."""

from __future__ import annotations

import random

import pytest

from gateway_sessions import InvalidInputError, Scope, SessionSource
from gateway_sessions.core.identity.keys import Isolation, session_owner
from tests.unit.runtime.store_fixtures import (
    EVERYTHING,
    all_stored_entries,
    dm_source,
    group_source,
    open_store,
    pass_time,
    quick_config,
)


async def keys(store, scope=EVERYTHING, **options) -> list[str]:
    return [
        one.session_key.removeprefix("agent:main:telegram:")
        for one in await store.list_sessions(scope=scope, **options)
    ]


async def fill(store, clock, *sources: SessionSource) -> None:
    for source in sources:
        pass_time(clock, minutes=1)
        await store.get_or_create_session(source)


class TestOrder:
    async def test_the_latest_written_comes_first(self, store, clock):
        await fill(store, clock, dm_source("a"), dm_source("b"), dm_source("c"), dm_source("a"))
        assert await keys(store) == ["dm:a", "dm:c", "dm:b"]

    async def test_at_one_instant_the_lane_that_is_there_longest_comes_last(self, store):
        for chat in "bca":
            await store.get_or_create_session(dm_source(chat))
        assert await keys(store) == ["dm:a", "dm:c", "dm:b"]

    async def test_only_what_was_written_lately_if_that_is_asked_for(self, store, clock):
        await fill(store, clock, dm_source("a"), dm_source("b"), dm_source("c"))
        assert await keys(store, active_minutes=1) == ["dm:c", "dm:b"]
        assert await keys(store, active_minutes=0) == ["dm:c"]

    async def test_an_empty_store_lists_nothing(self, store):
        assert await store.list_sessions(scope=EVERYTHING) == []


class TestPages:
    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    async def test_pages_together_are_the_whole(self, store, clock, size):
        await fill(store, clock, *(dm_source(str(number // 2)) for number in range(14)))
        pages, after = [], None
        while page := await store.list_sessions(scope=EVERYTHING, limit=size, after=after):
            assert len(page) <= size
            pages += page
            after = page[-1]
        assert pages == await store.list_sessions(scope=EVERYTHING)
        assert len(pages) == 7

    @pytest.mark.parametrize("limit", [0, -1])
    async def test_a_page_of_nothing_is_refused(self, store, limit):
        with pytest.raises(InvalidInputError, match="limit"):
            await store.list_sessions(scope=EVERYTHING, limit=limit)


class TestScope:
    async def test_a_person_sees_their_own_sessions_and_those_of_the_room_they_are_in(self, home, clock):
        config = quick_config(group_sessions_per_user=True, thread_sessions_per_user=False)
        async with open_store(home, config, clock) as store:
            thread = group_source("g", "alice", thread_id="t")
            await fill(
                store,
                clock,
                dm_source("1"),
                dm_source("2", "bob"),
                group_source("g"),
                group_source("g", "bob"),
                thread,
            )
            assert await keys(store, Scope.of(dm_source("1"))) == ["group:g:alice", "dm:1"]
            assert await keys(store, Scope.of(thread)) == ["group:g:t", "group:g:alice", "dm:1"]
            assert await keys(store, Scope.of(group_source("g", "bob", thread_id="t"))) == [
                "group:g:t",
                "group:g:bob",
                "dm:2",
            ]
            assert await keys(store, Scope.lane("agent:main:telegram:dm:2")) == ["dm:2"]
            assert await keys(store, Scope()) == []

    async def test_a_scope_has_to_be_given(self, store):
        with pytest.raises(TypeError, match="scope"):
            await store.list_sessions()

    @pytest.mark.parametrize("seed", range(4))
    async def test_no_tenant_ever_sees_a_row_of_another(self, home, clock, seed):
        """Random lanes of two people who share some rooms: pages of each hold exactly what is theirs."""
        chance = random.Random(seed)
        flags = Isolation(group_sessions_per_user=chance.random() < 0.5)
        sources = [
            SessionSource(
                platform=chance.choice(["telegram", "slack"]),
                chat_type=chance.choice(["dm", "group", "thread"]),
                chat_id=chance.choice(["", "1", "2", "1:2", "%chat"]),
                user_id=chance.choice([None, "alice", "bob", "1"]),
                thread_id=chance.choice([None, None, "1"]),
            )
            for _ in range(120)
        ]
        sources = [one for one in sources if one.has_identifier]
        async with open_store(
            home, quick_config(group_sessions_per_user=flags.group_sessions_per_user), clock
        ) as store:
            await fill(store, clock, *sources)
            lanes = await all_stored_entries(store)
            for asking in sources[:12]:
                scope = Scope.of(asking, flags)
                seen = await store.list_sessions(scope=scope, limit=7)
                while len(
                    page := await store.list_sessions(scope=scope, limit=7, after=seen[-1] if seen else None)
                ):
                    seen += page
                allowed = {
                    key for key, one in lanes.items() if session_owner(one.origin, flags) in scope.owners
                }
                assert {one.session_key for one in seen} == allowed
                assert len(seen) == len(allowed)
                for one in lanes.values():
                    found = await store.lookup_by_session_id(one.session_id, scope=scope)
                    assert (found is not None) == (one.session_key in allowed)


class TestLookup:
    async def test_a_session_is_found_by_its_id(self, store):
        entry = await store.get_or_create_session(dm_source())
        assert await store.lookup_by_session_id(entry.session_id, scope=Scope.of(dm_source())) == entry

    async def test_an_ended_or_unknown_or_empty_id_finds_nothing(self, store):
        old = await store.get_or_create_session(dm_source())
        await store.reset_session(old.session_key)
        for session_id in (old.session_id, "nowhere", "", None):
            assert await store.lookup_by_session_id(session_id, scope=EVERYTHING) is None

    async def test_an_id_out_of_sight_finds_nothing(self, store):
        entry = await store.get_or_create_session(dm_source())
        assert (
            await store.lookup_by_session_id(entry.session_id, scope=Scope.of(dm_source("2", "bob"))) is None
        )


class TestPeek:
    async def test_it_touches_nothing(self, store, clock):
        entry = await store.get_or_create_session(dm_source())
        pass_time(clock, minutes=1)
        assert await store.peek_session_id(entry.session_key) == entry.session_id
        assert await store.get_session(entry.session_key) == entry

    async def test_an_unknown_lane_has_none(self, store):
        assert await store.peek_session_id("agent:main:x:dm:1") is None
        assert await store.get_session("agent:main:x:dm:1") is None


class TestHasAny:
    async def test_there_are_none_before_the_first(self, store):
        assert await store.has_any_sessions() is False
        await store.get_or_create_session(dm_source())
        assert await store.has_any_sessions() is True

    async def test_a_forgotten_session_has_been_one(self, store, clock):
        await store.get_or_create_session(dm_source())
        pass_time(clock, days=2)
        await store.prune_old_entries(1)
        assert await store.has_any_sessions() is True
