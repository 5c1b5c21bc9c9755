"""Where a text is cut that is too long for one message."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_sessions.core.delivery.text_splitting import LEAST_LIMIT, split_text
from gateway_sessions.core.text_length import LengthUnit
from gateway_sessions.errors import InvalidInputError

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
FAMILY = "👨‍👩‍👧‍👦"
CODE = "```python\n" + "\n".join(f"line_{number} = {number}" for number in range(20)) + "\n```"

pieces = st.one_of(
    st.sampled_from(
        [" ", "\n", "\n\n", "\t", "```", "```python\n", "\n```\n", "~~~\n", "````\n", "é", "e\u0301"]
    ),
    st.sampled_from(["word", "x" * 50, "漢字", FAMILY, "🇩🇪🇫🇷", "\r\n", "    indented", "\ud83d\ude00"]),
    st.text(max_size=12),
)
texts = st.lists(pieces, max_size=40).map("".join)


def without_blanks(text: str) -> str:
    return re.sub(r"[\s`~]", "", text)


def fences(text: str) -> int:
    return len(re.findall(r"^```", text, re.MULTILINE))


@pytest.mark.parametrize("text", ["a", WORDS[:40], "x" * 40, CODE[:40], "  both sides  "])
def test_a_text_that_fits_is_left_as_it_is(text: str):
    assert split_text(text, 40) == (text,)


@pytest.mark.parametrize("text", ["", " ", "\n\n", " " * 100])
def test_a_text_that_says_nothing_has_no_parts(text: str):
    assert split_text(text, 40) == ()


def test_a_paragraph_is_a_better_end_than_a_line():
    text = f"first line\n\nsecond {'x' * 15}\nthird"
    assert split_text(f"{'a' * 20}\n\n{'b' * 10}\n{'c' * 20}", 40) == ("a" * 20, f"{'b' * 10}\n{'c' * 20}")
    assert split_text(text, 40) == (text,)


def test_a_line_is_a_better_end_than_a_word():
    assert split_text(f"{'a' * 25}\nsome more words {'b' * 20}", 40) == (
        "a" * 25,
        f"some more words {'b' * 20}",
    )


def test_words_stay_whole():
    assert split_text(WORDS, 40) == (
        "one two three four five six seven eight",
        "nine ten eleven twelve thirteen fourteen",
    )


def test_an_early_end_is_taken_rather_than_to_tear_a_word():
    assert split_text(f"short {'x' * 38}", 40) == ("short", "x" * 38)


def test_a_line_that_comes_early_is_passed_over_for_a_word():
    text = f"hi\n{WORDS}"
    assert split_text(text, 40)[0] == "hi\none two three four five six seven"


def test_what_has_no_blank_is_cut_where_room_ends():
    assert split_text("x" * 100, 40) == ("x" * 40, "x" * 40, "x" * 20)


def test_blank_lines_at_a_cut_are_left_out_and_indentation_is_kept():
    assert split_text(f"{'a' * 30}\n\n \n\t\n    {'b' * 30}", 40) == ("a" * 30, f"    {'b' * 30}")


def test_code_that_is_cut_is_closed_and_opened_again():
    parts = split_text(CODE, 80)
    assert len(parts) > 3
    for part in parts:
        assert part.startswith("```python\n")
        assert part.endswith("\n```")
    lines = [line for part in parts for line in part.splitlines()[1:-1]]
    assert lines == CODE.splitlines()[1:-1]


def test_a_block_of_code_that_fits_into_the_next_part_is_not_cut():
    code = "```\n" + "y" * 15 + "\n```"
    assert split_text(f"{'a' * 30}\n{code}", 40) == ("a" * 30, code)


def test_no_part_ends_with_a_block_that_was_only_opened():
    first, *_ = split_text(f"some words before it\n```python\n{'x' * 100}\n```", 50)
    assert first == "some words before it"


def test_a_block_that_a_cut_has_closed_is_not_closed_once_more():
    body = "\n".join("0123456789" for _ in range(4))
    parts = split_text(f"```\n{body}\n```\nafter it some more words", 55)
    assert parts == (f"```\n{body}\n```", "after it some more words")


def test_nothing_is_left_of_a_text_that_ends_with_the_block_a_cut_has_closed():
    body = "\n".join("0123456789" for _ in range(4))
    assert split_text(f"```\n{body}\n```" + "\n" * 10, 55) == (f"```\n{body}\n```",)


@pytest.mark.parametrize(
    ("opening", "again"),
    [
        ("```python", "```python"),
        ("~~~ sh", "~~~sh"),
        ("````", "````"),
        ("```js title=a-very-long-title-of-a-file", "```"),
        ("   ```c++", "```c++"),
        ("```ünicode", "```"),
    ],
)
def test_a_block_is_opened_again_as_it_was_if_that_is_short(opening: str, again: str):
    mark = opening.strip()[:4].rstrip("pjcsü ")
    code = "\n".join("0123456789" for _ in range(12))
    _, second, *_ = split_text(f"{opening}\n{code}\n{mark}", 64)
    assert second.startswith(f"{again}\n0123456789\n")


def test_a_fence_within_another_one_is_code():
    inner = "\n".join(["````md", "```", *("0123456789" for _ in range(10)), "```", "````"])
    parts = split_text(inner, 64)
    assert all(part.startswith("````") and part.endswith("````") for part in parts)


@pytest.mark.parametrize("text", ["`" * 100, "```" + "x" * 100, "a `code` b " * 20])
def test_backticks_that_open_no_block_are_letters(text: str):
    assert without_blanks("".join(split_text(text, 40))) == without_blanks(text)
    assert max(map(fences, split_text(text, 40))) <= 2


@pytest.mark.parametrize(
    "cluster",
    [FAMILY, "e\u0301", "👍🏽", "🏴\U000e0067\U000e0062\U000e007f", "1\ufe0f\u20e3", "\ud83d\ude00"],
)
def test_what_is_shown_as_one_character_stays_together(cluster: str):
    for before in range(40 - len(cluster), 40):
        parts = split_text("x" * before + cluster + "y" * 40, 40)
        assert sum(part.count(cluster) for part in parts) == 1, before


def test_flags_stay_whole():
    flags = "🇩🇪" * 30
    for before in range(3):
        parts = split_text("x" * before + flags, 41)
        assert "".join(parts) == "x" * before + flags
        assert all(len(part.lstrip("x")) % 2 == 0 for part in parts)


def test_endless_accents_end_somewhere():
    text = "x" * 10 + "\u0301" * 200
    assert "".join(split_text(text, 40)) == text


@pytest.mark.parametrize(
    ("unit", "text", "first"),
    [
        (LengthUnit.CHARACTERS, "😀" * 60, "😀" * 40),
        (LengthUnit.UTF16, "😀" * 60, "😀" * 20),
        (LengthUnit.BYTES, "😀" * 60, "😀" * 10),
        (LengthUnit.BYTES, "ä" * 60, "ä" * 20),
        (LengthUnit.UTF16, "ä" * 60, "ä" * 40),
    ],
)
def test_length_is_counted_as_the_platform_counts_it(unit: LengthUnit, text: str, first: str):
    parts = split_text(text, 40, unit)
    assert parts[0] == first
    assert "".join(parts) == text


def test_a_limit_that_leaves_no_room_is_refused():
    with pytest.raises(InvalidInputError, match="at least 40"):
        split_text("x", LEAST_LIMIT - 1)


def test_a_very_long_text_takes_no_very_long_time():
    text = ("word " * 9 + "\n") * 20_000
    parts = split_text(text, 4096, LengthUnit.UTF16)
    assert without_blanks("".join(parts)) == without_blanks(text)


@given(text=texts, limit=st.integers(LEAST_LIMIT, 120), unit=st.sampled_from(LengthUnit))
def test_every_part_fits_and_nothing_is_lost_or_moved(text: str, limit: int, unit: LengthUnit):
    parts = split_text(text, limit, unit)
    assert all(part.strip() for part in parts)
    assert all(unit.length(part) <= limit for part in parts)
    if "```" not in text and "~~~" not in text:
        assert "".join("".join(parts).split()) == "".join(text.split())


@given(
    before=st.text("ab \n", max_size=60),
    code=st.lists(st.text("xy =", max_size=30), max_size=12),
    after=st.text("cd \n", max_size=60),
    limit=st.integers(LEAST_LIMIT, 90),
)
def test_each_part_has_whole_blocks_of_code_and_they_hold_all_of_it(
    before: str, code: list[str], after: str, limit: int
):
    parts = split_text("\n".join((before, "```sh", *code, "```", after)), limit)
    inside: list[str] = []
    for part in parts:
        is_code = False
        for line in part.split("\n"):
            if line.startswith("```"):
                is_code = not is_code
            elif is_code:
                inside.append(line)
        assert not is_code, part
    assert "".join("".join(inside).split()) == "".join("".join(code).split())
