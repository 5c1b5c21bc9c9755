"""`Questions`: submits a message and waits for the answer of its turn, on whichever node that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

import anyio
import msgspec

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.checks import check_value
from gateway_sessions.core.queue.inbound import (
    OWN_IDS,
    Accepted,
    Disposition,
    InboundMessage,
    MessageKind,
    Rejected,
)
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.errors import GatewaySessionsError, InvalidInputError, NotAcceptedError, UnansweredError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.observability.event_stream import EventKind, Events, Listener
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.transactions.queue import answers

LOOK: Final = 1.0
"""The seconds between two looks for an outcome of which no event may tell: another node may run the turn."""
DIGITS: Final = 16
"""The digits of the id that a message without one gets, so that its outcome can be found."""
_ENDS: Final = (EventKind.TURN_ENDED, EventKind.MESSAGE_DROPPED, EventKind.MESSAGE_DEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAnswer:
    """The answer to a message that was asked, as the transcript keeps it."""

    text: str
    """The text of the reply; empty if the agent kept silent."""
    session_key: str
    session_id: str
    seq: int
    """The place of the message among all that its lane ever accepted."""
    finish_reason: str | None = None
    """Why the model stopped; `refused` if a budget or an observer did not let the turn run."""
    duplicate: bool = False
    """Whether the message had been accepted before: this is the answer that it got, or was about to get."""


class Questions:
    """Waits for answers in one gateway."""

    def __init__(
        self,
        queue: QueueOperations,
        clock: Clock,
        events: Events,
        new_digits: Callable[[int], str],
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._events = events
        self._new_digits = new_digits

    async def ask(self, message: InboundMessage, submit: Submit, *, within: timedelta | None) -> TurnAnswer:
        """*submit* a message and return its answer; `TimeoutError` after that time, and the turn goes on."""
        if message.kind is not MessageKind.NEW:
            problem = "only a new message can be asked: submit an edit or a deletion"
            raise InvalidInputError(problem)
        if within is None:
            return await self._ask(message, submit)
        check_value("timeout", within, timedelta)
        found: list[TurnAnswer | GatewaySessionsError] = []
        async with anyio.create_task_group() as tasks:

            async def give_up() -> None:
                await self._clock.sleep(max(within.total_seconds(), 0))
                tasks.cancel_scope.cancel()

            tasks.start_soon(give_up)
            try:
                found.append(await self._ask(message, submit))
            except GatewaySessionsError as error:  # the group would wrap it
                found.append(error)
            tasks.cancel_scope.cancel()
        match found:
            case [TurnAnswer() as answer]:
                return answer
            case [GatewaySessionsError() as failure]:
                raise failure
            case _:
                problem = (
                    f"no answer came within {within}; the message waits for its turn, or the turn goes on"
                )
                raise TimeoutError(problem)

    async def _ask(self, message: InboundMessage, submit: Submit) -> TurnAnswer:
        if not message.message_id:
            own_id = f"{OWN_IDS}ask:{self._new_digits(DIGITS)}"
            message = msgspec.structs.replace(message, message_id=own_id)
        event = message.idempotency_key or ""
        async with self._events.listen(kinds=_ENDS) as heard:  # before the turn can end
            receipt = await submit(message)
            if isinstance(receipt, Rejected):
                raise NotAcceptedError(receipt.reason, receipt.text, receipt.retry_after)
            is_new = isinstance(receipt, Accepted)
            if isinstance(receipt, Accepted) and receipt.disposition is Disposition.COMMAND:
                problem = f"{message.text[:80]!r} is a command: its answer comes from gateway.command"
                raise InvalidInputError(problem)
            while (ended := await self._queue.read(partial(answers.outcome_of, event))).outcome is None:
                await self._wait_for_an_end(heard, receipt.session_key)
        if ended.outcome != Outcome.TURNED:
            raise UnansweredError(receipt.session_key, receipt.seq, ended.outcome, ended.problem)
        found = await self._queue.read(partial(answers.answer_to, ended.session_key, str(message.message_id)))
        if found is None:
            gone = "its answer is no longer in the transcript"
            raise UnansweredError(receipt.session_key, receipt.seq, ended.outcome, gone)
        return TurnAnswer(
            text=found.text,
            session_key=ended.session_key,
            session_id=found.session_id,
            seq=receipt.seq,
            finish_reason=found.finish_reason,
            duplicate=not is_new,
        )

    async def _wait_for_an_end(self, heard: Listener, session_key: str) -> None:
        """Wait until a turn ends on the lane, but not for long: another node may hear of it."""
        async with anyio.create_task_group() as tasks:

            async def look_again() -> None:
                await self._clock.sleep(LOOK)
                tasks.cancel_scope.cancel()

            tasks.start_soon(look_again)
            async for event in heard:
                if event.session_key == session_key or event.kind is EventKind.MISSED:
                    break
            tasks.cancel_scope.cancel()
