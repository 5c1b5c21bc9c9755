"""`/retry`, `/undo`, `/queue`, `/status`: commands for the turns that ran, run or wait on a lane."""

from __future__ import annotations

from functools import partial
from typing import Final

from gateway_sessions.core.notices.command_replies import (
    NOTHING_TO_RETRY,
    RETRIED_LATER,
    Situation,
    invalid_turn_count,
    queue_cleared_answer,
    queue_list,
    status_answer,
    taken_out_answer,
    undone_answer,
    unknown_number_answer,
)
from gateway_sessions.core.queue.inbound import Rejected
from gateway_sessions.core.queue.slash_commands import (
    MOST_TURNS,
    QueueAction,
    QueueRequest,
    message_to_queue,
    parse_queue_request,
    parse_turn_count,
    texts_and_attachments_in,
)
from gateway_sessions.errors import InvalidInputError, NothingToUndoError
from gateway_sessions.runtime.agents.turn_context import control_of
from gateway_sessions.runtime.gateway.commands.protocol import Command, CommandCall
from gateway_sessions.runtime.store.open_store import queue_of
from gateway_sessions.storage.tables.lanes import LaneRow
from gateway_sessions.storage.transactions.queue import undo_and_retry as transactions
from gateway_sessions.storage.transactions.queue.undo_and_retry import UndoneTurns


async def _undo_turns(call: CommandCall) -> str:
    turns = parse_turn_count(call.arguments)
    if turns is None:
        return invalid_turn_count(MOST_TURNS)
    taken = await _take_back_turns(call, turns)
    if taken is None:
        raise NothingToUndoError(call.session_key, "nothing was said yet")
    text, _ = texts_and_attachments_in(taken.said)
    return undone_answer(taken.turns, text)


async def _retry_last_turn(call: CommandCall) -> str | None:
    queue = queue_of(call.store)
    failed = await queue.apply(partial(transactions.retry_failed_turn, call.session_key))
    if failed is not None:
        return _let_retry_begin(call, failed)
    match await queue.requeue_last_turn(call.session_key, call.message):
        case None:
            return NOTHING_TO_RETRY
        case Rejected() as refused:
            return refused.text
        case again:
            return _let_retry_begin(call, again)


def _let_retry_begin(call: CommandCall, lane: LaneRow) -> str | None:
    """Let the retried turn begin; return the answer if other turns come before it."""
    call.gateway.agents.evict(call.session_key)
    queue_of(call.store).note_lane(lane)
    return RETRIED_LATER if lane.running or lane.waiting > 1 else None


async def _take_back_turns(call: CommandCall, turns: int) -> UndoneTurns | None:
    take_back = partial(transactions.undo_turns, call.session_key, turns)
    taken = await queue_of(call.store).apply(take_back)
    if taken is not None:
        call.gateway.agents.evict(call.session_key)
    return taken


async def _run_queue_command(call: CommandCall) -> str:
    asked, store, key = parse_queue_request(call.arguments), call.store, call.session_key
    match asked.wish:
        case QueueAction.CANCEL:
            gone = await store.cancel_queued(key, asked.seq, by="/queue")
            return taken_out_answer(gone) if gone else unknown_number_answer(asked.seq)
        case QueueAction.MOVE:
            return await _move_turn(call, asked)
        case QueueAction.CLEAR:
            gone = await store.clear_queue(key, by="/queue")
            return queue_cleared_answer(gone) if gone else queue_list(())
        case _:
            return queue_list(await store.list_queued(key))


async def _move_turn(call: CommandCall, asked: QueueRequest) -> str:
    try:
        await call.store.move_queued(call.session_key, asked.seq, asked.place)
    except InvalidInputError:
        return unknown_number_answer(asked.seq)
    return queue_list(await call.store.list_queued(call.session_key))


async def _show_status(call: CommandCall) -> str:
    store, key = call.store, call.session_key
    seen, running = await store.explain(key), call.gateway.running_turn(key)
    waiting = await store.queue_depth(key)
    if seen.entry is None:
        return status_answer(Situation(session_id=None, waiting=waiting))
    record = await store.db.get_session(seen.entry.session_id)
    works = running is not None and seen.lane.running
    context = running.context if running is not None and works else None
    return status_answer(
        Situation(
            session_id=seen.entry.session_id,
            title=record.title if record is not None else None,
            messages=record.message_count if record is not None else 0,
            model=(seen.entry.model_override or {}).get("model"),
            running_for=seen.now - running.started_at if running is not None and works else None,
            doing=control_of(context).doing if context is not None else None,
            stopping=running is not None and running.stop_reason is not None,
            waiting=waiting,
            next_reset=seen.next_reset_local,
        )
    )


COMMANDS: Final = (
    Command("retry", _retry_last_turn, summary="Try the last turn again, or the one that failed."),
    Command(
        "undo", _undo_turns, summary="Take back the last turns: one, if no number is given.", usage="[number]"
    ),
)
QUEUE_COMMANDS: Final = (
    Command(
        "queue",
        _run_queue_command,
        summary="Let a message wait for a turn of its own; or see what waits, and change it.",
        usage="[text, list, cancel number, move number place, clear]",
        queued=message_to_queue,
    ),
    Command("status", _show_status, summary="Say what runs and waits here, and which conversation this is."),
)
