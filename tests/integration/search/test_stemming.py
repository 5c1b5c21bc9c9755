"""Words in all their forms, and words like others, on every engine."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from gateway_sessions import Config, InvalidInputError, SessionDB, SessionStore
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.errors import ConfigError, UnsupportedStorageError
from gateway_sessions.operator import migrate_store
from gateway_sessions.search import SessionSearch
from gateway_sessions.storage.search.search import NOT_ALL_WORDS
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.transactions.search import stemming
from tests import mysql, postgresql
from tests.integration.search.conftest import EVERYTHING, append_words, found_snippets

OpenDB = Callable[..., SessionDB]
SAID = ("I was running late", "the runners run", "Das Haus am See", "die Häuser")
ENGLISH = Config.from_mapping({"search": {"stemming": "english"}})
EMPTIED = "UPDATE messages SET tokens = ''"


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
async def address(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    match request.param:
        case "sqlite":
            yield str(tmp_path / "sessions.db")
        case "postgresql":
            async with postgresql.empty_database() as dsn:
                yield dsn
        case _:
            async with mysql.empty_database() as url:
                yield url


@pytest.fixture
def open_db(address: str, tmp_path: Path) -> OpenDB:
    def opened(name: str = "home", **options: Any) -> SessionDB:
        if "://" in address:
            return SessionDB.open(address, home=tmp_path / name, **options)
        return SessionDB.open(address, survives_power_cut=False, **options)

    return opened


async def test_words_are_found_in_all_their_forms_as_long_as_that_is_asked_for(open_db: OpenDB):
    async with open_db() as db:
        await append_words(db, "s", *SAID)
        assert await found_snippets(db, "runs") == []
    async with open_db(stemming="english") as db:
        assert sorted(await found_snippets(db, "runs")) == ["I was running late", "the runners run"]
        await db.catch_up_search_index()
        assert sorted(await found_snippets(db, "runs")) == ["I was running late", "the runners run"]
        await append_words(db, "t", "she runs")
        assert len(await found_snippets(db, "running")) == 3
        assert await found_snippets(db, '"running"') == ["I was running late"]
        assert await found_snippets(db, "runn*") == ["I was running late", "the runners run"][::-1]
        assert await found_snippets(db, "late -runs") == []
    async with open_db() as db:
        assert len(await found_snippets(db, "running")) == 3
    async with open_db(stemming="german") as db:
        await db.catch_up_search_index()
        assert sorted(await found_snippets(db, "hauses")) == ["Das Haus am See", "die Häuser"]
    async with open_db(stemming="off") as db:
        await db.catch_up_search_index()
        assert await found_snippets(db, "running") == ["I was running late"]
        assert await found_snippets(db, "hauses") == []


async def test_the_forms_that_were_found_are_marked(open_db: OpenDB):
    async with open_db(stemming="english") as db:
        await append_words(db, "s", "I was running late")
        for _ in range(2):
            (hit,) = (await db.search_messages("runs", scope=EVERYTHING)).hits
            assert hit.snippet == "I was >>>running<<< late"
            await db.catch_up_search_index()
        recall = await SessionSearch(db=db, scope=EVERYTHING)("runs")
        assert recall["results"][0]["summary"] == "- I was >>>running<<< late"


@pytest.mark.parametrize(
    ("written", "meant"), [("off", "off"), (False, "off"), ("german", "german"), (None, ConfigError)]
)
def test_the_configuration_names_a_language_or_off(written: object, meant: object):
    if isinstance(meant, str):
        assert Config.from_mapping({"search": {"stemming": written}}).search.stemming == meant
    else:
        with pytest.raises(ConfigError, match=r"search.stemming: must be one of off, arabic"):
            Config.from_mapping({"search": {"stemming": written}})


async def test_whoever_reads_finds_words_as_the_owner_does(open_db: OpenDB, address: str, tmp_path: Path):
    async with SessionStore.open(address if "://" in address else tmp_path, ENGLISH) as store:
        await append_words(store.db, "s", *SAID)
        await store.db.catch_up_search_index()
        async with SessionDB.open_reader(address, home=tmp_path / "reader") as reader:
            assert len(await found_snippets(reader, "runs")) == 2
    async with open_db(stemming="off"), SessionDB.open_reader(address, home=tmp_path / "reader") as reader:
        assert await found_snippets(reader, "runs") == []


@pytest.mark.parametrize(
    ("fact", "value"), [(stemming.IN_THE_DATABASE, "german 3.1"), (stemming.BEING_FORGOTTEN, "1")]
)
async def test_an_index_that_has_other_stems_or_is_being_forgotten_is_not_relied_on(
    open_db: OpenDB, address: str, fact: str, value: str
):
    if "://" not in address or (fact == stemming.BEING_FORGOTTEN and address.startswith("postgresql")):
        return  # a file is made anew, and PostgreSQL sees what it knew at the moment of the search
    async with open_db(stemming="english") as db:
        await append_words(db, "s", *SAID)
        await db.catch_up_search_index()
        await db.write(partial(meta.set_fact, fact, value))
        if address.startswith("postgresql"):
            connection = await asyncpg.connect(address)
            await connection.execute(EMPTIED)
            await connection.close()
        else:
            async with mysql.open_connection(address) as rival:
                await rival.run_texts(EMPTIED)
        assert len(await found_snippets(db, "runs")) == 2
    async with open_db() as db:
        await db.catch_up_search_index()
        assert len(await found_snippets(db, "runs")) == 2
        assert await db.read(stemming.database_stems) == "english 3.1"
        assert await db.read(partial(meta.get_fact, stemming.BEING_FORGOTTEN)) is None


async def test_what_is_asked_while_others_have_it_open_is_told_and_left(
    open_db: OpenDB, address: str, caplog: pytest.LogCaptureFixture
):
    if "://" not in address:
        return
    async with open_db("one", stemming="english", cluster=ClusterRules(name="one")) as one:
        await append_words(one, "s", *SAID)
        with caplog.at_level(logging.WARNING):
            async with open_db("two", stemming="german", cluster=ClusterRules(name="two")) as two:
                assert len(await found_snippets(two, "runs")) == 2
                await append_words(two, "t", "she runs")
        assert [one.__dict__["action"] for one in caplog.records if "stemming" in one.message] == [
            "stemming_kept"
        ]
        assert len(await found_snippets(one, "run")) == 3
    async with open_db("two", stemming="german") as two:
        await two.catch_up_search_index()
        assert len(await found_snippets(two, "hauses")) == 2


async def test_rules_that_nobody_knows_are_told_and_nothing_is_changed(open_db: OpenDB):
    async with open_db() as db:
        await append_words(db, "s", *SAID)
        await db.write(partial(meta.set_fact, meta.STEMMING, "klingon 9"))
    for asked in (None, "english"):
        with pytest.raises(UnsupportedStorageError, match="'klingon 9', which this version does not know"):
            async with open_db(stemming=asked):
                pass


async def test_a_store_that_moves_keeps_its_forms(open_db: OpenDB, address: str, tmp_path: Path):
    source = tmp_path / "before" / "sessions.db"
    async with SessionDB.open(source, stemming="english", survives_power_cut=False) as db:
        await append_words(db, "s", *SAID)
    await migrate_store(source, address)
    async with open_db() as db:
        assert len(await found_snippets(db, "runs")) == 2
        await db.catch_up_search_index()
        assert len(await found_snippets(db, "runs")) == 2


async def test_a_misspelt_word_finds_what_is_like_it_after_what_is_exact(open_db: OpenDB):
    async with open_db() as db:
        await append_words(db, "s", "docker docker", "a dokcer with some more words", "an otter, a walrus")
        for _ in range(2):
            result = await db.search_messages("dokcer", scope=EVERYTHING, fuzzy=True)
            assert [hit.snippet for hit in result.hits] == [
                "a >>>dokcer<<< with some more words",
                ">>>docker<<< >>>docker<<<",
            ]
            exact, near = (hit.score for hit in result.hits)
            assert exact is not None
            assert near is not None
            assert exact > near > 0
            assert (result.near_words, result.degraded, result.matches) == (("docker",), False, 2)
            await db.catch_up_search_index()
        assert await found_snippets(db, "dokcer") == ["a dokcer with some more words"]
        assert await found_snippets(db, "wallrus -docker", fuzzy=True) == ["an otter, a walrus"]
        assert await found_snippets(db, "docker -dokcer", fuzzy=True) == ["docker docker"]
        assert (
            await found_snippets(db, '"wallrus"', fuzzy=True)
            == await found_snippets(db, "zebra", fuzzy=True)
            == []
        )
        assert len((await db.search_sessions("ottre", scope=EVERYTHING, fuzzy=True)).sessions) == 1


async def test_how_far_words_like_these_were_looked_for_is_told(
    open_db: OpenDB, monkeypatch: pytest.MonkeyPatch
):
    async with open_db() as db:
        await append_words(db, "s", "docker", *(f"walrus {n}" for n in range(20)))
        monkeypatch.setattr("gateway_sessions.storage.search.search.MOST_SCANNED_FOR_WORDS", 5)
        result = await db.search_messages("wallrus", scope=EVERYTHING, fuzzy=True)
        assert (len(result.hits), result.degraded, result.problem) == (20, True, NOT_ALL_WORDS)


async def test_a_fuzzy_search_that_cannot_be_meant_is_refused(open_db: OpenDB):
    async with open_db() as db:
        for options, problem in (
            ({"fuzzy": True, "mode": "substring"}, "mode 'words' only"),
            ({"fuzzy": "yes"}, "fuzzy must be True or False, not 'yes'"),
        ):
            with pytest.raises(InvalidInputError, match=problem):
                await db.search_messages("x", scope=EVERYTHING, **options)  # type: ignore[arg-type]  # as the test means
    with pytest.raises(InvalidInputError, match="stemming must be one of off"):
        open_db(stemming="klingon")
