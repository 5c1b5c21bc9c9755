"""Methods of `SessionStore` for conversations: reset, switch, branch, resume, and transcripts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, TypeVar

from gateway_sessions.core.identity.keys import room_owner
from gateway_sessions.core.identity.row_ids import parse_row_id
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.identity.source import SessionSource, storable_name
from gateway_sessions.core.queue.busy_modes import check_mode
from gateway_sessions.core.sessions.busy_mode import BusyMode
from gateway_sessions.core.sessions.entry import SessionEntry, check_session_id
from gateway_sessions.core.transcript.messages import Message, Rewind, message_from
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import StorageError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.queue.routing import MAX_TRIES
from gateway_sessions.runtime.store.open_store import OpenStore
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.transactions.sessions import lane_changes
from gateway_sessions.storage.transactions.sessions import switch_lane as transactions
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionIdTaken

T = TypeVar("T")
Found: TypeAlias = SessionEntry | SessionIdTaken | None


class ConversationMethods(OpenStore):
    """Methods of `SessionStore` that lead a lane from one session to a related one."""

    async def reset_session(self, session_key: str, display_name: str | None = None) -> SessionEntry | None:
        """Start afresh because a person asked for it; None if the lane has no session.

        It overtakes what runs or waits on the lane: the running turn can write nothing any more.
        """
        name = display_name if display_name is None else storable_name("display_name", display_name)

        def reset(change: Change, new_id: str) -> Transaction[Found]:
            return lane_changes.reset_lane(change, session_key, new_id, name)

        return await self._overtake_with_new_id(session_key, reset, "reset")

    async def undo_reset(self, session_key: str) -> SessionEntry | None:
        """Bring back the session that the last reset took away; `NothingToUndoError` if there is none."""
        transaction = partial(lane_changes.undo_reset, session_key=session_key)
        return await self._overtake(session_key, transaction, "undo_reset")

    async def switch_session(
        self, session_key: str, target_session_id: str, *, scope: Scope, move: bool = False
    ) -> SessionEntry | None:
        """Go on with another session here; *scope* says who asks.

        A session of the lane's owner leaves the lane it is on. That of another owner stays theirs: a fork of
        it goes on here, which has an id of its own and the session as its parent. With *move* the session
        leaves its lane and belongs to the owner of this one; each message keeps its author.
        """
        target = check_session_id(target_session_id)

        def switch(change: Change, new_id: str) -> Transaction[Found]:
            if move:
                return lane_changes.switch_session(change, session_key, target, scope)
            return lane_changes.switch_or_fork(change, session_key, target, scope, new_id)

        return await self._overtake_with_new_id(session_key, switch, "switch")

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
        asked = transactions.Compression(
            session_key=session_key,
            session_id=session_id,
            messages=tuple(message_from(one) for one in messages),
            model=model,
            system_prompt=system_prompt,
        )
        return await self._write_with_new_id(partial(_call_with_request, transactions.continue_lane, asked))

    async def branch_session(
        self, session_key: str, *, at_message_id: int | str | None = None
    ) -> SessionEntry | None:
        """Go on in a copy of the session, up to and with that message; the session can be resumed."""
        at = None if at_message_id is None else parse_row_id("at_message_id", at_message_id)
        asked = transactions.Branching(session_key=session_key, at_message_id=at)
        branch = partial(_call_with_request, transactions.branch_lane, asked)
        return await self._overtake_with_new_id(session_key, branch, "branch")

    async def resume_session(
        self, session_key: str, text: str, *, scope: Scope, move: bool = False
    ) -> SessionEntry | None:
        """Go on with the session that a person means by an id, the beginning of one, or a title.

        `SessionNotFoundError` if nothing in *scope* fits, `AmbiguousSessionError` if several do. A session of
        another owner goes on as a fork, unless it shall *move*: see `switch_session`.
        """

        def resume(change: Change, new_id: str) -> Transaction[Found]:
            return transactions.resume_on_lane(change, session_key, text, scope, None if move else new_id)

        return await self._overtake_with_new_id(session_key, resume, "resume")

    async def set_busy_mode(self, session_key: str, mode: BusyMode | None) -> SessionEntry | None:
        """Choose what a message does while a turn of this session runs; None: what the configuration says."""
        settings = {"busy_mode": None if mode is None else check_mode(mode)}
        configure = partial(lane_changes.configure_session, session_key=session_key, settings=settings)
        return await self._write(Actor.PERSON, configure)

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
        said = message_from(message)
        if source is not None:
            author = (await self.scope_of(source)).owners - {room_owner(source, self.isolation)}
            said = said.altered(author=next(iter(author), None), from_lane=self.key_for(source))
        return (await self.db.append_messages(session_id, [said]))[0]

    async def rewrite_transcript(
        self, session_id: str, messages: Iterable[Message | Mapping[str, Any]]
    ) -> bool:
        """Put messages in the place of the conversation, all or none; what is hidden stays. Always True."""
        await self.db.replace_messages(session_id, messages)
        return True

    async def load_transcript(self, session_id: str, *, limit: int | None = None) -> list[Chat]:
        """Return the conversation for a model, always valid, from its last *limit* messages."""
        return await self.db.get_messages_as_conversation(session_id, limit=limit)

    async def rewind_session(self, session_id: str, n: int = 1) -> Rewind | None:
        """Take back the last *n* turns; None if there is none. `db.restore_rewound` brings them back."""
        return await self.db.rewind_session(session_id, n)

    async def _write_with_new_id(
        self, transaction: Callable[[Change, str], Transaction[Found]]
    ) -> SessionEntry | None:
        return await self._retry_with_new_ids(transaction, partial(self._write, Actor.PERSON))

    async def _overtake_with_new_id(
        self,
        session_key: str,
        transaction: Callable[[Change, str], Transaction[Found]],
        by: str,
    ) -> SessionEntry | None:
        def run(one: Callable[[Change], Transaction[T]]) -> Awaitable[T]:
            return self._overtake(session_key, one, by)

        return await self._retry_with_new_ids(transaction, run)

    async def _retry_with_new_ids(
        self,
        transaction: Callable[[Change, str], Transaction[Found]],
        run: Callable[
            [Callable[[Change], Transaction[Found]]],
            Awaitable[SessionEntry | SessionIdTaken | None],
        ],
    ) -> SessionEntry | None:
        """Run the transaction with one new id after another, until it meets one that is free."""
        for _ in range(MAX_TRIES):
            new_id = self._parts.context.new_session_id()
            outcome = await run(partial(_call_with_new_id, transaction, new_id))
            if not isinstance(outcome, SessionIdTaken):
                return outcome
        raise StorageError("ids", f"none was free in {MAX_TRIES} tries")


def _call_with_new_id(
    transaction: Callable[[Change, str], Transaction[Found]], new_id: str, change: Change
) -> Transaction[Found]:
    return transaction(change, new_id)


def _call_with_request(
    transaction: Callable[[Change, str, T], Transaction[Found]],
    asked: T,
    change: Change,
    new_id: str,
) -> Transaction[Found]:
    return transaction(change, new_id, asked)
