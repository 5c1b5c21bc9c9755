"""An event counts once, and every counter is the sum of its events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway_sessions import InvalidInputError, SessionStore
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import dm_source, open_store, pass_time, stored_entry

COUNTERS = (
    "input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, api_call_count,"
    " estimated_cost_usd, actual_cost_usd, cost_status, cost_source, pricing_version"
)


@pytest.fixture
def clock(fake_clock: FakeClock) -> FakeClock:
    return fake_clock


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[SessionStore]:
    async with open_store(tmp_path / "home", clock=clock) as opened:
        yield opened


def row(store: SessionStore, columns: str, table: str, session_id: str):
    query = f"SELECT {columns} FROM {table} WHERE session_id = ?"  # noqa: S608 -- words of this test
    return execute_sql(store.db.path, query, session_id)[0]


def totals(store: SessionStore, session_id: str):
    return row(store, COUNTERS, "totals", session_id)


async def test_an_event_counts_on_the_session_and_on_its_entry(store: SessionStore, clock: FakeClock):
    entry = await store.get_or_create_session(dm_source())
    pass_time(clock, minutes=5)
    assert await store.db.record_usage(
        entry.session_id,
        "e1",
        model="m",
        provider="p",
        input_tokens=10,
        output_tokens=20,
        cache_read_tokens=300,
        cache_write_tokens=4000,
        reasoning_tokens=7,
        estimated_cost_usd=0.25,
        cost_source="list",
        pricing_version="2026-01",
    )
    assert totals(store, entry.session_id) == (
        10, 20, 300, 4000, 7, 1, 0.25, None, "estimated", "list", "2026-01"
    )  # fmt: skip
    after = await stored_entry(store, entry.session_key)
    assert after is not None
    assert (after.input_tokens, after.output_tokens, after.cache_read_tokens) == (10, 20, 300)
    assert (after.cache_write_tokens, after.total_tokens) == (4000, 4330)
    assert (after.estimated_cost_usd, after.cost_status) == (0.25, "estimated")
    assert (after.version, after.updated_at) == (entry.version + 1, clock.now())
    assert after.last_interaction_at == entry.last_interaction_at
    assert after.had_activity


async def test_a_message_after_it_finds_the_counters_in_place(store: SessionStore):
    entry = await store.get_or_create_session(dm_source())
    await store.db.record_usage(entry.session_id, "e1", input_tokens=10)
    assert (await store.get_or_create_session(dm_source())).input_tokens == 10
    await store.update_session(entry.session_key, 5)
    await store.db.record_usage(entry.session_id, "e2", input_tokens=10)
    again = await store.get_or_create_session(dm_source())
    assert (again.input_tokens, again.last_prompt_tokens) == (20, 5)


async def test_the_same_event_again_changes_nothing(store: SessionStore):
    entry = await store.get_or_create_session(dm_source())
    assert await store.db.record_usage(entry.session_id, "e1", input_tokens=10)
    before = await stored_entry(store, entry.session_key)
    assert not await store.db.record_usage(entry.session_id, "e1", input_tokens=99)
    assert await stored_entry(store, entry.session_key) == before
    assert totals(store, entry.session_id)[0] == 10


async def test_other_tasks_belong_to_the_session_but_not_to_its_counters(store: SessionStore):
    entry = await store.get_or_create_session(dm_source())
    await store.db.record_usage(entry.session_id, "e1", model="big", input_tokens=10)
    await store.db.record_usage(entry.session_id, "e2", model="small", input_tokens=3, task="title")
    await store.db.record_usage(entry.session_id, "e3", model="big", input_tokens=4)
    assert totals(store, entry.session_id)[0] == 14
    assert (await stored_entry(store, entry.session_key)).input_tokens == 14
    usage = await store.db.usage_of_session(entry.session_id)
    assert [(part.model, part.task, part.used.events) for part in usage.parts] == [
        ("big", "turn", 2),
        ("small", "title", 1),
    ]
    assert (usage.turns.input_tokens, usage.auxiliary.input_tokens) == (14, 3)
    assert (usage.total.unknown, usage.total.cost_usd) == (3, None)


async def test_a_session_without_use_has_used_nothing(store: SessionStore):
    entry = await store.get_or_create_session(dm_source())
    usage = await store.db.usage_of_session(entry.session_id)
    assert (usage.parts, usage.total.events) == ((), 0)
    assert totals(store, entry.session_id)[8] is None


async def test_what_is_counted_late_stays_with_the_session_that_used_it(store: SessionStore):
    first = await store.get_or_create_session(dm_source())
    second = await store.reset_session(first.session_key)
    await store.db.record_usage(first.session_id, "late", input_tokens=10, actual_cost_usd=0.5)
    assert (await stored_entry(store, first.session_key)).input_tokens == 0
    back = await store.undo_reset(first.session_key)
    assert (back.session_id, back.input_tokens, back.estimated_cost_usd) == (first.session_id, 10, 0.5)
    assert second.input_tokens == 0


async def test_a_session_whose_lane_went_on_elsewhere_can_still_be_counted(store: SessionStore):
    """It has neither an entry nor a record of one."""
    one, two = (
        await store.get_or_create_session(dm_source("1")),
        await store.get_or_create_session(dm_source("2")),
    )
    await store.switch_session(two.session_key, one.session_id, scope=Scope.operator(), move=True)
    execute_sql(store.db.path, "UPDATE sessions SET entry = NULL")
    assert await store.db.record_usage(two.session_id, "e1", input_tokens=10)
    assert totals(store, two.session_id)[0] == 10


async def test_the_first_model_and_route_are_those_of_the_session(store: SessionStore):
    entry = await store.get_or_create_session(dm_source())
    route = "model, billing_provider, billing_base_url, billing_mode"
    await store.db.record_usage(entry.session_id, "e0", model="titler", provider="t", task="title")
    assert row(store, route, "sessions", entry.session_id) == (None, None, None, None)
    await store.db.record_usage(entry.session_id, "e1", model="first")
    assert row(store, route, "sessions", entry.session_id) == ("first", None, None, None)
    await store.db.record_usage(
        entry.session_id, "e2", model="second", provider="p", base_url="https://u:s@api.example/v1?key=s"
    )
    await store.db.record_usage(entry.session_id, "e3", provider="q", billing_mode="plan")
    assert row(store, route, "sessions", entry.session_id) == (
        "first", "p", "https://api.example/v1", None
    )  # fmt: skip
    kept = row(store, "max(base_url)", "usage_events", entry.session_id)
    assert kept == ("https://api.example/v1",)


async def test_the_time_of_an_event_can_be_told(store: SessionStore, clock: FakeClock):
    entry = await store.get_or_create_session(dm_source())
    await store.db.record_usage(entry.session_id, "e1", at=1_700_000_000.5)
    assert row(store, "at", "usage_events", entry.session_id) == (1_700_000_000_500_000,)
    with pytest.raises(InvalidInputError, match="at"):
        await store.db.record_usage(entry.session_id, "e2", at="soon")


class TestAPriceThatBecomesKnown:
    async def test_takes_the_place_of_the_estimate_once(self, store: SessionStore):
        entry = await store.get_or_create_session(dm_source())
        await store.db.record_usage(entry.session_id, "e1", estimated_cost_usd=0.5)
        assert await store.db.amend_usage("e1", 0.4, cost_source="bill", pricing_version="v2")
        assert totals(store, entry.session_id)[6:] == (0.5, 0.4, "actual", "bill", "v2")
        after = await stored_entry(store, entry.session_key)
        assert (after.estimated_cost_usd, after.cost_status) == (0.4, "actual")
        assert not await store.db.amend_usage("e1", 0.3)
        assert totals(store, entry.session_id)[7] == 0.4

    async def test_leaves_the_others_as_unknown_as_they_were(self, store: SessionStore):
        entry = await store.get_or_create_session(dm_source())
        for event in ("e1", "e2"):
            await store.db.record_usage(entry.session_id, event, input_tokens=1)
        await store.db.amend_usage("e1", 0.4)
        assert totals(store, entry.session_id)[6:9] == (None, 0.4, "unknown")
        assert (await store.db.usage_of_session(entry.session_id)).total.known_cost_usd == 0.4
        await store.db.amend_usage("e2", 0.1)
        assert totals(store, entry.session_id)[6:9] == (None, 0.5, "actual")
        assert (await store.db.usage_of_session(entry.session_id)).total.cost_usd == 0.5

    async def test_of_another_task_changes_no_counter(self, store: SessionStore):
        entry = await store.get_or_create_session(dm_source())
        await store.db.record_usage(entry.session_id, "e1", task="title")
        await store.db.amend_usage("e1", 0.4)
        assert totals(store, entry.session_id)[7] is None
        assert (await store.db.usage_of_session(entry.session_id)).auxiliary.cost_usd == 0.4


async def test_an_imported_entry_stays_as_unknown_as_it_was(store: SessionStore):
    entry = await store.get_or_create_session(dm_source())
    execute_sql(
        store.db.path,
        "UPDATE entries SET record = json_set(record, '$.total_tokens', 100, '$.input_tokens', 100)",
    )
    await store.db.record_usage(entry.session_id, "e1", input_tokens=1, actual_cost_usd=0.5)
    after = await stored_entry(store, entry.session_key)
    assert (after.input_tokens, after.estimated_cost_usd, after.cost_status) == (101, 0.5, "unknown")
    assert totals(store, entry.session_id)[8] == "actual"
