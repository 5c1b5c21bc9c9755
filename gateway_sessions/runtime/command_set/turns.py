"""Commands that take turns back. While a turn runs, they leave everything as it is."""

from __future__ import annotations

from functools import partial
from typing import Final

from gateway_sessions.core.command_answers import NOTHING_TO_RETRY, RETRIED_LATER, counted
from gateway_sessions.core.commands import quoted, said_in, turns_asked
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.receipts import Accepted, Disposition, Rejected
from gateway_sessions.errors import NothingToUndoError
from gateway_sessions.runtime.command import Command, CommandCall
from gateway_sessions.storage.verbs import commands as verbs
from gateway_sessions.storage.verbs.commands import TakenBack


async def _undo(call: CommandCall) -> str:
    taken = await _taken_back(call, turns_asked(call.arguments))
    if taken is None:
        raise NothingToUndoError(call.session_key, "nothing was said yet")
    text, _ = said_in(taken.said)
    return f"Took back {counted(taken.turns, 'turn')}, from {quoted(text)} on."


async def _retry(call: CommandCall) -> str | None:
    ledger = call.store.ledger
    failed = await ledger.change(partial(verbs.take_up_failed, call.session_key))
    if failed is not None:
        call.gateway.agents.evict(call.session_key)
        ledger.freed(failed)
        return RETRIED_LATER if failed.running or failed.waiting > 1 else None
    taken = await _taken_back(call, 1)
    if taken is None:
        return NOTHING_TO_RETRY
    return await _said_again(call, taken)


async def _said_again(call: CommandCall, taken: TakenBack) -> str | None:
    """Submit what was taken back; if that is refused, everything is as it was."""
    text, attachments = said_in(taken.said)
    asked = call.message
    again = InboundMessage(
        source=asked.source,
        account=asked.account,
        text=text,
        attachments=attachments,
        metadata=asked.metadata,
    )
    receipt = await call.gateway.admit(again, solo=True)
    if isinstance(receipt, Rejected):
        await call.store.db.restore_rewound(taken.session_id)
        return receipt.text
    waits = isinstance(receipt, Accepted) and receipt.disposition is Disposition.QUEUED
    return RETRIED_LATER if waits else None


async def _taken_back(call: CommandCall, turns: int) -> TakenBack | None:
    take_back = partial(verbs.take_back, call.session_key, turns)
    taken = await call.store.ledger.change(take_back)
    if taken is not None:
        call.gateway.agents.evict(call.session_key)
    return taken


COMMANDS: Final = (
    Command("retry", _retry, summary="Try the last turn again, or the one that failed."),
    Command("undo", _undo, summary="Take back the last turns: one, if no number is given.", usage="[number]"),
)
