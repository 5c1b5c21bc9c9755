"""What PostgreSQL is asked for."""

from __future__ import annotations

import pytest

from gateway_sessions import Scope
from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import DatabaseCondition, label
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.query import parse_query
from gateway_sessions.core.search.stems import FORM, Stemming, Stems
from gateway_sessions.core.search.tsquery import tsquery_of

EVERYTHING = SearchFilter(scope=Scope.operator())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("docker", "((('tdocker')) | 'x2')"),
        ("deploy*", "((('tdeploy':*)) | 'x2')"),
        ("d*", "(('bd') | 'x2')"),
        ("機", "(('b機') | 'x2')"),
        ("a OR b", "((('ta')) | (('tb')) | 'x2')"),
        ("a -b", "((('ta') & !('tb')) | 'x2')"),
        ('"a b"', "(((('ta' <-> 'tb') | ('x1' & 'ta' & 'tb'))) | 'x2')"),
        ('"a b"*', "(((('ta' <-> 'tb':*) | ('x1' & 'ta' & 'tb':*))) | 'x2')"),
        ('a -"b c"', "((('ta') & !('tb' <-> 'tc')) | 'x2')"),
        ("a' & 'b", "((('ta') & ('tb')) | 'x2')"),
    ],
)
def test_words_and_phrases(query: str, expected: str):
    assert tsquery_of(CertainTerms(parse_query(query)), EVERYTHING) == DatabaseCondition(expected)


def test_a_word_is_asked_for_in_all_its_forms():
    asked = tsquery_of(CertainTerms(parse_query('runs -"runs"', Stems(Stemming.ENGLISH))), EVERYTHING)
    assert asked == DatabaseCondition(f"((('truns' | 'trun' | 't{FORM}run') & !('truns')) | 'x2')")


def test_labels_narrow_what_is_asked_for():
    shown = SearchFilter(
        scope=Scope(owners=frozenset({"o"}), session_key="k"), exclude_sources=frozenset({"cli"})
    )
    narrowed = f"('{label('owner', 'o')}' | '{label('lane', 'k')}')"
    excluded = f"!('{label('source', 'cli')}')"
    assert tsquery_of(CertainTerms(), shown) == DatabaseCondition(f"{narrowed} & {excluded}")
    asked = tsquery_of(CertainTerms(parse_query("x")), shown)
    assert asked == DatabaseCondition(f"((('tx')) | 'x2') & {narrowed} & {excluded}")


def test_a_search_for_anything_by_anybody_is_no_question():
    assert tsquery_of(CertainTerms(), EVERYTHING) is None
    assert (
        tsquery_of(CertainTerms(), SearchFilter(scope=Scope.operator(), exclude_sources=frozenset({"x"})))
        is None
    )
