"""Order the candidates of a search and load the hits of one page with title, snippet and context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.search.criteria import Criterion
from gateway_sessions.core.search.documents import searched_texts
from gateway_sessions.core.search.ranking import bm25_scores
from gateway_sessions.core.search.results import (
    ContextLine,
    FoundMessage,
    SearchHit,
    SessionMatch,
    snippet,
    text_beginning,
)
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.transcript.messages import Hidden
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import lineage
from gateway_sessions.storage.tables.column_decoding import DAMAGE, raise_damaged
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.transactions.search.scan import SearchMatch

CONTEXT_CHARACTERS: Final = 200
"""The number of characters that a hit shows of itself and of each neighbour."""


@row_of("search_hits")
class HitRow(NamedTuple):
    """The columns of a found message that a hit shows."""

    message_id: int
    session_id: str
    seq: int
    role: str
    content: str | None
    tool_name: str | None
    tool_calls: str | None
    sent_at: int
    hidden_because: str | None
    session_key: str | None
    source: str
    model: str | None
    started_at: int
    title: str | None
    from_lane: str | None


@row_of("said_around")
class Surroundings(NamedTuple):
    """The messages before a found message and behind it, as far as there are any."""

    message_id: int
    role_before: str | None
    text_before: str | None
    role_behind: str | None
    text_behind: str | None


class Order(StrEnum):
    """The order of hits."""

    BEST = "best"
    NEWEST = "newest"
    OLDEST = "oldest"


class MessagePlace(NamedTuple):
    """A candidate with its score; None where the order is by time."""

    candidate: SearchMatch
    score: float | None


@dataclass(slots=True)
class _Group:
    """The candidates in one conversation."""

    best: MessagePlace
    session_ids: dict[str, None]
    found: list[FoundMessage]


def load_hits(
    found: Sequence[SearchMatch], wanted: Criterion, order: Order, offset: int, limit: int
) -> Transaction[list[SearchHit]]:
    """Return the hits of one page."""
    page = list(islice(_ordered(found, order), offset, offset + limit))
    return (yield from _load_shown_hits(page, wanted))


def load_session_matches(
    found: Sequence[SearchMatch], wanted: Criterion, order: Order, limit: int
) -> Transaction[list[SessionMatch]]:
    """Return the conversations of the best hits, each with its best hit."""
    groups: dict[str, _Group] = {}
    roots: dict[str, str] = {}
    for placed in _ordered(found, order):
        one = placed.candidate
        if one.session_id not in roots:
            roots[one.session_id] = yield from _conversation_root(one)
        group = groups.setdefault(roots[one.session_id], _Group(placed, {}, []))
        group.session_ids[one.session_id] = None
        group.found.append(FoundMessage(one.session_id, one.message_id))
    chosen = list(groups.items())[:limit]
    hits = yield from _load_shown_hits([group.best for _, group in chosen], wanted)
    best = {hit.id: hit for hit in hits}
    return [
        SessionMatch(
            root_id=root,
            best=best[group.best.candidate.message_id],
            matches=len(group.found),
            session_ids=tuple(group.session_ids),
            found=tuple(group.found),
        )
        for root, group in chosen
        if group.best.candidate.message_id in best
    ]


def _conversation_root(candidate: SearchMatch) -> Transaction[str]:
    """Return the session in which a conversation began; a reset begins a new conversation."""
    if candidate.alone or candidate.relation in {None, Relation.SUCCESSION}:
        return candidate.session_id
    return (yield from lineage.root(candidate.session_id))


def _ordered(found: Sequence[SearchMatch], order: Order) -> Iterator[MessagePlace]:
    if order is Order.BEST:
        scored = _rank_near_below_exact(found, bm25_scores([one.features for one in found]))
        exact = [not one.near for one in found]
        ids = [one.message_id for one in found]
        for _, score, _, one in sorted(zip(exact, scored, ids, found, strict=True), reverse=True):
            yield MessagePlace(one, score)
    else:
        by_time = attrgetter("sent_at", "message_id")
        for one in sorted(found, key=by_time, reverse=order is Order.NEWEST):
            yield MessagePlace(one, None)


def _rank_near_below_exact(found: Sequence[SearchMatch], scored: Sequence[float]) -> Sequence[float]:
    """Return the scores, with those of near misses below all others."""
    if not any(one.near for one in found):
        return scored
    least = min((score for one, score in zip(found, scored, strict=True) if not one.near), default=1.0)
    return [
        least * score / (1 + score) if one.near else score for one, score in zip(found, scored, strict=True)
    ]


def _load_shown_hits(placed: Sequence[MessagePlace], wanted: Criterion) -> Transaction[list[SearchHit]]:
    ids = msgspec.json.encode([one.candidate.message_id for one in placed]).decode()
    rows = yield Statement("search_hits", (ids,))
    around = yield Statement("said_around", (CONTEXT_CHARACTERS, CONTEXT_CHARACTERS, ids))
    by_id = {one.message_id: one for one in map(HitRow._make, rows)}
    near = {one.message_id: one for one in map(Surroundings._make, around)}
    return [
        _hit_from_row(by_id[one.candidate.message_id], one, wanted, near[one.candidate.message_id])
        for one in placed
        if one.candidate.message_id in by_id.keys() & near.keys()
    ]


def _hit_from_row(row: HitRow, placed: MessagePlace, wanted: Criterion, around: Surroundings) -> SearchHit:
    try:
        if placed.candidate.alone:
            return _without_session_facts(_build_hit(row, placed.score, wanted, None), row.from_lane)
        return _build_hit(row, placed.score, wanted, around)
    except DAMAGE as error:
        raise_damaged(f"message {row.message_id} of session {row.session_id!r}", error)


def _build_hit(row: HitRow, score: float | None, wanted: Criterion, around: Surroundings | None) -> SearchHit:
    fields = searched_texts(row.content, row.tool_name, row.tool_calls)
    lines = [(row.role, fields[0][:CONTEXT_CHARACTERS] if fields else "")]
    if around is not None and around.role_before is not None:
        lines.insert(0, (around.role_before, around.text_before or ""))
    if around is not None and around.role_behind is not None:
        lines.append((around.role_behind, around.text_behind or ""))
    return SearchHit(
        id=row.message_id,
        session_id=row.session_id,
        session_key=row.session_key,
        seq=row.seq,
        role=row.role,
        snippet=_snippet_of(fields, wanted),
        context=tuple(ContextLine(who, said) for who, said in lines),
        timestamp=from_micros(row.sent_at),
        tool_name=row.tool_name,
        source=row.source,
        model=row.model,
        session_started=from_micros(row.started_at),
        title=row.title,
        score=score,
        hidden_because=None if row.hidden_because is None else Hidden(row.hidden_because),
    )


def _without_session_facts(hit: SearchHit, from_lane: str | None) -> SearchHit:
    """Return a hit in another owner's session without the facts of that session."""
    return replace(hit, session_key=from_lane, title=None, model=None)


def _snippet_of(fields: Sequence[str], wanted: Criterion) -> str:
    """Return a snippet of the first text with a match; without one, the beginning of the first text."""
    for field in fields:
        if found := snippet(field, wanted.finder, wanted.hints):
            return found
    return text_beginning(fields[0]) if fields else ""
