"""In which order matches are shown."""

from __future__ import annotations

from gateway_sessions.core.search.criteria import Literal, Words, criterion_of
from gateway_sessions.core.search.query import parse_query
from gateway_sessions.core.search.ranking import READ_CHARACTERS, bm25_scores, feature_counter


def order(query: str, *texts: str) -> list[str]:
    count = feature_counter(parse_query(query))
    found = bm25_scores(count(texts))
    return [text for _, text in sorted(zip(found, texts, strict=True), reverse=True)]


def test_more_of_it_in_less_text_is_better():
    long = "docker " + "and much more about other things " * 5
    assert order("docker", "docker docker", long, "docker once") == ["docker docker", "docker once", long]


def test_a_rare_word_counts_for_more():
    texts = ["common a", "common b", "common c", "rare d"]
    assert order("common OR rare", *texts)[0] == "rare d"


def test_a_phrase_counts_as_often_as_its_rarest_word():
    assert feature_counter(parse_query('"a b"'))(["a a a b"])[0].counts == (1,)


def test_only_the_beginning_of_a_text_is_read():
    assert feature_counter(parse_query("needle"))(["x" * READ_CHARACTERS + "needle"])[0].counts == (0,)


def test_nothing_has_no_order():
    assert bm25_scores([]) == []


def test_texts_without_characters_can_be_compared():
    assert bm25_scores(feature_counter(parse_query("a"))([""])) == [0.0]


def test_a_text_as_it_stands_is_counted_as_well():
    assert Literal("??").features(["?? ????"])[0].counts == (3,)


def test_a_query_without_words_is_looked_for_as_it_stands():
    assert criterion_of(" ??? ", literal=False) == Literal("???")
    assert criterion_of("docker", literal=True) == Literal("docker")
    assert criterion_of("docker", literal=False) == Words(parse_query("docker"))
    assert criterion_of(" \n", literal=False) is None
