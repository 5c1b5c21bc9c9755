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

from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, says_the_same
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.protocol import Agent, Steerable
from gateway_sessions.runtime.agents.turn_context import TurnContext, control_of
from gateway_sessions.runtime.queue.turn import GatewayTurn
from gateway_sessions.runtime.user_code import problem_within, told_to_end
from gateway_sessions.storage.transactions.queue.admit import NO_TURN, RunningTurnFacts

logger: Final = logging.getLogger(__name__)

TO_TAKE: Final = timedelta(seconds=1)
"""How long an agent may take over a message: whoever brought it waits, and all that comes behind it."""


class StopReason(StrEnum):
    """Why a turn was stopped before its end."""

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
"""Turns stopped like that go on after the next start; the reason that their sessions are marked with."""


@dataclass(frozen=True, slots=True)
class TurnAdmission:
    """The answer whether a turn may run."""

    allowed: bool = True
    notice: str | None = None
    """The notice that people get with the turn's reply, or in its place."""


class ReadyTurn(NamedTuple):
    """A lane whose next turn may begin, and whose lane that is."""

    session_key: str
    owner: str | None


class RunningTurn:
    """One running turn. It is stopped once, and the first reason stands, unless it loses its lane."""

    def __init__(self, turn: GatewayTurn, started_at: datetime) -> None:
        self.turn = turn
        self.started_at = started_at
        self.context: TurnContext | None = None
        self.agent: Agent | None = None
        self._can_steer = False
        self.stop_reason: StopReason | None = None
        self._departure = asyncio.Event()
        """Set when the gateway ends."""
        self.steered: int = 0
        self.scope: anyio.CancelScope = anyio.CancelScope()
        """What the agent works in."""
        self.successor: ReadyTurn | None = None
        """What is to take its place, if that is a turn of another lane."""
        self._being_given: set[anyio.CancelScope] = set()
        """Messages that the agent is being given."""

    @property
    def owner(self) -> str:
        """Whose turn it is."""
        return self.turn.entry.owner

    @property
    def facts(self) -> RunningTurnFacts:
        """What a message has to know that comes now."""
        context = self.context
        if context is None or context.is_over:
            return RunningTurnFacts(stopping=True) if self.stop_reason else NO_TURN
        return RunningTurnFacts(
            can_steer=self._can_steer and self.stop_reason is None,
            sub_work=control_of(context).side_work > 0,
            stopping=self.stop_reason is not None,
            steered=self.steered,
        )

    @property
    def is_leaving(self) -> bool:
        """Whether the gateway ends, for whatever reason the turn was stopped."""
        return self._departure.is_set()

    async def sleep_unless_leaving(self, pause: timedelta, clock: Clock) -> None:
        """Wait for that long, but no longer than the gateway lives."""
        async with anyio.create_task_group() as tasks:

            async def sleep() -> None:
                await clock.sleep(pause.total_seconds())
                tasks.cancel_scope.cancel()

            tasks.start_soon(sleep)
            await self._departure.wait()
            tasks.cancel_scope.cancel()

    def begin_agent(self, agent: Agent) -> bool:
        """Whether the agent may begin: a turn that was stopped before that begins nothing.

        It begins with what the messages say by now.
        """
        if self.stop_reason is not None:
            return False
        self.agent, self._can_steer = agent, isinstance(agent, Steerable)
        if self.context is not None:
            self.context.messages = self.turn.messages
        return True

    def stop(self, reason: StopReason) -> None:
        """Let the agent come to its end. One that has lost its lane is heard no more, even if it goes on."""
        if reason in PUT_OFF:
            self._departure.set()
        if self.stop_reason is None or reason is StopReason.OVERTAKEN:
            self.stop_reason = reason
        if reason is StopReason.OVERTAKEN and self.context is not None:
            control_of(self.context).fence()
        self.scope.cancel()
        self.stop_giving_messages()

    def stop_giving_messages(self) -> None:
        """Nobody gives the agent a message any more: what it has not taken by now waits."""
        for scope in self._being_given:
            scope.cancel()

    async def take_edit(self, edit: InboundMessage) -> None:
        """A message of the turn says something else: the agent begins with that, or is told of it."""
        if self.agent is None:
            self.turn.apply_edit(edit)
        else:
            await self.steer(edit)

    async def steer(self, message: InboundMessage, seq: int | None = None) -> None:
        """Give the agent a message; if it takes it in time, the waiting one of that place joins the turn.

        One that is not taken in time was not taken, whatever the agent still does: it keeps its place.
        """
        context, agent = self.context, self.agent
        if context is None or context.is_over or not isinstance(agent, Steerable):
            return
        is_taken = asyncio.Event()

        async def give() -> None:
            if await _agent_takes(agent, message) and not context.is_over and not told_to_end():
                is_taken.set()
                # Begun in the very step in which the agent has taken it, or the turn could be over before;
                # and shielded: what was taken in time is not given back because that is written down late.
                await asyncio.shield(self._join_turn(message, seq))

        with self._called_off_at_end() as scope:
            problem = await problem_within(TO_TAKE, context.clock, give, grace=timedelta())
            if problem is not None and not scope.cancel_called and not is_taken.is_set():
                facts = {"action": "steer_failed", "problem": problem}
                logger.error("an agent did not come to taking a message", extra=facts)

    async def _join_turn(self, told: InboundMessage, seq: int | None) -> None:
        """Make a waiting message part of the turn; an edit that came while it was taken is told as well."""
        if seq is None:
            return
        try:
            said = await self.turn.take_in_message(seq)
        except GatewaySessionsError:
            facts = {"action": "steer_failed", "session_key": self.turn.session_key, "seq": seq}
            logger.exception("a message could not be made part of a turn", extra=facts)
        else:
            self.steered += said is not None
            if said is not None and not says_the_same(told, said):
                await self.steer(msgspec.structs.replace(said, kind=MessageKind.EDIT))

    @contextmanager
    def _called_off_at_end(self) -> Generator[anyio.CancelScope]:
        """Called off as soon as the turn is to end."""
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
