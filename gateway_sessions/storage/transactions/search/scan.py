"""Scan messages that the search index does not cover, and check candidates against the scope."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec

from gateway_sessions.core.search.criteria import Vocabulary, Wanted, Words
from gateway_sessions.core.search.documents import (
    LONGEST_INDEXED,
    IndexedMessage,
    IndexPosition,
    IndexWork,
    text_of,
    texts_of,
)
from gateway_sessions.core.search.filters import SearchFilter
from gateway_sessions.core.search.ranking import READ_CHARACTERS, Features
from gateway_sessions.core.search.stems import NO_STEMS
from gateway_sessions.core.search.tokenizer import TOKENISER
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables import meta

BEYOND: Final = (1 << 63) - 1
"""An id above that of every message."""
_ALONE: Final = 14
"""The place, behind the columns of a row, of the flag that only the message may be shown."""
TOGETHER_CHARACTERS: Final = 1 << 20
"""The number of characters that are searched together: it bounds the memory of their copy."""
LIGHT: Final = 1_000
"""The average number of characters up to which a page of messages is searched in milliseconds."""
MOST_PENDING: Final = 5_000
"""The largest number of changed messages that one search reads."""


@dataclass(frozen=True, slots=True)
class ScanLimits:
    """The latest rows of the database, as far as the search index is concerned."""

    highest: int
    """The highest id of a message or of a note for the index; 0: there was none yet."""
    cleared: int
    last_change: int


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A message that matches and may be shown."""

    message_id: int
    session_id: str
    relation: str | None
    sent_at: int
    features: Features
    alone: bool = False
    """True if the caller said it in another owner's session, of which no other fact may be shown."""
    near: bool = False
    """True if the message has only words similar to those that were searched for."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """The matches of a scan of messages."""

    candidates: list[Candidate]
    last: int | None
    """The id of the oldest message that was read; None: there are no older ones."""
    light: bool = False
    """True if the texts are so short that the check of promising ones takes most of the time."""
    closer: float = 1.0
    """The share of the messages that looked promising and were checked."""


@dataclass(frozen=True, slots=True)
class ChangedMessages:
    """The messages that changed since the index read them."""

    candidates: list[Candidate]
    stale: frozenset[int]
    """The ids of messages of which the index has an old version."""
    complete: bool
    """True if all of them were read."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """The matches among messages that the index has not read, or not in their present version."""

    changed: ChangedMessages
    later: Scanned


def limits() -> Transaction[ScanLimits]:
    """Return the latest rows of the database, as far as the search index is concerned."""
    ((message_id, change_id, cleared),) = yield Statement("index_limits")
    last_change = max(int(change_id or 0), int(cleared or 0))
    return ScanLimits(max(int(message_id or 0), last_change), int(cleared or 0), last_change)


def identity() -> Transaction[str]:
    """Return the identity of an index of this store, made by this program: another one is made again."""
    secret = yield from meta.install_secret()
    store = sha256(b"search index of " + secret).hexdigest()
    own = f"{store} {TOKENISER} {unicodedata.unidata_version}"
    rules = yield from meta.stemming()
    return own if rules == NO_STEMS.made_by else f"{own} {rules}"


def work_after(position: IndexPosition, size: int) -> Transaction[IndexWork]:
    """Return what an index has to read next: all changed messages before any new one, as they are now."""
    changes = yield Statement("index_changes_after", (position.changes, size))
    known = [(row[0], row[1]) for row in changes if row[1] <= position.watermark]
    rows = yield from _by_id(message_id for _, message_id in known)
    now = {row[0]: IndexedMessage(*row) for row in rows}
    latest = {message_id: change_id for change_id, message_id in known}
    changed = tuple((change, message, now.get(message)) for message, change in latest.items())
    seen = changes[-1][0] if changes else position.changes
    if len(changes) == size:
        return IndexWork(IndexPosition(position.watermark, seen), (), changed, complete=False)
    rows = yield Statement("messages_to_index", (LONGEST_INDEXED, position.watermark, size))
    messages = tuple(IndexedMessage(*row) for row in rows)
    watermark = messages[-1].message_id if messages else position.watermark
    return IndexWork(IndexPosition(watermark, seen), messages, changed, complete=len(messages) < size)


def samples(watermark: int, size: int) -> Transaction[list[IndexedMessage]]:
    """Return messages that an index has to find: the first ones and the last ones."""
    oldest = yield Statement("messages_to_index", (LONGEST_INDEXED, 0, size))
    newest = yield Statement("unindexed_messages", (0, watermark + 1, size))
    rows = {row[0]: IndexedMessage(*row[:10], *row[-2:]) for row in (*oldest, *newest) if row[0] <= watermark}
    changed = yield Statement("pending_changes", (0, watermark, MOST_PENDING))
    return [one for message_id, one in rows.items() if (message_id,) not in {tuple(row) for row in changed}]


def clear_changes(last: int) -> Transaction[None]:
    """Remove the notes of changes up to that one, which the index has read."""
    yield Statement("clear_index_changes", (last,))
    if last > (yield from meta.number(meta.CLEARED)):
        yield from meta.remember(meta.CLEARED, last)


def changed(
    position: IndexPosition, wanted: Wanted | Vocabulary, shown: SearchFilter
) -> Transaction[ChangedMessages]:
    """Return the messages that changed since an index at that position read them."""
    rows = yield Statement("pending_changes", (position.changes, position.watermark, MOST_PENDING + 1))
    stale = frozenset(row[0] for row in rows)
    found: Sequence[Row] = ()
    if stale:
        found = yield Statement("changed_messages", (position.changes, position.watermark, MOST_PENDING))
    return ChangedMessages(_matching(found, wanted, shown), stale, len(stale) <= MOST_PENDING)


def fresh(
    position: IndexPosition, wanted: Wanted | Vocabulary, shown: SearchFilter, size: int
) -> Transaction[Fresh]:
    """Return the messages that an index at that position lacks: later ones, and those changed since."""
    known = yield from changed(position, wanted, shown)
    scanned = yield from scan(position.watermark, BEYOND, wanted, shown, size)
    return Fresh(known, scanned)


def scan(
    after: int, before: int, wanted: Wanted | Vocabulary, shown: SearchFilter, size: int
) -> Transaction[Scanned]:
    """Search a page of messages themselves, the newest first.

    Only the texts are read at first, because few messages match.
    """
    rows = yield Statement("texts_between", (after, before, size))
    texts = [text_of(*row[1:]) for row in rows]
    near = [rows[at][0] for at in _promising(texts, wanted)]
    found: list[Candidate] = []
    if near:
        ids = msgspec.json.encode(near).decode()
        found = _matching((yield Statement("whole_search_candidates", (ids, *shown.span))), wanted, shown)
    light = sum(map(len, texts)) <= LIGHT * len(rows)
    return Scanned(found, _last(rows, size), light, len(near) / max(len(rows), 1))


def scan_without_tokens(
    before: int, wanted: Wanted | Vocabulary, shown: SearchFilter, size: int
) -> Transaction[Scanned]:
    """Search a page of messages for which the index in the database has no tokens."""
    rows = yield Statement("without_tokens", (before, size))
    return Scanned(_matching(rows, wanted, shown), _last(rows, size))


def _last(rows: Sequence[Row], size: int) -> int | None:
    return rows[-1][0] if len(rows) == size else None


def select(
    message_ids: Sequence[int], wanted: Wanted | Vocabulary, shown: SearchFilter, *, sure: bool = True
) -> Transaction[list[Candidate]]:
    """Return those of the messages that match and may be shown; *sure*, the index has checked the words."""
    ids = msgspec.json.encode(message_ids).decode()
    if not sure or not isinstance(wanted, Words):
        return _matching((yield Statement("whole_search_candidates", (ids, *shown.span))), wanted, shown)
    rows = yield Statement("search_candidates", (READ_CHARACTERS, ids, *shown.span))
    return _candidates(_showable(rows, shown), wanted)


def _by_id(message_ids: Iterable[int]) -> Transaction[Sequence[Row]]:
    ids = sorted(set(message_ids))
    if not ids:
        return ()
    return (yield Statement("messages_to_index_again", (LONGEST_INDEXED, msgspec.json.encode(ids).decode())))


def _matching(rows: Sequence[Row], wanted: Wanted | Vocabulary, shown: SearchFilter) -> list[Candidate]:
    texts = [text_of(*row[3:6]) for row in rows]
    near = [rows[at] for at in _promising(texts, wanted)]
    found = [row for row in _showable(near, shown) if wanted.found_in(texts_of(*row[3:6]))]
    return _candidates(found, wanted)


def _promising(texts: Sequence[str], wanted: Wanted | Vocabulary) -> list[int]:
    """Return the places of texts that may match."""
    found: list[int] = []
    for places in _together(texts):
        found += [places[at] for at in wanted.promising([texts[place] for place in places])]
    return sorted(found)


def _together(texts: Sequence[str]) -> Iterator[list[int]]:
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


def _candidates(rows: Sequence[Row], wanted: Wanted | Vocabulary) -> list[Candidate]:
    features = wanted.features([row[3] or row[4] or row[5] or "" for row in rows])
    return [
        Candidate(row[0], row[1], row[11], row[6], one, bool(row[_ALONE]))
        for row, one in zip(rows, features, strict=True)
    ]


def _showable(rows: Sequence[Row], shown: SearchFilter) -> list[Row]:
    """Return the rows that may be shown, each with a flag that its session may not be."""
    sessions = {row[1]: row[7:10] for row in rows}
    whole = {
        session_id
        for session_id, (owner, session_key, source) in sessions.items()
        if shown.shows(owner=owner, session_key=session_key, session_id=session_id, source=source)
    }
    return [
        (*row, row[1] not in whole)
        for row in rows
        if (row[1] in whole or _is_theirs(row, shown))
        and shown.admits(role=row[2], sent_at=row[6], hidden_because=row[10])
    ]


def _is_theirs(row: Row, shown: SearchFilter) -> bool:
    """Return whether a message is the caller's, in another owner's session."""
    author, from_lane = row[12:_ALONE]
    return shown.scope.sees_message(author=author, from_lane=from_lane) and shown.covers(
        session_key=row[8], session_id=row[1], source=row[9]
    )
