"""What a message is found by on a server, within what a server can hold."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.search import documents
from gateway_sessions.core.search.documents import (
    LONG,
    MOST_PLACES_OF_ONE,
    VAST,
    Searchable,
    label,
    lexemes_of,
    tsvector_of,
)
from gateway_sessions.core.search.stems import FORM, Stemming, Stems

NOW = to_micros(datetime(2026, 5, 4, tzinfo=UTC))
LABELS = [f"'{label('role', 'user')}'", "'yr2026'", "'mo202605'"]


def said(content: str | None, tool_name: str | None = None, tool_calls: str | None = None) -> Searchable:
    return Searchable("s", "user", NOW, content, tool_name, tool_calls)


def vector(content: str | None, tool_name: str | None = None, tool_calls: str | None = None) -> list[str]:
    return tsvector_of(lexemes_of(said(content, tool_name, tool_calls))).split()[len(LABELS) :]


def test_tokens_have_their_places_and_a_letter_in_front():
    found = tsvector_of(lexemes_of(said("The Docker, the 部署")))
    assert found.split()[:3] == LABELS
    assert vector("The Docker, the 部署") == [
        *("'bt'", "'bd'", "'b部'", "'b署'"),
        *("'tthe':1,3", "'tdocker':2", "'t部署':4", "'t署':5"),
    ]


def test_phrases_do_not_reach_from_one_field_into_the_next():
    assert vector("one", "two", '["three"]') == ["'bo'", "'bt'", "'tone':1", "'ttwo':3", "'tthree':5"]


def test_nothing_said_has_labels_only():
    assert vector(None) == []


def test_a_word_that_is_said_too_often_takes_all_places_away():
    fits, long = (vector("word " * times + "end") for times in (MOST_PLACES_OF_ONE, 300))
    assert fits[-1] == f"'tend':{MOST_PLACES_OF_ONE + 1}"
    assert long == ["'bw'", "'be'", f"'{LONG}'", "'tword'", "'tend'"]


@pytest.mark.parametrize(
    ("limit", "size", "mark"),
    [
        ("MOST_PLACES", 9, LONG),
        ("MOST_BYTES", 109, LONG),
        ("MOST_BYTES", 60, VAST),
        ("MOST_BYTES", 110, None),
    ],
)
def test_what_cannot_be_held_is_marked(
    monkeypatch: pytest.MonkeyPatch, limit: str, size: int, mark: str | None
):
    monkeypatch.setattr(documents, limit, size)
    found = vector(" ".join(f"word{n}" for n in range(10)))
    assert [one for one in found if one in {f"'{LONG}'", f"'{VAST}'"}] == (
        [] if mark is None else [f"'{mark}'"]
    )
    assert ("'tword1':2" in found, "'tword1'" in found) == (mark is None, mark == LONG)


@pytest.mark.parametrize(("limit", "size"), [("MOST_PLACES", 1), ("MOST_BYTES", 60), ("MOST_BYTES", 90)])
def test_stems_have_no_places_and_take_room(monkeypatch: pytest.MonkeyPatch, limit: str, size: int):
    monkeypatch.setattr(documents, limit, size)
    found = tsvector_of(lexemes_of(said("running runs"), Stems(Stemming.ENGLISH))).split()[len(LABELS) :]
    assert found[:2] == ["'br'", f"'t{FORM}run'"]
    assert found[2:] == (["'x1'", "'trunning'", "'truns'"] if size == 1 else ["'trunning':1", "'truns':2"])


def test_no_token_can_end_a_literal():
    assert all(re.fullmatch(r"'\w+'(:[\d,]+)?", one) for one in vector("a'b\\c\"d'':1 e"))


def test_its_size_is_what_has_to_be_read():
    assert said("four", None, "[]").size == 6
    assert said(None).size == 0
