"""Whatever is said and asked, a search finds what a look at every message would."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from gateway_sessions import Scope, SessionDB
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search.criteria import (
    CertainTerms,
    Criterion,
    Literal,
    Words,
    certain_terms_of_literal,
    criterion_of,
)
from gateway_sessions.core.search.documents import IndexedMessage, IndexPosition, IndexWork, tokens_of
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.query import document_matches, parse_query
from gateway_sessions.core.search.results import snippet, text_beginning
from gateway_sessions.core.search.stems import NO_STEMS, Stemming, Stems
from gateway_sessions.core.search.tokenizer import (
    fold,
    is_pair,
    is_unspaced,
    tokens_of_text,
    tokens_with_places,
    without_accents,
)
from gateway_sessions.storage.search.sqlite_file import IndexFile
from gateway_sessions.storage.search.sqlite_match import Fts5Match, fts5_match_of

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


STEMS: Final = Stems(Stemming.ENGLISH)
FORMED: Final = (
    "run",
    "runs",
    "Running",
    "runner",
    "die",
    "dying",
    "happy",
    "happiness",
    "café",
    "cafes",
    "deploy",
    "deploys",
    "deployed",
    "Straße",
    "mangée",
    "docker",
    "dokcer",
    "dockers",
    "docket",
    "机器",
)
FORMS = st.lists(
    st.sampled_from([*FORMED, " ", " ", " OR ", " -", '"', "*", "_"]), min_size=1, max_size=9
).map("".join)


def slips(one: str, other: str) -> int:
    """The slips that make one word of the other: the usual table."""
    table = {(-1, -1): len(one) + len(other)}
    for a in range(len(one) + 1):
        for b in range(len(other) + 1):
            if not a or not b:
                table[a, b] = a + b
                continue
            changed = table[a - 1, b - 1] + (one[a - 1] != other[b - 1])
            table[a, b] = min(table[a - 1, b] + 1, table[a, b - 1] + 1, changed)
            if a > 1 and b > 1 and one[a - 2 : a] == other[b - 2 : b][::-1]:
                table[a, b] = min(table[a, b], table[a - 2, b - 2] + 1)
    return table[len(one), len(other)]


def likes(words: Iterable[str], texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each word, the words of the texts that are like it."""
    said = {
        one
        for text in texts
        for one in tokens_of_text(text)
        if one.isalnum() and not is_unspaced(one[0]) and len(one) < 64
    }
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        near = [
            one for one in said if one != word and len(one) > 3 and not one.isdecimal() and alike(word, one)
        ]
        if near:
            found[word] = tuple(near)
    return found


def alike(one: str, other: str) -> bool:
    ours, theirs = ({f"  {it} "[at : at + 3] for at in range(len(it) + 1)} for it in (one, other))
    common = len(ours & theirs)
    return common > 0 and (common >= 0.3 * len(ours | theirs) or slips(one, other) == 1)


def message(number: int, text: str, sent_at: int = 0) -> IndexedMessage:
    return IndexedMessage(number, "s", "user", text, None, None, sent_at, "owner", None, "cli")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class Shelf:
    """An index that is emptied after each example."""

    def __init__(self, folder: Path, stems: Stems = NO_STEMS) -> None:
        self.file = IndexFile(folder / f"{stems.stemming}.db", stems=stems)
        self.file.connect("property", IndexPosition())
        self.last = 0

    def found(self, texts: list[str], match: Fts5Match) -> set[int]:
        """The texts among these that match."""
        first = self.last + 1
        self.last += len(texts)
        return self._found(first, match, [message(first + at, text) for at, text in enumerate(texts)])

    def sent(self, moments: list[datetime], match: Fts5Match) -> set[int]:
        """The moments among these at which something was sent that matches."""
        first = self.last + 1
        self.last += len(moments)
        said = [message(first + at, "x", to_micros(moment)) for at, moment in enumerate(moments)]
        return self._found(first, match, said)

    def _found(self, first: int, match: Fts5Match, messages: list[IndexedMessage]) -> set[int]:
        self.file.apply_work(IndexWork(IndexPosition(self.last, 0), tuple(messages)))
        found = self.file.find_candidates(match, self.last + 1, 1_000)
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
    wanted = criterion_of(query, literal=False)
    if isinstance(wanted, Words):
        match = fts5_match_of(CertainTerms(wanted.query), EVERYTHING)
        assert match is not None
        expected = {
            at for at, text in enumerate(texts) if document_matches(wanted.query, tokens_of_text(text))
        }
        assert shelf.found(texts, match) == expected


