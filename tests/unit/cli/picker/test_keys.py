"""Whatever a terminal sends, in whatever pieces, is taken for the keys that were pressed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.cli.picker.keys import CONTROLS, LONGEST_SEQUENCE, KeyDecoder
from gateway_sessions.cli.picker.model import Pasted, PickerKey, Press, Typed

SENT: list[tuple[str, list[Press]]] = [
    ("\x1b[A", [PickerKey.UP]),
    ("\x1bOB", [PickerKey.DOWN]),
    ("\x1b[1;5A", [PickerKey.UP]),
    ("\x1b[5~", [PickerKey.PAGE_UP]),
    ("\x1b[6;2~", [PickerKey.PAGE_DOWN]),
    ("\x1b[H", [PickerKey.HOME]),
    ("\x1bOF", [PickerKey.END]),
    ("\x1b[1~", [PickerKey.HOME]),
    ("\x1b[4~", [PickerKey.END]),
    ("\x1b[7~", [PickerKey.HOME]),
    ("\x1b[8~", [PickerKey.END]),
    ("\x1b[C", []),
    ("\x1b[3~", []),
    ("\x1b[15~", []),
    ("\x1bOP", []),
    ("\x1bx", [PickerKey.ESCAPE, Typed("x")]),
    ("\x1b\r", [PickerKey.ESCAPE, PickerKey.ENTER]),
    ("\x1b[<0;1;1M", []),
    ("\t", []),
    ("\x00", []),
    ("j", [Typed("j")]),
    ("火", [Typed("火")]),
    ("🚂é", [Typed("🚂"), Typed("é")]),
    ("\x1b[200~q\ry\x1b[A\x1b[201~", [Pasted("q\ry\x1b[A")]),
    *((control, [key]) for control, key in CONTROLS.items()),
]


@pytest.mark.parametrize(("sent", "meant"), SENT)
def test_each_key_is_known_by_what_is_sent_for_it(sent: str, meant: list[Press]):
    keys = KeyDecoder()
    assert keys.feed(sent.encode()) == meant
    assert not keys.is_incomplete


@given(st.lists(st.sampled_from(SENT), max_size=8), st.data())
def test_it_does_not_matter_in_which_pieces_it_comes(
    some: list[tuple[str, list[Press]]], data: st.DataObject
):
    sent = "".join(one for one, _ in some).encode()
    ends = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=10)))
    keys, found = KeyDecoder(), list[Press]()
    for begin, end in zip([0, *ends], [*ends, len(sent)], strict=True):
        found += keys.feed(sent[begin:end])
    assert found == [press for _, meant in some for press in meant]


def test_an_escape_is_one_once_nothing_has_followed():
    keys = KeyDecoder()
    assert (keys.feed(b"\x1b"), keys.is_incomplete, keys.flush(), keys.is_incomplete) == (
        [],
        True,
        [PickerKey.ESCAPE],
        False,
    )
    assert keys.flush() == []
    assert keys.feed(b"j") == [Typed("j")]
    assert (keys.feed(b"\x1bO"), keys.flush()) == ([], [PickerKey.ESCAPE, Typed("O")])


def test_an_escape_before_an_escape_is_one():
    keys = KeyDecoder()
    assert keys.feed(b"\x1b\x1b") == [PickerKey.ESCAPE]
    assert keys.flush() == [PickerKey.ESCAPE]
    assert keys.feed(b"\x1b\x1b[A") == [PickerKey.ESCAPE, PickerKey.UP]


def test_a_paste_is_waited_for_and_a_sequence_without_end_is_not():
    keys = KeyDecoder()
    assert keys.feed(b"\x1b[200~begun") == []
    assert keys.flush() == []
    assert keys.feed(b" ended\x1b[201~") == [Pasted("begun ended")]
    assert keys.feed(b"\x1b[" + b"1;" * LONGEST_SEQUENCE) != []


@given(st.binary(max_size=200))
def test_no_bytes_can_confuse_it(sent: bytes):
    keys = KeyDecoder()
    keys.feed(sent)
    keys.flush()
    for _ in range(3):
        keys.feed(b"\x1b[201~")
        keys.flush()
    assert keys.feed(b"\x1b[A")[-1] is PickerKey.UP
