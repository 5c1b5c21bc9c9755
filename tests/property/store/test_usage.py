"""However events are repeated, amended and spread over sessions, every counter is the sum of its events."""

from __future__ import annotations

import asyncio
import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_sessions import InvalidInputError, SessionStore
from gateway_sessions.core.usage.usage_events import NANOS
from gateway_sessions.testing import FakeClock
from tests.raw_sql import execute_sql
from tests.unit.runtime.store_fixtures import dm_source, open_store, stored_entry

COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "api_calls",
)
PRICES = st.none() | st.floats(0, 100) | st.integers(0, 3)
EVENTS = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from(["e1", "e2", "e3", "e4", "e5"]),
    st.fixed_dictionaries(
        {"task": st.sampled_from(["turn", "turn", "title"]), "model": st.sampled_from(["m", "n", None])},
        optional={
            **{name: st.integers(0, 10**6) for name in COUNTS},
            "estimated_cost_usd": PRICES,
            "actual_cost_usd": PRICES,
        },
    ),
)
BILLS = st.tuples(st.sampled_from(["e1", "e2", "e3", "e4", "e5"]), st.floats(0, 100))
RESETS = st.sampled_from(["reset", "undo"])


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(EVENTS | BILLS | RESETS, max_size=14))
def test_every_counter_is_the_sum_of_its_events(steps):
    with tempfile.TemporaryDirectory() as home:
        asyncio.run(play(Path(home), steps))


async def play(home: Path, steps) -> None:
    async with open_store(home, clock=FakeClock()) as store:
        sessions = {name: await store.get_or_create_session(dm_source(name)) for name in "ab"}
        events: dict[str, dict] = {}
        for step in steps:
            if step == "reset":
                await store.reset_session(sessions["a"].session_key)
            elif step == "undo":
                if (await stored_entry(store, sessions["a"].session_key)).previous_session_id:
                    await store.undo_reset(sessions["a"].session_key)
            elif len(step) == 2:
                await amend(store, events, *step)
            else:
                await record(store, events, sessions[step[0]].session_id, *step[1:])
        for session in sessions.values():
            await check(store, session.session_id, session.session_key, events)


async def record(store: SessionStore, events: dict, session_id: str, event_id: str, facts: dict) -> None:
    if event_id in events and events[event_id]["session_id"] != session_id:
        return
    counted = await store.db.record_usage(session_id, event_id, **facts)
    assert counted is (event_id not in events)
    events.setdefault(event_id, {"session_id": session_id, **facts})


async def amend(store: SessionStore, events: dict, event_id: str, cost: float) -> None:
    try:
        amended = await store.db.amend_usage(event_id, cost)
    except InvalidInputError:
        assert event_id not in events
        return
    assert amended is (events[event_id].get("actual_cost_usd") is None)
    if amended:
        events[event_id]["actual_cost_usd"] = cost


def exact(cost: float) -> Fraction:
    return Fraction(round(cost * NANOS), NANOS)


def price(event: dict) -> Fraction | None:
    known = [event.get("actual_cost_usd"), event.get("estimated_cost_usd")]
    return next((exact(cost) for cost in known if cost is not None), None)


def status(events: list[dict]) -> str | None:
    words = [
        "unknown" if price(one) is None else "estimated" if one.get("actual_cost_usd") is None else "actual"
        for one in events
    ]
    return next((word for word in ("unknown", "estimated", "actual") if word in words), None)


def total(events: list[dict], name: str) -> float | None:
    known = [one[name] for one in events if one.get(name) is not None]
    return float(sum(map(exact, known), Fraction(0))) if known else None


async def check(store: SessionStore, session_id: str, session_key: str, events: dict[str, dict]) -> None:
    ours = [event for event in events.values() if event["session_id"] == session_id]
    turns = [event for event in ours if event["task"] == "turn"]
    counts = [sum(one.get(name, int(name == "api_calls")) for one in turns) for name in COUNTS]
    row = execute_sql(
        store.db.path,
        "SELECT input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens,"
        " api_call_count, estimated_cost_usd, actual_cost_usd, cost_status FROM totals"
        " WHERE session_id = ?",
        session_id,
    )[0]
    costs = (total(turns, "estimated_cost_usd"), total(turns, "actual_cost_usd"))
    assert row == (*counts, *costs, status(turns))

    usage = await store.db.usage_of_session(session_id)
    assert [getattr(usage.turns, name) for name in COUNTS] == counts
    assert usage.total.known_cost_usd == float(sum(filter(None, map(price, ours)), Fraction(0)))
    assert usage.total.unknown == sum(price(one) is None for one in ours)
    assert usage.turns.cost_status == status(turns)
    assert (usage.total, usage.total.events) == ((await store.db.spent(session_id)).session, len(ours))

    entry = await stored_entry(store, session_key)
    if entry.session_id != session_id:
        entry = await store.undo_reset(session_key)
        while entry.session_id != session_id:
            entry = await store.undo_reset(session_key)
    assert (entry.input_tokens, entry.total_tokens) == (counts[0], sum(counts[:4]))
    assert entry.estimated_cost_usd == usage.turns.known_cost_usd
