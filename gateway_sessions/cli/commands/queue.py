"""`queue list`, `cancel` and `requeue`: waiting messages, owed replies and dead letters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway_sessions.cli.declare import MAX_ROW_ID, DryRun, Limit, command, whole_number
from gateway_sessions.cli.exit_codes import NotWaitingError
from gateway_sessions.cli.lookup import find_lane
from gateway_sessions.core.notices.human_units import AT_START, counted
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.cli.context import CommandContext
    from gateway_sessions.core.queue.items import QueuedMessage
    from gateway_sessions.runtime.operator.store_client import StoreClient

app: Final = typer.Typer(help="Look at waiting messages, cancel them, and retry dead letters.")


@command(app, "list")
async def list_queue(
    context: CommandContext,
    *,
    key: Annotated[str | None, typer.Argument(help="Only this lane.", metavar="KEY")] = None,
    dead: Annotated[
        bool, typer.Option("--dead", help="List messages and replies that were given up.")
    ] = False,
    limit: Limit = 50,
) -> None:
    """List waiting and running messages and owed replies; or those that were given up."""
    if dead:
        await _list_dead(context, limit)
    else:
        await _list_waiting(context, key, limit)


async def _list_waiting(context: CommandContext, key: str | None, limit: int) -> None:
    from gateway_sessions.cli.output.queues import waiting_page
    from gateway_sessions.storage.transactions.queue import outbox

    found: list[QueuedMessage] = []
    async with context.open_client() as client:
        named = await find_lane(client, key) if key else None
        for lane in [named] if named else await _lanes_in_use(client, limit):
            if len(found) < limit:
                found += await client.queued(lane)
        alive = await client.living()
        replies = await client.db.read(partial(outbox.owed_replies, limit, named))
    shown, served = found[:limit], alive is None or bool(alive)
    if shown or replies:
        page = partial(waiting_page, shown, replies, context.now(), served=served)
        context.answer(shown, page, replies=replies, served=served)
        if any(one.cut_off for one in shown):
            context.note(f"What was cut off is tried again {'soon' if served else AT_START}.")
    else:
        context.answer([], lambda: None, replies=[], served=served)
        context.note("Nothing waits.")


async def _lanes_in_use(client: StoreClient, limit: int) -> list[str]:
    """Return the lanes where turns run, were cut off, or wait."""
    from gateway_sessions.storage.transactions.queue import waiting as queue
    from gateway_sessions.storage.transactions.upkeep import status

    in_use = await client.db.read(partial(status.lanes_in_use, limit))
    waiting = await client.db.read(queue.waiting_lanes)
    return list(dict.fromkeys([one.session_key for one in in_use] + [*waiting]))


async def _list_dead(context: CommandContext, limit: int) -> None:
    from gateway_sessions.cli.output.queues import dead_page
    from gateway_sessions.storage.transactions.queue import outbox
    from gateway_sessions.storage.transactions.queue import waiting as queue

    async with context.open_client() as client:
        letters = await client.db.read(partial(queue.dead_letters, limit))
        replies = await client.db.read(partial(outbox.dead_replies, limit))
    if letters or replies:
        page = partial(dead_page, letters, replies, context.now())
        context.answer(letters, page, replies=replies)
    else:
        context.answer([], lambda: None, replies=[])
        context.note("Nothing was given up.")


@command(app, "cancel")
async def cancel(
    context: CommandContext,
    *,
    key: Annotated[str, typer.Argument(help="The lane.", metavar="KEY")],
    seq: Annotated[
        int | None,
        typer.Argument(
            parser=whole_number(1, MAX_ROW_ID),
            help="The number of the message, as `queue list` shows it.",
            metavar="SEQ",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Cancel all messages that wait there.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove waiting messages from a lane's queue. A running turn goes on."""
    if (seq is None) == (not every):
        problem = "say which message: its number, or --all"
        raise InvalidInputError(problem)
    async with context.open_client() as client:
        lane = await find_lane(client, key)
        if dry_run:
            found = await _messages_to_cancel(client, lane, seq)
            context.answer_text(
                f"Would cancel {counted(len(found), 'message')} on {lane}.", *found, dry_run=True
            )
            return
        context.confirm(f"Cancel {'everything that waits' if every else f'message {seq}'} on {lane}?")
        if every:
            gone: int = await client.do("clear_queue", session_key=lane, by="operator")
        else:
            gone = await client.do("cancel_queued", session_key=lane, seq=seq, by="operator")
    if not gone and not every:
        raise NotWaitingError(lane, seq)
    context.answer_text(f"Cancelled {counted(gone, 'message')}.", cancelled=gone)


async def _messages_to_cancel(client: StoreClient, lane: str, seq: int | None) -> list[QueuedMessage]:
    """Return the messages that a cancellation would take out; all waiting ones if *seq* is None."""
    from gateway_sessions.core.queue.items import messages_to_cancel
    from gateway_sessions.storage.transactions.queue import waiting as queue

    found = messages_to_cancel(await client.db.read(partial(queue.list_queue, lane)), seq)
    if not found and seq is not None:
        raise NotWaitingError(lane, seq)
    return found


@command(app, "requeue")
async def requeue(
    context: CommandContext,
    *,
    number: Annotated[
        int,
        typer.Argument(
            parser=whole_number(1, MAX_ROW_ID), help="Its id, as `queue list --dead` shows it.", metavar="ID"
        ),
    ],
    reply: Annotated[
        bool, typer.Option("--reply", help="The id is that of a reply, which is sent again.")
    ] = False,
) -> None:
    """Retry a message or a reply that was given up."""
    async with context.open_client() as client:
        if reply:
            await client.do("retry_reply", reply_id=number)
            context.answer_text(f"Reply {number} will be sent again.", reply=number)
            return
        lane = await client.do("requeue", item_id=number)
    context.answer_text(f"It waits again on {lane}.", session_key=lane)
