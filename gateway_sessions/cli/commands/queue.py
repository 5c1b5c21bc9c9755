"""`queue`: what waits, and what was given up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gateway_sessions.cli.commands.looking import lane_named
from gateway_sessions.cli.desk import Desk, run, this_moment
from gateway_sessions.cli.exits import NotWaitingError
from gateway_sessions.cli.options import LAST, DryRun, Limit
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import InvalidInputError

if TYPE_CHECKING:
    from gateway_sessions.core.queue import QueuedMessage

app = typer.Typer(help="Look at what waits, cancel it, or try again what was given up.")


@app.command("list")
def list_queue(
    context: typer.Context,
    key: Annotated[str | None, typer.Argument(help="Only this lane.", metavar="KEY")] = None,
    *,
    dead: Annotated[bool, typer.Option("--dead", help="Messages and replies that were given up.")] = False,
    limit: Limit = 50,
) -> None:
    """List the messages that wait for their turns, or those that were given up."""

    async def work(desk: Desk) -> None:
        if dead:
            await _list_dead(desk, limit)
            return
        from gateway_sessions.cli.queues import waiting_table  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.storage.verbs import queue  # noqa: PLC0415 -- as above

        found: list[QueuedMessage] = []
        async with desk.seat() as seat:
            lanes = [await lane_named(seat, key)] if key else list(await seat.db.read(queue.waiting_lanes))
            for lane in lanes:
                if len(found) < limit:
                    found += await seat.db.read(partial(queue.listed, lane))
        shown = found[:limit]
        if shown:
            desk.answer(shown, partial(waiting_table, shown, this_moment()))
        else:
            desk.answer([], lambda: None)
            desk.note("Nothing waits.")

    run(context, work)


async def _list_dead(desk: Desk, limit: int) -> None:
    from gateway_sessions.cli.queues import dead_page  # noqa: PLC0415 -- --help must not wait for it
    from gateway_sessions.storage.verbs import outbox, queue  # noqa: PLC0415 -- as above

    async with desk.seat() as seat:
        letters = await seat.db.read(partial(queue.dead_letters, limit))
        replies = await seat.db.read(partial(outbox.dead, limit))
    if letters or replies:
        page = partial(dead_page, letters, replies, this_moment())
        desk.answer(letters, page, replies=replies)
    else:
        desk.answer([], lambda: None, replies=[])
        desk.note("Nothing was given up.")


@app.command()
def cancel(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="The lane.", metavar="KEY")],
    seq: Annotated[
        int | None,
        typer.Argument(min=1, max=LAST, help="The number of the message, as `queue list` shows it."),
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All that waits there.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Take waiting messages out of a lane's queue. A running turn goes on."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.core.queue import taken_out  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.storage.verbs import queue  # noqa: PLC0415 -- as above

        if (seq is None) == (not every):
            problem = "say which message: its number, or --all"
            raise InvalidInputError(problem)
        async with desk.seat() as seat:
            lane = await lane_named(seat, key)
            what = "everything that waits" if every else f"message {seq}"
            if dry_run:
                found = taken_out(await seat.db.read(partial(queue.listed, lane)), seq)
                if not found and not every:
                    raise NotWaitingError(lane, seq)
                desk.done(f"Would cancel {counted(len(found), 'message')} on {lane}.", *found, dry_run=True)
                return
            desk.confirm(f"Cancel {what} on {lane}?")
            if every:
                gone: int = await seat.do("clear_queue", session_key=lane, by="operator")
            else:
                gone = await seat.do("cancel_queued", session_key=lane, seq=seq, by="operator")
        if not gone and not every:
            raise NotWaitingError(lane, seq)
        desk.done(f"Cancelled {counted(gone, 'message')}.", cancelled=gone)

    run(context, work)


@app.command()
def requeue(
    context: typer.Context,
    number: Annotated[
        int, typer.Argument(min=1, max=LAST, help="Its id, as `queue list --dead` shows it.", metavar="ID")
    ],
    *,
    reply: Annotated[bool, typer.Option("--reply", help="It is a reply, to be sent again.")] = False,
) -> None:
    """Try again a message, or a reply, that was given up."""

    async def work(desk: Desk) -> None:
        async with desk.seat() as seat:
            if reply:
                await seat.do("retry_reply", reply_id=number)
                desk.done(f"Reply {number} will be sent again.", reply=number)
                return
            lane = await seat.do("requeue", item_id=number)
        desk.done(f"It waits again on {lane}.", session_key=lane)

    run(context, work)
