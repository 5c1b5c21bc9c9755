"""What servers find by tokens and labels is what our own evaluator finds, and what SQLite does."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search.criteria import (
    CertainTerms,
    Literal,
    Words,
    certain_terms_of_literal,
    criterion_of,
)
from gateway_sessions.core.search.documents import Searchable
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.query import document_matches, parse_query
from gateway_sessions.core.search.results import SearchResult
from gateway_sessions.core.search.stems import Stemming
from gateway_sessions.core.search.tokenizer import tokens_of_text
from gateway_sessions.core.search.tsquery import tsquery_of
from gateway_sessions.storage.engines.search_column import TSVECTOR, TokenLanguage
from gateway_sessions.testing import FakeClock
from tests.mysql import empty_database as empty_mysql
from tests.postgresql import admin_connection, empty_database
from tests.property.transcripts.test_search import (
    EVERYTHING,
    FORMS,
    MODES,
    MOMENTS,
    QUERY,
    STEMS,
    STEPS,
    TEXT,
)

STEMMED = replace(TSVECTOR, stems=STEMS)

FITTING = """
    SELECT place - 1 FROM unnest($1::text[]) WITH ORDINALITY AS said (tokens, place)
    WHERE tokens::tsvector @@ $2::text::tsquery
"""


class Server:
    """Compares what is said with what is asked, without any table."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._connection = runner.run(admin_connection())

    def found(self, texts: list[str], query: str, language: TokenLanguage = TSVECTOR) -> set[int]:
        """The texts among these that match."""
        return self.fitting([(text, 0) for text in texts], query, language)

    def fitting(
        self, said: list[tuple[str, int]], query: str, language: TokenLanguage = TSVECTOR
    ) -> set[int]:
        """The same of texts that were sent at some moment."""
        vectors = [
            language.token_values(Searchable("s", "user", at, text, None, None))[0] for text, at in said
        ]
        rows = self._runner.run(self._connection.fetch(FITTING, vectors, query))
        return {row[0] for row in rows}

    def close(self) -> None:
        self._runner.run(self._connection.close())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with asyncio.Runner() as runner, closing(Server(runner)) as one:
        yield one


LONG = st.sampled_from(["", "docker a " * 300])
"""With that, no places are known."""


@given(texts=st.lists(TEXT, min_size=1, max_size=5), long=LONG, query=QUERY)
@settings(max_examples=150, deadline=None)
@example(texts=["部署失败"], long="", query="败")
@example(texts=["a b", "b a"], long="", query='"a b"')
@example(texts=["docker", "dock"], long="", query="dock* NOT docker")
def test_the_server_finds_what_the_evaluator_finds(server: Server, texts: list[str], long: str, query: str):
    wanted = criterion_of(query, literal=False)
    if isinstance(wanted, Words):
        asked = tsquery_of(CertainTerms(wanted.query), EVERYTHING)
        assert asked is not None
        said = [long + text for text in texts]
        expected = {
            at for at, text in enumerate(said) if document_matches(wanted.query, tokens_of_text(text))
        }
        found = server.found(said, asked.text)
        assert expected <= found if long else expected == found


@given(texts=st.lists(TEXT, min_size=1, max_size=5), long=LONG, data=st.data())
@settings(max_examples=150, deadline=None)
def test_nothing_that_contains_a_text_is_missing_from_what_may_contain_it(
    server: Server, texts: list[str], long: str, data: st.DataObject
):
    whole = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, max(len(whole) - 1, 0)))
    needle = whole[start : start + data.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 80]))]
    if (asked := tsquery_of(certain_terms_of_literal(needle), EVERYTHING)) is not None:
        said = [long + text for text in texts]
        containing = {at for at, text in enumerate(said) if Literal(needle).matches_fields([text])}
        assert containing <= server.found(said, asked.text)


@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=5), since=st.none() | MOMENTS, until=st.none() | MOMENTS
)
@settings(max_examples=100, deadline=None)
@example(moments=[datetime(9999, 12, 31, tzinfo=UTC)], since=datetime(9999, 12, 31, tzinfo=UTC), until=None)
def test_nothing_that_was_sent_in_time_is_missing_from_what_may_have_been(
    server: Server, moments: list[datetime], since: datetime | None, until: datetime | None
):
    shown = SearchFilter(scope=Scope.operator(), since=since, until=until)
    asked = tsquery_of(CertainTerms(parse_query("x")), shown)
    assert asked is not None
    sent = [to_micros(moment) for moment in moments]
    in_time = {
        at for at, one in enumerate(sent) if shown.admits(role="user", sent_at=one, hidden_because=None)
    }
    assert in_time <= server.fitting([("x", one) for one in sent], asked.text)


