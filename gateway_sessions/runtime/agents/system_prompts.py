"""Storage of the system prompt with which each session began, for operators and exports."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from cachetools import LRUCache

from gateway_sessions.errors import StorageError
from gateway_sessions.runtime.store.store import SessionStore

logger: Final = logging.getLogger(__name__)

_REMEMBERED: Final = 16384
"""Sessions whose prompt is known to be written down. One that was forgotten is merely looked at again."""


class SystemPrompts:
    """Keeps the prompt with which a session began, as an operator or an export reads it."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._noted: LRUCache[str, bool] = LRUCache(_REMEMBERED)

    async def note(self, session_id: str, prompt: Callable[[], str]) -> None:
        """Write the session's prompt down unless it has one. If the database fails, the next turn does it."""
        if session_id in self._noted:
            return
        try:
            await self._store.db.note_system_prompt(session_id, prompt())
        except StorageError:
            facts = {"action": "prompt_not_noted", "session_id": session_id}
            logger.debug("the prompt of a session could not be written down", exc_info=True, extra=facts)
        else:
            self._noted[session_id] = True
