"""Scan messages that the search index does not cover, and check candidates against the scope."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from gateway_sessions.core.search.criteria import Criterion, Vocabulary, Words
from gateway_sessions.core.search.documents import (
    LONGEST_INDEXED,
    IndexedMessage,
    IndexPosition,
    IndexWork,
    searched_text,
    searched_texts,
)
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.ranking import READ_CHARACTERS, ScoreFeatures
from gateway_sessions.core.search.stems import NO_STEMS
from gateway_sessions.core.search.tokenizer import TOKENISER
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.tables.sql_files import row_of

BEYOND: Final = (1 << 63) - 1
"""An id above that of every message."""
TOGETHER_CHARACTERS: Final = 1 << 20
"""The number of characters that are searched together: it bounds the memory of their copy."""
LIGHT: Final = 1_000
"""The average number of characters up to which a page of messages is searched in milliseconds."""
MOST_PENDING: Final = 5_000
"""The largest number of changed messages that one search reads."""


row_of("messages_to_index", "messages_to_index_again")(IndexedMessage)


@row_of("index_limits")
class IndexLimitsRow(NamedTuple):
    """The latest rows that concern the search index, each None if there was none yet."""

    message_id: int | None
    change_id: int | None
    cleared: int | None


@row_of("texts_between")
class TextRow(NamedTuple):
    """The searched texts of a message."""

    message_id: int
    content: str | None
    tool_name: str | None
    tool_calls: str | None


@row_of("unindexed_messages", "changed_messages", "search_candidates", "whole_search_candidates")
class CandidateRow(NamedTuple):
    """A message that a search may find, with the columns that decide about it."""

    message_id: int
    session_id: str
    role: str
    content: str | None
    tool_name: str | None
    tool_calls: str | None
    sent_at: int
    owner: str
    session_key: str | None
    source: str
    hidden_because: str | None
    relation: str | None
    author: str | None
    from_lane: str | None

    @property
    def fields(self) -> tuple[str | None, str | None, str | None]:
        """Return the columns of the searched texts."""
        return self.content, self.tool_name, self.tool_calls

    def as_indexed(self) -> IndexedMessage:
        """Return the message as the index reads it."""
        return IndexedMessage(**{name: getattr(self, name) for name in IndexedMessage._fields})


class ShownRow(NamedTuple):
    """A message that may be shown, and whether nothing else of its session may be."""

    row: CandidateRow
    alone: bool


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """The latest rows of the database, as far as the search index is concerned."""

    highest: int
    """The highest id of a message or of a note for the index; 0: there was none yet."""
    cleared: int
    last_change: int


class SearchMatch(msgspec.Struct, frozen=True, gc=False):
    """A message that matches and may be shown."""

    message_id: int
    session_id: str
    relation: str | None
    sent_at: int
    features: ScoreFeatures
    alone: bool = False
    """True if the caller said it in another owner's session, of which no other fact may be shown."""
    near: bool = False
    """True if the message has only words similar to those that were searched for."""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The matches of a scan of messages."""

    candidates: list[SearchMatch]
    last: int | None
    """The id of the oldest message that was read; None: there are no older ones."""
    light: bool = False
    """True if the texts are so short that the check of preselected ones takes most of the time."""
    closer: float = 1.0
    """The share of the messages that were preselected and checked."""


@dataclass(frozen=True, slots=True)
class ChangedMessages:
    """The messages that changed since the index read them."""

    candidates: list[SearchMatch]
    stale: frozenset[int]
    """The ids of messages of which the index has an old version."""
    complete: bool
    """True if all of them were read."""


@dataclass(frozen=True, slots=True)
class NotIndexed:
    """The matches among messages that the index has not read, or not in their present version."""

    changed: ChangedMessages
    later: ScanResult


def load_scan_limits() -> Transaction[ScanLimits]:
    """Return the latest rows of the database, as far as the search index is concerned."""
    (row,) = yield Statement("index_limits")
    message_id, change_id, cleared = (int(one or 0) for one in IndexLimitsRow._make(row))
    last_change = max(change_id, cleared)
    return ScanLimits(max(message_id, last_change), cleared, last_change)


def index_identity() -> Transaction[str]:
    """Return the identity of an index of this store, made by this program: another one is made again."""
    secret = yield from meta.install_secret()
    store = sha256(b"search index of " + secret).hexdigest()
    own = f"{store} {TOKENISER} {unicodedata.unidata_version}"
    rules = yield from meta.stored_stemming()
    return own if rules == NO_STEMS.made_by else f"{own} {rules}"


def load_index_work(position: IndexPosition, size: int) -> Transaction[IndexWork]:
    """Return what an index has to read next: all changed messages before any new one, as they are now."""
    changes = yield Statement("index_changes_after", (position.changes, size))
    latest = {message_id: change_id for change_id, message_id in changes if message_id <= position.watermark}
    now = {one.message_id: one for one in (yield from _messages_by_id(latest))}
    changed = tuple((change, message, now.get(message)) for message, change in latest.items())
    seen = max((change_id for change_id, _ in changes), default=position.changes)
    if len(changes) == size:
        return IndexWork(IndexPosition(position.watermark, seen), (), changed, complete=False)
    rows = yield Statement("messages_to_index", (LONGEST_INDEXED, position.watermark, size))
    messages = tuple(IndexedMessage(*row) for row in rows)
    watermark = messages[-1].message_id if messages else position.watermark
    return IndexWork(IndexPosition(watermark, seen), messages, changed, complete=len(messages) < size)


def sample_messages(watermark: int, size: int) -> Transaction[list[IndexedMessage]]:
    """Return messages that an index has to find: the first ones and the last ones."""
    oldest = yield Statement("messages_to_index", (LONGEST_INDEXED, 0, size))
    newest = yield Statement("unindexed_messages", (0, watermark + 1, size))
    messages = [*map(IndexedMessage._make, oldest), *(CandidateRow._make(row).as_indexed() for row in newest)]
    pending = yield Statement("pending_changes", (0, watermark, MOST_PENDING))
    changed = {message_id for (message_id,) in pending}
    by_id = {one.message_id: one for one in messages if one.message_id <= watermark}
    return [one for message_id, one in by_id.items() if message_id not in changed]


def clear_index_notes(last: int) -> Transaction[None]:
    """Remove the notes of changes up to that one, which the index has read."""
    yield Statement("clear_index_changes", (last,))
    if last > (yield from meta.get_number(meta.CLEARED)):
        yield from meta.set_fact(meta.CLEARED, last)


def changed_matches(
    position: IndexPosition, wanted: Criterion | Vocabulary, shown: SearchFilter
) -> Transaction[ChangedMessages]:
    """Return the messages that changed since an index at that position read them."""
    rows = yield Statement("pending_changes", (position.changes, position.watermark, MOST_PENDING + 1))
    stale = frozenset(message_id for (message_id,) in rows)
    found: Rows = ()
    if stale:
        found = yield Statement("changed_messages", (position.changes, position.watermark, MOST_PENDING))
    return ChangedMessages(_matching_rows(found, wanted, shown), stale, len(stale) <= MOST_PENDING)


def matches_not_indexed(
    position: IndexPosition, wanted: Criterion | Vocabulary, shown: SearchFilter, size: int
) -> Transaction[NotIndexed]:
    """Return the messages that an index at that position lacks: later ones, and those changed since."""
    known = yield from changed_matches(position, wanted, shown)
    scanned = yield from scan_messages(position.watermark, BEYOND, wanted, shown, size)
    return NotIndexed(known, scanned)


def scan_messages(
    after: int, before: int, wanted: Criterion | Vocabulary, shown: SearchFilter, size: int
) -> Transaction[ScanResult]:
    """Search a page of messages themselves, the newest first.

    Only the texts are read at first, because few messages match.
    """
    rows = [TextRow._make(row) for row in (yield Statement("texts_between", (after, before, size)))]
    texts = [searched_text(one.content, one.tool_name, one.tool_calls) for one in rows]
    near = [rows[at].message_id for at in _promising_texts(texts, wanted)]
    found: list[SearchMatch] = []
    if near:
        ids = msgspec.json.encode(near).decode()
        found = _matching_rows(
            (yield Statement("whole_search_candidates", (ids, *shown.span))), wanted, shown
        )
    light = sum(map(len, texts)) <= LIGHT * len(rows)
    return ScanResult(found, _last_id(rows, size), light, len(near) / max(len(rows), 1))


def scan_without_tokens(
    before: int, wanted: Criterion | Vocabulary, shown: SearchFilter, size: int
) -> Transaction[ScanResult]:
    """Search a page of messages for which the index in the database has no tokens."""
    rows = yield Statement("without_tokens", (before, size))
    return ScanResult(
        _matching_rows(rows, wanted, shown), _last_id(list(map(CandidateRow._make, rows)), size)
    )


def _last_id(rows: Sequence[TextRow | CandidateRow], size: int) -> int | None:
    return rows[-1].message_id if len(rows) == size else None


def check_candidates(
    message_ids: Sequence[int], wanted: Criterion | Vocabulary, shown: SearchFilter, *, sure: bool = True
) -> Transaction[list[SearchMatch]]:
    """Return those of the messages that match and may be shown; *sure*, the index has checked the words."""
    ids = msgspec.json.encode(message_ids).decode()
    if not sure or not isinstance(wanted, Words):
        return _matching_rows((yield Statement("whole_search_candidates", (ids, *shown.span))), wanted, shown)
    rows = yield Statement("search_candidates", (READ_CHARACTERS, ids, *shown.span))
    return _candidates(_visible_rows(list(map(CandidateRow._make, rows)), shown), wanted)


def _messages_by_id(message_ids: Iterable[int]) -> Transaction[list[IndexedMessage]]:
    ids = sorted(message_ids)
    if not ids:
        return []
    which = (LONGEST_INDEXED, msgspec.json.encode(ids).decode())
    return [IndexedMessage._make(row) for row in (yield Statement("messages_to_index_again", which))]


def _matching_rows(rows: Rows, wanted: Criterion | Vocabulary, shown: SearchFilter) -> list[SearchMatch]:
    messages = [CandidateRow._make(row) for row in rows]
    near = [messages[at] for at in _promising_texts([searched_text(*one.fields) for one in messages], wanted)]
    found = [
        one for one in _visible_rows(near, shown) if wanted.matches_fields(searched_texts(*one.row.fields))
    ]
    return _candidates(found, wanted)


def _promising_texts(texts: Sequence[str], wanted: Criterion | Vocabulary) -> list[int]:
    """Return the places of texts that may match."""
    found: list[int] = []
    for places in _batches_of_texts(texts):
        found += [places[at] for at in wanted.preselect([texts[place] for place in places])]
    return sorted(found)


def _batches_of_texts(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the places of texts that are searched as one text, up to a size.

    A single character that is not ASCII makes the whole search take ten times as long, so texts with such a
    character are kept apart.
    """
    alike: dict[bool, list[int]] = {True: [], False: []}
    sizes = {True: 0, False: 0}
    for at, text in enumerate(texts):
        is_ascii = text.isascii()
        alike[is_ascii].append(at)
        sizes[is_ascii] += len(text)
        if sizes[is_ascii] > TOGETHER_CHARACTERS:
            yield alike[is_ascii]
            alike[is_ascii], sizes[is_ascii] = [], 0
    yield from filter(None, alike.values())


