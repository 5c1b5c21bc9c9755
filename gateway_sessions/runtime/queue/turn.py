"""`Turn`: the right to answer on a lane, with its messages and the ways to end it, each once.

A turn is ended once: committed, failed, interrupted, taken back or released. Whoever was stopped or overtaken
meanwhile gets `FencedError` from all of these, and nothing that was written counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import msgspec

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions._process.retry import is_passing_fault
from gateway_sessions.core.delivery.outbound_messages import Growing
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.core.storable_text import truncated_text
from gateway_sessions.core.transcript.messages import Message, message_from
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.core.usage.usage_events import Usage
from gateway_sessions.errors import CancelledItselfError, FencedError, StorageError, TurnEndedError
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.user_code import is_task_cancelled
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.lanes import LaneRow
from gateway_sessions.storage.transactions.queue import running_turn as transactions
from gateway_sessions.storage.transactions.queue.claim import ClaimedTurn, TranscriptVersion
from gateway_sessions.storage.transactions.queue.outbox import Owed
from gateway_sessions.storage.transactions.queue.recover import CutOffTurn
from gateway_sessions.storage.transactions.queue.running_turn import SettledTurn, TurnSettlement
from gateway_sessions.storage.transactions.queue.turn_transcript import TurnLease

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

MAX_PROBLEM: Final = 2000
"""Characters that are kept of the problem of a failed turn."""


class TurnKeeper(Protocol):
    """The operations that a turn needs of its queue."""

    async def apply(self, transaction: Callable[[Change], Transaction[T]]) -> T:
        """Run a changing transaction."""
        ...

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction that changes nothing."""
        ...

    async def settle(
        self, settlement: TurnSettlement, *, go_on: bool | str
    ) -> tuple[SettledTurn, GatewayTurn | None]:
        """End a turn; if *go_on*, begin the lane's next one in the same commit, or that of another lane."""
        ...

    async def cut_turn_short(
        self, held: TurnLease, reason: ResumeReason, notices: Sequence[Owed]
    ) -> CutOffTurn:
        """Give a turn back that a drain had no time for, which was a try."""
        ...

    async def refresh_restart_records(self) -> None:
        """Bring up to date what operators read of turns that were cut off."""
        ...

    def note_lane(self, lane: LaneRow) -> None:
        """Note how many turns wait on a lane now: somebody may want to begin one."""
        ...


class EndedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a turn."""

    entry: SessionEntry | None
    """The session as it is now; None if the lane has none any more."""
    message_ids: list[int]
    reply_ids: tuple[int, ...]
    version: TranscriptVersion
    """The state of the transcript after it."""
    waiting: int
    next: GatewayTurn | None = None
    """The turn that has begun with this one's end."""


