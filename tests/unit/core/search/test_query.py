"""What queries mean."""

from __future__ import annotations

import pytest

from gateway_sessions import InvalidInputError
from gateway_sessions.core.search.query import (
    MAX_CHARACTERS,
    MAX_PHRASES,
    Branch,
    Phrase,
    SearchQuery,
    document_matches,
    parse_query,
    phrase_positions,
)
from gateway_sessions.core.search.tokenizer import tokens_of_text


def word(*parts: str, prefix: bool = False) -> Phrase:
    return Phrase(parts, prefix)


def all_of(*phrases: Phrase, excluded: tuple[Phrase, ...] = ()) -> SearchQuery:
    return SearchQuery((Branch(phrases, excluded),))


A, B, C = word("a"), word("b"), word("c")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker deployment", all_of(word("docker"), word("deployment"))),
        ("a AND b", all_of(A, B)),
        ("a a", all_of(A)),
        ('"exact phrase"', all_of(word("exact", "phrase"))),
        ("“curly quotes”", all_of(word("curly", "quotes"))),
        ("a OR b", SearchQuery((Branch((A,)), Branch((B,))))),
        ("a b OR c", SearchQuery((Branch((A, B)), Branch((C,))))),
        ("a NOT b", all_of(A, excluded=(B,))),
        ("a -b", all_of(A, excluded=(B,))),
        ('a -"b c"', all_of(A, excluded=(word("b", "c"),))),
        ("a OR b NOT c", SearchQuery((Branch((A,)), Branch((B,), (C,))))),
        ("deploy*", all_of(word("deploy", prefix=True))),
        ('"to deploy"*', all_of(word("to", "deploy", prefix=True))),
        ("foo_bar*", all_of(word("foo", "bar", prefix=True))),
    ],
)
def test_operators_mean_what_they_say(text, expected):
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what's up?", all_of(word("what", "s"), word("up"))),
        ("user@host", all_of(word("user", "host"))),
        ("/a/b.py", all_of(word("a", "b", "py"))),
        ("50%", all_of(word("50"))),
        ("C++", all_of(C)),
        ("a - b", all_of(A, B)),
        ("--a", all_of(A)),
        ("*a", all_of(A)),
        ("a(b", all_of(word("a", "b"))),
        ('a "b', all_of(A, B)),
        ('"a" "', all_of(A)),
        ("a & | ~ b", all_of(A, B)),
        ("{a} : ^b", all_of(A, B)),
    ],
)
def test_punctuation_holds_words_together_and_does_nothing_else(text, expected):
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AND a OR", all_of(A)),
        ("NOT a", all_of(A)),
        ("-a", all_of(A)),
        ("a NOT", all_of(A)),
        ("a AND NOT b", all_of(A, excluded=(B,))),
        ("a OR OR b", SearchQuery((Branch((A,)), Branch((B,))))),
        ("a AND OR b", SearchQuery((Branch((A,)), Branch((B,))))),
        ("a OR NOT b", SearchQuery((Branch((A,)), Branch((B,))))),
        ("OR", all_of(word("or"))),
        ("AND NOT", all_of(word("and"), word("not"))),
        ("or and", all_of(word("or"), word("and"))),
    ],
)
def test_operators_out_of_place_do_what_is_left_of_them(text, expected):
    assert parse_query(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("机器学习", all_of(word("机器", "器学", "学习"))),
        ("猫", all_of(word("猫", prefix=True))),
        ("iPhone手", all_of(word("iphone", "手", prefix=True))),
        ("第3", all_of(word("第", "3"))),
        ("手机3", all_of(word("手机", "机", "3"))),
        ("猫*", all_of(word("猫", prefix=True))),
    ],
)
def test_a_run_without_spaces_may_go_on_on_both_sides(text, expected):
    assert parse_query(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "???", '"', '"" -', "*", "()"])
def test_a_query_without_words_has_no_branches(text):
    assert parse_query(text) == SearchQuery()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x" * (MAX_CHARACTERS + 1), "2049 characters"),
        (" ".join(f"w{n}" for n in range(MAX_PHRASES + 1)), "65 words and phrases"),
        ("".join(chr(0x4E00 + n) for n in range(600)), "599 words and pairs"),
    ],
)
def test_a_query_that_is_too_long_is_refused(text, problem):
    with pytest.raises(InvalidInputError, match=problem):
        parse_query(text)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("docker", True),
        ("dock", False),
        ("dock*", True),
        ('"the docker"', True),
        ('"docker the"', False),
        ('"the dock"*', True),
        ("docker -failed", False),
        ("docker -ship", True),
        ("ship OR failed", True),
        ("ship OR plane", False),
        ("部署失败", True),
        ("失", True),
        ("败部", False),
        ("ship OR 失败 -docker", False),
    ],
)
def test_a_document_is_found_by_what_is_in_it(query, found):
    document = tokens_of_text("The Docker build failed: 模型部署失败")
    assert document_matches(parse_query(query), document) is found


def test_occurrences_are_all_places():
    document = tokens_of_text("a b a b a")
    assert list(phrase_positions(word("a", "b"), document)) == [0, 2]
    assert list(phrase_positions(word("b", "a", prefix=True), document)) == [1, 3]
    assert list(phrase_positions(word("a"), document)) == [0, 2, 4]
    assert list(phrase_positions(word("", prefix=True), ["x"])) == [0]


def test_a_phrase_knows_how_many_characters_it_covers():
    assert word("手机").characters == 2
    assert word("手", prefix=True).characters == 1
    assert word("a", "b").characters == 2
