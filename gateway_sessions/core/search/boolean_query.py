"""Translation of a search query to MySQL boolean mode, and the words that MySQL indexes of a message.

The server splits a text at every character that is no letter, digit or underscore to it, leaves out words
that are short, very long or in its stop list, and knows no prefixes within phrases. So its words are spelled
for it: two letters in front make each word long enough and unlike any stop word, and every character beyond
ASCII becomes a number. Matches of a query that it cannot express exactly must be tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from gateway_sessions.core.search.criteria import Certain
from gateway_sessions.core.search.documents import BEGINNING, TOKEN, Asked, Lexemes
from gateway_sessions.core.search.filters import SearchFilter, excluding, narrowing
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery
from gateway_sessions.core.search.tokenizer import GAP

FRONT: Final = "zz"
BORDER: Final = "zzgap"
"""The word between texts, which no phrase crosses."""
LONGEST: Final = 80
"""The letters of a word; a longer word is found by its beginning, and its matches are tested."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_SMALL: Final = len(_DIGITS) ** 3
_STRANGE: Final = re.compile(r"[^a-z0-9]")


def words_of(message: Lexemes) -> str:
    """Return the words by which a message is found, labels and prefixes first."""
    beginnings = dict.fromkeys(one[0] for one in message.tokens if one != GAP)
    return " ".join(
        (
            *(f"{FRONT}{one}" for one in message.labels),
            *(_spelled(BEGINNING, one) for one in beginnings),
            BORDER,
            *(BORDER if one == GAP else _spelled(TOKEN, one) for one in message.tokens),
            *(_spelled(TOKEN, one) for one in message.stems),
        )
    )


def boolean_of(certain: Certain, shown: SearchFilter) -> Asked | None:
    """Return the boolean query of a search, narrowed by labels; None if nothing narrows it."""
    required = [] if certain.query is None else [_words(certain.query)]
    required += map(_any_label, narrowing(shown))
    if not required:
        return None
    conditions = [*(f"+{one}" for one in required), *(f"-{_any_label(one)}" for one in excluding(shown))]
    return Asked(" ".join(conditions), is_exact=certain.query is None or _is_exact(certain.query))


def _is_exact(query: SearchQuery) -> bool:
    return all(
        not (phrase.prefix and phrase.tokens[1:])
        and all(len(_spelled(TOKEN, token)) < LONGEST for token in (*phrase.tokens, *phrase.others))
        for phrase in query.all_phrases
    )


def _words(query: SearchQuery) -> str:
    return f"({' '.join(map(_branch, query.branches))})"


def _branch(branch: Branch) -> str:
    required = (f"+{_required(one)}" for one in branch.required)
    excluded = (f"-{_excluded(one)}" for one in branch.excluded if _can_be_excluded(one))
    return f"({' '.join((*required, *excluded))})"


def _required(phrase: Phrase) -> str:
    *whole, last = phrase.tokens
    if phrase.others:
        return _any_of(phrase)
    if not phrase.prefix or not whole:
        return _phrase(phrase.tokens, phrase.prefix)
    return f"(+{_phrase(whole, prefix=False)} +{_phrase([last], prefix=True)})"


def _excluded(phrase: Phrase) -> str:
    return _any_of(phrase) if phrase.others else _phrase(phrase.tokens, phrase.prefix)


def _any_of(phrase: Phrase) -> str:
    return f"({' '.join(_spelled(TOKEN, one) for one in (*phrase.tokens, *phrase.others))})"


def _can_be_excluded(phrase: Phrase) -> bool:
    return _is_exact(SearchQuery((Branch((phrase,)),)))


def _phrase(tokens: Sequence[str], prefix: bool) -> str:  # noqa: FBT001 -- of the phrase
    if len(tokens) > 1:
        return f'"{" ".join(_spelled(TOKEN, one) for one in tokens)}"'
    if prefix and len(tokens[0]) == 1:
        return _spelled(BEGINNING, tokens[0])
    return f"{_spelled(TOKEN, tokens[0])}{'*' if prefix else ''}"


def _any_label(labels: Iterable[Phrase]) -> str:
    spelled = (f"{FRONT}{one.tokens[0]}{'*' if one.prefix else ''}" for one in labels)
    return f"({' '.join(spelled)})"


def _spelled(kind: str, token: str) -> str:
    """Return a token as one word of the server; a prefix of the token becomes a prefix of the word."""
    return f"{FRONT}{kind}{token if token.isascii() else _STRANGE.sub(_number, token)}"[:LONGEST]


def _number(found: re.Match[str]) -> str:
    point = ord(found[0])
    return f"_{_in_digits(point, 3)}" if point < _SMALL else f"__{_in_digits(point, 4)}"


def _in_digits(number: int, count: int) -> str:
    text = ""
    for _ in range(count):
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text