class Turn:
    """Somebody's turn on a lane. `async with` releases it if nothing else has ended it."""

    def __init__(self, keeper: TurnKeeper, claimed: ClaimedTurn) -> None:
        self._keeper = keeper
        self._claimed = claimed
        self._ended = False
        self._messages: tuple[InboundMessage, ...] = tuple(item.message for item in claimed.items)
        self._is_internal = all(item.message.internal for item in claimed.items)
        self._added = False
        """Whether the turn has taken in more messages or added to the transcript since it began."""
        self.entry: SessionEntry = claimed.entry
        """The session as it was when the turn began."""

    @property
    def messages(self) -> tuple[InboundMessage, ...]:
        """The messages of the turn: one, or several that were merged."""
        return self._messages

    @property
    def session_key(self) -> str:
        """The lane."""
        return self._claimed.held.session_key

    @property
    def token(self) -> int:
        """Rises with every turn of the lane; what an older one writes is refused."""
        return self._claimed.held.token

    @property
    def seq(self) -> int:
        """The place of the first message among all that was ever accepted on the lane."""
        return self._claimed.items[0].seq

    @property
    def seqs(self) -> tuple[int, ...]:
        """The places of all messages."""
        return tuple(item.seq for item in self._claimed.items)

    @property
    def attempt(self) -> int:
        """1 for the first try; more if earlier ones were cut off."""
        return self._claimed.attempt

    @property
    def recorded(self) -> bool:
        """Return True if an earlier try has put the turn's messages into the transcript, and perhaps more."""
        return self._claimed.begun_before

    @property
    def admitted_at(self) -> datetime:
        """The instant at which the first message was accepted."""
        return self._claimed.items[0].admitted_at

    @property
    def version(self) -> TranscriptVersion:
        """The state of the transcript when the turn began."""
        return self._claimed.version

    @property
    def growing(self) -> Growing | None:
        """The message on the platform in which the reply has grown in an earlier try, if there is one."""
        return self._claimed.growing

    @property
    def waiting(self) -> int:
        """The number of turns that waited behind this one when it began."""
        return self._claimed.waiting

    @property
    def ended(self) -> bool:
        """Whether the turn has come to its end."""
        return self._ended

    async def transcript(self, limit: int | None = None) -> list[Chat]:
        """Return the conversation for a model, with the messages of the turn at its end."""
        session_id = self.entry.session_id
        return await self._keeper.read(
            partial(transactions.turn_conversation, self._claimed.held, session_id, limit)
        )

    async def append(self, *messages: Message | Mapping[str, Any]) -> list[int]:
        """Add to the transcript at once, behind what the turn is about; returns the ids."""
        self._check_not_ended()
        rows = [message_from(one) for one in messages]
        self._added = True
        ids = await self._keeper.apply(
            lambda change: transactions.append_messages(self._claimed.held, rows, change)
        )
        failpoint("turn_appended")
        return ids

    async def steer(self, seq: int) -> bool:
        """Let a waiting message be part of this turn; False if it does not wait any more."""
        return await self._join_waiting_message(seq) is not None

    async def owe(self, *replies: Owed, growing: Growing | None = None) -> tuple[int, ...]:
        """Owe people something now, before the turn's own reply, in the place of what was *growing*."""
        self._check_not_ended()
        return await self._keeper.apply(
            lambda change: transactions.owe_during_turn(self._claimed.held, replies, change, growing)
        )

    async def note_growing(self, growing: Growing) -> None:
        """Write down in which message of the platform the reply grows: the next try goes on there."""
        self._check_not_ended()
        await self._keeper.apply(lambda _: transactions.note_growing_reply(self._claimed.held, growing))
        failpoint("growing_noted")

    async def commit(
        self,
        messages: Iterable[Message | Mapping[str, Any]] = (),
        *,
        usages: Sequence[Usage] = (),
        replies: Sequence[Owed] = (),
        last_prompt_tokens: int | None = None,
        go_on: bool | str = False,
    ) -> EndedTurn:
        """Complete the turn: transcript, use, entry, queue and replies change together or not at all.

        If *go_on*, the lane's next turn begins in the same commit. The key of another lane lets the next one
        of that lane begin, where no other node uses the database.
        """
        return await self._settle(
            Outcome.TURNED,
            go_on=go_on,
            messages=[message_from(one) for one in messages],
            usages=usages,
            replies=replies,
            last_prompt_tokens=last_prompt_tokens,
        )

    async def fail(
        self,
        problem: str,
        *,
        usages: Sequence[Usage] = (),
        replies: Sequence[Owed] = (),
        go_on: bool | str = False,
    ) -> EndedTurn:
        """Give the turn up: its messages become dead letters, which can be tried again."""
        text = truncated_text(problem, MAX_PROBLEM)
        return await self._settle(Outcome.DEAD, go_on=go_on, problem=text, usages=usages, replies=replies)

    async def interrupt(
        self,
        by: str,
        messages: Iterable[Message | Mapping[str, Any]] = (),
        *,
        usages: Sequence[Usage] = (),
        replies: Sequence[Owed] = (),
        go_on: bool | str = False,
    ) -> EndedTurn:
        """Stop the turn: what it has done stands, and nobody does the rest."""
        return await self._settle(
            Outcome.INTERRUPTED,
            go_on=go_on,
            by=by,
            messages=[message_from(one) for one in messages],
            usages=usages,
            replies=replies,
        )

    async def roll_back(
        self,
        by: str,
        *,
        usages: Sequence[Usage] = (),
        replies: Sequence[Owed] = (),
        go_on: bool | str = False,
    ) -> EndedTurn:
        """Stop the turn and take back all that it has put into the transcript."""
        return await self._settle(Outcome.ROLLED_BACK, go_on=go_on, by=by, usages=usages, replies=replies)

    async def release(self, *, retry_at: datetime | None = None, counted: bool = False) -> None:
        """Let the messages wait again in their old place; if *counted*, this was a try that failed."""
        self._check_not_ended()
        give_back = partial(transactions.give_back_turn, self._claimed.held, retry_at, counted=counted)
        lane = await self._keeper.apply(lambda change: give_back(change=change))
        self._ended = True
        self._keeper.note_lane(lane)
        if counted:
            await self._keeper.refresh_restart_records()

    async def cut_short(self, reason: ResumeReason, notices: Sequence[Owed] = ()) -> CutOffTurn:
        """Give the turn back because a drain had no time left for it: this was a try, as after a crash.

        Its session is marked, to go on with it. After `max_restart_attempts` of these, however its process
        ended, it becomes a dead letter instead, its session is suspended, and *notices* are owed.
        """
        self._check_not_ended()
        cut = await self._keeper.cut_turn_short(self._claimed.held, reason, notices)
        self._ended = True
        self._keeper.note_lane(cut.lane)
        return cut

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._ended:
            return
        try:
            await self._end_unfinished(exc)
        except FencedError:
            logger.info("a turn was overtaken", extra={"action": "turn_fenced", **self._log_facts()})
        except StorageError:
            # The lease stays, and the next opening of the store finds the turn cut off.
            logger.exception(
                "a turn could not be given back", extra={"action": "turn_kept", **self._log_facts()}
            )

    async def _end_unfinished(self, exc: BaseException | None) -> None:
        match exc:
            case asyncio.CancelledError() if not is_task_cancelled():
                await self.fail(str(CancelledItselfError("the work on a turn")))
            case None | asyncio.CancelledError():
                await asyncio.shield(self.release())
            case Exception() if is_passing_fault(exc):
                await self.release()  # the database failed, and not whoever worked on the turn
            case Exception():
                await self.fail(f"{type(exc).__name__}: {exc}")
            case _:
                return

    async def _join_waiting_message(self, seq: int) -> InboundMessage | None:
        self._check_not_ended()
        self._added = True
        joined = await self._keeper.apply(
            lambda change: transactions.steer_message(self._claimed.held, seq, change)
        )
        if joined is None:
            return None
        self._is_internal = False
        self._keeper.note_lane(joined.lane)
        return joined.message

    async def _settle(
        self, outcome: Outcome, *, go_on: bool | str, by: str = "turn", **left: Any
    ) -> EndedTurn:
        self._check_not_ended()
        begun = None if self._added else self._claimed
        settlement = TurnSettlement(
            held=self._claimed.held, outcome=outcome, by=by, begun=begun, internal=self._is_internal, **left
        )
        settled, following = await self._keeper.settle(settlement, go_on=go_on)
        self._ended = True
        return EndedTurn(
            entry=settled.entry,
            message_ids=settled.message_ids,
            version=settled.version,
            reply_ids=settled.reply_ids,
            waiting=settled.waiting,
            next=following,
        )

    def _check_not_ended(self) -> None:
        if self._ended:
            raise TurnEndedError(self.session_key, self.token)

    def _log_facts(self) -> dict[str, object]:
        return {"session_key": self.session_key, "token": self.token}


class GatewayTurn(Turn):
    """A turn as the queue gives it out: with what a gateway needs beyond what programs do with a turn."""

    @property
    def is_internal(self) -> bool:
        """Whether all messages of the turn are the program's own, and no person has joined it."""
        return self._is_internal

    @property
    def lease(self) -> TurnLease:
        """The lane, and the token by which the database knows who has it."""
        return self._claimed.held

    async def take_in_message(self, seq: int) -> InboundMessage | None:
        """Let a waiting message be part of this turn; return it as it is now, None if it waits no more."""
        return await self._join_waiting_message(seq)

    def apply_edit(self, edit: InboundMessage) -> None:
        """Change one of the turn's messages, with which nobody has worked yet."""
        self._messages = tuple(
            one.with_text(edit.text, edit.attachments or one.attachments, max(one.revision, edit.revision))
            if one.original_key == edit.original_key
            else one
            for one in self._messages
        )

    def abandon(self) -> None:
        """Count the turn as ended without a write: its lane belongs to another turn already."""
        self._ended = True
