"""What an agent reads of an earlier conversation."""

from __future__ import annotations

from datetime import UTC, datetime

from gateway_sessions import Message
from gateway_sessions.core.search.criteria import Literal, Words, criterion_of
from gateway_sessions.core.search.excerpts import (
    LONGEST_MESSAGE,
    MOST_LINES,
    Passage,
    excerpt_of_transcript,
    extractive_summary,
    matching_places,
)


def wanted(query: str) -> Words | Literal:
    found = criterion_of(query, literal=False)
    assert found is not None
    return found


def message(seq: int, text: str, session_id: str = "s") -> Message:
    return Message("user", text, message_id=seq, session_id=session_id, seq=seq)


def test_messages_stand_in_their_order_with_gaps_between():
    given = [
        message(5, "five"),
        message(6, "six"),
        message(1, "one"),
        message(5, "five"),
        message(2, "", "t"),
    ]
    assert excerpt_of_transcript(given, wanted("x"), 1_000) == "user: one\n...\nuser: five\nuser: six"


def test_no_more_is_read_than_there_is_room_for_and_the_first_counts_most():
    assert excerpt_of_transcript([message(9, "best"), message(1, "x" * 30)], wanted("x"), 20) == "user: best"
    long = [message(n, "word " * 5_000) for n in range(1, 100)]
    assert 90_000 < len(excerpt_of_transcript(long, wanted("word"), 100_000)) <= 100_000


def test_of_a_long_message_the_place_of_the_match_is_read():
    text = "y " * LONGEST_MESSAGE + "needle " + "z " * LONGEST_MESSAGE
    read = excerpt_of_transcript([message(1, text)], wanted("needle"), 100_000)
    assert "needle" in read
    assert len(read) < LONGEST_MESSAGE + 20
    assert excerpt_of_transcript([message(1, text)], wanted("nowhere"), 100_000).startswith("user: y y")


def test_a_summary_without_a_model_is_made_of_the_places_that_match():
    given = [message(n, f"the docker build {n}") for n in range(1, 20)] + [message(30, "nothing")]
    lines = matching_places(given, wanted("docker"))
    assert len(lines) == MOST_LINES
    passage = Passage(
        query="docker",
        text="",
        highlights=lines[:2],
        session_id="s",
        source="cli",
        title=None,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert extractive_summary(passage) == "- the >>>docker<<< build 1\n- the >>>docker<<< build 2"
