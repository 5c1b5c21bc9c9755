import json
from collections.abc import Iterable

import pytest

from gateway_sessions.core.damaged_json import MAX_DEPTH, decode_json_text, split_members
from gateway_sessions.errors import InvalidInputError

LINES = b'{\n"a":{"n":1},\n"b":{"n":2},\n"c":{"n":3},\n"_meta":{}}\n'


def found(raw: bytes) -> list[tuple[str | None, bytes]]:
    members = split_members(raw)
    assert members is not None
    return [(json.loads(name) if name is not None else None, text) for name, text in members]


def keys(members: Iterable[tuple[str | None, bytes]]) -> list[str | None]:
    return [name for name, _ in members]


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b'"x"', b"5", b"  \n", b"\x00{}", b"}"])
def test_what_does_not_begin_as_an_object_has_no_members(raw: bytes):
    assert split_members(raw) is None


@pytest.mark.parametrize("raw", [b"{}", b" {\n}\n", b"\r\n{\t}"])
def test_an_empty_object_has_no_members_and_no_damage(raw: bytes):
    assert found(raw) == []


@pytest.mark.parametrize("indent", [None, 0, 1, 2, "\t"])
def test_members_are_found_in_any_layout(indent: int | str | None):
    value = {
        "a": {"x": [1, {"y": '}"]{['}], "z": "\\"},
        'b"\\': "text",
        "c": None,
        "d": -1.5e3,
        "e": [[]],
        "é": {},
    }
    raw = json.dumps(value, indent=indent).encode()
    assert {name: json.loads(text) for name, text in found(raw) if name is not None} == value


def test_values_that_are_no_json_are_found_all_the_same():
    raw = b'{"a":NaN,"b":{"x":nul},"c":1.2.3,"d":[}}'
    assert found(raw) == [("a", b"NaN"), ("b", b'{"x":nul}'), ("c", b"1.2.3"), ("d", b"[}")]


def test_all_members_of_one_name_are_returned():
    assert keys(found(b'{"a":{},"b":{},"a":{}}')) == ["a", "b", "a"]


def test_what_follows_the_object_is_damage():
    assert found(b'{"a":{}}\n{"b":{}}') == [("a", b"{}"), (None, b'{"b":{}}')]


@pytest.mark.parametrize(
    ("whole", "damaged"),
    [(b'"b"', b'"b'), (b'"b"', b"b"), (b'"b":{', b'"b":'), (b"2}", b"2"), (b"2}", b'"2}'), (b"2},", b"2}")],
)
def test_a_damaged_line_spoils_only_itself(whole: bytes, damaged: bytes):
    names = keys(found(LINES.replace(whole, damaged)))
    assert None in names
    assert {"a", "c", "_meta"} <= set(names)


def test_what_stands_behind_the_end_is_not_read_for_it_may_be_older():
    raw = LINES + b'"a":{"n":0}}\n'
    assert found(raw)[-1] == (None, b'"a":{"n":0}}')
    assert keys(found(raw)) == ["a", "b", "c", "_meta", None]


def test_a_file_of_hermes_is_salvaged_as_well():
    value = {"_README": "x", "a": {"s": {"t": 1}}, "b": {"s": {"t": 2}}, "c": {"s": {"t": 3}}}
    raw = json.dumps(value, indent=2).encode().replace(b'"t": 2\n    }', b'"t": 2\n    ')
    names = keys(found(raw))
    assert None in names
    assert {"a", "c"} <= set(names)
    assert not {"s", "t"} & set(names)


def test_a_broken_file_without_lines_is_damage_from_the_break_on():
    assert found(b'{"a":{},"b":{"x":1,"c":{}') == [("a", b"{}"), (None, b'"b":{"x":1,"c":{}')]


def test_a_file_cut_off_anywhere_shows_that_it_is_not_whole():
    for length in range(1, len(LINES) - 2):
        names = keys(found(LINES[:length]))
        assert names[-1] is None
        assert set(names) <= {"a", "b", "c", "_meta", None}


@pytest.mark.parametrize(
    "text",
    [
        b"NaN", b"[Infinity]", b"-Infinity", b'{"a":1,"a":2}', b'{"x":[{"a":1,"a":1}]}', b"9" * 5000,
        b"\xff", b'"\xed\xa0\x80"', b'"a\x00b"', b"", b"{", b"[1,]", b"1 2",
        b"[" * 100_000, b'{"a":' * 100_000, b"[" * 65 + b"]" * 65,
    ],
    ids=range(16),
)  # fmt: skip
def test_what_is_no_plain_json_is_refused(text: bytes):
    with pytest.raises(InvalidInputError, match="value"):
        decode_json_text(text)


def test_nesting_has_a_limit_and_breadth_has_none():
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert decode_json_text(deepest) == json.loads(deepest)
    assert decode_json_text(b"[" + b"[]," * 1000 + b"[]]") == [[]] * 1001
    assert decode_json_text(b'["' + b"[" * 1000 + b'"]') == ["[" * 1000]