class Rooms:
    """The same things said to SQLite, PostgreSQL and MySQL, by two people who must not see each other."""

    def __init__(self, runner: asyncio.Runner, stemming: Stemming) -> None:
        self._stemming = stemming
        self._runner = runner
        self._stack = AsyncExitStack()
        self._number = 0
        self._databases = runner.run(self._opened())

    async def _opened(self) -> list[SessionDB]:
        async with AsyncExitStack() as unless_opened:
            databases = await self._open(unless_opened)
            self._stack = unless_opened.pop_all()
        return databases

    async def _open(self, stack: AsyncExitStack) -> list[SessionDB]:
        dsn = await stack.enter_async_context(empty_database())
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        path, stemming = home / "file" / "sessions.db", self._stemming
        file = SessionDB.open(path, clock=FakeClock(), survives_power_cut=False, stemming=stemming)
        server = SessionDB.open(dsn, clock=FakeClock(), home=home / "server", stemming=stemming)
        address = await stack.enter_async_context(empty_mysql())
        other = SessionDB.open(address, clock=FakeClock(), home=home / "other", stemming=stemming)
        return [await stack.enter_async_context(one) for one in (file, server, other)]

    def answers(
        self, steps: list[tuple[str, int, str]], query: str, mode: tuple[str, bool]
    ) -> list[list[SearchResult]]:
        """What each database answers to each of the two."""
        self._number += 1
        return self._runner.run(self._answers(steps, query, *mode))

    async def _answers(
        self, steps: list[tuple[str, int, str]], query: str, mode: str, fuzzy: bool
    ) -> list[list[SearchResult]]:
        sessions = [f"{self._number}-{person}" for person in "ab"]
        found: list[list[SearchResult]] = []
        for db in self._databases:
            for session_id in sessions:
                await db.create_session(session_id, "cli", user_id=session_id)
            for at, (kind, person, text) in enumerate(steps):
                await _take(db, kind, sessions[person], text, str(at))
            scopes = [Scope(owners=frozenset({f"main:cli:user:{one}"})) for one in sessions]
            found.append(
                [await db.search_messages(query, scope=scope, mode=mode, fuzzy=fuzzy) for scope in scopes]
            )
        return found

    def close(self) -> None:
        self._runner.run(self._stack.aclose())


async def _take(db: SessionDB, kind: str, session_id: str, text: str, name: str) -> None:
    match kind:
        case "say":
            await db.append_message(session_id, "user", text, platform_message_id=name)
        case "edit":
            for earlier in range(int(name)):
                await db.edit_message(session_id, str(earlier), text)
        case "rewind":
            await db.rewind_session(session_id)
        case _:
            await db.catch_up_search_index()


def shown(result: SearchResult) -> list[tuple[object, ...]]:
    return [
        (hit.session_id, hit.seq, hit.snippet, hit.score, hit.context, hit.timestamp) for hit in result.hits
    ]


@pytest.fixture(scope="module", params=[Stemming.OFF, Stemming.ENGLISH])
def rooms(request: pytest.FixtureRequest) -> Iterator[Rooms]:
    with asyncio.Runner() as runner, closing(Rooms(runner, request.param)) as one:
        yield one


@given(steps=st.lists(STEPS, max_size=6), query=QUERY | FORMS, mode=MODES)
@settings(max_examples=20, deadline=None)
@example(steps=[("say", 0, "running"), ("say", 0, "a run, he runs")], query="run", mode=("words", False))
@example(
    steps=[("say", 0, "dokcer"), ("say", 0, "docker"), ("say", 0, "dokcer")],
    query="docker",
    mode=("words", True),
)
def test_all_databases_answer_the_same_in_the_same_order(
    rooms: Rooms, steps: list[tuple[str, int, str]], query: str, mode: tuple[str, bool]
):
    of_file, *of_servers = rooms.answers(steps, query, mode)
    for one, other in (
        (one, other) for found in of_servers for one, other in zip(of_file, found, strict=True)
    ):
        assert not one.degraded
        assert not other.degraded
        assert shown(one) == shown(other)
        assert (one.matches, one.ranked_among) == (other.matches, other.ranked_among)
        assert one.near_words == other.near_words


@given(texts=st.lists(FORMS | TEXT, min_size=1, max_size=5), long=LONG, query=FORMS | QUERY)
@settings(max_examples=150, deadline=None)
@example(texts=["running late", "runs"], long="", query='run -"late"')
def test_with_stems_the_server_finds_what_the_evaluator_finds(
    server: Server, texts: list[str], long: str, query: str
):
    wanted = criterion_of(query, literal=False, stems=STEMS)
    if isinstance(wanted, Words):
        asked = tsquery_of(CertainTerms(wanted.query), EVERYTHING)
        assert asked is not None
        said = [long + text for text in texts]
        expected = {at for at, text in enumerate(said) if wanted.matches_fields([text])}
        found = server.found(said, asked.text, STEMMED)
        assert expected <= found if long else expected == found
