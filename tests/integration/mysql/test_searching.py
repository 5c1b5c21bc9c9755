"""The search index in a MySQL or MariaDB database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Scope, SessionDB
from gateway_sessions.storage.engines.search_column import FULLTEXT
from gateway_sessions.storage.search import server_index
from gateway_sessions.storage.search.protocol import IndexState
from tests.mysql import open_connection

EVERYTHING = Scope.operator()
OF_AN_EARLIER_VERSION = "UPDATE messages SET tokens = NULL"
SAID = (
    "the docker deployment",
    "docker only",
    "模型部署失败",
    "mail user@host.de",
    "the www of about 50%",
    "Электрификация автоматизированных железнодорожных путей сообщения",
    "👍 x² Straße",
)
FOUND = {
    "docker deployment": [0],
    '"docker deployment"': [0],
    '"deployment docker"': [],
    "docker -deployment": [1],
    'docker NOT "docker deployment"': [1],
    "dep* OR only": [0, 1],
    "d*": [0, 1, 3],
    '"docker dep"*': [0],
    'docker -"docker dep"*': [1],
    "部署": [2],
    "型部署": [2],
    "失": [2],
    "user@host": [3],
    "the www about": [4],
    "автоматизированных": [5],
    "автоматизированный": [],
    "железно*": [5],
    "👍": [6],
    "x2 strasse": [6],
    "\\ ' \" ( ) + - * @ ~ > <": [],
    "+docker ~only >x": [],
}


@pytest.fixture
async def db(address: str, tmp_path: Path) -> AsyncIterator[SessionDB]:
    async with SessionDB.open(address, home=tmp_path) as db:
        await db.create_session("s", "cli")
        yield db


async def found(db: SessionDB, query: str, **options: str) -> list[int]:
    result = await db.search_messages(query, scope=EVERYTHING, **options)  # type: ignore[arg-type]  # all are words
    assert not result.degraded
    return sorted(hit.seq - 1 for hit in result.hits)


async def test_the_server_finds_what_was_said(db: SessionDB):
    await db.append_messages("s", [{"role": "user", "content": text} for text in SAID])
    answers = {query: await found(db, query) for query in FOUND}
    assert answers == FOUND
    assert await found(db, "ocker dep", mode="substring") == [0]
    assert await found(db, "50%", mode="substring") == [4]


async def test_words_that_are_longer_than_the_server_keeps_are_looked_at(db: SessionDB):
    long = "щ" * 40
    await db.append_messages("s", [{"role": "user", "content": f"{long}{end}"} for end in ("ab", "ac", "ы")])
    assert await found(db, f"{long}ab") == [0]
    assert await found(db, f"{long}a*") == [0, 1]
    assert await found(db, f"щ* -{long}ac") == [0, 2]


async def test_messages_of_an_earlier_version_are_found_at_once_and_told_of(db: SessionDB, address: str):
    await db.append_messages("s", [{"role": "user", "content": f"walrus {n}"} for n in range(30)])
    async with open_connection(address) as rival:
        await rival.run_texts(OF_AN_EARLIER_VERSION)
        assert len((await db.search_messages("walrus", scope=EVERYTHING, limit=100)).hits) == 30
        await db.catch_up_search_index()
        assert await rival.fetch("SELECT count(*) FROM messages WHERE tokens IS NULL") == [(0,)]
    assert db.search_index.state is not IndexState.EMPTY
    assert len((await db.search_messages("walrus", scope=EVERYTHING, limit=100)).hits) == 30


async def test_what_is_edited_while_its_tokens_are_made_is_told_of_again(db: SessionDB):
    await db.append_message("s", "user", "walrus", platform_message_id="1")
    await db.edit_message("s", "1", "seal")
    work = await db.read(partial(server_index.read_missing_tokens, 10))
    await db.edit_message("s", "1", "otter")
    await db.write(partial(server_index.write_tokens, work, server_index.token_rows(work, FULLTEXT)))
    for _ in range(2):
        assert [await found(db, word) for word in ("walrus", "seal", "otter")] == [[], [], [0]]
        await db.catch_up_search_index()


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize("what", ["forgotten", "told of again"])
async def test_what_is_told_anew_during_a_search_is_found_all_the_same(
    db: SessionDB, monkeypatch: pytest.MonkeyPatch, what: str, times: int
):
    """The index does not keep what it knew at the moment that the search sees."""
    for number in range(5):
        await db.append_message("s", "user", f"walrus {number}", platform_message_id=str(number))
    await db.catch_up_search_index()
    look, left = server_index._scan_unindexed, iter(range(times))  # noqa: SLF001 -- the moment between two questions

    async def look_and_let_it_change(*arguments: Any) -> None:
        await look(*arguments)
        if next(left, None) is None:
            return
        if what == "forgotten":
            await db.write(partial(server_index.remove_page_of_tokens, -1, 1_000))
        else:
            await db.edit_message("s", "1", "walrus again")
            work = await db.read(partial(server_index.read_missing_tokens, 10))
            await db.write(partial(server_index.write_tokens, work, server_index.token_rows(work, FULLTEXT)))

    monkeypatch.setattr(server_index, "_scan_unindexed", look_and_let_it_change)
    assert sorted(await found(db, "walrus")) == [0, 1, 2, 3, 4]


async def test_messages_of_several_sessions_that_are_told_of_at_once_keep_their_labels(
    db: SessionDB, address: str
):
    for name in ("ann", "bob"):
        await db.create_session(name, "cli", user_id=name)
        await db.append_messages(
            name, [{"role": "user", "content": f"walrus {n} of {name}"} for n in range(3)]
        )
    async with open_connection(address) as rival:
        before = await rival.fetch("SELECT message_id, tokens FROM messages ORDER BY message_id")
        await rival.run_texts(OF_AN_EARLIER_VERSION)
        await db.catch_up_search_index()
        assert await rival.fetch("SELECT message_id, tokens FROM messages ORDER BY message_id") == before
    for name in ("ann", "bob"):
        scope = Scope(owners=frozenset({f"main:cli:user:{name}"}))
        hits = (await db.search_messages("walrus", scope=scope)).hits
        assert [hit.session_id for hit in hits] == [name] * 3


async def test_nobody_finds_what_others_said(db: SessionDB):
    for name in ("ann", "bob"):
        await db.create_session(name, "cli", user_id=name, session_key=f"agent:main:cli:{name}")
        await db.append_message(name, "user", f"walrus of {name}")
    for scope in (Scope(owners=frozenset({"main:cli:user:ann"})), Scope.lane("agent:main:cli:ann")):
        for query in ("walrus", "w*", '"walrus of"'):
            hits = (await db.search_messages(query, scope=scope)).hits
            assert [hit.session_id for hit in hits] == ["ann"]


@pytest.mark.parametrize("sort", ["best", "newest", "oldest"])
async def test_more_answers_than_are_put_in_order_come_page_by_page(
    db: SessionDB, sort: str, monkeypatch: pytest.MonkeyPatch
):
    await db.append_messages("s", [{"role": "user", "content": f"walrus {n}"} for n in range(20)])
    whole = await db.search_messages("walrus", scope=EVERYTHING, sort=sort, limit=100)
    monkeypatch.setattr(server_index, "SOME", 5)
    monkeypatch.setattr(server_index, "PAGE", 3)
    assert await db.search_messages("walrus", scope=EVERYTHING, sort=sort, limit=100) == whole
    assert len(whole.hits) == 20
