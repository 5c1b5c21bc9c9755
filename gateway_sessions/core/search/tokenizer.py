"""The tokenizer of the search: words, and overlapping character pairs for scripts without spaces.

Words are runs of letters, digits and the marks on them; every other character separates words and is not
searched for. So `foo_bar`, `user@host` and `/a/b.py` are found by their parts, and whole as the phrase of the
parts. Text in a script that does not put spaces between words becomes overlapping pairs of characters, one
for each character: the last character of a run stands alone. A query of any length then finds exactly the
texts that contain it.

A token has no ASCII characters but small letters and digits. So a database's tokeniser that splits at other
ASCII characters only gives the same tokens back.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

TOKENISER: Final = 2
"""The version of the rules, which rises when the same text would become other tokens."""
LONGEST_WORD: Final = 64
"""The letters of a token; a longer word becomes several tokens, as a phrase."""
GAP: Final = "\ue000"
"""The token between two fields: no query can contain it, so no phrase reaches from one field into the
next."""


class CharacterKind(StrEnum):
    """The class of a character in the tokeniser."""

    WORD = "w"
    PAIRED = "c"  # of a script without spaces
    SIGN = "s"  # stands for itself: an emoji
    NOTHING = " "


_CACHED: Final = 20_000
"""The characters whose class is remembered; a sender of all Unicode characters does not fill the memory."""

_LAST_ASCII: Final = 0x7F
_PAIR: Final = 2

_ASCII_WORDS: Final = re.compile(r"[a-z0-9]+")
_ASCII_APART: Final = {one: chr(one) if chr(one).isalnum() else " " for one in range(_LAST_ASCII + 1)}
"""The ASCII characters, with a space for each that is no letter or digit: splitting there takes half as long
as a search for words."""
_ASCII_BREAKS: Final = re.compile(r"[\x00-/:-`{-\x7f]+")
_RUNS: Final = re.compile(r"w+|c+|s")
_ACCENTS: Final = re.compile(r"[\u0300-\u036f]+")
_FIRST_ACCENTED, _LAST_ACCENTED = 0xC0, 0x22ED
"""The range that contains all letters with accents that folded text has."""
_PLAIN: Final = re.compile(
    r"[\x00-\x7f\xc0-\u024f\u0370-\u0481\u2010-\u2027\u3000-\u3003\u3005-\u3011\u3041-\u3096\u30a1-\u30ff"
    r"\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff5e]*"
)
"""The characters that `_Spelling` leaves unchanged and that join no other character: most texts have only
these."""
_WIDE: Final = re.compile(r"[\u3000\uff01-\uff5e]")
_WIDER: Final = 0xFEE0

_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul letters
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x2E80, 0x2FDF),  # radicals
    (0x3005, 0x3007),  # iteration marks
    (0x3021, 0x31BF),  # kana, Bopomofo, Hangul compatibility letters
    (0x31F0, 0x31FF),  # kana extensions
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA000, 0xA4CF),  # Yi
    (0xA960, 0xA97F),  # Hangul letters
    (0xA980, 0xA9FF),  # Javanese, Myanmar
    (0xAA60, 0xAADF),  # Myanmar, Tai Viet
    (0xAC00, 0xD7FF),  # Hangul
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFFDC),  # kana and Hangul, half width
    (0x1AFF0, 0x1B16F),  # kana
    (0x20000, 0x3FFFF),  # Han, further extensions
)
_INVISIBLE: Final = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFFA0, 0xFFA0),
    (0xE0000, 0xE0FFF),  # tags and further selectors
)
_CONTINUING: Final = (
    (0x1160, 0x11FF),  # Hangul vowels and finals
    (0xD7B0, 0xD7FF),  # the same
    (0xFF9E, 0xFF9F),  # voicing marks, half width
)


class Token(NamedTuple):
    """A token, and the place of its word, or of its first character, in the text."""

    text: str
    start: int
    """The place of the first character."""
    end: int
    """The place after the last character."""


class _Table(dict[int, str]):
    """A table for `str.translate` that is filled as characters are met."""

    def __missing__(self, codepoint: int) -> str:
        found = self.of(codepoint)
        if len(self) < _CACHED:
            self[codepoint] = found
        return found

    def of(self, codepoint: int) -> str:
        raise NotImplementedError


class _Classes(_Table):
    """The class of each character in the tokeniser."""

    def of(self, codepoint: int) -> str:
        kind = unicodedata.category(chr(codepoint))
        unspaced = _is_in_ranges(codepoint, _UNSPACED)
        if kind[0] in "LM" or kind == "Nl":
            return CharacterKind.PAIRED if unspaced else CharacterKind.WORD
        if kind[0] == "N":
            return CharacterKind.WORD
        # An unassigned character is one that this Python does not know yet, mostly an emoji.
        return (
            CharacterKind.SIGN
            if codepoint > _LAST_ASCII and kind in {"So", "Sk", "Cn"}
            else CharacterKind.NOTHING
        )


class _Spelling(_Table):
    """The spelling of a character before text is normalised: invisible ones go, signs stand alone."""

    def of(self, codepoint: int) -> str:
        char = chr(codepoint)
        kind = unicodedata.category(char)
        if kind == "Cf" or _is_in_ranges(codepoint, _INVISIBLE):
            return ""
        return f" {char} " if kind == "So" else char


class _Bare(_Table):
    """A letter without the accents that people leave out when they are in a hurry."""

    def of(self, codepoint: int) -> str:
        letters = _ACCENTS.sub("", unicodedata.normalize("NFD", chr(codepoint)))
        return unicodedata.normalize("NFC", letters)


_classes: Final = _Classes()
_spelling: Final = _Spelling()
_bare: Final = _Bare()


def fold(text: str) -> str:
    """Return the text in the form for comparisons: one case, one Unicode form, no invisible characters."""
    if text.isascii():
        return text.lower()
    spelled = _in_nfkc(_ascii_forms(text) if _PLAIN.fullmatch(text) else text.translate(_spelling))
    folded = spelled.casefold()
    return spelled if folded == spelled else _in_nfkc(folded)


def _ascii_forms(text: str) -> str:
    """Return the text with plain ASCII characters in place of their wide forms."""
    end = 0
    while found := _WIDE.search(text, end):
        wide, end = found[0], found.end()
        text = text.replace(wide, " " if wide == "\u3000" else chr(ord(wide) - _WIDER))
    return text


def _in_nfkc(text: str) -> str:
    """Return the text in form NFKC; testing whether it is in that form takes a hundredth of converting it."""
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def tokens_of_text(text: str) -> list[str]:
    """Return the tokens of a text in order, one position each."""
    folded = fold(text)
    if not folded.isascii():
        return [
            piece
            for start, end, kind in token_runs(folded)
            for piece in tokens_of_run(folded[start:end], kind)
        ]
    words = folded.translate(_ASCII_APART).split()
    if max(map(len, words), default=0) > LONGEST_WORD:
        return [piece for word in words for piece in tokens_of_run(word, CharacterKind.WORD)]
    return words


def folded_words(text: str) -> set[str]:
    """Return the words of alphabets in a text, folded, with their accents."""
    return words_of_folded(fold(text))


def words_of_folded(folded: str) -> set[str]:
    """Return the words of alphabets in a folded text, with their accents."""
    if folded.isascii():
        return set(folded.translate(_ASCII_APART).split())
    found: set[str] = set()
    for part in set(_ASCII_BREAKS.split(folded)):
        if part.isascii():
            found.add(part)
        else:
            found.update(
                part[start:end] for start, end, kind in token_runs(part) if kind == CharacterKind.WORD
            )
    return found - {""}


def tokens_with_places(text: str) -> list[Token]:
    """Return the tokens of a text with their places in the text."""
    if text.isascii():
        return [one for run in _ASCII_WORDS.finditer(text.lower()) for one in _word_with_place(run)]
    folded, places = fold_with_places(text)
    found: list[Token] = []
    for start, end, kind in token_runs(folded):
        parts = tokens_of_run(folded[start:end], kind)
        for number, piece in enumerate(parts):
            first, last = (
                (start + number, start + number) if kind == CharacterKind.PAIRED else (start, end - 1)
            )
            found.append(Token(piece, places[first][0], places[last][1]))
    return found


def _word_with_place(run: re.Match[str]) -> list[Token]:
    if run.end() - run.start() <= LONGEST_WORD:
        return [Token(run[0], run.start(), run.end())]
    return [Token(piece, run.start(), run.end()) for piece in tokens_of_run(run[0], CharacterKind.WORD)]


def fold_with_places(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the folded text, and for each of its characters the place that it comes from."""
    folded = fold(text)
    if len(folded) == len(text) and _PLAIN.fullmatch(text):
        # None of these characters vanishes or joins another one, so each has become exactly one character.
        return folded, list(itertools.pairwise(range(len(text) + 1)))
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    for start, end in _character_clusters(text):
        part = fold(text[start:end])
        parts.append(part)
        places += [(start, end)] * len(part)
    if (joined := "".join(parts)) != folded:
        # Characters changed each other across the border of two clusters: the whole text is the place of
        # each.
        return folded, [(0, len(text))] * len(folded)
    return joined, places


