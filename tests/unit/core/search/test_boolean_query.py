"""What MySQL is asked for, and the words it finds messages by."""

from __future__ import annotations

import re

import pytest

from gateway_sessions import Scope
from gateway_sessions.core.search.boolean_query import LONGEST, boolean_query_of, boolean_words_of
from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import DatabaseCondition, Lexemes, label
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.query import parse_query
from gateway_sessions.core.search.stems import FORM, Stemming, Stems
from gateway_sessions.core.search.tokenizer import GAP, tokens_of_text

EVERYTHING = SearchFilter(scope=Scope.operator())


@pytest.mark.parametrize(
    ("query", "expected", "is_exact"),
    [
        ("docker", "+((+zztdocker))", True),
        ("deploy*", "+((+zztdeploy*))", True),
        ("d*", "+((+zzbd))", True),
        ("a OR b", "+((+zzta) (+zztb))", True),
        ("a -b", "+((+zzta -zztb))", True),
        ('"a b"', '+((+"zzta zztb"))', True),
        ('a -"b c"', '+((+zzta -"zztb zztc"))', True),
        ('"a b c"*', '+((+(+"zzta zztb" +zzbc)))', False),
        ('a -"b c"*', "+((+zzta))", False),
        ("機", "+((+zzb_l0f))", True),
        ("👍", "+((+zzt__2qtp))", True),
        ("ы" * 30, f"+((+{('zzt' + '_0uj' * 30)[:LONGEST]}))", False),
    ],
)
def test_words_and_phrases(query: str, expected: str, is_exact: bool):
    assert boolean_query_of(CertainTerms(parse_query(query)), EVERYTHING) == DatabaseCondition(
        expected, is_exact
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("runs", "+((+(zztruns zztrun zzt__188xrun)))"),
        ("a -runs", "+((+(zzta zzt__188xa) -(zztruns zztrun zzt__188xrun)))"),
        ('"runs"', "+((+zztruns))"),
    ],
)
def test_a_word_is_asked_for_in_all_its_forms(query: str, expected: str):
    stems = Stems(Stemming.ENGLISH)
    assert boolean_query_of(CertainTerms(parse_query(query, stems)), EVERYTHING) == DatabaseCondition(
        expected
    )


def test_stems_come_last():
    assert boolean_words_of(Lexemes(["a"], (), (f"{FORM}run",))).split(" ")[-2:] == ["zzta", "zzt__188xrun"]


def test_labels_narrow_what_is_asked_for():
    shown = SearchFilter(scope=Scope(owners=frozenset({"o"})), exclude_sources=frozenset({"cli"}))
    expected = f"+(zz{label('owner', 'o')}) -(zz{label('source', 'cli')})"
    assert boolean_query_of(CertainTerms(), shown) == DatabaseCondition(expected)


def test_a_search_for_anything_by_anybody_is_no_question():
    assert boolean_query_of(CertainTerms(), EVERYTHING) is None


def test_words_are_letters_digits_and_underscores_of_a_length_that_is_kept():
    said = Lexemes([*tokens_of_text("The é 部署 👍 of " + "щ" * 70), GAP, "x"], ("roab",))
    words = boolean_words_of(said).split(" ")
    assert words[0] == "zzroab"
    assert words[-2:] == ["zzgap", "zztx"]
    assert all(re.fullmatch(r"zz[a-z0-9_]{2,78}", one) for one in words)
