"""The tool with which an agent remembers."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.search.excerpts import Passage
from gateway_sessions.runtime.agents.search_tool import SessionSearch
from tests.integration.search.conftest import EVERYTHING, append_words

ALICE = Scope(owners=frozenset({"main:telegram:user:alice"}))


@pytest.fixture
async def said(db: SessionDB) -> SessionDB:
    mine = {"source": "telegram", "user_id": "alice"}
    await append_words(db, "old", "how do I deploy?", "docker docker is what you want", "thanks", **mine)
    await append_words(db, "older", "docker is mentioned here, among other things", **mine)
    await append_words(db, "now", "docker, now", **mine)
    await append_words(
        db, "part", "docker, in a part of now", parent_session_id="now", relation="continuation", **mine
    )
    await append_words(db, "theirs", "docker of bob", source="telegram", user_id="bob")
    await append_words(db, "tool", "docker of a program", source="tool", user_id="alice")
    return db


async def test_other_conversations_are_described(said: SessionDB):
    answer = await SessionSearch(db=said, scope=ALICE, current_session_id="part")("docker")
    assert json.loads(json.dumps(answer)) == answer
    assert (answer["success"], answer["mode"], answer["count"], answer["degraded"]) == (
        True,
        "search",
        2,
        False,
    )
    first, second = answer["results"]
    assert (first["session_id"], second["session_id"]) == ("old", "older")
    assert first["summary"] == "- >>>docker docker<<< is what you want".replace(
        " docker<<<", "<<< >>>docker<<<"
    )
    assert first["summarised"] is False
    assert (first["source"], first["title"], first["matches"]) == ("telegram", None, 1)
    assert [line["content"] for line in first["context"]] == [
        "how do I deploy?",
        "docker docker is what you want",
        "thanks",
    ]


async def test_a_summariser_is_given_what_was_said_around_the_matches(said: SessionDB):
    given: list[Passage] = []

    async def summariser(passage: Passage) -> str:
        given.append(passage)
        return f" about {passage.session_id} "

    answer = await SessionSearch(db=said, scope=ALICE, summariser=summariser)("docker", limit=2)
    assert [one["summary"] for one in answer["results"]] == [
        f"about {one['session_id']}" for one in answer["results"]
    ]
    assert all(one["summarised"] for one in answer["results"])
    (old,) = [one for one in given if one.session_id == "old"]
    assert old.text == "user: how do I deploy?\nuser: docker docker is what you want\nuser: thanks"
    assert old.query == "docker"


async def test_a_summariser_that_fails_or_takes_too_long_is_done_without(said: SessionDB, caplog):
    async def fails(_passage: Passage) -> str:
        raise RuntimeError

    async def hangs(_passage: Passage) -> str:
        await asyncio.Event().wait()
        return "never"

    async def has_no_idea(_passage: Passage) -> None:
        return None

    for summariser, logged in ((fails, 2), (hangs, 2), (has_no_idea, 0)):
        caplog.clear()
        search = SessionSearch(
            db=said,
            scope=ALICE,
            summariser=summariser,
            timeout=timedelta(milliseconds=20),
            current_session_id="now",
        )
        answer = await search("docker")
        assert [one["summarised"] for one in answer["results"]] == [False, False]
        assert all(">>>docker<<<" in one["summary"] for one in answer["results"])
        assert [getattr(record, "action", "") for record in caplog.records] == ["summary_failed"] * logged


async def test_without_a_query_recent_conversations_are_listed(said: SessionDB):
    answer = await SessionSearch(db=said, scope=ALICE, current_session_id="now")(limit=1)
    assert (answer["success"], answer["mode"], answer["count"]) == (True, "browse", 1)
    assert answer["results"][0]["session_id"] in {"old", "older"}
    assert json.loads(json.dumps(answer)) == answer


async def test_a_search_that_cannot_be_done_says_why(said: SessionDB):
    search = SessionSearch(db=said, scope=ALICE)
    for arguments in ({"query": "x" * 3_000}, {"limit": 0}, {"limit": 11}, {"query": "x", "sort": "random"}):
        answer = await search(**arguments)
        assert answer["success"] is False
        assert answer["error"]
    nothing = await search("nowhere")
    assert (nothing["success"], nothing["count"]) == (True, 0)


async def test_no_more_of_a_conversation_is_read_than_is_allowed(db: SessionDB):
    await append_words(db, "s", *("docker " + "word " * 200 for _ in range(100)))
    lengths: list[int] = []

    async def summariser(passage: Passage) -> str:
        lengths.append(len(passage.text))
        return "ok"

    await SessionSearch(db=db, scope=EVERYTHING, summariser=summariser, characters=5_000)("docker")
    assert 3_000 < lengths[0] <= 5_000


def test_models_are_told_how_to_call_it():
    definition = dict(SessionSearch.definition)
    assert definition["name"] == "session_search"
    assert set(definition["parameters"]["properties"]) == {"query", "limit", "sort"}
    json.dumps(definition)
