"""What goes, what stays, and that nothing is left of what went."""

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway_sessions import SessionBusyError, SessionDB, SessionStore
from gateway_sessions.errors import SessionOnLaneError
from gateway_sessions.sessions import Relation
from gateway_sessions.storage.api.retention import RetentionMethods
from gateway_sessions.storage.transactions.sessions import remove as transactions
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import dm_source, lease_lane, open_store, release_lane

NOW = datetime(2026, 6, 1, tzinfo=UTC)
TABLES = ("messages", "totals", "usage_events", "transitions", "hook_calls")


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB.open(tmp_path / "sessions.db", clock=FakeClock(NOW), survives_power_cut=False) as db:
        yield db


async def begin(db: SessionDB, session_id: str, *, days: float, messages: int = 1, **members: object) -> None:
    began = NOW - timedelta(days=days)
    await db.create_session(session_id, "telegram", started_at=began, **members)  # type: ignore[arg-type]
    said = [
        {"role": "user", "content": f"hello {n}", "timestamp": began.timestamp()} for n in range(messages)
    ]
    if said:
        await db.append_messages(session_id, said)


def rows(db: SessionDB, sql: str) -> list[tuple[object, ...]]:
    return execute_sql(db.path, sql)


def there(db: SessionDB) -> set[object]:
    return {row[0] for row in rows(db, "SELECT session_id FROM sessions")}


def orphans(db: SessionDB) -> dict[str, int]:
    """Rows that belong to no session."""
    found = {
        table: len(
            rows(db, f"SELECT 1 FROM {table} WHERE session_id NOT IN (SELECT session_id FROM sessions)")  # noqa: S608 -- a table of ours
        )
        for table in TABLES
    }
    found["versions"] = len(
        rows(db, "SELECT 1 FROM message_versions WHERE message_id NOT IN (SELECT message_id FROM messages)")
    )
    found["parents"] = len(
        rows(
            db,
            "SELECT 1 FROM sessions WHERE parent_session_id IS NOT NULL"
            " AND parent_session_id NOT IN (SELECT session_id FROM sessions)",
        )
    )
    found["leftovers"] = len(rows(db, "SELECT 1 FROM meta WHERE name LIKE 'left_over%'"))
    return {table: count for table, count in found.items() if count}


async def test_a_deleted_session_leaves_no_row(db: SessionDB):
    await begin(db, "a", days=3, messages=3)
    await db.append_message("a", "user", "first", platform_message_id="p1")
    await db.edit_message("a", "p1", "second")
    await db.record_usage("a", "e1", model="m", input_tokens=3)
    await begin(db, "b", days=3)
    assert await db.delete_session("a") is True
    assert await db.delete_session("a") is False
    assert there(db) == {"b"}
    assert orphans(db) == {}
    assert await db.message_count("b") == 1


async def test_a_sub_agent_goes_along_and_other_children_stand_for_themselves(db: SessionDB):
    await begin(db, "a", days=3)
    await begin(db, "delegate", days=3, parent_session_id="a", relation=Relation.DELEGATE)
    await begin(db, "deeper", days=3, parent_session_id="delegate", relation=Relation.DELEGATE)
    await begin(db, "further", days=3, parent_session_id="deeper", relation=Relation.CONTINUATION)
    await begin(db, "branch", days=3, parent_session_id="a", relation=Relation.BRANCH)
    await begin(db, "next", days=3, parent_session_id="a", relation=Relation.CONTINUATION)
    assert await db.delete_session("a")
    assert there(db) == {"branch", "next"}
    assert orphans(db) == {}
    branch = await db.get_session("branch")
    assert branch is not None
    assert (branch.parent_session_id, branch.relation) == (None, None)


async def test_the_session_of_a_lane_is_not_deleted(tmp_path: Path, fake_clock: FakeClock):
    async with open_store(tmp_path, clock=fake_clock) as store:
        entry = await store.get_or_create_session(dm_source("1"))
        with pytest.raises(SessionOnLaneError):
            await store.db.delete_session(entry.session_id)
        lease_lane(tmp_path, entry.session_key)
        with pytest.raises(SessionBusyError):
            await store.db.delete_session(entry.session_id)
        release_lane(tmp_path, entry.session_key)
        await store.db.create_session("helper", "telegram")
        await store.reset_session(entry.session_key)
        assert await store.db.delete_session(entry.session_id)
        assert orphans(store.db) == {}


async def test_a_session_on_a_lane_protects_what_it_was_delegated_by(tmp_path: Path, fake_clock: FakeClock):
    async with open_store(tmp_path, clock=fake_clock) as store:
        entry = await store.get_or_create_session(dm_source("1"))
        await store.db.create_session("parent", "telegram")
        execute_sql(
            tmp_path / "sessions.db",
            "UPDATE sessions SET parent_session_id = 'parent', relation = 'delegate' WHERE session_id = ?",
            entry.session_id,
        )
        with pytest.raises(SessionOnLaneError):
            await store.db.delete_session("parent")
        assert await store.db.get_session("parent")


