"""An index that stops answering in the middle of a search: the search is right or says that it may not be."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.core.search.criteria import CertainTerms, Literal, WordPart, Words, criterion_of
from gateway_sessions.core.search.documents import IndexedMessage, IndexPosition, IndexWork
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.storage.search import sqlite_file as file_module
from gateway_sessions.storage.search.search import UNAVAILABLE, Search, SearchProgress, SearchRequest
from gateway_sessions.storage.search.sqlite_file import IndexFile, IndexMatches
from gateway_sessions.storage.search.sqlite_index import search_index_and_rest
from gateway_sessions.storage.search.sqlite_match import Fts5Match
from gateway_sessions.storage.transactions.search.hits import Order
from tests.integration.search.conftest import EVERYTHING, append_words

SHOWN = SearchFilter(scope=EVERYTHING, exclude_sessions=frozenset({"hidden"}))


class Fickle:
    """Answers page after page of what it is given; then begins anew."""

    def __init__(self, truth: SessionDB, *pages: IndexMatches | None) -> None:
        self.truth = truth
        self.pages = pages
        self.asked = 0

    async def run_query(self, request: SearchRequest) -> SearchProgress | None:
        return await search_index_and_rest(self.truth, self, request)

    async def find_candidates(
        self, match: Fts5Match, after: int | None, limit: int, *, oldest_first: bool = False
    ):
        self.asked += 1
        return self.pages[(self.asked - 1) % len(self.pages)]


@pytest.mark.parametrize(
    "second", [None, IndexMatches(IndexPosition(), (), None, is_answer=False)], ids=["gone", "of no help"]
)
async def test_an_index_that_answers_half_is_not_believed(db: SessionDB, second: IndexMatches | None):
    ids = await append_words(db, "s", "docker one", "docker two")
    index = Fickle(db, IndexMatches(IndexPosition(max(ids), 0), (ids[1],), last_document=ids[1]), second)
    wanted = criterion_of("docker", literal=False)
    assert isinstance(wanted, Words)
    result = await Search(db, index).search_messages(wanted, SHOWN, Order.BEST, offset=0, limit=10)
    assert (result.matches, result.problem, index.asked) == (2, None, 6)


async def test_without_an_index_only_what_was_not_looked_at_may_be_missing(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.storage.search.search.STEP", 2)
    monkeypatch.setattr("gateway_sessions.storage.search.search.MOST_SCANNED", 4)
    await append_words(db, "s", *(f"docker {n}" for n in range(6)))
    wanted = criterion_of("docker", literal=False)
    assert isinstance(wanted, Words)
    result = await Search(db, Fickle(db, None)).search_messages(wanted, SHOWN, Order.BEST, offset=0, limit=10)
    assert (result.matches, result.degraded) == (4, True)
    assert result.problem is not None
    assert result.problem.startswith(UNAVAILABLE)


async def test_an_index_that_has_been_made_anew_meanwhile_is_asked_again(db: SessionDB):
    ids = await append_words(db, "s", "docker one", "docker two")
    old = IndexMatches(IndexPosition(max(ids), 0), (ids[1],), last_document=ids[1])
    changed = IndexMatches(IndexPosition(max(ids), 1), (), None)
    wanted = Literal("docker")
    index = Fickle(db, old, changed, IndexMatches(IndexPosition(max(ids), 1), tuple(ids), None))
    result = await Search(db, index).search_messages(wanted, SHOWN, Order.NEWEST, offset=0, limit=10)
    assert (result.matches, result.degraded, index.asked) == (2, False, 3)


async def test_a_long_tail_is_looked_at_in_pages(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway_sessions.storage.search.search.STEP", 3)
    await append_words(db, "s", *(f"docker {n}" for n in range(10)))
    index = Fickle(db, IndexMatches(IndexPosition(), (), None))
    result = await Search(db, index).search_messages(Literal("ocke"), SHOWN, Order.NEWEST, offset=0, limit=20)
    assert (result.matches, result.degraded) == (10, False)


async def test_what_the_index_has_found_is_looked_at_in_steps(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway_sessions.storage.search.search.STEP", 3)
    ids = await append_words(db, "s", *(f"docker {n}" for n in range(10)))
    index = Fickle(db, IndexMatches(IndexPosition(max(ids), 0), tuple(ids), None))
    wanted = criterion_of("docker", literal=False)
    assert isinstance(wanted, Words)
    result = await Search(db, index).search_messages(wanted, SHOWN, Order.OLDEST, offset=0, limit=20)
    assert [hit.id for hit in result.hits] == ids
    assert (result.degraded, index.asked) == (False, 1)


async def test_too_many_changes_at_once_are_told(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    await db.create_session("s", "cli")
    for name in ("a", "b"):
        await db.append_message("s", "user", "docker", platform_message_id=name)
    await db.catch_up_search_index()
    monkeypatch.setattr("gateway_sessions.storage.transactions.search.scan.MOST_PENDING", 1)
    for name in ("a", "b"):
        await db.edit_message("s", name, "docker again")
    last = max(one.message_id for one in await db.get_messages("s"))
    index = Fickle(db, IndexMatches(IndexPosition(last, 0), (), None))
    result = await Search(db, index).search_messages(
        Literal("docker"), SHOWN, Order.NEWEST, offset=0, limit=20
    )
    assert result.problem is not None
    assert "not all changed messages" in result.problem


def message(number: int, text: str) -> IndexedMessage:
    return IndexedMessage(number, "s", "user", text, None, None, 0, "owner", None, "cli")


def test_words_that_could_not_be_stored_are_listed_the_next_time(tmp_path: Path, monkeypatch):
    file = IndexFile(tmp_path / "search.db")
    file.connect("x", IndexPosition())
    work = IndexWork(IndexPosition(1, 0), (message(1, "a dockyard"),))

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError

    with monkeypatch.context() as failing:
        failing.setattr(file_module, "_write_position", fail)
        with pytest.raises(sqlite3.OperationalError):
            file.apply_work(work)
    assert file.position == IndexPosition()
    file.apply_work(work)
    match = Fts5Match(CertainTerms(None, WordPart("ockyar", at_end=False)))
    assert file.find_candidates(match, None, 10).message_ids == (1,)
    assert file.find_fault([message(1, "a dockyard")]) is None
    file.close()


def test_words_too_short_to_have_parts_are_no_damage(tmp_path: Path):
    file = IndexFile(tmp_path / "search.db")
    file.connect("x", IndexPosition())
    said = [message(1, "a b"), message(2, "!?"), message(3, "部署")]
    file.apply_work(IndexWork(IndexPosition(3, 0), tuple(said)))
    assert file.find_fault(said) is None
    assert file.find_fault([message(4, "c")]) == "1 of 1 messages are not found"
    file.close()
