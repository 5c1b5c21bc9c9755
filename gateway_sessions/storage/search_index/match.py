"""A query in the language of the index. Only tokens and labels get into it, each in quotes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from gateway_sessions.core.search_documents import label, month_label
from gateway_sessions.core.search_filter import SearchFilter
from gateway_sessions.core.search_query import Branch, Phrase, Query
from gateway_sessions.core.search_text import Kind, fold, pieces, runs

MOST_MONTHS: Final = 60
"""A longer time is not narrowed by months."""


def match_of(text: str | None, wanted: SearchFilter) -> str | None:
    """What to ask the index for: the text, narrowed as far as labels go; None if this says nothing."""
    labels = [*map(_any_of, _narrowing(wanted))]
    if text is None and not labels:
        return None
    found = " AND ".join(labels if text is None else [f"({{text}} : {text})", *labels])
    if wanted.exclude_sources:
        return f"({found}) NOT {_any_of(label('source', one) for one in wanted.exclude_sources)}"
    return found


def text_of_query(query: Query) -> str:
    """The words of a query; it has at least one."""
    return f"({' OR '.join(map(_branch, query.branches))})"


def text_of_literal(needle: str) -> str | None:
    """What a message certainly has if it contains *needle* somewhere; None if nothing is certain."""
    phrases = list(dict.fromkeys(_certain(fold(needle))))
    return f"({' AND '.join(map(_phrase, phrases))})" if phrases else None


def _branch(branch: Branch) -> str:
    required = f"({' AND '.join(map(_phrase, branch.required))})"
    if not branch.excluded:
        return required
    return f"({required} NOT ({' OR '.join(map(_phrase, branch.excluded))}))"


def _phrase(phrase: Phrase) -> str:
    return f'"{" ".join(phrase.tokens)}"{" *" if phrase.prefix else ""}'


def _certain(needle: str) -> Iterator[Phrase]:
    """Words that end where they are seen to end, and characters of scripts without spaces."""
    for start, end, kind in runs(needle):
        found = pieces(needle[start:end], kind)
        if not found:
            continue
        if kind is Kind.PAIRED:
            yield Phrase(tuple(found[:-1])) if found[1:] else Phrase(tuple(found), prefix=True)
        elif kind is Kind.SIGN or start > 0:
            yield Phrase(tuple(found), prefix=kind is Kind.WORD and end == len(needle))


def _narrowing(wanted: SearchFilter) -> Iterator[Iterable[str]]:
    """Labels, of each group of which a message must have one."""
    scope = wanted.scope
    if not scope.sees_everything:
        lanes = () if scope.session_key is None else (label("lane", scope.session_key),)
        yield (*(label("owner", one) for one in sorted(scope.owners)), *lanes)
    if wanted.session_key is not None:
        yield (label("lane", wanted.session_key),)
    if wanted.session_id is not None:
        yield (label("session", wanted.session_id),)
    for kind, values in (("source", wanted.sources), ("role", wanted.roles)):
        if values is not None:
            yield (label(kind, one) for one in sorted(values))
    if months := _months(wanted):
        yield months


def _months(wanted: SearchFilter) -> list[str]:
    """The months that a search is narrowed to, if there are not too many."""
    if wanted.since is None or wanted.until is None:
        return []
    first, last = (one.year * 12 + one.month - 1 for one in (wanted.since, wanted.until))
    if last - first >= MOST_MONTHS:
        return []
    return [month_label(at // 12, at % 12 + 1) for at in range(first, max(last, first) + 1)]


def _any_of(labels: Iterable[str]) -> str:
    quoted = " OR ".join(f'"{one}"' for one in labels)
    return f"({{labels}} : ({quoted}))"
