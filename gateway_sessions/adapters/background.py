"""What an adapter does as long as it is connected."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager

import anyio

from gateway_sessions.errors import CancelledItselfError


def block_ends() -> bool:
    """Whether a block around the caller was cancelled; else a cancellation leaked out of what it called."""
    return anyio.current_effective_deadline() == -math.inf


@asynccontextmanager
async def in_background(work: Callable[[], Coroutine[object, object, None]]) -> AsyncGenerator[None]:
    """Run a coroutine function within the block, and nothing behind it.

    If it fails, the block is left by its error at once. That one and errors of the block itself come out as
    they are, not in a group. A cancellation that comes out of it unasked for is a `CancelledItselfError`.
    """
    failure: Exception | None = None

    async def run() -> None:
        nonlocal failure
        try:
            await work()
        except asyncio.CancelledError:
            if block_ends():
                raise
            failure = CancelledItselfError("an adapter's work in the background")
            tasks.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 -- the block ends with it
            failure = error
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            yield
        except Exception as error:  # noqa: BLE001 -- raised again outside of the group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
