"""Blocking calls in a thread, with progress that is reported back on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio

from gateway_sessions._process.waits import works_while_waiting

T = TypeVar("T")


def called_from_thread(tell: Callable[[T], object] | None) -> Callable[[T], object] | None:
    """Return a function for a thread that calls *tell* on this loop, in the same order."""
    if tell is None:
        return None
    loop = asyncio.get_running_loop()
    return lambda what: loop.call_soon_threadsafe(partial(tell, what))


@works_while_waiting
async def in_thread(work: Callable[[], T]) -> T:
    """Run blocking *work* in a thread.

    A thread cannot be stopped. So a cancellation waits until the work is done: else the next work on the
    same file would run beside it.
    """
    done = asyncio.get_running_loop().run_in_executor(None, work)
    interrupted: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not done.done():
            try:
                await asyncio.wait({done})
            except asyncio.CancelledError as cancelled:
                interrupted = cancelled
    if interrupted is not None:
        done.exception()  # marks its error as seen, or asyncio would log it
        raise interrupted
    return done.result()
