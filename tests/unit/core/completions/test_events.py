"""Events are found wherever the network has cut them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.completions.events import MAX_EVENT, EventStream, EventTooLongError

STREAM = (
    "\ufeff: hello\r\n\r\n"
    "data: grün\n\n"
    "event: message\rid: 7\rdata:一二\r\r"
    "data: two\r\ndata:  lines\r\n\r\n"
    "data: a\u2028b\x85c\x0bd\x1ce\n\n"
    "\n\n"
    "data\n\n"
    "data: 🚂\r\n\r\n"
    "data: never ended\n"
).encode()
EVENTS = ["grün", "一二", "two\n lines", "a\u2028b\x85c\x0bd\x1ce", "", "🚂"]


def events_in(*pieces: bytes) -> list[str]:
    stream = EventStream()
    return [data for piece in pieces for data in stream.take(piece)]


def test_a_stream_in_one_piece():
    assert events_in(STREAM) == EVENTS


def test_a_stream_byte_by_byte():
    assert events_in(*(STREAM[at : at + 1] for at in range(len(STREAM)))) == EVENTS


def test_a_stream_that_is_cut_once_anywhere():
    for at in range(len(STREAM) + 1):
        assert events_in(STREAM[:at], STREAM[at:]) == EVENTS, at


@given(st.lists(st.integers(0, len(STREAM))))
def test_a_stream_that_is_cut_often_anywhere(cuts: list[int]):
    places = [0, *sorted(cuts), len(STREAM)]
    assert events_in(*(STREAM[begin:end] for begin, end in pairwise(places))) == EVENTS


def test_an_event_is_given_out_as_soon_as_it_has_ended():
    stream = EventStream()
    assert [*stream.take(b"data: one\n")] == []
    assert [*stream.take(b"\ndata: two")] == ["one"]


def test_bytes_that_are_no_text_are_marked():
    assert events_in(b"data: a\xffb\n\n") == ["a\ufffdb"]


@pytest.mark.parametrize("piece", [b"x" * 4096, b"data: " + b"x" * 4096 + b"\n"])
def test_what_does_not_end_is_no_event(piece: bytes):
    with pytest.raises(EventTooLongError):
        events_in(*[piece] * (MAX_EVENT // 4096 + 1))


def test_what_is_as_long_as_allowed_is_an_event_and_the_next_one_may_be_as_long():
    longest = b"data:" + b"x" * (MAX_EVENT - 100) + b"\n\n"
    assert [len(data) for data in events_in(longest, longest)] == [MAX_EVENT - 100] * 2
