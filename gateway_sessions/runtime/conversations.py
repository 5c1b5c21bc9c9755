"""What is done with a lane's conversation: compress it, branch off, or go back to an earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from gateway_sessions.core.messages import Message, message_of
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.ports import Verb
from gateway_sessions.resource import Resource
from gateway_sessions.storage.verbs import lane_lineage as verbs
from gateway_sessions.storage.verbs.access import IdTaken
from gateway_sessions.storage.verbs.succession import Actor, Change

T = TypeVar("T")


class ConversationMethods(Resource):
    """Methods of `SessionStore` that lead a lane from one session to a related one."""

    async def split_session(
        self,
        session_key: str,
        session_id: str,
        messages: Iterable[Message | Mapping[str, Any]],
        *,
        model: str | None = None,
        system_prompt: str | None = None,
    ) -> SessionEntry | None:
        """Go on with *messages*, a summary of the session, in a new one; the old one stays readable.

        One step; it changes nothing about when the lane is reset. Of several callers one does it, and all get
        the entry as it is then. `SessionEndedError` if the lane has gone on with something else,
        `SessionNotFoundError` if there is no such session.
        """
        asked = verbs.Compression(
            session_key=session_key,
            session_id=session_id,
            messages=tuple(message_of(one) for one in messages),
            model=model,
            system_prompt=system_prompt,
        )
        return await self._with_new_id(partial(_flipped, verbs.split, asked))

    async def branch_session(
        self, session_key: str, *, at_message_id: int | None = None
    ) -> SessionEntry | None:
        """Go on in a copy of the session, up to and with that message; the session can be resumed."""
        asked = verbs.Branching(session_key=session_key, at_message_id=at_message_id)
        return await self._with_new_id(partial(_flipped, verbs.branch, asked))

    async def resume_session(self, session_key: str, text: str, *, scope: Scope) -> SessionEntry | None:
        """Go on with the session that a person means by an id, the beginning of one, or a title.

        `SessionNotFoundError` if nothing in *scope* fits, `AmbiguousSessionError` if several do.
        """
        verb = partial(verbs.resume, session_key=session_key, text=text, scope=scope)
        return await self._write(Actor.PERSON, verb)

    async def _write(self, actor: Actor, verb: Callable[[Change], Verb[T]]) -> T:
        raise NotImplementedError

    async def _with_new_id(
        self, verb: Callable[[Change, str], Verb[SessionEntry | IdTaken | None]]
    ) -> SessionEntry | None:
        raise NotImplementedError


def _flipped(
    verb: Callable[[Change, str, T], Verb[SessionEntry | IdTaken | None]],
    asked: T,
    change: Change,
    new_id: str,
) -> Verb[SessionEntry | IdTaken | None]:
    return verb(change, new_id, asked)
