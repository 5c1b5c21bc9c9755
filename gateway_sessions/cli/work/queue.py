"""`queue`: what waits, and what was given up."""

from __future__ import annotations

from functools import partial

from gateway_sessions.cli.commands.queue import Cancel, ListQueue, Requeue
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.exit_codes import NotWaitingError
from gateway_sessions.cli.lookup import find_lane
from gateway_sessions.cli.output.queues import dead_page, waiting_page
from gateway_sessions.core.queue import QueuedMessage, taken_out
from gateway_sessions.core.telling import AT_START, counted
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.seat import Seat
from gateway_sessions.storage.verbs import outbox, queue, status


async def list_queue(context: CommandContext, asked: ListQueue) -> None:
    """List what waits, or what was given up."""
    if asked.dead:
        await _list_dead(context, asked.limit)
        return
    found: list[QueuedMessage] = []
    async with context.open_client() as client:
        named = await find_lane(client, asked.key) if asked.key else None
        for lane in [named] if named else await _lanes(client, asked.limit):
            if len(found) < asked.limit:
                found += await client.queued(lane)
        alive = await client.living()
        replies = await client.db.read(partial(outbox.owed, asked.limit, named))
    shown, served = found[: asked.limit], alive is None or bool(alive)
    if shown or replies:
        page = partial(waiting_page, shown, replies, context.now(), served=served)
        context.answer(shown, page, replies=replies, served=served)
        if any(one.cut_off for one in shown):
            context.note(f"What was cut off is tried again {'soon' if served else AT_START}.")
    else:
        context.answer([], lambda: None, replies=[], served=served)
        context.note("Nothing waits.")


async def _lanes(client: Seat, limit: int) -> list[str]:
    """Lanes where turns run, were cut off, or wait."""
    in_use = await client.db.read(partial(status.lanes_in_use, limit))
    return list(
        dict.fromkeys([one.session_key for one in in_use] + [*await client.db.read(queue.waiting_lanes)])
    )


async def _list_dead(context: CommandContext, limit: int) -> None:
    async with context.open_client() as client:
        letters = await client.db.read(partial(queue.dead_letters, limit))
        replies = await client.db.read(partial(outbox.dead, limit))
    if letters or replies:
        page = partial(dead_page, letters, replies, context.now())
        context.answer(letters, page, replies=replies)
    else:
        context.answer([], lambda: None, replies=[])
        context.note("Nothing was given up.")


async def cancel(context: CommandContext, asked: Cancel) -> None:
    """Take waiting messages out of a lane's queue."""
    seq, every = asked.seq, asked.every
    if (seq is None) == (not every):
        problem = "say which message: its number, or --all"
        raise InvalidInputError(problem)
    async with context.open_client() as client:
        lane = await find_lane(client, asked.key)
        what = "everything that waits" if every else f"message {seq}"
        if asked.dry_run:
            found = taken_out(await client.db.read(partial(queue.listed, lane)), seq)
            if not found and not every:
                raise NotWaitingError(lane, seq)
            context.answer_text(
                f"Would cancel {counted(len(found), 'message')} on {lane}.", *found, dry_run=True
            )
            return
        context.confirm(f"Cancel {what} on {lane}?")
        if every:
            gone: int = await client.do("clear_queue", session_key=lane, by="operator")
        else:
            gone = await client.do("cancel_queued", session_key=lane, seq=seq, by="operator")
    if not gone and not every:
        raise NotWaitingError(lane, seq)
    context.answer_text(f"Cancelled {counted(gone, 'message')}.", cancelled=gone)


async def requeue(context: CommandContext, asked: Requeue) -> None:
    """Try again a message, or a reply, that was given up."""
    number = asked.number
    async with context.open_client() as client:
        if asked.reply:
            await client.do("retry_reply", reply_id=number)
            context.answer_text(f"Reply {number} will be sent again.", reply=number)
            return
        lane = await client.do("requeue", item_id=number)
    context.answer_text(f"It waits again on {lane}.", session_key=lane)
