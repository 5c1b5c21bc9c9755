"""`MessageIntake`: takes messages in, past the observers, to a slash command, an edit or the queue."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.queue.inbound import (
    Accepted,
    Disposition,
    InboundMessage,
    MessageKind,
    Receipt,
    RejectReason,
)
from gateway_sessions.runtime.delivery.receipt_notices import ReceiptNotices
from gateway_sessions.runtime.gateway.commands.executor import CommandExecutor
from gateway_sessions.runtime.gateway.commands.protocol import CommandSet
from gateway_sessions.runtime.gateway.observers import Observers
from gateway_sessions.runtime.gateway.runner import TurnRunner
from gateway_sessions.runtime.gateway.scheduler import LaneScheduler
from gateway_sessions.runtime.gateway.turn_signals import TurnSignals
from gateway_sessions.runtime.queue.admission import make_rejection
from gateway_sessions.runtime.queue.edits import EditListener, MessageEdits
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.runtime.store.store import SessionStore

logger: Final = logging.getLogger(__name__)


class MessageIntake:
    """Takes in the messages of a gateway; each gets one receipt."""

    def __init__(
        self,
        store: SessionStore,
        queue: QueueOperations,
        adapters: Mapping[tuple[str, str], Adapter],
        *,
        lanes: LaneScheduler,
        runner: TurnRunner,
        observers: Observers,
        command_set: CommandSet,
        commands: CommandExecutor,
        edits: MessageEdits,
        edit_listener: EditListener,
        turn_signals: TurnSignals,
        notices: ReceiptNotices,
    ) -> None:
        self._store = store
        self._queue = queue
        self._adapters = adapters
        self._lanes = lanes
        self._runner = runner
        self._observers = observers
        self._command_set = command_set
        self._commands = commands
        self._edits = edits
        self._edit_listener = edit_listener
        self._remote_turns = turn_signals
        self._notices = notices

    async def submit(self, message: InboundMessage) -> Receipt:
        """Take a message in as the observers let it pass: a command, an edit, a deletion or a new message."""
        if not self._observers.see_messages:
            return await self._route_message(message)
        key = self._store.key_for(message.source)
        async with self._observers.keep_order(key, message):
            seen = await self._observers.ask_about_message(message, key)
            if isinstance(seen, InboundMessage):
                return await self._route_message(seen)
            receipt = await self._queue.answer_refusal(message, seen)
            self._notices.tell_of_receipt(message, receipt)
            return receipt

    async def _route_message(self, message: InboundMessage) -> Receipt:
        if message.kind is not MessageKind.NEW:
            return await self._edits.carry_out(
                self._command_set.edit_without_command(message), self._edit_listener
            )
        if message.command is not None and not message.observed:
            if self._is_for_another_account(message):
                return make_rejection(RejectReason.NOT_ADDRESSED, None, None)
            if self._command_set.is_command(message):
                return await self._commands.run_command(message)
        return await self.admit(message)

    def _is_for_another_account(self, message: InboundMessage) -> bool:
        """Return whether a command names another account: several may be in one chat."""
        adapter = self._adapters.get((message.source.platform, message.account))
        return adapter is not None and not adapter.capabilities.is_called(message.addressee)

    async def admit(self, message: InboundMessage, *, solo: bool = False) -> Receipt:
        """Take a message in for the agent, even if it looks like a command; *solo*: for a turn of its own."""
        if self._lanes.stopped:
            # A durable message is answered after the next start: a gateway that ends loses nothing.
            logger.debug("a message came while draining", extra={"action": "late_message"})
        key = self._store.key_for(message.source)
        with ExitStack() as held:
            here = self._lanes.lane_here(message.source, key, held)
            receipt, turn = await self._queue.enqueue(message, None, solo=solo, here=here)
            if turn is not None and self._lanes.stopped:  # since the message was handed over
                await turn.release()
            elif turn is not None:
                self._runner.start_turn(turn)
        if isinstance(receipt, Accepted) and receipt.disposition is not Disposition.STARTS:
            await self._remote_turns.apply_to_running_turn(message, receipt)
        self._notices.tell_of_receipt(message, receipt, solo=solo)
        return receipt
