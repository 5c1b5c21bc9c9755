"""The prompt of a session: the context that an agent is given, and the note of the prompt it began with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from cachetools import LRUCache

from gateway_sessions.config import Config
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript import session_context_prompt as prompts
from gateway_sessions.core.transcript.session_context_prompt import SessionContext
from gateway_sessions.errors import StorageError
from gateway_sessions.storage.database import SessionDB

logger: Final = logging.getLogger(__name__)

_REMEMBERED: Final = 16384
"""Sessions whose prompt is known to be stored. A session that was forgotten is merely looked at again."""


def build_session_context(
    source: SessionSource,
    config: Config,
    session_entry: SessionEntry | None = None,
    *,
    connected: Collection[str] | None = None,
) -> SessionContext:
    """Return the place of a message, the connected platforms, and the other places an agent can deliver to.

    Without *connected*, those count that are enabled in the configuration.
    """
    enabled = {name: platform for name, platform in config.platforms.items() if platform.enabled}
    homes = {name: one.home_channel for name, one in enabled.items() if one.home_channel is not None}
    return prompts.build_session_context(
        source,
        connected_platforms=enabled if connected is None else connected,
        home_channels=homes,
        group_sessions_per_user=config.group_sessions_per_user,
        thread_sessions_per_user=config.thread_sessions_per_user,
        entry=session_entry,
    )


class SystemPrompts:
    """Stores the system prompt with which a session began, for operators and exports."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db
        self._stored: LRUCache[str, bool] = LRUCache(_REMEMBERED)

    async def store_once(self, session_id: str, prompt: Callable[[], str]) -> None:
        """Store the session's prompt unless it has one. If the database fails, the next turn does it."""
        if session_id in self._stored:
            return
        try:
            await self._db.note_system_prompt(session_id, prompt())
        except StorageError:
            facts = {"action": "prompt_not_noted", "session_id": session_id}
            logger.debug("the prompt of a session could not be written down", exc_info=True, extra=facts)
        else:
            self._stored[session_id] = True