@pytest.fixture(scope="module")
def shelf_with_stems(folder: Path) -> Iterator[Shelf]:
    one = Shelf(folder, STEMS)
    yield one
    one.file.close()


@given(texts=st.lists(FORMS | TEXT, min_size=1, max_size=5), query=FORMS | QUERY, fuzzy=st.booleans())
@settings(max_examples=150, deadline=None)
@example(texts=["running late", "runs"], query='run -"late"', fuzzy=False)
@example(texts=["the dokcer runs", "docker"], query="docker run", fuzzy=True)
def test_with_stems_the_index_finds_what_the_evaluator_finds(
    shelf_with_stems: Shelf, texts: list[str], query: str, fuzzy: bool
):
    wanted = criterion_of(query, literal=False, stems=STEMS, fuzzy=fuzzy)
    if isinstance(wanted, Words):
        if fuzzy:
            wanted = Words(wanted.query.widened(likes(wanted.query.fuzzy_words, texts)), STEMS)
        match = fts5_match_of(CertainTerms(wanted.query), EVERYTHING)
        assert match is not None
        expected = {at for at, text in enumerate(texts) if wanted.matches_fields([text])}
        assert shelf_with_stems.found(texts, match) == expected
        assert expected <= set(wanted.preselect(texts))
        shown = {at: snippet(texts[at], wanted.finder, wanted.hints) for at in expected}
        assert all(cut is not None and ">>>" in cut for cut in shown.values())


@given(word=st.sampled_from(FORMED), other=st.sampled_from(FORMED))
@settings(max_examples=150, deadline=None)
def test_words_find_each_other_if_they_share_a_stem(word: str, other: str):
    stems = [
        {without_accents(EnglishStemmer().stemWord(one)) for one in (fold(it), without_accents(fold(it)))}
        for it in (word, other)
    ]
    wanted = criterion_of(word, literal=False, stems=STEMS)
    assert wanted is not None
    assert wanted.matches_fields([f"x {other} y"]) is not stems[0].isdisjoint(stems[1])


@given(texts=st.lists(TEXT | FORMS, min_size=1, max_size=5), query=QUERY | FORMS)
@settings(max_examples=200, deadline=None)
@example(texts=["\u3099", "か", "\x1e", "a\x1eb"], query="か")
@example(texts=["x", "\uff21\uff22", "é"], query="ab OR e")
def test_texts_that_are_looked_at_together_are_all_looked_at(texts: list[str], query: str):
    for literal in (False, True):
        wanted = criterion_of(query, literal=literal, stems=STEMS)
        if wanted is not None:
            found = {at for at, text in enumerate(texts) if wanted.matches_fields([text])}
            assert found <= set(wanted.preselect(texts)) <= set(range(len(texts)))


@given(texts=st.lists(TEXT, min_size=1, max_size=3), query=QUERY)
@settings(max_examples=300, deadline=None)
@example(texts=["Übermut tut selten gut"], query="ubermut")
@example(texts=["ﬁn \uff21\uff22\uff23"], query='"fin abc"')
@example(texts=["が"], query="か")
@example(texts=["a", "b"], query="b a")
@example(texts=["longest" * 20], query="longest" * 10 + "*")
def test_whatever_is_wanted_passes_the_quick_look(texts: list[str], query: str):
    wanted = criterion_of(query, literal=False)
    if wanted is not None and wanted.matches_fields(texts):
        assert wanted.preselect(["\n".join(texts)]) == [0]


@given(texts=st.lists(TEXT, min_size=1, max_size=5), data=st.data())
@settings(max_examples=150, deadline=None)
def test_nothing_that_contains_a_text_is_missing_from_what_may_contain_it(
    shelf: Shelf, texts: list[str], data: st.DataObject
):
    whole = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, max(len(whole) - 1, 0)))
    needle = whole[start : start + data.draw(st.sampled_from([1, 2, 3, 4, 5, 6, 80]))]
    if (match := fts5_match_of(certain_terms_of_literal(needle), EVERYTHING)) is not None:
        containing = {at for at, text in enumerate(texts) if Literal(needle).matches_fields([text])}
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
    match = fts5_match_of(CertainTerms(parse_query("x")), wanted)
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
    assert document_matches(query, tokens_of_text(haystack)) == (fold(needle) in fold(haystack))


