"""The search index that another process keeps: asked, and otherwise left alone."""

from __future__ import annotations

import sqlite3
from typing import NoReturn

from gateway_sessions.core.search_documents import Position
from gateway_sessions.errors import StorageError
from gateway_sessions.storage.in_thread import in_thread
from gateway_sessions.storage.index import SearchIndex
from gateway_sessions.storage.index_port import READ_ONLY, IndexReport, IndexState
from gateway_sessions.storage.search_index.file import Found, IndexFile, UnusableIndexError
from gateway_sessions.storage.search_index.match import Match
from gateway_sessions.storage.verbs import searching


class IndexReader(SearchIndex):
    """Opens the file afresh for each question: its owner may have made it anew since the last one."""

    async def find(
        self, match: Match, after: int | None, limit: int, *, oldest_first: bool = False
    ) -> Found | None:
        """What the index says; None if there is none that can be asked now."""
        identity = await self._truth.read(searching.identity)

        def ask() -> Found:
            file = IndexFile(self.path, read_only=True)
            file.connect(identity, Position())
            try:
                return file.find(match, after, limit, oldest_first=oldest_first)
            finally:
                file.close()

        try:
            found = await in_thread(ask)
        except (UnusableIndexError, sqlite3.Error) as error:
            self._report = IndexReport(IndexState.UNAVAILABLE, problem=str(error))
            return None
        self._report = IndexReport(IndexState.READY, watermark=found.position.watermark)
        return found

    async def catch_up(self) -> None:
        """A search looks at what the index does not know yet, so there is nothing to wait for."""

    async def rebuild(self) -> None:
        """Its owner does that."""
        self._refuse()

    async def check(self) -> IndexReport:
        """Its owner does that."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StorageError(str(self.path), READ_ONLY)
