"""Work that nobody breaks off, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio


async def to_the_end(
    work: Callable[[], Coroutine[Any, Any, None]], seconds: float
) -> asyncio.CancelledError | None:
    """Do *work* and wait for its end; `TimeoutError` if that does not come in time: then it is broken off.

    Returns the cancellation that came meanwhile: nothing is undone by it, so it has to wait. It is raised if
    the work fails: whoever was told to end would try again else.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    cancelled: asyncio.CancelledError | None = None
    # The shield is around the end of the group as well, which waits for work that was broken off.
    with anyio.CancelScope(shield=True):
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(_outcome(work))
            while not task.done() and loop.time() < until:
                try:
                    await asyncio.wait({task}, timeout=until - loop.time())
                except asyncio.CancelledError as error:
                    cancelled = error
            task.cancel()
        failure = TimeoutError() if task.cancelled() else task.result()
        if failure is not None:
            raise (failure if cancelled is None else cancelled) from (None if cancelled is None else failure)
    return cancelled


async def _outcome(work: Callable[[], Coroutine[Any, Any, None]]) -> Exception | None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001 -- handed to the one who waits for it
        return error
    return None
