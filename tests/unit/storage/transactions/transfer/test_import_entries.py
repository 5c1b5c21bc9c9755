"""An import that was cut off, and a file that has changed before it is taken up again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gateway_sessions import SessionEntry, SessionStore
from gateway_sessions.storage.tables.change import Actor
from gateway_sessions.storage.transactions.transfer import import_entries
from gateway_sessions.testing import FakeClock
from tests.unit.runtime.store_fixtures import dm_source, open_store


def entry(key: str, session_id: str, clock: FakeClock) -> SessionEntry:
    now = clock.now()
    return SessionEntry(
        session_key=key, session_id=session_id, created_at=now, updated_at=now, last_interaction_at=now
    )


async def take_in(store: SessionStore, *entries: SessionEntry) -> int:
    context = store._parts.context  # noqa: SLF001 -- an import has no public form
    return await context.apply(Actor.IMPORT, partial(import_entries.import_entries, entries=entries))


async def test_a_session_that_another_lane_has_by_now_stays_there_and_the_lane_is_told(
    tmp_path: Path, fake_clock: FakeClock
):
    first, second = "agent:main:telegram:dm:1", "agent:main:telegram:dm:2"
    async with open_store(tmp_path, clock=fake_clock) as store:
        assert await take_in(store, entry(first, "shared", fake_clock)) == 1
        assert await take_in(store, entry(second, "shared", fake_clock)) == 0
        assert await store.peek_session_id(first) == "shared"
        new = await store.get_or_create_session(dm_source("2"))
    assert (new.auto_reset_reason, new.previous_session_id) == ("moved", "shared")
