"""A part of a word is found wherever it stands, however much was said since."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.search.criteria import Literal
from gateway_sessions.storage.search.sqlite_index import IndexState
from tests.integration.search.conftest import EVERYTHING, append_words, found_snippets, open_database
from tests.raw_sql import execute_sql

FILLER = [f"filler{n} and more of it" for n in range(40)]
BLOB = "".join(random.Random(5).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=3_000))
LONG = BLOB[:200]
TEXTS = [
    "Docker-compose failed",
    "the dockyard, and rockets",
    "Straße und Großstraße",
    "кот и котёнок",
    "crème brûlée, CRE\u0300ME",
    "iPhone手机壳 机器学习",
    "foo_bar.baz(qux)",
    f"token={LONG}!",
    f"data:{BLOB}",
    f"{LONG[:64]} {LONG[64:128]}",
    "a b c",
]


@pytest.fixture(autouse=True)
def few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is found by looking at the newest messages, which are the fillers."""
    monkeypatch.setattr("gateway_sessions.storage.search.search.MOST_SCANNED", 20)
    monkeypatch.setattr("gateway_sessions.storage.search.search.STEP", 10)


async def inside(db: SessionDB, needle: str, **options: object) -> list[str]:
    """What contains the text; nothing may be missing."""
    wanted = {"scope": EVERYTHING, "limit": 100, **options}
    result = await db.search_messages(needle, mode="substring", **wanted)
    assert (result.problem, result.degraded) == (None, False)
    return [hit.snippet.replace(">>>", "").replace("<<<", "") for hit in result.hits]


async def test_every_part_of_everything_is_found(db: SessionDB):
    await append_words(db, "s", *TEXTS, *FILLER)
    await db.catch_up_search_index()
    chance = random.Random(3)
    for text in TEXTS:
        for _ in range(12):
            start = chance.randrange(len(text))
            needle = text[start : start + chance.choice([1, 2, 3, 4, 6, 9, 70])]
            if any(map(str.isalnum, needle)):
                expected = [one for one in (*TEXTS, *FILLER) if Literal(needle).matches_fields([one])]
                assert len(await inside(db, needle)) == len(expected), needle


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("ocke", [1, 2]),
        ("OCKER", [1]),
        ("er-com", [1]),
        ("yard, an", [2]),
        ("oßstra", [3]),
        ("отён", [4]),
        ("rèm", [5]),
        ("rem", []),
        ("hone手机", [6]),
        ("机壳 机", [6]),
        ("o_bar.ba", [7]),
        (LONG[60:80], [8, 9]),
        (LONG[1:150], [8, 9]),
        (f"{LONG[100:]}!", [8]),
        (BLOB[1_000:2_900], [9]),
        ("b c", [11]),
    ],
)
async def test_it_is_found_across_what_is_between_words(tmp_path: Path, needle: str, expected: list[int]):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", *TEXTS, *FILLER)
        await db.catch_up_search_index()
        result = await db.search_messages(needle, scope=EVERYTHING, mode="substring", sort="oldest")
        assert [hit.seq for hit in result.hits] == expected
        assert not result.degraded


async def test_what_was_edited_is_found_as_it_is_now(db: SessionDB):
    await append_words(db, "s", *FILLER)
    await db.append_message("s", "user", "a dockyard", platform_message_id="p")
    await append_words(db, "t", *FILLER)
    await db.catch_up_search_index()
    await db.edit_message("s", "p", "a rocketry")
    for _ in range(2):
        assert await inside(db, "ockyar") == []
        assert await inside(db, "ocketr") == ["a rocketry"]
        await db.catch_up_search_index()


async def test_what_was_said_a_moment_ago_is_found_among_the_rest(db: SessionDB):
    await append_words(db, "s", "a dockyard", *FILLER)
    await db.catch_up_search_index()
    await db.append_message("s", "user", "two dockyards")
    assert await inside(db, "ockyar", sort="newest") == ["two dockyards", "a dockyard"]


