"""Whose a session is decides who finds what was said in it, also after that has changed."""

from __future__ import annotations

from pathlib import Path

from gateway_sessions import Scope
from tests.integration.search.conftest import EVERYTHING
from tests.unit.runtime.store_fixtures import dm_source, group_source, open_store


async def test_a_session_that_moved_is_found_from_its_new_lane_and_what_was_said_before_from_the_old_one(
    tmp_path: Path,
):
    here, there = dm_source("1", "alice"), group_source("g", "alice")
    async with open_store(tmp_path) as store:
        entry = await store.get_or_create_session(here)
        other = await store.get_or_create_session(there)
        await store.db.append_message(entry.session_id, "user", "docker")
        await store.db.catch_up_search_index()
        await store.switch_session(other.session_key, entry.session_id, scope=EVERYTHING, move=True)
        await store.db.append_message(entry.session_id, "user", "docker again")
        for _ in range(2):
            for lane, expected in (
                (entry.session_key, ["docker"]),
                (other.session_key, ["docker", "docker again"]),
            ):
                result = await store.db.search_messages("docker", scope=Scope.lane(lane), sort="oldest")
                assert [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in result.hits] == expected
            await store.db.catch_up_search_index()


async def test_a_session_that_gets_a_lane_is_found_from_it(tmp_path: Path):
    async with open_store(tmp_path) as store:
        await store.db.create_session("s", "cli")
        await store.db.append_message("s", "user", "docker")
        await store.db.catch_up_search_index()
        for _ in range(2):
            await store.db.create_session("s", "cli", session_key="agent:main:cli:dm:7")
            result = await store.db.search_messages("docker", scope=Scope.lane("agent:main:cli:dm:7"))
            assert [hit.session_id for hit in result.hits] == ["s"]
            await store.db.catch_up_search_index()


async def test_a_person_finds_what_they_said_anywhere_on_that_account(tmp_path: Path):
    said = {
        "alice": dm_source("1", "alice"),
        "bob": dm_source("2", "bob"),
        "alice in a group": group_source("g", "alice"),
    }
    async with open_store(tmp_path) as store:
        for name, source in said.items():
            entry = await store.get_or_create_session(source)
            await store.db.append_message(entry.session_id, "user", f"docker of {name}")
        for name, expected in (("alice", ["alice in a group", "alice"]), ("bob", ["bob"])):
            scope = await store.scope_of(said[name])
            result = await store.db.search_messages("docker", scope=scope, sort="newest")
            assert [hit.context[-1].content for hit in result.hits] == [
                f"docker of {one}" for one in expected
            ]
