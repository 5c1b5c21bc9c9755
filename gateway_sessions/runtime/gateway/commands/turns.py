"""`/undo` and `/retry`: they take back or repeat the last turns of a lane."""

from __future__ import annotations

from functools import partial
from typing import Final

from gateway_sessions.core.notices.command_replies import NOTHING_TO_RETRY, RETRIED_LATER
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.core.queue.commands import quoted, said_in, turns_asked
from gateway_sessions.core.queue.inbound import Rejected
from gateway_sessions.errors import NothingToUndoError
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.storage.tables.lanes import LaneRow
from gateway_sessions.storage.transactions.queue import undo_and_retry as transactions
from gateway_sessions.storage.transactions.queue.undo_and_retry import TakenBack


async def _undo_turns(call: CommandCall) -> str:
    taken = await _take_back_turns(call, turns_asked(call.arguments))
    if taken is None:
        raise NothingToUndoError(call.session_key, "nothing was said yet")
    text, _ = said_in(taken.said)
    return f"Took back {counted(taken.turns, 'turn')}, from {quoted(text)} on."


async def _retry_last_turn(call: CommandCall) -> str | None:
    queue = queue_of(call.store)
    failed = await queue.change(partial(transactions.take_up_failed, call.session_key))
    if failed is not None:
        return _let_retry_begin(call, failed)
    match await queue.ask_again(call.session_key, call.message):
        case None:
            return NOTHING_TO_RETRY
        case Rejected() as refused:
            return refused.text
        case again:
            return _let_retry_begin(call, again)


def _let_retry_begin(call: CommandCall, lane: LaneRow) -> str | None:
    """Let the turn begin that waits again; what to say, if others come before it."""
    call.gateway.agents.evict(call.session_key)
    queue_of(call.store).note_lane(lane)
    return RETRIED_LATER if lane.running or lane.waiting > 1 else None


async def _take_back_turns(call: CommandCall, turns: int) -> TakenBack | None:
    take_back = partial(transactions.take_back, call.session_key, turns)
    taken = await queue_of(call.store).change(take_back)
    if taken is not None:
        call.gateway.agents.evict(call.session_key)
    return taken


COMMANDS: Final = (
    Command("retry", _retry_last_turn, summary="Try the last turn again, or the one that failed."),
    Command(
        "undo", _undo_turns, summary="Take back the last turns: one, if no number is given.", usage="[number]"
    ),
)
