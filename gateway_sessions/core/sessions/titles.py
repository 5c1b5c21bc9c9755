"""Titles of sessions: how they are cleaned, numbered along a lineage, and derived from a first message.

A lineage is a title and its numbered continuations: `Trip`, `Trip #2`, `Trip #3`. A session without a title
is called by the beginning of its first message, or by the proposal of a model.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from gateway_sessions.core.display_text import without_invisible
from gateway_sessions.errors import InvalidTitleError

MAX_TITLE: Final = 100
LONGEST_SUFFIX: Final = 16
"""The characters that a cut title leaves for its number, so that a long lineage still fits the limit."""

_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
_NUMBERED = re.compile(r"(.+?) #([0-9]{1,9})", re.DOTALL)
_AFTER_EVERYTHING: Final = "\U0010ffff"


class TitledBy(StrEnum):
    """The origin of a session's title."""

    PERSON = "person"
    AUTOMATIC = "automatic"
    LINEAGE = "lineage"  # it goes on with the title of the session it came from


def normalize_title(text: str) -> str:
    """Return the text in composed form on one line, without anything invisible."""
    return " ".join(unicodedata.normalize("NFC", _UNSHOWN.sub("", without_invisible(text))).split())


def clean_title(text: str) -> str:
    """Return one line in composed form without anything invisible, or raise `InvalidTitleError`."""
    title = normalize_title(text)
    if not 0 < len(title) <= MAX_TITLE:
        raise InvalidTitleError(len(title), MAX_TITLE)
    return title


def split_numbered_title(title: str) -> tuple[str, int]:
    """Return the title that a lineage began with and the number in this title; the first one has number 1."""
    numbered = _NUMBERED.fullmatch(title)
    return (numbered[1], int(numbered[2])) if numbered else (title, 1)


def next_title(title: str, taken: Collection[str]) -> str:
    """Return the next free title of the lineage: gaps are not filled, a base is cut to keep the limit."""
    base, _ = split_numbered_title(clean_title(title))
    return numbered_title(base, next_number(base, taken))


def next_number(base: str, taken: Collection[str]) -> int:
    """Return the number of the next free title of that lineage."""
    numbers = [number for one in taken if (number := _number_in_lineage(base, one)) is not None]
    if not numbers:
        return 1
    number = max(1, *numbers) + 1
    while numbered_title(base, number) in taken:
        number += 1
    return number


def numbered_title(base: str, number: int) -> str:
    """Return the title of that number in a lineage; the first title has no number."""
    return base if number == 1 else _with_number(base, number)


def lineage_range(base: str) -> tuple[str, str]:
    """Return the least and the greatest text between which all numbered titles of a base are sorted.

    A long base is cut to make room for numbers, so other titles may stand in that range as well.
    """
    room = MAX_TITLE - LONGEST_SUFFIX
    stem = f"{base} #" if len(base) <= room else base[:room].rstrip()
    return stem, stem + _AFTER_EVERYTHING


def numbered_titles_of(base: str, titles: Iterable[str]) -> list[str]:
    """Return the titles that are the base with a number."""
    return [one for one in titles if one != base and _number_in_lineage(base, one) is not None]


def _number_in_lineage(base: str, title: str) -> int | None:
    """Return the number of *title* in the lineage of *base*, or None if it belongs to another."""
    if title == base:
        return 1
    stem, number = split_numbered_title(title)
    return number if stem == base or title == _with_number(base, number) else None


def _with_number(base: str, number: int) -> str:
    suffix = f" #{number}"
    return base[: MAX_TITLE - len(suffix)].rstrip() + suffix


MAX_AUTOMATIC: Final = 80
"""The longest title that is given automatically, in characters."""
MIN_WORDS: Final = 2
"""A single word tells sessions apart too rarely."""
MAX_WORDS: Final = 7
"""The number of words that an automatic title takes from a sentence."""
MAX_UNSPACED: Final = 20
"""The characters of a script without spaces that say as much as seven words."""

_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_ADDRESS = re.compile(r"https?://(?:www\.)?([^/\s]+)\S*", re.IGNORECASE)
_QUOTED_LINE = re.compile(r"^\s*>.*$", re.MULTILINE)
_SENTENCE_END = re.compile("[.!?:;\u2026]+(?:\\s+|$)|[\u3002\uff01\uff1f\uff1b\uff1a]+|\\n+")
_EMPHASIS = re.compile(r"\*\*|`")
_CLAUSE_END = re.compile("[\uff0c\u3001,]")
_ADDRESSED = re.compile(r"^(?:\[[^\]]*\]|@\S+|/\w+)[\s,:]+")
_POLITE = re.compile(
    r"^(?:hi|hello|hey|hallo|hola|salut|ok|okay|so|well|thanks|please|bitte|there|"
    r"(?:can|could|would|will) you|i (?:want|need|would like|have) to|i'd like to|help me(?: to)?)\b[\s,]*",
    re.IGNORECASE,
)
_LABEL = re.compile("^(?:title|topic|subject|titel|titre|标题|標題|タイトル)\\s*[:\uff1a]\\s*", re.IGNORECASE)
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_DASHES: Final = "-\u2013\u2014"
_WRAPPING: Final = (
    " \t\"'`*_#-\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2039\u203a"
    "\u3008\u3009\u300a\u300b\u300c\u300d\u300e\u300f"
)


def clean_suggested_title(text: str) -> str | None:
    """Return what a model proposed as a title, without the label and the quotes that models add."""
    for line in text.splitlines():
        bare = _LABEL.sub("", _strip_quotes(_EMPHASIS.sub("", line)))
        if title := _cut_to_length(_strip_quotes(bare).rstrip(" .\u3002"), MAX_AUTOMATIC):
            return title
    return None


def title_from_messages(messages: Iterable[str]) -> str | None:
    """Return up to seven words of the first sentence that says something; None if all are mere greetings."""
    for text in messages:
        shown = _ADDRESS.sub(r"\1", _QUOTED_LINE.sub("", _FENCED.sub("\n", text)))
        for sentence in _SENTENCE_END.split(shown):
            if title := _title_of_sentence(sentence):
                return title
    return None


def _title_of_sentence(sentence: str) -> str | None:
    clause = _ADDRESSED.sub("", normalize_title(_EMPHASIS.sub("", sentence)))
    while (rest := _POLITE.sub("", clause)) != clause:
        clause = rest
    clause = _strip_quotes(clause)
    if _UNSPACED.search(clause):
        return _title_of_clause(clause)
    words = clause.split()
    if len(words) < MIN_WORDS:
        return None
    title = _cut_to_length(" ".join(words[:MAX_WORDS]), MAX_AUTOMATIC).rstrip(f" ,{_DASHES}")
    return title[:1].upper() + title[1:] if words[0].islower() else title


def _title_of_clause(clause: str) -> str | None:
    start = next((part for part in _CLAUSE_END.split(clause) if len(part) >= MIN_WORDS), "")
    return _cut_to_length(start, MAX_UNSPACED) or None


def _strip_quotes(text: str) -> str:
    return text.strip(_WRAPPING)


def _cut_to_length(text: str, limit: int) -> str:
    """Return the text as one line of at most that length, cut between words if there are several."""
    line = normalize_title(text)
    if len(line) <= limit:
        return line
    return (line[: limit + 1].rpartition(" ")[0] or line[:limit]).rstrip()
