"""Whatever is said and asked, a search finds what a look at every message would."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search_certain import Certain, certain_of_literal
from gateway_sessions.core.search_documents import IndexedMessage, Position, Work, tokens_of
from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_query import matches, parse_query
from gateway_sessions.core.search_text import fold, is_pair, is_unspaced, located, tokens
from gateway_sessions.core.search_wanted import Literal, Words, wanted_of
from gateway_sessions.core.snippets import beginning, snippet
from gateway_sessions.storage.search_index.file import IndexFile
from gateway_sessions.storage.search_index.match import Match, match_of

EVERYTHING = SearchFilter(scope=Scope.operator())

WORDS: Final = (
    "docker",
    "Docker",
    "deploy",
    "dep",
    "a",
    "b",
    "ab",
    "foo_bar",
    "user@host.de",
    "/a/b.py",
    "50%",
    "C++",
    "é",
    "e\u0301",
    "Straße",
    "STRASSE",
    "机",
    "器",
    "机器",
    "学习",
    "か",
    "\u3099",
    "が",
    "한",
    "국",
    "ภ",
    "า",
    "ษ",
    "👍",
    "x²",
    "'",
    "-",
    "*",
    '"',
    "\n",
    "。",
)
PIECES = st.sampled_from(WORDS)
SAID = st.sampled_from([*WORDS, "longest" * 10, "blob" * 300])
TEXT = st.lists(st.one_of(SAID, st.just(" "), st.characters(codec="utf-8")), max_size=14).map("".join)
QUERY = st.lists(
    st.one_of(PIECES, st.sampled_from([" ", " OR ", " AND ", " NOT ", " -", '"', "*", "(", ":"])),
    min_size=1,
    max_size=8,
).map("".join)


def message(number: int, text: str, sent_at: int = 0) -> IndexedMessage:
    return IndexedMessage(number, "s", "user", text, None, None, sent_at, "owner", None, "cli")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class Shelf:
    """An index that is emptied after each example."""

    def __init__(self, folder: Path) -> None:
        self.file = IndexFile(folder / "search.db")
        self.file.connect("property", Position())
        self.last = 0

    def found(self, texts: list[str], match: Match) -> set[int]:
        """The texts among these that match."""
        first = self.last + 1
        self.last += len(texts)
        return self._found(first, match, [message(first + at, text) for at, text in enumerate(texts)])

    def sent(self, moments: list[datetime], match: Match) -> set[int]:
        """The moments among these at which something was sent that matches."""
        first = self.last + 1
        self.last += len(moments)
        said = [message(first + at, "x", to_micros(moment)) for at, moment in enumerate(moments)]
        return self._found(first, match, said)

    def _found(self, first: int, match: Match, messages: list[IndexedMessage]) -> set[int]:
        self.file.apply(Work(Position(self.last, 0), tuple(messages)))
        found = self.file.find(match, self.last + 1, 1_000)
        assert found.is_answer
        return {one - first for one in found.message_ids if one >= first}


@pytest.fixture(scope="module")
def shelf(folder: Path) -> Iterator[Shelf]:
    one = Shelf(folder)
    yield one
    one.file.close()


@given(texts=st.lists(TEXT, min_size=1, max_size=5), query=QUERY)
@settings(max_examples=150, deadline=None)
@example(texts=["部署失败"], query="败")
@example(texts=["a b", "b a"], query='"a b"')
@example(texts=["docker", "dock"], query="dock* NOT docker")
def test_the_index_finds_what_the_evaluator_finds(shelf: Shelf, texts: list[str], query: str):
    wanted = wanted_of(query, literal=False)
    if isinstance(wanted, Words):
        match = match_of(Certain(wanted.query), EVERYTHING)
        assert match is not None
        expected = {at for at, text in enumerate(texts) if matches(wanted.query, tokens(text))}
        assert shelf.found(texts, match) == expected


@given(texts=st.lists(TEXT, min_size=1, max_size=5), data=st.data())
@settings(max_examples=150, deadline=None)
def test_nothing_that_contains_a_text_is_missing_from_what_may_contain_it(
    shelf: Shelf, texts: list[str], data: st.DataObject
):
    whole = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, max(len(whole) - 1, 0)))
    needle = whole[start : start + data.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 80]))]
    if (match := match_of(certain_of_literal(needle), EVERYTHING)) is not None:
        containing = {at for at, text in enumerate(texts) if Literal(needle).found_in([text])}
        assert containing <= shelf.found(texts, match)


MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=5), since=st.none() | MOMENTS, until=st.none() | MOMENTS
)
@settings(max_examples=150, deadline=None)
@example(moments=[datetime(2026, 1, 1, tzinfo=UTC)], since=None, until=datetime(2026, 1, 1, tzinfo=UTC))
@example(moments=[datetime(9999, 12, 31, tzinfo=UTC)], since=datetime(9999, 12, 31, tzinfo=UTC), until=None)
@example(
    moments=[datetime(2026, 1, 1, tzinfo=UTC)],
    since=datetime(1970, 1, 1, tzinfo=UTC),
    until=datetime.max.replace(tzinfo=UTC),
)
def test_nothing_that_was_sent_in_time_is_missing_from_what_may_have_been(
    shelf: Shelf, moments: list[datetime], since: datetime | None, until: datetime | None
):
    wanted = SearchFilter(scope=Scope.operator(), since=since, until=until)
    match = match_of(Certain(parse_query("x")), wanted)
    assert match is not None
    in_time = {
        at
        for at, moment in enumerate(moments)
        if wanted.admits(role="user", sent_at=to_micros(moment), hidden_because=None)
    }
    found = shelf.sent(moments, match)
    assert in_time <= found
    months = [moment.year * 12 + moment.month for moment in moments]
    first, last = (None if one is None else one.year * 12 + one.month for one in (since, until))
    assert all(first is None or months[at] >= first for at in found)
    assert all(last is None or months[at] <= max(last, first or 0) for at in found)


@given(text=TEXT, needle=st.text(st.sampled_from("机器学习部署ภาษาไทยかな한국"), min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
def test_words_without_spaces_are_found_wherever_a_look_at_every_character_finds_them(text: str, needle: str):
    haystack = text + needle[:2] + text
    query = parse_query(needle)
    assert matches(query, tokens(haystack)) == (fold(needle) in fold(haystack))


@given(query=st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_query(shelf: Shelf, query: str):
    wanted = wanted_of(query, literal=False)
    if isinstance(wanted, Words):
        match = match_of(Certain(wanted.query), EVERYTHING)
        assert match is not None
        shelf.file.find(match, None, 1)
        assert wanted.query.branches


@given(text=st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_text_is_found_by_itself(text: str):
    if tokens(text):
        quoted = '"' + "".join(" " if tokens(one) == [] else one for one in text) + '"'
        assert matches(parse_query(quoted), tokens(text)) or tokens(quoted) != tokens(text)
    assert not text.strip() or Literal(text).found_in([text])


@given(text=st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_tokens_hold_no_separators_and_know_their_places(text: str):
    for one in located(text):
        assert one.text
        assert 0 <= one.start < one.end <= len(text)
        assert all(ord(char) > 127 or char.isdigit() or char.islower() for char in one.text)
        assert not is_pair(one.text) or is_unspaced(one.text[1])
    assert [one.text for one in located(text)] == tokens(text) == tokens_of(message(1, text))


@given(text=TEXT, query=QUERY)
@settings(max_examples=150, deadline=None)
def test_what_is_found_can_be_shown(text: str, query: str):
    wanted = wanted_of(query, literal=False)
    if wanted is not None and wanted.found_in([text]):
        cut = snippet(text, wanted.finder, wanted.hints)
        assert cut is not None
        assert ">>>" in cut
        assert "<<<" in cut
    assert len(beginning(text)) <= 2 * len(text) + 3


class Room:
    """A database that two people use who must not see each other."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._db = SessionDB.open(folder / "room" / "sessions.db", survives_power_cut=False)
        self._names = itertools.count()
        self.run(self._db.__aenter__())

    def run(self, work):
        return self._runner.run(work)

    def close(self) -> None:
        self.run(self._db.__aexit__(None, None, None))
        self._runner.close()

    async def check(self, steps: list[tuple[str, int, str]], query: str, mode: str) -> None:
        """Take the steps, then compare the search of each person with a look at what they said."""
        number = next(self._names)
        sessions = [f"{number}-{person}" for person in "ab"]
        for session_id in sessions:
            await self._db.create_session(session_id, "cli", user_id=session_id)
        for at, (kind, person, text) in enumerate(steps):
            await self._take(kind, sessions[person], text, str(at))
        for session_id in sessions:
            scope = Scope(owners=frozenset({f"main:cli:user:{session_id}"}))
            result = await self._db.search_messages(query, scope=scope, mode=mode, limit=1_000)
            wanted = wanted_of(query, literal=mode == "substring")
            said = await self._db.get_messages(session_id)
            expected = {one.message_id for one in said if wanted and wanted.found_in([one.text])}
            assert not result.degraded
            assert {hit.id for hit in result.hits} == expected
            assert {hit.session_id for hit in result.hits} <= {session_id}

    async def _take(self, kind: str, session_id: str, text: str, name: str) -> None:
        match kind:
            case "say":
                await self._db.append_message(session_id, "user", text, platform_message_id=name)
            case "edit":
                for earlier in range(int(name)):
                    await self._db.edit_message(session_id, str(earlier), text)
            case "rewind":
                await self._db.rewind_session(session_id)
            case _:
                await self._db.catch_up_search_index()


@pytest.fixture(scope="module")
def room(folder: Path) -> Iterator[Room]:
    one = Room(folder)
    yield one
    one.close()


STEPS = st.tuples(st.sampled_from(["say", "say", "say", "edit", "rewind", "index"]), st.integers(0, 1), TEXT)


@given(steps=st.lists(STEPS, max_size=8), query=QUERY, mode=st.sampled_from(["words", "substring"]))
@settings(max_examples=25, deadline=None)
def test_everybody_finds_what_they_said_and_nothing_else(
    room: Room, steps: list[tuple[str, int, str]], query: str, mode: str
):
    room.run(room.check(steps, query, mode))
