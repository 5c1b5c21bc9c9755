"""Translation of a search query to a PostgreSQL `tsquery`."""

from __future__ import annotations

from collections.abc import Iterable

from gateway_sessions.core.search.criteria import Certain
from gateway_sessions.core.search.documents import BEGINNING, LONG, TOKEN, VAST, Asked
from gateway_sessions.core.search.filters import SearchFilter, excluding, narrowing
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery


def tsquery_of(certain: Certain, shown: SearchFilter) -> Asked | None:
    """Return the `tsquery` of a search, narrowed by labels; None if neither words nor labels narrow it.

    Messages without certain tokens (`LONG`, `VAST`) match by their mark, and must be tested afterwards.
    """
    required = [] if certain.query is None else [_words(certain.query)]
    required += map(_any_label, narrowing(shown))
    if not required:
        return None
    return Asked(" & ".join([*required, *(f"!{_any_label(one)}" for one in excluding(shown))]))


def _words(query: SearchQuery) -> str:
    """Return the condition for messages that may match: long ones by tokens alone, vast ones always."""
    return _one_of([*map(_branch, query.branches), f"'{VAST}'"])


def _branch(branch: Branch) -> str:
    required = (_required(one) for one in branch.required)
    return _all_of([*required, *(f"!{_phrase(one)}" for one in branch.excluded)])


def _required(phrase: Phrase) -> str:
    if len(phrase.tokens) == 1:
        return _phrase(phrase)
    return _one_of([_phrase(phrase), _all_of([f"'{LONG}'", *_spelled(phrase)])])


def _phrase(phrase: Phrase) -> str:
    """Return the condition for tokens next to each other; no long message fulfils it."""
    if phrase.prefix and len(phrase.tokens) == len(phrase.tokens[0]) == 1:
        return f"'{BEGINNING}{phrase.tokens[0]}'"
    if phrase.others:
        return _one_of([f"'{TOKEN}{one}'" for one in (*phrase.tokens, *phrase.others)])
    return f"({' <-> '.join(_spelled(phrase))})"


def _spelled(phrase: Phrase) -> list[str]:
    return [*(f"'{TOKEN}{one}'" for one in phrase.tokens[:-1]), _last(phrase)]


def _last(phrase: Phrase) -> str:
    return f"'{TOKEN}{phrase.tokens[-1]}'{':*' if phrase.prefix else ''}"


def _any_label(labels: Iterable[Phrase]) -> str:
    return _one_of([f"'{one.tokens[0]}'{':*' if one.prefix else ''}" for one in labels])


def _one_of(parts: Iterable[str]) -> str:
    return f"({' | '.join(parts)})"


def _all_of(parts: Iterable[str]) -> str:
    return f"({' & '.join(parts)})"
