"""What a look at a store and its repair say of circles of sessions and of the search index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionDB
from gateway_sessions.operator import check_store, repair_store
from tests.raw_sql import execute_sql

EVERYTHING = Scope.operator()
SUMMARY = [{"role": "user", "content": "a summary"}]


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A store with a conversation that was compressed twice, and another one."""
    home = tmp_path / "home"
    async with SessionDB.open(home / "sessions.db", survives_power_cut=False) as db:
        for name in ("first", "other"):
            await db.create_session(name, "cli", user_id="alice")
            await db.append_message(name, "user", f"hello from {name}")
        await db.split_session("first", "second", SUMMARY)
        await db.split_session("second", "third", SUMMARY)
        await db.catch_up_search_index()
    return home


async def listed(home: Path) -> set[str]:
    async with SessionDB.open(home / "sessions.db", survives_power_cut=False) as db:
        return {one.session_id for one in await db.list_sessions_rich(scope=EVERYTHING)}


async def found(home: Path, words: str) -> set[str]:
    async with SessionDB.open(home / "sessions.db", survives_power_cut=False) as db:
        await db.catch_up_search_index()
        return {one.session_id for one in (await db.search_messages(words, scope=EVERYTHING)).hits}


async def test_a_circle_of_sessions_is_found_and_cut_where_it_began(home: Path):
    before = await listed(home)
    execute_sql(
        home / "sessions.db",
        "UPDATE sessions SET parent_session_id = 'third', relation = 'continuation' "
        "WHERE session_id = 'first'",
    )
    execute_sql(
        home / "sessions.db", "UPDATE sessions SET end_reason = 'compression' WHERE session_id = 'third'"
    )
    report = await check_store(home)
    assert report.found == ("1 conversation that comes from itself: first",)
    repaired = await repair_store(home)
    assert repaired.done[0] == "mended: 1 conversation that comes from itself: first"
    assert repaired.lost == ()
    assert (await check_store(home)).healthy
    assert await listed(home) == before


async def test_a_session_that_comes_from_itself_is_cut_loose(home: Path):
    execute_sql(
        home / "sessions.db",
        "UPDATE sessions SET parent_session_id = 'other', relation = 'branch' WHERE session_id = 'other'",
    )
    assert len((await check_store(home)).found) == 1
    await repair_store(home)
    assert (await check_store(home)).healthy
    assert "other" in await listed(home)


def forget_documents(home: Path) -> None:
    execute_sql(home / "search.db", "INSERT INTO documents (documents) VALUES ('delete-all')")


def overwrite_pages(home: Path) -> None:
    path = home / "search.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"x" * (len(content) - 4096))


def replace_by_a_text(home: Path) -> None:
    (home / "search.db").write_text("not an index at all " * 1000)


@pytest.mark.parametrize("harm", [forget_documents, overwrite_pages, replace_by_a_text])
async def test_a_bad_search_index_is_told_of_and_made_anew(home: Path, harm: Callable[[Path], None]):
    assert (await check_store(home)).healthy
    harm(home)
    (problem,) = (await check_store(home)).found
    assert problem.startswith("search index: ")
    report = await repair_store(home)
    assert report.done == ("search index: removed, it is made anew when the store is opened",)
    assert (await check_store(home)).healthy
    assert await found(home, "hello") == {"first", "other"}


async def test_a_store_without_an_index_is_healthy(home: Path):
    (home / "search.db").unlink()
    assert (await check_store(home)).healthy


async def test_after_a_repair_all_is_found_that_is_there(home: Path):
    execute_sql(home / "sessions.db", "DELETE FROM sessions WHERE session_id = 'other'")
    report = await repair_store(home)
    assert report.done[-1].startswith("search index: removed")
    async with SessionDB.open(home / "sessions.db", survives_power_cut=False) as db:
        await db.catch_up_search_index()
        owner = Scope(owners=frozenset({"main:unknown:local"}))
        assert (await db.search_messages("hello", scope=owner)).hits
