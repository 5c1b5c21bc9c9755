"""When sessions.json is written, and what a caller is told if it cannot be."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway_sessions import SessionSource
from gateway_sessions.config import SessionsJsonConfig, SnapshotMode
from gateway_sessions.core.sessions_json.entries import Dialect
from gateway_sessions.errors import SnapshotError
from tests.unit.runtime.store_fixtures import (
    all_stored_entries,
    config_with_snapshot,
    dm_source,
    open_store,
    pass_time,
    quick_config,
    stored_entry,
)


def shown(home) -> dict[str, str]:
    """The sessions that the file tells of."""
    content = json.loads((home / "sessions.json").read_text())
    return {key: one["session_id"] for key, one in content.items() if not key.startswith("_")}


async def test_in_mode_sync_a_change_is_in_the_file_before_the_call_returns(home, clock):
    async with open_store(home, config_with_snapshot(SnapshotMode.SYNC), clock) as store:
        for chat in "abc":
            entry = await store.get_or_create_session(dm_source(chat))
            assert shown(home)[entry.session_key] == entry.session_id
        new = await store.reset_session(entry.session_key)
        assert shown(home)[entry.session_key] == new.session_id
        await store.suspend_session(entry.session_key)
        assert json.loads((home / "sessions.json").read_text())[entry.session_key]["suspended"] is True
        pass_time(clock, days=2)
        await store.prune_old_entries(1)
        assert set(shown(home)) == {entry.session_key}


async def test_in_mode_coalesced_it_is_there_after_a_flush_and_after_the_end(home, clock):
    async with open_store(home, config_with_snapshot(SnapshotMode.COALESCED), clock) as store:
        first = await store.get_or_create_session(dm_source("a"))
        await store.flush()
        assert shown(home) == {first.session_key: first.session_id}
        second = await store.get_or_create_session(dm_source("b"))
    assert shown(home) == {one.session_key: one.session_id for one in (first, second)}


async def test_in_mode_coalesced_a_large_file_is_written_less_often_from_the_start(home, clock):
    home.mkdir()
    entry = {"session_id": "old", "created_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00"}
    content = json.dumps({"agent:main:telegram:dm:1": entry | {"later": "x" * 4_000_000}})
    (home / "sessions.json").write_text(content)
    async with open_store(home, config_with_snapshot(SnapshotMode.COALESCED), clock):
        pass
    async with open_store(home, config_with_snapshot(SnapshotMode.COALESCED), clock) as store:
        new = await store.get_or_create_session(dm_source("new"))
        await clock.advance(seconds=15)
        assert new.session_key not in shown(home)
        await clock.advance(seconds=15)
        assert new.session_key in shown(home)


async def test_in_mode_off_there_is_no_file(home, clock):
    async with open_store(home, config_with_snapshot(SnapshotMode.OFF), clock) as store:
        await store.get_or_create_session(dm_source())
        await store.flush()
    assert not (home / "sessions.json").exists()


async def test_in_mode_off_an_old_file_is_taken_in_and_left_alone(home, clock):
    home.mkdir()
    entry = {"session_id": "old", "created_at": "2026-01-01T00:00:00", "updated_at": "2026-01-01T00:00:00"}
    content = json.dumps({"agent:main:telegram:dm:1": entry})
    (home / "sessions.json").write_text(content)
    async with open_store(home, config_with_snapshot(SnapshotMode.OFF), clock) as store:
        assert await store.peek_session_id("agent:main:telegram:dm:1") == "old"
    assert (home / "sessions.json").read_text() == content


class TestUnwritableFile:
    """The change stands in the database: the caller must not repeat it, and nobody goes unheard."""

    @pytest.fixture
    def blocked(self, home):
        def block() -> None:
            (home / "sessions.json").unlink(missing_ok=True)
            (home / "sessions.json").mkdir()

        return block

    async def test_the_error_says_that_the_change_stands(self, home, clock, blocked):
        async with open_store(home, config_with_snapshot(SnapshotMode.SYNC), clock) as store:
            old = await store.get_or_create_session(dm_source())
            blocked()
            for call in (
                lambda: store.get_or_create_session(dm_source("2")),
                lambda: store.reset_session(old.session_key),
                lambda: store.suspend_session(old.session_key),
            ):
                with pytest.raises(SnapshotError) as caught:
                    await call()
                assert caught.value.committed
                assert caught.value.path == str(home / "sessions.json")
            lanes = await all_stored_entries(store)
            assert len(lanes) == 2
            assert lanes[old.session_key].session_id != old.session_id
            assert lanes[old.session_key].suspended
            (home / "sessions.json").rmdir()
            await store.flush()
            assert set(shown(home)) == set(lanes)

    async def test_the_session_is_found_although_its_first_caller_got_an_error(self, home, clock, blocked):
        async with open_store(home, config_with_snapshot(SnapshotMode.SYNC), clock) as store:
            await store.get_or_create_session(dm_source("0"))
            blocked()
            with pytest.raises(SnapshotError):
                await store.get_or_create_session(dm_source())
            entry = await stored_entry(store, "agent:main:telegram:dm:1")
            (home / "sessions.json").rmdir()
            assert (await store.get_or_create_session(dm_source())).session_id == entry.session_id

    async def test_in_mode_coalesced_only_a_flush_tells(self, home, clock, blocked):
        async with open_store(home, config_with_snapshot(SnapshotMode.COALESCED), clock) as store:
            await store.flush()
            blocked()
            entry = await store.get_or_create_session(dm_source())
            with pytest.raises(SnapshotError):
                await store.flush()
            (home / "sessions.json").rmdir()
        assert set(shown(home)) == {entry.session_key}


ROOM = SessionSource(platform="matrix", chat_type="group", chat_id="!r:hs.org", user_id="@u:hs.org")
DIRECT = SessionSource(platform="matrix", chat_id="@u:hs.org", user_id="@u:hs.org")
NAMED = replace(ROOM, account="support")
PERSON = SessionSource(platform="slack", chat_type="group", chat_id="C", user_id="7")
THREAD = SessionSource(platform="slack", chat_type="group", chat_id="C", thread_id="7", user_id="9")


async def test_a_file_for_hermes_has_its_keys_and_is_read_back_as_it_was(home, clock):
    """Ids with colons, two origins with one key there, and a named account: nobody loses a lane."""
    config = quick_config(sessions_json=SessionsJsonConfig(format=Dialect.HERMES))
    asked = (ROOM, DIRECT, NAMED, PERSON, THREAD)
    async with open_store(home, config, clock) as store:
        made = [await store.get_or_create_session(one) for one in asked]
        await store.flush()
        told = [one.detail for one in store.incidents if one.action == "hermes_key_taken"]
    names = {session_id: key for key, session_id in shown(home).items()}
    assert names[made[0].session_id] == "agent:main:matrix:group:!r:hs.org:@u:hs.org"
    assert names[made[1].session_id] == "agent:main:matrix:dm:@u:hs.org"
    assert names[made[3].session_id] == "agent:main:slack:group:C:7"
    assert {names[one.session_id] for one in (made[2], made[4])} == {
        one.session_key for one in (made[2], made[4])
    }
    assert [detail.split()[0] for detail in told] == sorted(one.session_key for one in (made[2], made[4]))
    for leftover in home.glob("*.db*"):
        leftover.unlink()
    async with open_store(home, config, clock) as store:
        again = [await store.get_or_create_session(one) for one in asked]
    assert [(one.session_key, one.session_id) for one in again] == [
        (one.session_key, one.session_id) for one in made
    ]


async def test_a_lane_whose_rival_has_gone_gets_the_key_of_hermes(home, clock):
    config = quick_config(sessions_json=SessionsJsonConfig(format=Dialect.HERMES))
    async with open_store(home, config, clock) as store:
        entry = await store.get_or_create_session(replace(DIRECT, account="support"))
    content = json.loads((home / "sessions.json").read_text())
    stored = content["agent:main:matrix:dm:@u:hs.org"]
    assert (stored["session_id"], stored["session_key"]) == (
        entry.session_id,
        "agent:main:matrix:dm:@u:hs.org",
    )
    for leftover in home.glob("*.db*"):
        leftover.unlink()
    async with open_store(home, config, clock) as store:
        again = await store.get_or_create_session(replace(DIRECT, account="support"))
        assert (again.session_key, again.session_id) == (entry.session_key, entry.session_id)
