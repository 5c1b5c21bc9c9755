"""What is shown of a match."""

from __future__ import annotations

import pytest

from gateway_sessions.core.search.criteria import Literal, Words
from gateway_sessions.core.search.query import parse_query
from gateway_sessions.core.search.results import LONGEST_READ, MOST_CHARACTERS, SIZE, snippet, text_beginning


def shown(text: str, query: str) -> str | None:
    wanted = Words(parse_query(query))
    return snippet(text, wanted.finder, wanted.hints)


def literally(text: str, needle: str) -> str | None:
    wanted = Literal(needle)
    return snippet(text, wanted.finder, wanted.hints)


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("deploy Docker today", "docker", "deploy >>>Docker<<< today"),
        ("deploy\n\n  docker", "docker", "deploy >>>docker<<<"),
        ("wrote to user@host.", "user@host", "wrote to >>>user@host<<<."),
        ("die Straße", "strasse", "die >>>Straße<<<"),
        ("模型部署失败了", "部署失", "模型>>>部署失<<<败了"),
        ("模型部署失败了", "失", "模型部署>>>失<<<败了"),
        ("模型部署失败了", "了", "模型部署失败>>>了<<<"),
        ("iPhone手机", "iphone手", ">>>iPhone手<<<机"),
        ("deploying", "depl*", ">>>deploying<<<"),
        ("a b c", '"a b" "b c"', ">>>a b c<<<"),
        ("a 50% b", "50% OR b", "a >>>50<<<% >>>b<<<"),
    ],
)
def test_matches_are_marked_in_the_text_as_it_was_written(text, query, expected):
    assert shown(text, query) == expected


@pytest.mark.parametrize(
    ("text", "needle", "expected"),
    [
        ("a ??? b", "???", "a >>>???<<< b"),
        ("??", "??", ">>>??<<<"),
        ("deploy Docker today", "OCKE", "deploy D>>>ocke<<<r today"),
        ("x→y", "→", "x>>>→<<<y"),
        ("ab ab", "ab", ">>>ab<<< >>>ab<<<"),
    ],
)
def test_a_text_is_marked_wherever_it_stands(text, needle, expected):
    assert literally(text, needle) == expected


def test_what_is_not_there_is_not_shown():
    assert shown("nothing", "docker") is None
    assert literally("nothing", "docker") is None


def test_a_long_text_is_cut_around_the_match():
    cut = shown("before " * 50 + "docker " + "after " * 50, "docker")
    assert cut is not None
    assert cut.startswith("...before")
    assert cut.endswith("after...")
    assert ">>>docker<<<" in cut
    assert len(cut.split()) == SIZE


def test_the_place_with_most_of_the_query_is_shown():
    cut = shown("docker " + "x " * 100 + "docker build failed " + "x " * 100, "docker build failed")
    assert cut is not None
    assert ">>>docker build failed<<<" in cut.replace("<<< >>>", " ")


def test_a_match_far_inside_is_found_in_a_very_long_text():
    cut = shown("y " * LONGEST_READ + "needle " + "z " * LONGEST_READ, "needle")
    assert cut is not None
    assert ">>>needle<<<" in cut


def test_a_word_as_long_as_a_file_does_not_fill_the_page():
    for cut in (literally("x" * 50_000, "xx"), shown("a " + "b" * 5_000, "a"), text_beginning("b" * 5_000)):
        assert cut is not None
        assert len(cut) < MOST_CHARACTERS + 20


def test_a_beginning_is_as_long_as_a_snippet():
    assert text_beginning("one  two") == "one two"
    assert text_beginning("word " * 100) == "word " * (SIZE - 1) + "word..."
    assert text_beginning("") == ""