def is_pair(token: str) -> bool:
    """Return whether a token is two characters of a script without spaces."""
    return len(token) == _PAIR and is_unspaced(token[0])


def is_unspaced(token: str) -> bool:
    """Return whether a token is one character of a script without spaces between words."""
    return len(token) == 1 and _classes[ord(token)] == CharacterKind.PAIRED


def join_fields(fields: Sequence[str]) -> list[str]:
    """Return the tokens of several texts, with a gap between texts that no phrase crosses."""
    found: list[str] = []
    for field in fields:
        if field:
            found += [GAP, *tokens_of_text(field)] if found else tokens_of_text(field)
    return found


def token_runs(folded: str) -> Iterator[tuple[int, int, CharacterKind]]:
    """Yield the runs of a folded text that have tokens: begin, end and class of each."""
    classes = folded.translate(_classes)
    for run in _RUNS.finditer(classes):
        yield run.start(), run.end(), CharacterKind(classes[run.start()])


def tokens_of_run(run: str, kind: CharacterKind) -> list[str]:
    """Return the tokens of a run."""
    if kind == CharacterKind.PAIRED:
        return [*map("".join, itertools.pairwise(run)), run[-1]]
    word = without_accents(run)
    return [word[at : at + LONGEST_WORD] for at in range(0, len(word), LONGEST_WORD)]


