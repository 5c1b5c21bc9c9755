"""How text is cut into tokens."""

from __future__ import annotations

import itertools
import re
import unicodedata

import pytest

from gateway_sessions.core.search import tokenizer
from gateway_sessions.core.search.tokenizer import (
    GAP,
    LONGEST_WORD,
    CharacterKind,
    fold,
    fold_with_places,
    is_pair,
    is_unspaced,
    join_fields,
    long_words,
    token_runs,
    tokens_of_text,
    tokens_with_places,
    whole_words,
    without_accents,
    words_of_folded,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Docker deployment", ["docker", "deployment"]),
        ("foo_bar a-b a.b", ["foo", "bar", "a", "b", "a", "b"]),
        ("user@host /a/b.py", ["user", "host", "a", "b", "py"]),
        ("50% of C++, what's up?", ["50", "of", "c", "what", "s", "up"]),
        ("v3.11.7", ["v3", "11", "7"]),
        ("", []),
        (" \t\n?!…—", []),
    ],
)
def test_words_are_runs_of_letters_and_digits(text, expected):
    assert tokens_of_text(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("café", "CAFE"),
        ("cafe\u0301", "café"),
        ("ёлка", "елка"),
        ("\uff44\uff4f\uff43\uff4b\uff45\uff52", "docker"),
        ("ﬁle", "file"),
        ("İstanbul", "istanbul"),
        ("ΟΔΟΣ", "οδος"),
        ("ein\u00adkauf", "Einkauf"),
        ("ｶﾞ", "ガ"),
        ("か\u3099", "が"),
        ("\u1112\u1161\u11ab", "한"),
        ("❤\ufe0f", "❤"),
        ("H₂O", "h2o"),
    ],
)
def test_spellings_of_the_same_word_are_the_same(one, other):
    assert tokens_of_text(one) == tokens_of_text(other) != []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("机器学习", ["机器", "器学", "学习", "习"]),
        ("猫", ["猫"]),
        ("你好\uff0c世界", ["你好", "好", "世界", "界"]),
        ("カタカナー", ["カタ", "タカ", "カナ", "ナー", "ー"]),
        ("한국어", ["한국", "국어", "어"]),
        ("iPhone手机第3章", ["iphone", "手机", "机第", "第", "3", "章"]),
        ("𠀀𠀁", ["𠀀𠀁", "𠀁"]),
    ],
)
def test_scripts_without_spaces_have_a_token_for_each_character(text, expected):
    assert tokens_of_text(text) == expected


