"""Translation of a search query to a PostgreSQL `tsquery`."""

from __future__ import annotations

from collections.abc import Iterable

from gateway_sessions.core.search.criteria import CertainTerms
from gateway_sessions.core.search.documents import BEGINNING, LONG, TOKEN, VAST, DatabaseCondition
from gateway_sessions.core.search.filters import SearchFilter, excluded_label_groups, required_label_groups
from gateway_sessions.core.search.query import Branch, Phrase, SearchQuery


def tsquery_of(certain: CertainTerms, shown: SearchFilter) -> DatabaseCondition | None:
    """Return the `tsquery` of a search, narrowed by labels; None if neither words nor labels narrow it.

    Messages without certain tokens (`LONG`, `VAST`) match by their mark, and must be tested afterwards.
    """
    required = [] if certain.query is None else [_query_text(certain.query)]
    required += map(_any_label, required_label_groups(shown))
    if not required:
        return None
    return DatabaseCondition(
        " & ".join([*required, *(f"!{_any_label(one)}" for one in excluded_label_groups(shown))])
    )


def _query_text(query: SearchQuery) -> str:
    """Return the condition for messages that may match: long ones by tokens alone, vast ones always."""
    return _join_alternatives([*map(_branch_text, query.branches), f"'{VAST}'"])


def _branch_text(branch: Branch) -> str:
    required = (_required_text(one) for one in branch.required)
    return _join_conjunction([*required, *(f"!{_phrase_text(one)}" for one in branch.excluded)])


def _required_text(phrase: Phrase) -> str:
    if len(phrase.tokens) == 1:
        return _phrase_text(phrase)
    return _join_alternatives(
        [_phrase_text(phrase), _join_conjunction([f"'{LONG}'", *_quoted_token(phrase)])]
    )


def _phrase_text(phrase: Phrase) -> str:
    """Return the condition for tokens next to each other; no long message fulfils it."""
    if phrase.prefix and len(phrase.tokens) == len(phrase.tokens[0]) == 1:
        return f"'{BEGINNING}{phrase.tokens[0]}'"
    if phrase.others:
        return _join_alternatives([f"'{TOKEN}{one}'" for one in (*phrase.tokens, *phrase.others)])
    return f"({' <-> '.join(_quoted_token(phrase))})"


def _quoted_token(phrase: Phrase) -> list[str]:
    return [*(f"'{TOKEN}{one}'" for one in phrase.tokens[:-1]), _quoted_last_token(phrase)]


def _quoted_last_token(phrase: Phrase) -> str:
    return f"'{TOKEN}{phrase.tokens[-1]}'{':*' if phrase.prefix else ''}"


def _any_label(labels: Iterable[Phrase]) -> str:
    return _join_alternatives([f"'{one.tokens[0]}'{':*' if one.prefix else ''}" for one in labels])


def _join_alternatives(parts: Iterable[str]) -> str:
    return f"({' | '.join(parts)})"


def _join_conjunction(parts: Iterable[str]) -> str:
    return f"({' & '.join(parts)})"
