"""A reply is put together of what comes, and what does not fit is named."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.agents.chat_completions.response import (
    MAX_EVENT,
    MAX_REPLY,
    Answer,
    EventStream,
    EventTooLongError,
)
from gateway_sessions.errors import ModelAnswerError


def event(**members: object) -> str:
    return json.dumps(members)


def piece(content: object = None, finish: str | None = None, **delta: object) -> str:
    delta = {"content": content, **delta} if content is not None else delta
    return event(model="large-2026", choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def answer(*data: str | bytes) -> tuple[str, Answer]:
    one = Answer("host", "large")
    return "".join(one.add_event(part) for part in data), one


def test_a_reply_grows_until_it_is_complete():
    text, one = answer(piece("", role="assistant"), piece("Hel"), piece("lo"), piece(finish="stop"), "[DONE]")
    assert (text, one.finish_reason, one.reasoning) == ("Hello", "stop", None)
    one.check_complete()


def test_a_reply_may_come_in_one_piece():
    whole = event(choices=[{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "length"}])
    text, one = answer(whole.encode())
    assert (text, one.finish_reason) == ("Hello", "length")


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thoughts_are_kept_apart(name: str):
    text, one = answer(piece(**{name: "hm, "}), piece(**{name: "so"}), piece("So.", "stop"))
    assert (text, one.reasoning) == ("So.", "hm, so")


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"refusal": "I will not."}, "I will not."),
        ({"content": 7}, ""),
        ({"content": [7, {"text": None}]}, ""),
        ({}, ""),
    ],
)
def test_words_come_in_several_forms(delta: dict, text: str):
    assert answer(event(choices=[{"delta": delta}]))[0] == text


@pytest.mark.parametrize(
    "told", [{}, {"choices": []}, {"choices": None}, {"choices": [None]}, {"choices": [{}]}]
)
def test_what_says_nothing_adds_nothing(told: dict):
    assert answer(event(**told))[0] == ""


@pytest.mark.parametrize("data", ["{", "7", "[]", "null", b"\xff", "<html>"])
def test_what_is_no_answer_is_said_so(data: str | bytes):
    with pytest.raises(ModelAnswerError, match="no answer of a model; is its address right"):
        answer(data)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"error": {"message": "out of\nmemory", "code": 500}}, "host has failed: out of memory"),
        ({"error": "busy"}, "host has failed: busy"),
        ({"error": {"code": 1}}, "host has failed: it did not say why"),
        ({"error": "the key sk-1 is bad"}, r"host has failed: the key \(the key\) is bad"),
    ],
)
def test_an_error_in_the_middle_is_told_without_the_key(told: dict, says: str):
    one = Answer("host", "large", key="sk-1")
    with pytest.raises(ModelAnswerError, match=f"^{says}$"):
        one.add_event(event(**told))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "has sent no answer of a model"),
        ([piece("Hel")], "cut off in the middle"),
        ([piece("Hel"), "[DONE]"], "cut off in the middle"),
        ([piece(finish="length")], r"has answered nothing \(length\)"),
        ([piece(finish="content_filter"), "[DONE]"], r"has answered nothing \(content_filter\)"),
    ],
)
def test_a_reply_that_is_not_complete_is_none(data: list[str], says: str):
    _, one = answer(*data)
    with pytest.raises(ModelAnswerError, match=says):
        one.check_complete()


def test_a_model_that_does_not_end_is_stopped():
    one = Answer("host", "large")
    half = piece("x" * (MAX_REPLY // 2))
    one.add_event(half)
    one.add_event(half)
    with pytest.raises(ModelAnswerError, match="does not come to an end"):
        one.add_event(piece("x"))


def test_what_it_took_is_told_by_kind_of_token():
    used = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "cost": 0.25,
    }
    _, one = answer(piece("a", "stop"), event(model="large-2026", choices=[], usage=used))
    assert one.usage_facts() == {
        "model": "large-2026",
        "input_tokens": 30,
        "output_tokens": 20,
        "cache_read_tokens": 60,
        "cache_write_tokens": 10,
        "reasoning_tokens": 5,
        "actual_cost_usd": 0.25,
        "cost_source": "provider",
    }


NOTHING = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "reasoning_tokens": 0,
}


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"usage": None},
        {"usage": 7},
        {"usage": {"prompt_tokens": -1, "completion_tokens": "3", "cost": True}},
        {"usage": {"prompt_tokens_details": 7, "cost": -1}},
        {"usage": {"prompt_tokens": 10**13, "cost": 10**7}},
        {"model": ""},
        {"model": "a\nb"},
        {"model": "x" * 257},
        {"model": 7},
    ],
)
def test_what_cannot_be_counted_is_not_known(told: dict):
    assert answer(event(**told))[1].usage_facts() == {"model": "large", **NOTHING}


def test_more_cached_than_read_is_no_debt():
    used = {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}
    assert answer(event(usage=used))[1].usage_facts()["input_tokens"] == 0


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
    return [data for piece in pieces for data in stream.events_in(piece)]


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
    assert [*stream.events_in(b"data: one\n")] == []
    assert [*stream.events_in(b"\ndata: two")] == ["one"]


def test_bytes_that_are_no_text_are_marked():
    assert events_in(b"data: a\xffb\n\n") == ["a\ufffdb"]


@pytest.mark.parametrize("piece", [b"x" * 4096, b"data: " + b"x" * 4096 + b"\n"])
def test_what_does_not_end_is_no_event(piece: bytes):
    with pytest.raises(EventTooLongError):
        events_in(*[piece] * (MAX_EVENT // 4096 + 1))


def test_what_is_as_long_as_allowed_is_an_event_and_the_next_one_may_be_as_long():
    longest = b"data:" + b"x" * (MAX_EVENT - 100) + b"\n\n"
    assert [len(data) for data in events_in(longest, longest)] == [MAX_EVENT - 100] * 2
