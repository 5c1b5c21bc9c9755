"""Verbs that let the index know messages which it does not know, or knows otherwise."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from gateway_sessions.core.search_documents import LONGEST_INDEXED
from gateway_sessions.core.search_lexemes import Searchable
from gateway_sessions.core.search_stems import NO_STEMS, Stems
from gateway_sessions.core.search_text import TOKENISER
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.storage.search_column.languages import Language
from gateway_sessions.storage.verbs import meta, stemming
from gateway_sessions.storage.verbs.locks import OF_INDEX

MADE_BY: Final = "tokens_made_by"
"""The tokeniser that the tokens in the database come from."""
RETELLINGS: Final = "tokens_told_again"
OURS: Final = f"{TOKENISER} {unicodedata.unidata_version}"


@dataclass(frozen=True, slots=True)
class Untold:
    """What the index has to be told."""

    messages: tuple[tuple[int, Searchable], ...] = ()
    notes: tuple[int, ...] = ()
    """Changes that are taken in with these, or concern nothing that is still there."""

    @property
    def size(self) -> int:
        """How much it is."""
        return len(self.messages) + len(self.notes)


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the index can be relied on."""

    retellings: int
    """How often it was told otherwise of messages that it knew, or forgot them."""
    being_forgotten: bool
    stemmed_by: str

    def helps(self, language: Language) -> bool:
        """Whether it finds all that it knows, words in all their forms.

        One that does not keep moments forgets a message before the transaction that does so can be seen.
        """
        if self.being_forgotten and not language.keeps_moments:
            return False
        return language.stems.are_off or self.stemmed_by == language.stems.made_by


def standing() -> Verb[Standing]:
    """How far the index can be relied on."""
    rows = yield Statement("index_standing")
    told = {str(row[0]): row[1] for row in rows}
    return Standing(
        retellings=int(told.get(RETELLINGS) or 0),
        being_forgotten=stemming.BEING_FORGOTTEN in told,
        stemmed_by=str(told.get(stemming.IN_THE_DATABASE) or NO_STEMS.made_by),
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the index is."""

    highest: int
    """Of a message; 0: there is none."""
    complete: bool


def progress() -> Verb[Progress]:
    """How far the index is."""
    ((highest, behind),) = yield Statement("index_progress")
    return Progress(int(highest or 0), complete=not behind)


def survey(size: int) -> Verb[tuple[Untold, Progress]]:
    """Some of what the index has to be told, and how far it is without that."""
    work = yield from untold(size)
    return work, (yield from progress())


def untold(size: int) -> Verb[Untold]:
    """Some of what the index has to be told: changes first, then the newest of what it does not know."""
    changes = yield Statement("index_changes_after", (-1, size))
    notes = tuple(row[0] for row in changes)
    if notes:
        ids = _json(sorted({row[1] for row in changes}))
        rows = yield Statement("messages_to_tell_of_again", (LONGEST_INDEXED, ids))
    else:
        rows = yield Statement("messages_to_tell_of", (LONGEST_INDEXED, size))
    return Untold(tuple((row[0], Searchable(*row[1:])) for row in rows), notes)


def told(work: Untold, language: Language) -> list[tuple[str | int, ...]]:
    """What is written for it. This may take a while."""
    return [(*language.values(one), message_id) for message_id, one in work.messages]


def tell(work: Untold, rows: Sequence[tuple[str | int, ...]]) -> Verb[None]:
    """Let the index know all that.

    What is changed while its tokens are made is noted once more, and so are messages whose session gets
    another lane: a note goes only if it was there before the text was read.
    """
    yield Statement("put_tokens", many=rows, lock=OF_INDEX)
    if work.notes:
        yield Statement("forget_notes", (_json(work.notes),))
        yield from _note_retelling()


def begin_to_forget() -> Verb[None]:
    """Say that the index is about to forget, in a transaction of its own: see `Standing`."""
    yield from meta.remember(stemming.BEING_FORGOTTEN, 1)


def forget(after: int, size: int) -> Verb[int | None]:
    """Let the index not know a page of messages any more; where that ended, None at the end."""
    rows = yield Statement("end_of_page", (after, size), lock=OF_INDEX)
    if (last := rows[0][0]) is None:
        return None
    yield Statement("forget_tokens", (after, last))
    yield from _note_retelling()
    return int(last)


def retellings() -> Verb[int]:
    """How often the index was told otherwise of messages that it knew, or forgot them."""
    return (yield from meta.number(RETELLINGS))


def _note_retelling() -> Verb[None]:
    """Behind the lock of the index."""
    yield from meta.remember(RETELLINGS, (yield from retellings()) + 1)


def was_made_by_us(stems: Stems) -> Verb[bool]:
    """Whether all tokens are such as this program makes, with these stems."""
    if (yield from meta.get(MADE_BY)) != OURS or (yield from meta.get(stemming.BEING_FORGOTTEN)) is not None:
        return False
    return (yield from stemming.in_the_database()) == stems.made_by


def is_made_by_us(stems: Stems) -> Verb[None]:
    """No other tokens are left."""
    yield from meta.remember(MADE_BY, OURS)
    yield from stemming.only_these_are_in_the_database(stems)
    yield Statement("forget_meta", (stemming.BEING_FORGOTTEN,))


def _json(numbers: Sequence[int]) -> str:
    return msgspec.json.encode(numbers).decode()