def without_accents(text: str) -> str:
    """Return a folded text without accents; each letter by itself, so that a part of a word stays a part.

    A text has few different letters with accents, and each of them is replaced wherever it stands: ten times
    faster than a table lookup for every character.
    """
    if text.isascii():
        return text
    accented, at = _accented_pattern(), 0
    while found := accented.search(text, at):
        text, at = text.replace(found[0], _bare[ord(found[0])]), found.start()
    return text


@cache
def _accented_pattern() -> re.Pattern[str]:
    """Return the pattern of the characters with accents in folded text."""
    every = map(chr, range(_FIRST_ACCENTED, _LAST_ACCENTED + 1))
    return re.compile(f"[{''.join(one for one in every if _bare[ord(one)] != one)}]")


def whole_words(tokens: Iterable[str]) -> set[str]:
    """Return the tokens that are whole words: no pieces, signs or characters of a script without spaces."""
    return {
        one
        for one in set(tokens)
        if len(one) < LONGEST_WORD and (one.isascii() or _classes[ord(one[0])] == CharacterKind.WORD)
    }


def long_words(text: str) -> set[str]:
    """Return the words of a text that are cut into several tokens."""
    folded = fold(text)
    words = (
        without_accents(folded[start:end])
        for start, end, kind in token_runs(folded)
        if kind == CharacterKind.WORD
    )
    return {word for word in words if len(word) >= LONGEST_WORD}


def _character_clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of each character together with the marks on it."""
    start = 0
    for at in range(1, len(text)):
        if not _continues_cluster(text[at]):
            yield start, at
            start = at
    if text:
        yield start, len(text)


def _continues_cluster(char: str) -> bool:
    point = ord(char)
    if point <= _LAST_ASCII:
        return False
    return unicodedata.category(char)[0] == "M" or _is_in_ranges(point, _CONTINUING)


def _is_in_ranges(codepoint: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= codepoint <= last for first, last in ranges)
