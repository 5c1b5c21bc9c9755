"""A turn that runs in this process: what may be asked of it, and how it is stopped."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import anyio

from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.runtime.agents import Agent, Steerable
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.runtime.turn_context import TurnContext
from gateway_sessions.storage.verbs.ledger import NO_TURN
from gateway_sessions.storage.verbs.ledger import RunningTurn as Facts


class StopReason(StrEnum):
    """Why a turn was stopped before its end."""

    MESSAGE = "message"  # another message interrupts it
    ROLLBACK = "rollback"  # another message takes it back
    OVERTAKEN = "overtaken"  # it has lost its lane, and may write nothing
    DEADLINE = "deadline"  # it took too long
    INACTIVE = "inactive"  # it showed no sign of life
    SHUTDOWN = "shutdown"  # the gateway ends


class RunningTurn:
    """One running turn. It is stopped once, and the first reason stands, unless it loses its lane."""

    def __init__(self, turn: Turn, started_at: datetime) -> None:
        self.turn = turn
        self.started_at = started_at
        self.context: TurnContext | None = None
        self.agent: Agent | None = None
        self.stop_reason: StopReason | None = None
        self.steered = 0
        self.scope = anyio.CancelScope()
        """What the agent works in."""

    @property
    def owner(self) -> str:
        """Whose turn it is."""
        return self.turn.entry.owner

    @property
    def facts(self) -> Facts:
        """What a message has to know that comes now."""
        context = self.context
        if context is None or context.is_over:
            return Facts(stopping=True) if self.stop_reason else NO_TURN
        return Facts(
            can_steer=isinstance(self.agent, Steerable) and self.stop_reason is None,
            sub_work=context.has_sub_work,
            stopping=self.stop_reason is not None,
            steered=self.steered,
        )

    def stop(self, reason: StopReason) -> None:
        """Let the agent come to its end. One that has lost its lane is heard no more, even if it goes on."""
        if self.stop_reason is None or reason is StopReason.OVERTAKEN:
            self.stop_reason = reason
        if reason is StopReason.OVERTAKEN and self.context is not None:
            self.context.end()
        self.scope.cancel()

    async def steer(self, message: InboundMessage) -> bool:
        """Give the agent a message; False if it does not take it."""
        working = self.context is not None and not self.context.is_over
        if not working or not isinstance(self.agent, Steerable):
            return False
        return bool(await self.agent.steer(message))
