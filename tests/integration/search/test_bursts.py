"""A search while much that was just said is not in the index yet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

import pytest

from gateway_sessions import SessionDB
from gateway_sessions.core.search import criteria
from gateway_sessions.core.search.criteria import Words, criterion_of
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.tokenizer import fold
from gateway_sessions.ports import Reader, TransactionFactory
from gateway_sessions.storage.search import search, sqlite_index
from gateway_sessions.storage.search.search import SearchRequest, scan_messages
from gateway_sessions.storage.search.sqlite_file import IndexFile
from gateway_sessions.storage.search.sqlite_index import SqliteSearchIndex, search_index_and_rest
from gateway_sessions.storage.transactions.search.hits import Order
from tests.integration.search.conftest import EVERYTHING, append_words, found_snippets, open_database

T = TypeVar("T")
MANY = 1_500


@pytest.fixture
def not_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index stays where it is."""
    monkeypatch.setattr(sqlite_index, "GATHER_SECONDS", 3600.0)


@pytest.fixture
def closer_looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages were cut into words by searches."""
    looks, found_in = [0], Words.matches_fields

    def counted(self: Words, fields: object) -> bool:
        looks[0] += 1
        return found_in(self, fields)  # type: ignore[arg-type] -- handed on as it came

    monkeypatch.setattr(Words, "matches_fields", counted)
    return looks


async def test_of_what_is_not_in_the_index_only_what_may_match_is_cut_into_words(
    tmp_path: Path, not_indexed: None, closer_looks: list[int]
):
    async with open_database(tmp_path) as db:
        await append_words(
            db, "s", *(f"a remark, the {n}th" for n in range(MANY)), "Ein Übermut", "an ubermuth"
        )
        assert await found_snippets(db, "ubermut") == ["Ein Übermut"]
    assert closer_looks == [2]


async def test_no_more_is_looked_at_than_it_takes_to_choose_from(
    tmp_path: Path, not_indexed: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.storage.search.search.WINDOW", 600)
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "docker, the oldest", *(f"docker {n}" for n in range(MANY)))
        result = await db.search_messages("docker", scope=EVERYTHING)
        assert result.ranked_among == 2 * search.STEP
        assert await found_snippets(db, "docker", sort="newest", limit=2) == [
            f"docker {MANY - 1}",
            f"docker {MANY - 2}",
        ]
        assert await found_snippets(db, "docker", sort="oldest", limit=1) == ["docker, the oldest"]


async def test_the_index_waits_for_searches_but_not_for_ever(db: SessionDB, monkeypatch: pytest.MonkeyPatch):
    steps: list[None] = []
    apply = IndexFile.apply_work

    def counted(self: IndexFile, work: object) -> None:
        steps.append(None)
        apply(self, work)  # type: ignore[arg-type] -- handed on as it came

    monkeypatch.setattr(IndexFile, "apply_work", counted)
    monkeypatch.setattr(sqlite_index, "FIRST_STEP", 10)
    monkeypatch.setattr(sqlite_index, "LARGEST_STEP", 10)
    monkeypatch.setattr(sqlite_index, "POLITE_SECONDS", 0.4)
    kept = db._index  # noqa: SLF001 -- as a search does it
    assert isinstance(kept, SqliteSearchIndex)
    kept._size, kept._searches = 10, 1  # noqa: SLF001 -- one is under way
    kept._calm.clear()  # noqa: SLF001
    await append_words(db, "s", *(f"remark {n}" for n in range(40)))
    async with asyncio.timeout(30):
        while not steps:  # noqa: ASYNC110 -- the index tells nobody of a step
            await asyncio.sleep(0.01)
        await db.catch_up_search_index()  # whoever waits for it is served at once
    assert len(steps) == 4
    assert await found_snippets(db, "39") == [fold("remark 39")]


class Counting:
    """A database that counts how often it is asked."""

    def __init__(self, truth: Reader) -> None:
        self._truth = truth
        self.reads = 0

    async def read(self, transaction: TransactionFactory[T]) -> T:
        self.reads += 1
        return await self._truth.read(transaction)


@pytest.mark.parametrize(
    ("query", "expected"), [("walrus", 2), ("remark walrus", 2), ("zebra", 0), ("wal*", 2)]
)
async def test_a_burst_of_ten_thousand_is_looked_at_in_few_goes_and_all_of_it(
    tmp_path: Path, not_indexed: None, query: str, expected: int
):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "the first remark, a walrus", *(f"remark {n} " * 5 for n in range(9_998)))
        await append_words(db, "t", "a last walrus, I remark")
        truth = Counting(db._engine)  # noqa: SLF001 -- as a search asks it
        wanted = criterion_of(query, literal=False)
        assert wanted is not None
        request = SearchRequest(wanted, SearchFilter(scope=EVERYTHING), Order.BEST, 2_000)
        kept = db._index  # noqa: SLF001 -- the same
        assert isinstance(kept, SqliteSearchIndex)
        progress = await search_index_and_rest(truth, kept, request)
        assert progress is not None
        assert (len(progress.matches), progress.problem) == (expected, None)
        assert truth.reads <= 8


async def test_where_a_third_of_a_burst_matches_it_is_looked_at_in_few_goes_as_well(
    tmp_path: Path, not_indexed: None
):
    async with open_database(tmp_path) as db:
        await append_words(
            db, "s", *(f"a walrus {n}" if n % 3 == 0 else f"a remark {n}" for n in range(9_000))
        )
        truth = Counting(db._engine)  # noqa: SLF001 -- as a search asks it
        wanted = criterion_of("walrus", literal=False)
        assert wanted is not None
        progress = await scan_messages(
            truth, SearchRequest(wanted, SearchFilter(scope=EVERYTHING), Order.BEST, 2_000)
        )
        assert 2_000 <= len(progress.matches) <= 2_000 + search.STEP
        assert truth.reads == 5


async def test_what_is_not_ascii_does_not_slow_the_look_at_all_else_down(
    tmp_path: Path, not_indexed: None, monkeypatch: pytest.MonkeyPatch
):
    folded: list[str] = []

    def kept(text: str) -> str:
        folded.append(text)
        return fold(text)

    monkeypatch.setattr(criteria, "fold", kept)
    async with open_database(tmp_path) as db:
        await append_words(
            db, "s", *(("ein Übermut" if n % 20 == 0 else f"a remark, the {n}th") for n in range(MANY))
        )
        assert await found_snippets(db, "walrus") == []
    assert 0 < sum(len(text) for text in folded if not text.isascii()) < MANY


async def test_no_more_of_the_index_is_looked_at_than_it_takes_to_choose_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("gateway_sessions.storage.search.search.STEP", 10)
    monkeypatch.setattr("gateway_sessions.storage.search.search.WINDOW", 40)
    async with open_database(tmp_path) as db:
        await append_words(db, "s", *(f"docker {n}" for n in range(100)))
        await db.catch_up_search_index()
        monkeypatch.setattr(sqlite_index, "GATHER_SECONDS", 3600.0)
        await append_words(db, "s", *(f"docker {n}" for n in range(100, 125)))
        result = await db.search_messages("docker", scope=EVERYTHING)
        assert result.ranked_among == 45
        assert await found_snippets(db, "docker", sort="newest", limit=1, offset=39) == ["docker 85"]
        assert await found_snippets(db, "docker", sort="oldest", limit=1) == ["docker 0"]


async def test_long_messages_are_looked_at_few_at_a_time(tmp_path: Path, not_indexed: None):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", *(f"remark {n} " * 200 for n in range(1_999)), "walrus")
        truth = Counting(db._engine)  # noqa: SLF001 -- as a search asks it
        wanted = criterion_of("walrus", literal=False)
        assert wanted is not None
        progress = await scan_messages(
            truth, SearchRequest(wanted, SearchFilter(scope=EVERYTHING), Order.BEST, 2_000)
        )
        assert (len(progress.matches), progress.problem) == (1, None)
        assert truth.reads == 2_000 // search.STEP + 1
