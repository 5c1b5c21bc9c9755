"""Transcripts, by the names under which gateways know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gateway_sessions.core.keys import Isolation, room_of
from gateway_sessions.core.messages import Message, Rewind, message_of
from gateway_sessions.core.replay import Chat
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.source import SessionSource
from gateway_sessions.resource import Resource
from gateway_sessions.storage.database import SessionDB


class TranscriptMethods(Resource):
    """Methods of `SessionStore` for what is said. Whatever fails raises: no history is empty by mistake."""

    @property
    def db(self) -> SessionDB:
        """The database."""
        raise NotImplementedError

    async def append_to_transcript(
        self,
        session_id: str,
        message: Message | Mapping[str, Any],
        skip_db: bool = False,  # noqa: FBT001, FBT002 -- the established signature
        *,
        source: SessionSource | None = None,
    ) -> int | None:
        """Add a message; returns its id. With *skip_db* nothing happens: the agent has stored it itself.

        *source* tells who said it, and where: in a room, only then is it known to be theirs.
        """
        if skip_db:
            return None
        said = message_of(message)
        if source is not None:
            author = (await self.scope_of(source)).owners - {room_of(source, self.isolation)}
            said = said.altered(author=next(iter(author), None), from_lane=self.key_for(source))
        return (await self.db.append_messages(session_id, [said]))[0]

    async def scope_of(self, source: SessionSource) -> Scope:
        """What the person who wrote may see."""
        raise NotImplementedError

    def key_for(self, source: SessionSource) -> str:
        """The key of the lane that messages from there belong to."""
        raise NotImplementedError

    @property
    def isolation(self) -> Isolation:
        """Who shares a conversation."""
        raise NotImplementedError

    async def rewrite_transcript(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> bool:
        """Put messages in the place of the conversation, all or none; what is hidden stays. Always True."""
        await self.db.replace_messages(session_id, messages)
        return True

    async def load_transcript(self, session_id: str, *, limit: int | None = None) -> list[Chat]:
        """What goes to a model, always valid, of the last *limit* messages that belong to it."""
        return await self.db.get_messages_as_conversation(session_id, limit=limit)

    async def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns; None if there is none. `db.restore_rewound` brings them back."""
        return await self.db.rewind_session(session_id, n)
