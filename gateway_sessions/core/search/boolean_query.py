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

from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import BEGINNING, TOKEN, DatabaseCondition, Lexemes
from gateway_sessions.core.search.filters import SearchFilter, excluded_label_groups, required_label_groups
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


def boolean_words_of(message: Lexemes) -> str:
    """Return the words by which a message is found, labels and prefixes first."""
    beginnings = dict.fromkeys(one[0] for one in message.tokens if one != GAP)
    return " ".join(
        (
            *(f"{FRONT}{one}" for one in message.labels),
            *(_word_of_token(BEGINNING, one) for one in beginnings),
            BORDER,
            *(BORDER if one == GAP else _word_of_token(TOKEN, one) for one in message.tokens),
            *(_word_of_token(TOKEN, one) for one in message.stems),
        )
    )


def boolean_query_of(certain: CertainTerms, shown: SearchFilter) -> DatabaseCondition | None:
    """Return the boolean query of a search, narrowed by labels; None if nothing narrows it."""
    required = [] if certain.query is None else [_query_text(certain.query)]
    required += map(_any_label, required_label_groups(shown))
    if not required:
        return None
    conditions = [
        *(f"+{one}" for one in required),
        *(f"-{_any_label(one)}" for one in excluded_label_groups(shown)),
    ]
    return DatabaseCondition(
        " ".join(conditions), is_exact=certain.query is None or _is_exact_query(certain.query)
    )


def _is_exact_query(query: SearchQuery) -> bool:
    return all(
        not (phrase.prefix and phrase.tokens[1:])
        and all(len(_word_of_token(TOKEN, token)) < LONGEST for token in (*phrase.tokens, *phrase.others))
        for phrase in query.all_phrases
    )


def _query_text(query: SearchQuery) -> str:
    return f"({' '.join(map(_branch_text, query.branches))})"


def _branch_text(branch: Branch) -> str:
    required = (f"+{_required_text(one)}" for one in branch.required)
    excluded = (f"-{_excluded_text(one)}" for one in branch.excluded if _can_be_excluded(one))
    return f"({' '.join((*required, *excluded))})"


def _required_text(phrase: Phrase) -> str:
    *whole, last = phrase.tokens
    if phrase.others:
        return _any_character_of(phrase)
    if not phrase.prefix or not whole:
        return _phrase_text(phrase.tokens, phrase.prefix)
    return f"(+{_phrase_text(whole, prefix=False)} +{_phrase_text([last], prefix=True)})"


def _excluded_text(phrase: Phrase) -> str:
    return _any_character_of(phrase) if phrase.others else _phrase_text(phrase.tokens, phrase.prefix)


def _any_character_of(phrase: Phrase) -> str:
    return f"({' '.join(_word_of_token(TOKEN, one) for one in (*phrase.tokens, *phrase.others))})"


def _can_be_excluded(phrase: Phrase) -> bool:
    return _is_exact_query(SearchQuery((Branch((phrase,)),)))


def _phrase_text(tokens: Sequence[str], prefix: bool) -> str:  # noqa: FBT001 -- of the phrase
    if len(tokens) > 1:
        return f'"{" ".join(_word_of_token(TOKEN, one) for one in tokens)}"'
    if prefix and len(tokens[0]) == 1:
        return _word_of_token(BEGINNING, tokens[0])
    return f"{_word_of_token(TOKEN, tokens[0])}{'*' if prefix else ''}"


def _any_label(labels: Iterable[Phrase]) -> str:
    spelled = (f"{FRONT}{one.tokens[0]}{'*' if one.prefix else ''}" for one in labels)
    return f"({' '.join(spelled)})"


def _word_of_token(kind: str, token: str) -> str:
    """Return a token as one word of the server; a prefix of the token becomes a prefix of the word."""
    return f"{FRONT}{kind}{token if token.isascii() else _STRANGE.sub(_replace_with_digits, token)}"[:LONGEST]


def _replace_with_digits(found: re.Match[str]) -> str:
    point = ord(found[0])
    return f"_{_digits_of(point, 3)}" if point < _SMALL else f"__{_digits_of(point, 4)}"


def _digits_of(number: int, count: int) -> str:
    text = ""
    for _ in range(count):
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text
