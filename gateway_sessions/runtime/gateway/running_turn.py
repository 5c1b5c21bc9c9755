"""`RunningTurn`: a turn that runs in this process, may be stopped once, and takes messages while it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import anyio
import msgspec

from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, is_same_content
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.protocol import Agent, Steerable
from gateway_sessions.runtime.agents.turn_context import TurnContext, control_of
from gateway_sessions.runtime.queue.turn import GatewayTurn
from gateway_sessions.runtime.user_code import is_task_cancelled, problem_within
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts

logger: Final = logging.getLogger(__name__)

TO_TAKE: Final = timedelta(seconds=1)
"""The time in which an agent must take a message: its sender waits, and all messages behind it."""


class StopReason(StrEnum):
    """The reason why a turn was stopped before its end."""

    MESSAGE = "message"  # another message interrupts it
    ROLLBACK = "rollback"  # another message takes it back
    OVERTAKEN = "overtaken"  # it has lost its lane, and may write nothing
    DEADLINE = "deadline"  # it took too long
    INACTIVE = "inactive"  # it showed no sign of life
    SHUTDOWN = "shutdown"  # the gateway ends
    HANDOVER = "handover"  # the gateway ends, as another process takes over


PUT_OFF: Final = MappingProxyType(
    {
        StopReason.SHUTDOWN: ResumeReason.SHUTDOWN_TIMEOUT,
        StopReason.HANDOVER: ResumeReason.RESTART_TIMEOUT,
    }
)
"""The reasons after which a turn goes on at the next start, and how its session is marked until then."""


@dataclass(frozen=True, slots=True)
class TurnAdmission:
    """The answer whether a turn may run."""

    allowed: bool = True
    notice: str | None = None
    """The notice that people get with the turn's reply, or in its place."""


class ReadyTurn(NamedTuple):
    """A lane whose next turn may begin, and the owner of the lane."""

    session_key: str
    owner: str | None


class RunningTurn:
    """A running turn. The first reason to stop it stands, unless the turn loses its lane later."""

    def __init__(self, turn: GatewayTurn, started_at: datetime) -> None:
        self.turn = turn
        self.started_at = started_at
        self.context: TurnContext | None = None
        self.agent: Agent | None = None
        self.stop_reason: StopReason | None = None
        self._departure = asyncio.Event()
        """Set when the gateway ends."""
        self.steered: int = 0
        self.scope: anyio.CancelScope = anyio.CancelScope()
        """The scope of the agent's work."""
        self.successor: ReadyTurn | None = None
        """The lane whose turn takes the place of this one; None: this lane goes on, or nobody waits."""
        self._being_given: set[anyio.CancelScope] = set()
        """The scopes in which the agent is being given a message."""

    @property
    def owner(self) -> str:
        """The owner of the turn's lane."""
        return self.turn.entry.owner

    @property
    def admission_facts(self) -> RunningTurnFacts:
        """The facts by which a new message is admitted while this turn runs."""
        context = self.context
        if context is None or context.is_over:
            return RunningTurnFacts(stopping=True) if self.stop_reason else NO_TURN
        return RunningTurnFacts(
            can_steer=isinstance(self.agent, Steerable) and self.stop_reason is None,
            sub_work=control_of(context).side_work > 0,
            stopping=self.stop_reason is not None,
            steered=self.steered,
        )

    @property
    def is_leaving(self) -> bool:
        """Whether the gateway ends, even if the turn was stopped for another reason before."""
        return self._departure.is_set()

    async def sleep_unless_leaving(self, pause: timedelta, clock: Clock) -> None:
        """Sleep, but not beyond the end of the gateway."""
        async with anyio.create_task_group() as tasks:

            async def sleep() -> None:
                await clock.sleep(pause.total_seconds())
                tasks.cancel_scope.cancel()

            tasks.start_soon(sleep)
            await self._departure.wait()
            tasks.cancel_scope.cancel()

    def begin_agent(self, agent: Agent) -> bool:
        """Note which agent begins; return False if the turn was stopped before that.

        The agent begins with the messages as edits have left them.
        """
        if self.stop_reason is not None:
            return False
        self.agent = agent
        if self.context is not None:
            self.context.messages = self.turn.messages
        return True

    def stop(self, reason: StopReason) -> None:
        """Cancel the agent. After the loss of the lane, nothing that the agent still does is accepted."""
        if reason in PUT_OFF:
            self._departure.set()
        if self.stop_reason is None or reason is StopReason.OVERTAKEN:
            self.stop_reason = reason
        if reason is StopReason.OVERTAKEN and self.context is not None:
            control_of(self.context).fence()
        self.scope.cancel()
        self.stop_giving_messages()

    def stop_giving_messages(self) -> None:
        """Give the agent no more messages: those that it has not taken by now keep waiting."""
        for scope in self._being_given:
            scope.cancel()

    async def take_edit(self, edit: InboundMessage) -> None:
        """Apply an edit of a message of the turn; an agent that has begun is told of it."""
        if self.agent is None:
            self.turn.apply_edit(edit)
        else:
            await self.steer(edit)

    async def steer(self, message: InboundMessage, seq: int | None = None) -> None:
        """Offer the agent a message; if the agent takes it in time, the message at *seq* joins the turn.

        A message that is not taken in time keeps its place in the queue, even if the agent still takes it.
        """
        context, agent = self.context, self.agent
        if context is None or context.is_over or not isinstance(agent, Steerable):
            return
        is_taken = asyncio.Event()

        async def give() -> None:
            if await _agent_takes(agent, message) and not context.is_over and not is_task_cancelled():
                is_taken.set()
                # Begun in the step in which the agent took the message, or the turn could end in between; and
                # shielded, so that a slow database does not give back a message that was taken in time.
                await asyncio.shield(self._join_turn(message, seq))

        with self._called_off_at_end() as scope:
            problem = await problem_within(TO_TAKE, context.clock, give, grace=timedelta())
            if problem is not None and not scope.cancel_called and not is_taken.is_set():
                facts = {"action": "steer_failed", "problem": problem}
                logger.error("an agent did not come to taking a message", extra=facts)

    async def _join_turn(self, told: InboundMessage, seq: int | None) -> None:
        """Make a waiting message part of the turn; tell the agent of an edit that came in the meantime."""
        if seq is None:
            return
        try:
            said = await self.turn.take_in_message(seq)
        except GatewaySessionsError:
            facts = {"action": "steer_failed", "session_key": self.turn.session_key, "seq": seq}
            logger.exception("a message could not be made part of a turn", extra=facts)
        else:
            self.steered += said is not None
            if said is not None and not is_same_content(told, said):
                await self.steer(msgspec.structs.replace(said, kind=MessageKind.EDIT))

    @contextmanager
    def _called_off_at_end(self) -> Generator[anyio.CancelScope]:
        """Cancel the block when the turn ends."""
        with anyio.CancelScope() as scope:
            self._being_given.add(scope)
            try:
                yield scope
            finally:
                self._being_given.discard(scope)


async def _agent_takes(agent: Steerable, message: InboundMessage) -> bool:
    try:
        return bool(await agent.steer(message))
    except Exception:  # foreign code: the message waits, as if there had been nothing to steer
        logger.exception("an agent could not be steered", extra={"action": "steer_failed"})
        return False