@given(query=st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_query(shelf: Shelf, query: str):
    wanted = criterion_of(query, literal=False)
    if isinstance(wanted, Words):
        match = fts5_match_of(CertainTerms(wanted.query), EVERYTHING)
        assert match is not None
        shelf.file.find_candidates(match, None, 1)
        assert wanted.query.branches


@given(text=st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_text_is_found_by_itself(text: str):
    if tokens_of_text(text):
        quoted = '"' + "".join(" " if tokens_of_text(one) == [] else one for one in text) + '"'
        assert document_matches(parse_query(quoted), tokens_of_text(text)) or tokens_of_text(
            quoted
        ) != tokens_of_text(text)
    assert not text.strip() or Literal(text).matches_fields([text])


@given(text=st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_tokens_hold_no_separators_and_know_their_places(text: str):
    for one in tokens_with_places(text):
        assert one.text
        assert 0 <= one.start < one.end <= len(text)
        assert all(ord(char) > 127 or char.isdigit() or char.islower() for char in one.text)
        assert not is_pair(one.text) or is_unspaced(one.text[1])
    assert (
        [one.text for one in tokens_with_places(text)] == tokens_of_text(text) == tokens_of(message(1, text))
    )


@given(text=TEXT, query=QUERY)
@settings(max_examples=150, deadline=None)
def test_what_is_found_can_be_shown(text: str, query: str):
    wanted = criterion_of(query, literal=False)
    if wanted is not None and wanted.matches_fields([text]):
        cut = snippet(text, wanted.finder, wanted.hints)
        assert cut is not None
        assert ">>>" in cut
        assert "<<<" in cut
    assert len(text_beginning(text)) <= 2 * len(text) + 3


class Room:
    """A database that two people use who must not see each other."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        place = folder / "room" / "sessions.db"
        self._db = SessionDB.open(place, survives_power_cut=False, stemming=Stemming.ENGLISH)
        self._names = itertools.count()
        self.run(self._db.__aenter__())

    def run(self, work):
        return self._runner.run(work)

    def close(self) -> None:
        self.run(self._db.__aexit__(None, None, None))
        self._runner.close()

    async def check(self, steps: list[tuple[str, int, str]], query: str, mode: str, *, fuzzy: bool) -> None:
        """Take the steps, then compare the search of each person with a look at what they said."""
        number = next(self._names)
        sessions = [f"{number}-{person}" for person in "ab"]
        for session_id in sessions:
            await self._db.create_session(session_id, "cli", user_id=session_id)
        for at, (kind, person, text) in enumerate(steps):
            await self._take(kind, sessions[person], text, str(at))
        for session_id in sessions:
            scope = Scope(owners=frozenset({f"main:cli:user:{session_id}"}))
            result = await self._db.search_messages(query, scope=scope, mode=mode, limit=1_000, fuzzy=fuzzy)
            said = await self._db.get_messages(session_id)
            wanted = meant(query, mode, [one.text for one in said], fuzzy=fuzzy)
            expected = {one.message_id for one in said if wanted and wanted.matches_fields([one.text])}
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


def meant(query: str, mode: str, texts: list[str], *, fuzzy: bool) -> Criterion | None:
    """What is looked for among these texts."""
    wanted = criterion_of(query, literal=mode == "substring", stems=STEMS, fuzzy=fuzzy)
    if not isinstance(wanted, Words):
        return wanted
    return Words(wanted.query.widened(likes(wanted.query.fuzzy_words, texts)), STEMS)


@pytest.fixture(scope="module")
def room(folder: Path) -> Iterator[Room]:
    one = Room(folder)
    yield one
    one.close()


STEPS = st.tuples(
    st.sampled_from(["say", "say", "say", "edit", "rewind", "index"]), st.integers(0, 1), TEXT | FORMS
)
MODES = st.sampled_from([("words", False), ("words", True), ("substring", False)])


@given(steps=st.lists(STEPS, max_size=8), query=QUERY | FORMS, mode=MODES)
@settings(max_examples=40, deadline=None)
@example(
    steps=[("say", 0, "running"), ("index", 0, ""), ("say", 0, "he runs")], query="run", mode=("words", False)
)
@example(steps=[("say", 1, "the dokcer"), ("say", 0, "docker")], query="docker", mode=("words", True))
def test_everybody_finds_what_they_said_and_nothing_else(
    room: Room, steps: list[tuple[str, int, str]], query: str, mode: tuple[str, bool]
):
    room.run(room.check(steps, query, mode[0], fuzzy=mode[1]))