async def test_a_large_session_is_gone_at_once_and_its_messages_piece_by_piece(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(transactions, "PIECE", 10)
    await begin(db, "large", days=3, messages=35)
    gone = await db.write(lambda: transactions.delete_session("large", db.ownership.change_ids))
    assert gone == ["large"]
    assert await db.get_session("large") is None
    assert orphans(db) == {"messages": 25, "leftovers": 1}
    assert await db.finish_removals() == 25
    assert orphans(db) == {}
    assert await db.finish_removals() == 0


async def test_the_search_index_is_told_of_every_message(db: SessionDB):
    await begin(db, "a", days=3, messages=4)
    ids = {row[0] for row in rows(db, "SELECT message_id FROM messages")}
    before = len(rows(db, "SELECT 1 FROM index_changes"))
    await db.write(lambda: transactions.delete_session("a", db.ownership.change_ids))
    changed = rows(db, "SELECT message_id FROM index_changes")
    assert before == 0
    assert {row[0] for row in changed} in (ids, set())  # an index that is quick has taken it in already


async def test_what_is_used_between_choice_and_removal_stays(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    await begin(db, "a", days=100)
    await begin(db, "b", days=100)
    plain = RetentionMethods._remove_groups  # noqa: SLF001 -- the moment between choice and removal

    async def used_meanwhile(self, groups, progress, **options):
        await db.set_session_pinned("a")
        return await plain(self, groups, progress, **options)

    monkeypatch.setattr(RetentionMethods, "_remove_groups", used_meanwhile)
    report = await db.prune_sessions(unended=True)
    assert (report.session_ids, report.kept_in_use) == (("b",), ("a",))


async def test_what_hooks_are_still_owed_stays(tmp_path: Path, fake_clock: FakeClock):
    async def down(_event: object) -> None:
        raise ConnectionError

    async with open_store(tmp_path, clock=fake_clock, hooks=[down]) as store:
        await one_that_ended(store)
        later = fake_clock.now() + timedelta(days=100)
        assert (await store.db.prune_sessions(now=later)).session_ids == ()
        await fake_clock.advance()  # the first try is noted
        execute_sql(tmp_path / "sessions.db", "UPDATE hook_calls SET state = 'dead'")
        assert len((await store.db.prune_sessions(now=later)).session_ids) == 1
        assert orphans(store.db) == {}


async def test_a_lane_keeps_its_session_and_can_lose_those_before(tmp_path: Path, fake_clock: FakeClock):
    async with open_store(tmp_path, clock=fake_clock) as store:
        current = await one_that_ended(store)
        later = fake_clock.now() + timedelta(days=100)
        gone = (await store.db.prune_sessions(now=later)).session_ids
        assert len(gone) == 1
        assert await store.peek_session_id(current) not in gone
        assert orphans(store.db) == {}
        assert (await store.explain(current)).entry is not None


async def one_that_ended(store: SessionStore) -> str:
    entry = await store.get_or_create_session(dm_source("1"))
    await store.reset_session(entry.session_key)
    return entry.session_key


async def test_a_dry_run_names_exactly_what_goes(db: SessionDB):
    chance = random.Random(5)
    names: list[str] = []
    for number in range(120):
        parent = chance.choice(names) if names and chance.random() < 0.5 else None
        relation = chance.choice(["succession", "branch", "delegate"]) if parent else None
        name = f"s{number:03}"
        await begin(
            db,
            name,
            days=chance.uniform(0, 200),
            messages=chance.randrange(3),
            parent_session_id=parent,
            relation=relation,
        )
        if chance.random() < 0.1:
            await db.set_session_pinned(name)
        names.append(name)
    for options in (
        {"older_than_days": 150},
        {"older_than_days": 120, "relation": "delegate"},
        {"older_than_days": None, "max_count": 60},
        {"older_than_days": None, "max_bytes": 400},
        {"older_than_days": 1, "only_empty": True},
        {"older_than_days": 1},
    ):
        before = there(db)
        dry = await db.prune_sessions(dry_run=True, **options)  # type: ignore[arg-type]
        assert there(db) == before
        real = await db.prune_sessions(**options)  # type: ignore[arg-type]
        assert (real.session_ids, real.messages, real.text_bytes) == (
            dry.session_ids,
            dry.messages,
            dry.text_bytes,
        )
        assert before - there(db) == set(real.session_ids)
        assert orphans(db) == {}
    pinned = {row[0] for row in rows(db, "SELECT session_id FROM sessions WHERE pinned = 1")}
    assert pinned <= there(db)


async def test_a_vacuum_gives_room_back_and_empties_the_log(db: SessionDB):
    await begin(db, "large", days=3, messages=2000)
    await db.delete_session("large")
    report = await db.vacuum()
    assert report.bytes_after < report.bytes_before
    assert report.log_emptied
    assert db.path.with_name("sessions.db-wal").stat().st_size == 0
    await db.optimise()
    await begin(db, "after", days=1)
    assert await db.message_count("after") == 1


async def test_a_reader_of_an_old_moment_keeps_the_log(tmp_path: Path):
    async with SessionDB.open(tmp_path / "sessions.db", survives_power_cut=False) as db:
        await db.create_session("a", "telegram")
        async with db.view():
            await db.create_session("b", "telegram")
            assert not (await db.vacuum()).log_emptied
        assert (await db.vacuum()).log_emptied
