"""Whatever a store holds survives a file: an import is the exact inverse of an export."""

from __future__ import annotations

import asyncio
import io
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_sessions import Scope, SessionDB
from gateway_sessions.testing import FakeClock

OPERATOR = Scope.operator()
NAMES = [f"s{number}" for number in range(5)]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
finite = st.floats(allow_nan=False, allow_infinity=False)
titles = st.sampled_from(["Trip", "Trip #2", "Größe 👩‍🚀", "x" * 100])
leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite | texts
branches = leaves | st.lists(leaves, max_size=3) | st.dictionaries(texts, leaves, max_size=3)
values = branches | st.lists(branches, max_size=3) | st.dictionaries(texts, branches, max_size=2)
contents = texts | st.none() | st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=2)
members = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "narrator"]), "content": contents},
    optional={
        "tool_calls": st.lists(values, min_size=1, max_size=2),
        "reasoning_details": values,
        "reasoning": texts,
        "tool_name": texts,
        "token_count": st.integers(0, 10**6),
        "platform_message_id": st.text("0123456789", min_size=1, max_size=4),
        "observed": st.booleans(),
        "api_content": contents,
        "timestamp": st.floats(-(10**9), 9_000_000_000),
        "mood": values,
    },
)
steps = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(NAMES), st.lists(members, min_size=1, max_size=4)),
    st.tuples(st.just("rewind"), st.sampled_from(NAMES), st.integers(1, 2)),
    st.tuples(
        st.just("title"),
        st.sampled_from(NAMES),
        st.sampled_from(["Trip", "Trip #2", "Größe 👩‍🚀", "x" * 100]),
    ),
    st.tuples(st.just("use"), st.sampled_from(NAMES), st.integers(0, 1000)),
    st.tuples(st.just("end"), st.sampled_from(NAMES), st.sampled_from(["compression", "user_exit"])),
    st.tuples(
        st.just("edit"),
        st.sampled_from(NAMES),
        st.text("abc ", min_size=1) | st.lists(leaves, min_size=1, max_size=2),
    ),
    st.tuples(st.just("pin"), st.sampled_from(NAMES), st.booleans()),
)
parents = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["succession", "branch", "delegate"])),
    min_size=5,
    max_size=5,
)


@settings(max_examples=10)
@given(st.lists(steps, max_size=12), parents, st.lists(values, min_size=5, max_size=5))
def test_a_second_export_is_the_same_byte_for_byte(done: list, descent: list, extras: list):
    asyncio.run(round_trip(done, descent, extras))


async def round_trip(done: list, descent: list, extras: list) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock = FakeClock()
        async with opened(folder, "first", clock) as db:
            await fill(db, clock, done, descent, extras)
            exported = await written(db)
        async with SessionDB.open(
            Path(folder) / "second" / "sessions.db", clock=clock, survives_power_cut=False
        ) as db:
            lines = exported.splitlines()
            dry = await db.import_sessions(lines, dry_run=True)
            report = await db.import_sessions(lines)
            assert report.findings == dry.findings == ()
            assert report.imported == dry.imported == len(NAMES)
            assert await written(db) == exported
            again = await db.import_sessions(reversed(lines))
            assert (again.imported, again.skipped, again.findings) == (0, len(NAMES), ())
            assert await written(db) == exported
        async with SessionDB.open(
            Path(folder) / "third" / "sessions.db", clock=clock, survives_power_cut=False
        ) as db:
            assert (await db.import_sessions(reversed(lines))).findings == ()
            assert await written(db) == exported


async def fill(db: SessionDB, clock: FakeClock, done: list, descent: list, extras: list) -> None:
    for number, (name, (parent, relation), extra) in enumerate(zip(NAMES, descent, extras, strict=True)):
        came: dict[str, Any] = {}
        if parent < number:
            came = {"parent_session_id": NAMES[parent], "relation": relation}
        await db.create_session(name, "cli", user_id=str(number % 2), extra={"anything": extra}, **came)
        await clock.advance(seconds=number % 3)
    for number, (what, name, value) in enumerate(done):
        await clock.advance(seconds=0.017)
        await take_step(db, number, what, name, value)


async def take_step(db: SessionDB, number: int, what: str, name: str, value: Any) -> None:
    match what:
        case "say":
            await db.append_messages(name, value)
        case "rewind":
            await db.rewind_session(name, value)
        case "title":
            await db.set_session_title(name, await db.get_next_title_in_lineage(value, scope=OPERATOR))
        case "use":
            price = {"estimated_cost_usd": value / 1000} if value % 2 else {}
            await db.record_usage(name, event_id=f"e{number}", input_tokens=value, **price)
        case "edit":
            await db.append_message(name, "user", "before", platform_message_id=f"edited {number}")
            for again in (value, "after"):
                await db.edit_message(name, f"edited {number}", again)
        case "end":
            await db.end_session(name, value)
        case _:
            await db.set_session_pinned(name, pinned=value)


async def written(db: SessionDB) -> bytes:
    stream = io.BytesIO()
    await db.write_export(stream, scope=OPERATOR)
    return stream.getvalue()


def opened(folder: str, name: str, clock: FakeClock) -> SessionDB:
    path = Path(folder) / name / "sessions.db"
    return SessionDB.open(path, clock=clock, survives_power_cut=False)