async def test_nobody_finds_parts_of_what_others_said(db: SessionDB):
    await append_words(db, "a", "a dockyard", user_id="alice")
    await append_words(db, "b", "my dockyard", user_id="bob")
    await append_words(db, "c", *FILLER)
    await db.catch_up_search_index()
    scope = Scope(owners=frozenset({"main:cli:user:bob"}))
    assert await inside(db, "ckyar", scope=scope) == ["my dockyard"]


async def test_another_process_finds_them_as_well(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "a dockyard", *FILLER)
        await db.catch_up_search_index()
        async with SessionDB.open_reader(tmp_path / "sessions.db") as reader:
            assert await inside(reader, "ockyar") == ["a dockyard"]


async def test_what_many_words_have_is_found_in_the_newest_messages(db: SessionDB, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.search.WINDOW", 5)
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_match.SOME_WORDS", 3)
    await append_words(db, "s", *FILLER)
    await db.catch_up_search_index()
    assert len(await inside(db, "ller", limit=5)) == 5


async def test_what_stands_first_is_not_looked_for_at_the_end(db: SessionDB, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.search.WINDOW", 5)
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_match.SOME_WORDS", 3)
    await append_words(db, "s", *FILLER)
    await db.catch_up_search_index()
    assert await inside(db, "ller", limit=1, sort="oldest") == [FILLER[0]]
    result = await db.search_messages("!?", scope=EVERYTHING, mode="substring", sort="oldest")
    assert result.degraded


async def test_what_many_words_have_but_few_messages_is_looked_for_with_patience(db: SessionDB, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_match.SOME_WORDS", 3)
    await append_words(db, "s", *(f"xdocker{n}" for n in range(6)), *FILLER)
    await db.catch_up_search_index()
    assert len(await inside(db, "docker")) == 6
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_match.MANY_WORDS", 5)
    result = await db.search_messages("docker", scope=EVERYTHING, mode="substring")
    assert (result.degraded, result.matches) == (True, 0)
    assert result.problem is not None
    assert "only the 20 newest messages" in result.problem


async def test_a_part_that_too_many_words_have_does_not_narrow_what_else_is_known(db: SessionDB, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_match.FEW_WORDS", 3)
    await append_words(db, "s", *(f"dock{n}er failed" for n in range(6)), *FILLER)
    await db.catch_up_search_index()
    assert len(await inside(db, "er fai")) == 6


async def test_a_word_is_listed_once_however_often_it_is_said(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("gateway_sessions.storage.search.sqlite_file.MOST_KNOWN", 3)
    async with open_database(tmp_path) as db:
        for name in "abc":
            await append_words(db, name, "one two three four five", "five six")
            await db.catch_up_search_index()
        assert sorted(listed(tmp_path)) == ["five", "four", "one", "six", "three", "two"]


async def test_words_of_somebody_who_was_erased_are_not_listed_any_more(tmp_path: Path):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "the canaryword", user_id="alice")
        await append_words(db, "t", "the other one", user_id="bob")
        await db.catch_up_search_index()
        assert "canaryword" in listed(tmp_path)
        await db.erase("main:cli:user:alice")
        await db.catch_up_search_index()
        assert sorted(listed(tmp_path)) == ["one", "other", "the"]
        assert all(b"canaryword" not in path.read_bytes() for path in tmp_path.glob("search.db*"))


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM words",
        "INSERT INTO parts (parts) VALUES ('delete-all')",
        "UPDATE parts_data SET block = x'00'",
    ],
)
async def test_a_list_that_was_harmed_is_noticed_and_made_anew(tmp_path: Path, harm: str):
    async with open_database(tmp_path) as db:
        await append_words(db, "s", "a dockyard", *FILLER)
        await db.catch_up_search_index()
    execute_sql(tmp_path / "search.db", harm)
    async with open_database(tmp_path) as db:
        report = await db.check_search_index()
        assert report.problem is not None
        await db.catch_up_search_index()
        assert await inside(db, "ockyar") == ["a dockyard"]
        assert (db.search_index.state, db.search_index.rebuilt) == (IndexState.READY, 1)
        assert await found_snippets(db, "dockyard") == ["a dockyard"]


def listed(home: Path) -> list[str]:
    return [row[0] for row in execute_sql(home / "search.db", "SELECT word FROM words")]
