"""What the search index is asked for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway_sessions import Scope
from gateway_sessions.core.search.criteria import CertainTerms, WordPart, certain_terms_of_literal
from gateway_sessions.core.search.documents import UNLISTED, label, month_label, year_label
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery, parse_query
from gateway_sessions.core.search.stems import FORM, Stemming, Stems
from gateway_sessions.storage.search.sqlite_match import (
    FEW_WORDS,
    MANY_WORDS,
    SOME_WORDS,
    Fts5Match,
    containing_expression,
    fts5_match_of,
)

EVERYTHING = SearchFilter(scope=Scope.operator())


def test_a_word_is_asked_for_in_all_its_forms():
    match = fts5_match_of(CertainTerms(parse_query("runs -late", Stems(Stemming.ENGLISH))), EVERYTHING)
    assert match is not None
    assert match.fts5_expression() == (
        f'({{text}} : (((("runs" OR "run" OR "{FORM}run")) NOT (("late" OR "{FORM}late")))))'
    )


def words(phrase: str, *, prefix: bool = False) -> SearchQuery:
    return SearchQuery((Branch((Phrase(tuple(phrase.split()), prefix),)),))


@pytest.mark.parametrize(
    ("needle", "expected"),
    [
        ("ocke", CertainTerms(None, WordPart("ocke", at_end=False))),
        ("ocker.", CertainTerms(None, WordPart("ocker", at_end=True))),
        (" docke", CertainTerms(words("docke", prefix=True))),
        (" docker ", CertainTerms(words("docker"))),
        ("ker fai", CertainTerms(words("fai", prefix=True), WordPart("ker", at_end=True))),
        ("ker has fai", CertainTerms(words("has fai", prefix=True), WordPart("ker", at_end=True))),
        ("CR\u00c8ME", CertainTerms(None, WordPart("creme", at_end=False))),
        ("机", CertainTerms(words("机", prefix=True))),
        ("机器", CertainTerms(words("机器"))),
        ("x机器", CertainTerms(words("机器"), WordPart("x", at_end=True))),
        ("机器x", CertainTerms(words("机器 器 x", prefix=True))),
        ("👍", CertainTerms(words("👍"))),
        ("?!", CertainTerms()),
        ("\u0301 \u0301", CertainTerms()),
        (f".{'y' * 70}", CertainTerms(words(f"{'y' * 64} {'y' * 6}", prefix=True))),
    ],
)
def test_of_a_text_everything_is_certain_but_where_its_ends_belong_to(needle: str, expected: CertainTerms):
    assert certain_terms_of_literal(needle) == expected


def test_parts_are_three_letters_in_a_row():
    assert containing_expression("ab") is None
    assert containing_expression("abcabc") == '"abc" AND "bca" AND "cab"'
    assert containing_expression("".join(map(chr, range(0x400, 0x500)))).count("AND") == 31


def test_the_words_that_have_a_part_are_asked_for():
    match = Fts5Match(CertainTerms(None, WordPart("ocke", at_end=False)))
    unlisted = f'({{labels}} : "{UNLISTED}")'
    assert (
        match.fts5_expression(["docker", "rocket"]) == f'(({{text}} : ("docker" OR "rocket")) OR {unlisted})'
    )
    assert match.fts5_expression(["x" * 70]) == f'(({{text}} : ("{"x" * 64} {"x" * 6}")) OR {unlisted})'
    assert match.fts5_expression([]) == unlisted
    assert match.fts5_expression(None) is None


def test_more_words_are_of_use_where_nothing_else_is_certain():
    part = WordPart("ocke", at_end=False)
    assert Fts5Match(CertainTerms(words("x"), part)).most_words == FEW_WORDS
    assert Fts5Match(CertainTerms(None, part)).most_words == SOME_WORDS
    assert Fts5Match(CertainTerms(None, part), patient=True).most_words == MANY_WORDS


def test_a_search_for_anything_by_anybody_is_no_question_for_the_index():
    assert fts5_match_of(CertainTerms(), EVERYTHING) is None


def test_labels_narrow_what_is_asked_for():
    shown = SearchFilter(
        scope=Scope(owners=frozenset({"o"}), session_key="k"),
        session_key="k",
        session_id="s",
        roles=frozenset({"user", "tool"}),
        exclude_sources=frozenset({"cli"}),
    )
    match = fts5_match_of(CertainTerms(parse_query("docker")), shown)
    assert match is not None
    groups = [
        f'"{label("owner", "o")}" OR "{label("lane", "k")}"',
        f'"{label("lane", "k")}"',
        f'"{label("session", "s")}"',
        f'"{label("role", "tool")}" OR "{label("role", "user")}"',
    ]
    narrowed = " AND ".join(f"({{labels}} : ({one}))" for one in groups)
    expected = f'(({{text}} : (("docker"))) AND {narrowed}) NOT (({{labels}} : ("{label("source", "cli")}")))'
    assert match.fts5_expression() == expected


def times(since: datetime | None = None, until: datetime | None = None) -> Fts5Match:
    match = fts5_match_of(
        CertainTerms(words("x")), SearchFilter(scope=Scope.operator(), since=since, until=until)
    )
    assert match is not None
    return match


def labelled(*labels: str) -> str:
    return f"({{labels}} : ({' OR '.join(labels)}))"


def test_a_time_is_whole_years_and_the_months_around_them():
    match = times(datetime(2023, 11, 5, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    months = [month_label(2023, 11), month_label(2023, 12), month_label(2026, 1), month_label(2026, 2)]
    years = [year_label(2024), year_label(2025)]
    assert match.labels == (labelled(*(f'"{one}"' for one in [*months[:2], *years, *months[2:]])),)
    assert match.excluded == ()


def test_a_time_within_a_year_is_its_months():
    match = times(datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC))
    assert match.labels == (labelled('"mo202604"', '"mo202605"'),)


def test_a_time_that_ends_before_it_begins_is_asked_for_all_the_same():
    match = times(datetime(2026, 4, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
    assert match.labels == (labelled('"mo202604"'),)


def test_a_time_without_an_end_goes_on_to_the_last_year():
    (label_group,) = times(since=datetime(2026, 12, 31, tzinfo=UTC)).labels
    assert label_group.startswith('({labels} : ("mo202612" OR "yr2027" OR "yr2028"')
    assert label_group.endswith('OR "yr7" * OR "yr8" * OR "yr9" *))')


def test_a_time_without_a_beginning_goes_back_to_the_first_year():
    (label_group,) = times(until=datetime(2026, 2, 2, tzinfo=UTC)).labels
    assert label_group.startswith('({labels} : ("yr0" * OR "yr1" * OR "yr2000" OR "yr2001" OR')
    assert label_group.endswith('OR "yr2025" OR "mo202601" OR "mo202602"))')


def test_a_time_that_ends_long_ago_is_not_asked_for_year_by_year():
    (label_group,) = times(until=datetime(203, 1, 1, tzinfo=UTC)).labels
    years = ("yr00", "yr01", "yr0200", "yr0201", "yr0202")
    assert label_group == labelled(*(f'"{one}" *' for one in years), '"mo020301"')


def test_a_time_that_ends_in_the_far_future_is_what_does_not_come_later():
    match = times(until=datetime(2999, 12, 2, tzinfo=UTC))
    assert match.labels == ()
    (excluded,) = match.excluded
    assert excluded.startswith('({labels} : ("yr3000" OR')


def test_a_very_long_time_is_narrowed_at_both_ends():
    since, until = times(datetime(1900, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)).labels
    assert since.startswith('({labels} : ("yr1900" OR')
    assert until.endswith('OR "mo202601"))')
