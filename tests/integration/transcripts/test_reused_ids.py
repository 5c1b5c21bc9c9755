"""A session that is made anew under the id of one that is still being removed has nothing to do with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionDB, SessionStore
from gateway_sessions.errors import StorageUnavailableError
from gateway_sessions.operator import check_store, repair_store
from gateway_sessions.storage.transactions.sessions import remove
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.store_fixtures import open_store

SUMMARY = [{"role": "user", "content": "new"}]


async def in_the_middle(db: SessionDB) -> None:
    """Remove a large session, and fail when its row is gone and most of its messages are not."""
    await db.create_session("big", "cli", user_id="alice")
    await db.append_messages("big", [{"role": "user", "content": f"old {n}"} for n in range(30)])

    async def fail(_db: SessionDB) -> int:
        raise StorageUnavailableError("disk", "gone for a moment")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionDB, "finish_removals", fail)
        with pytest.raises(StorageUnavailableError):
            await db.delete_session("big")


@pytest.fixture
async def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SessionDB]:
    monkeypatch.setattr(remove, "PIECE", 10)
    async with SessionDB.open(tmp_path / "sessions.db", survives_power_cut=False) as opened:
        await opened.create_session("parent", "cli", user_id="alice")
        yield opened


async def made(db: SessionDB) -> None:
    await db.create_session("big", "cli", user_id="alice")
    await db.append_message("big", "user", "new")


async def split(db: SessionDB) -> None:
    await db.split_session("parent", "big", SUMMARY)


async def taken_in(db: SessionDB) -> None:
    given = {"session_id": "big", "source": "cli", "started_at": "2026-01-01T00:00:00Z", "messages": SUMMARY}
    assert (await db.import_sessions([given])).imported == 1


@pytest.mark.parametrize("way", [made, split, taken_in])
async def test_a_new_session_keeps_what_is_its_own_and_shows_nothing_else(
    db: SessionDB, way: Callable[[SessionDB], Awaitable[None]]
):
    await in_the_middle(db)
    await way(db)
    assert await db.finish_removals() == 0
    assert [one.content for one in await db.get_messages("big")] == ["new"]
    await db.catch_up_search_index()
    assert not (await db.search_messages("old", scope=Scope.operator())).hits


async def test_one_that_removes_does_not_go_on_with_the_new_session(db: SessionDB):
    await in_the_middle(db)
    await made(db)
    assert await db.write(lambda: remove.remove_leftover_messages("big", db.ownership.change_ids)) == 0
    assert await db.message_count("big") == 1


async def test_a_repair_brings_nothing_back_that_is_being_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remove, "PIECE", 10)
    async with SessionDB.open(tmp_path / "sessions.db", survives_power_cut=False) as db:
        await in_the_middle(db)
    assert (await check_store(tmp_path)).healthy
    assert (await repair_store(tmp_path)).done == ()
    async with SessionDB.open(tmp_path / "sessions.db", survives_power_cut=False) as db:
        assert await db.get_session("big") is None


async def test_a_removal_that_was_cut_off_is_finished_at_the_next_start(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remove, "PIECE", 10)

    def opened() -> SessionStore:
        return open_store(tmp_path / "home", clock=fake_clock)

    async with opened() as store:
        await in_the_middle(store.db)
    async with opened() as store:
        while await store.db.read(remove.removed_with_leftovers):
            await fake_clock.sleep(0)
        assert store.incidents == ()