def _candidates(found: Sequence[ShownRow], wanted: Criterion | Vocabulary) -> list[SearchMatch]:
    texts = [row.content or row.tool_name or row.tool_calls or "" for row, _ in found]
    return [
        SearchMatch(row.message_id, row.session_id, row.relation, row.sent_at, features, alone)
        for (row, alone), features in zip(found, wanted.features(texts), strict=True)
    ]


def _visible_rows(rows: Sequence[CandidateRow], shown: SearchFilter) -> list[ShownRow]:
    """Return the rows that may be shown, each with a flag that its session may not be."""
    sessions = {row.session_id: row for row in rows}
    whole = {
        session_id
        for session_id, row in sessions.items()
        if shown.shows(owner=row.owner, session_key=row.session_key, session_id=session_id, source=row.source)
    }
    return [
        ShownRow(row, row.session_id not in whole)
        for row in rows
        if (row.session_id in whole or _is_callers_own(row, shown))
        and shown.admits(role=row.role, sent_at=row.sent_at, hidden_because=row.hidden_because)
    ]


def _is_callers_own(row: CandidateRow, shown: SearchFilter) -> bool:
    """Return whether a message is the caller's, in another owner's session."""
    return shown.scope.sees_message(author=row.author, from_lane=row.from_lane) and shown.covers(
        session_key=row.session_key, session_id=row.session_id, source=row.source
    )
