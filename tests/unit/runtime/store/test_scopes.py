"""What a person may see, under the rules of the store and all of their names."""

from __future__ import annotations

from gateway_sessions import SessionSource
from tests.unit.runtime.store_fixtures import dm_source, group_source, open_store, quick_config


async def test_a_person_sees_their_lanes_under_all_of_their_names(home, clock):
    async def resolve(_: str, one: str) -> str:
        return {"777": "49155"}.get(one, one)

    async with open_store(home, clock=clock, aliases=resolve) as store:
        number = SessionSource(
            platform="whatsapp", chat_id="49155@s.whatsapp.net", user_id="49155@s.whatsapp.net"
        )
        hidden = SessionSource(platform="whatsapp", chat_id="777@lid", user_id="777@lid")
        entry = await store.get_or_create_session(number)
        found = await store.list_sessions(scope=await store.scope_of(hidden))
    assert [one.session_key for one in found] == [entry.session_key]


async def test_the_stores_own_rules_decide_what_a_room_is(home, clock):
    async with open_store(home, quick_config(group_sessions_per_user=False), clock=clock) as store:
        entry = await store.get_or_create_session(group_source(user="alice"))
        bobs = await store.list_sessions(scope=await store.scope_of(group_source(user="bob")))
        elsewhere = await store.list_sessions(scope=await store.scope_of(dm_source("2", "bob")))
    assert [one.session_key for one in bobs] == [entry.session_key]
    assert elsewhere == []