@pytest.mark.parametrize("text", ["ภาษาไทย", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာဘာသာ", "ꦧꦱꦗꦮ", "ꆈꌠꉙ"])
def test_other_scripts_without_spaces_are_paired_as_well(text):
    folded = fold(text)
    assert tokens_of_text(text) == [folded[at : at + 2] for at in range(len(folded))]


def test_words_of_scripts_that_write_vowels_as_marks_stay_whole():
    assert tokens_of_text("हिन्दी में तमिल தமிழ்") == ["हिन्दी", "में", "तमिल", "தமிழ்"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("👍🏽 ok", ["👍", "🏽", "ok"]),
        ("👩\u200d💻", ["👩", "💻"]),
        ("Java™", ["java", "tm"]),
        ("㍿", ["株式", "式会", "会社", "社"]),
    ],
)
def test_signs_stand_for_themselves(text, expected):
    assert tokens_of_text(text) == expected


def test_a_long_word_is_a_phrase_of_its_pieces():
    word = "abcdefghij" * 15
    assert tokens_of_text(f"x {word} y") == [
        "x",
        word[:LONGEST_WORD],
        word[LONGEST_WORD : 2 * LONGEST_WORD],
        word[128:],
        "y",
    ]
    assert "".join(tokens_of_text("é" * 150)) == "e" * 150


def test_words_are_told_from_pieces_signs_and_pairs():
    assert whole_words(tokens_of_text("Docker é 机器 👍 x²" + "y" * 70)) == {"docker", "e"} | {"y" * 8}
    assert long_words(f"docker {'é' * 64} 机器{'y' * 70}") == {"e" * 64, "y" * 70}


@pytest.mark.parametrize("word", ["crème", "\u0627\u0301\u0654", "q\u0301x", "İstanbul", "ёлка"])
def test_a_part_of_a_word_is_a_part_of_it_without_accents_too(word):
    folded = fold(word)
    for start in range(len(folded)):
        for end in range(start, len(folded) + 1):
            assert without_accents(folded[start:end]) in without_accents(folded)


def test_every_letter_of_a_folded_text_loses_its_accents():
    every = (fold(chr(one)) for one in range(0x110000) if not 0xD800 <= one < 0xE000)
    letters = sorted(set("".join(every)))
    normalize = unicodedata.normalize
    without = [normalize("NFC", re.sub("[\u0300-\u036f]", "", normalize("NFD", one))) for one in letters]
    assert [without_accents(one) for one in letters] == without
    assert without_accents(fold("Crème brûlée, garçon: Việt")) == "creme brulee, garcon: viet"


def test_only_letters_with_accents_are_asked_for_what_they_are_without(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    class Counted(dict[int, str]):
        def __missing__(self, point: int) -> str:
            asked.append(point)
            return "e"

    without_accents("é")  # by now it is known which letters have accents
    monkeypatch.setattr(tokenizer, "_bare", Counted())
    assert without_accents("ß你" * 1_000 + "é" * 1_000) == "ß你" * 1_000 + "e" * 1_000
    assert asked == [ord("é")]


@pytest.mark.parametrize(
    "text", ["crème_brûlée: 2é, x", "a机器b éa", "é\u0301!", "...", "", "plain ASCII", "한 국어"]
)
def test_words_of_a_folded_text_are_its_runs_of_letters_and_digits(text: str):
    folded = fold(text)
    assert words_of_folded(folded) == {
        folded[a:b] for a, b, kind in token_runs(folded) if kind is CharacterKind.WORD
    }


def test_text_of_usual_characters_is_folded_like_any_other():
    unusual = "\u00ad"  # not seen, so nothing comes of it
    usual = [chr(one) for one in range(0x80, 0xFFFF) if not 0xD800 <= one < 0xE000]
    assert [one for one in usual if fold(one) != fold(one + unusual)] == []
    assert fold("你好\uff0c\uff21\uff22\uff23\u3000Straße\uff01") == "你好,abc strasse!"


def test_tokens_of_a_separating_tokeniser_are_ours():
    text = "".join(map(chr, range(32, 0x3000))) + "机器 👍"
    for token in tokens_of_text(text):
        assert all(ord(char) > 127 or char.isdigit() or char.islower() for char in token), token


def test_every_token_says_where_it_is():
    text = "The Straße at ½ ㍿ CAFE\u0301 手机 か\u3099!"
    assert [one.text for one in tokens_with_places(text)] == tokens_of_text(text)
    shown = {one.text: text[one.start : one.end] for one in tokens_with_places(text)}
    assert shown["strasse"] == "Straße"
    assert shown["cafe"] == "CAFE\u0301"
    assert shown["手机"] == "手"
    assert shown["が"] == "か\u3099"
    assert shown["株式"] == "㍿"


def test_every_character_comes_from_its_own_place():
    usual = [chr(one) for one in range(0x80, 0xFFFF) if not 0xD800 <= one < 0xE000]
    for one in usual:
        text = f"A{one}\u4e2d{one}"
        folded, places = fold_with_places(text)
        parts = itertools.groupby(zip(folded, places, strict=True), key=lambda pair: pair[1])
        for (start, end), part in parts:
            assert "".join(char for char, _ in part) == fold(text[start:end]), text


def test_a_long_word_is_shown_whole():
    assert [(one.start, one.end) for one in tokens_with_places("a " + "b" * 100)] == [
        (0, 1),
        (2, 102),
        (2, 102),
    ]


def test_characters_that_change_each_other_in_an_unknown_way_are_shown_together():
    text = "é\u1161\u1100\u1161"
    assert [one.text for one in tokens_with_places(text)] == tokens_of_text(text)


def test_phrases_do_not_reach_from_one_field_into_the_next():
    assert join_fields(["run it", "", "now"]) == ["run", "it", GAP, "now"]
    assert tokens_of_text(GAP) == []


def test_pairs_are_told_from_words():
    assert is_pair("手机")
    assert not is_pair("ab")
    assert not is_pair("手")
    assert is_unspaced("手")
    assert not is_unspaced("a")
    assert not is_unspaced("手机")


def test_more_characters_than_are_remembered_are_still_told_apart():
    everything = [chr(one) for one in range(0x3400, 0x9FFF)] + ["a", "é", "한"]
    assert len(tokens_of_text(" ".join(everything))) == len(everything)
    assert unicodedata.normalize("NFC", "é") in everything
