"""The tasks that run turns one after another on each lane, and log the failures of turns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

from gateway_sessions.core.queue.state_machine import TurnOutcome
from gateway_sessions.errors import FencedError, StoreStoppedError
from gateway_sessions.runtime.gateway.execution import TurnExecution, TurnParts
from gateway_sessions.runtime.gateway.running_turn import RunningTurn
from gateway_sessions.runtime.observability.event_stream import EventKind, Events
from gateway_sessions.runtime.queue.turn import GatewayTurn

logger: Final = logging.getLogger(__name__)


class TurnRunner:
    """Runs the turns of a gateway."""

    def __init__(self, parts: TurnParts, events: Events, tasks: TurnTasks) -> None:
        self._parts = parts
        self._lanes = parts.lanes
        self._events = events
        self._tasks = tasks

    def start_turn(self, turn: GatewayTurn) -> None:
        """Run a claimed turn, and those of its lane that follow it at once, in a task of its own."""
        self._tasks.start_task(self._run_with_following(self._begin_turn(turn)))

    def _begin_turn(self, turn: GatewayTurn) -> RunningTurn:
        running = RunningTurn(turn, self._parts.clock.now())
        self._lanes.note_begun(running)
        return running

    async def _run_with_following(self, running: RunningTurn) -> None:
        following: RunningTurn | None = running
        while following is not None:
            following = await self._run_turn(following)

    async def _run_turn(self, running: RunningTurn) -> RunningTurn | None:
        turn = running.turn
        where = (turn.session_key, turn.entry.session_id)
        self._events.emit(EventKind.TURN_STARTED, *where, seq=turn.seq, attempt=turn.attempt)
        execution = TurnExecution(self._parts, turn, running)
        outcome = TurnOutcome.UNKNOWN
        try:
            async with turn:
                ended = await execution.execute()
            outcome = execution.outcome
            following = ended.next if ended is not None else None
            return None if following is None else self._begin_following(running, following)
        except FencedError:
            outcome = TurnOutcome.OVERTAKEN
            self._events.emit(EventKind.TURN_FENCED, *where, seq=turn.seq)
            return None
        except Exception:  # a fault of ours, or of the database: it must not end other people's turns
            facts = {"action": "turn_crashed", "session_key": turn.session_key, "seq": turn.seq}
            logger.exception("a turn could not be ended", extra=facts)
            unsettled = TurnOutcome.DEAD if turn.ended else TurnOutcome.UNKNOWN
            outcome = execution.outcome if execution.settled else unsettled
            return None
        finally:
            self._lanes.note_ended(running)
            self._tell_of_turn_end(running, outcome)

    def _begin_following(self, running: RunningTurn, following: GatewayTurn) -> RunningTurn | None:
        """Begin the next turn before this one ends, so that its place never looks free, nor its lane idle.

        A turn of another lane gets a task of its own, so that it does not inherit the context of this one.
        """
        if following.session_key == running.turn.session_key:
            return self._begin_turn(following)
        self.start_turn(following)
        return None

    def _tell_of_turn_end(self, running: RunningTurn, outcome: TurnOutcome) -> None:
        turn = running.turn
        where = (turn.session_key, turn.entry.session_id)
        for seq in turn.seqs if outcome is TurnOutcome.DEAD else ():
            self._events.emit(EventKind.MESSAGE_DEAD, *where, seq=seq)
        seconds = (self._parts.clock.now() - running.started_at).total_seconds()
        self._events.emit(EventKind.TURN_ENDED, *where, seq=turn.seq, outcome=outcome, seconds=seconds)
        for tell in self._parts.on_ended:
            tell(turn, outcome)


class TurnTasks:
    """A group of tasks, one for each turn, that lives as long as its `run`.

    It is a plain group of asyncio's inside a task of the gateway's own, because to begin a task there takes a
    fifth of the time that a group of anyio's takes. Such a group is cancelled once, and not at every await;
    so what runs here must end when it is told to.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: asyncio.TaskGroup | None = None

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Run *work* in a task; `StoreStoppedError` if `run` has ended."""
        if self._tasks is None:
            work.close()
            raise StoreStoppedError(self._name)
        self._tasks.create_task(work)

    async def run(self) -> None:
        """Accept tasks until cancelled; then wait for their end."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None
