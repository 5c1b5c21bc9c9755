"""The words of an index, each listed once: who looks for a part of a word is told the words that have it.

A message is found by whole words only. To index every part of every word of every message would take several
times the room of the messages; a list of the words that there are takes little.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from gateway_sessions.core.search_certain import Part
from gateway_sessions.storage.queries import Query
from gateway_sessions.storage.search_index.match import parts_of

MOST_KNOWN: Final = 30_000
"""So many words are remembered to be listed: nearly all of what is said consists of few words."""


class WordList:
    """What an index knows of its words. It is filled by one thread at a time."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self._queries = queries
        self._known: set[str] = set()
        self._added: set[str] = set()

    def add(self, connection: sqlite3.Connection, words: Iterable[str]) -> None:
        """List these words, in the transaction of the documents that have them."""
        self._added = set(words) - self._known
        if self._added:
            (last,) = connection.execute(self._sql("last_word")).fetchone()
            connection.execute(self._sql("add_words"), (msgspec.json.encode(list(self._added)).decode(),))
            connection.execute(self._sql("add_parts"), (last,))

    def keep(self) -> None:
        """The transaction is through: what it has added is listed."""
        if len(self._known) > MOST_KNOWN:
            self._known = set()
        self._known |= self._added
        self._added = set()

    def having(self, connection: sqlite3.Connection, part: Part, most: int) -> list[str] | None:
        """The words that have a part; None if there are more than *most* of them."""
        parts = parts_of(part.letters)
        if parts is None:
            rows = connection.execute(self._sql("words_with"), (part.text, most + 1)).fetchall()
        else:
            rows = connection.execute(self._sql("words_with_parts"), (parts, part.text, most + 1)).fetchall()
        return [row[0] for row in rows] if len(rows) <= most else None

    def has(self, connection: sqlite3.Connection, word: str) -> bool:
        """Whether a word is listed, and found by its parts if it is long enough to have any."""
        parts = parts_of(word)
        if parts is None:
            return True
        return connection.execute(self._sql("probe_word"), (parts, word)).fetchone() is not None

    def _sql(self, name: str) -> str:
        return self._queries[name].sql
