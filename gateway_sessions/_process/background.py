"""Background work ends with a block: a `Resource` has a host task for it, and `in_background` runs beside it.

The task that opens a resource and the one that closes it may differ (test fixtures, start-up and shutdown
callbacks of a bot library), which a task group does not allow. So each resource runs its task group inside a
host task of its own, the only task that this package creates outside a group.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import cache
from types import TracebackType
from typing import Any, Self, cast

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.errors import CancelledItselfError, StoreStoppedError


class Resource:
    """Opens, serves and closes inside its host task; after a crash, every call raises that crash."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._host: asyncio.Task[None] | None = None
        self._closing: asyncio.Event | None = None
        self._running = False

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Open the resource, and start its background tasks in *tasks*."""
        raise NotImplementedError

    async def _finish(self) -> None:
        """Do the last work, while the background tasks still run."""

    async def __aenter__(self) -> Self:
        if self._closing is not None:
            raise StoreStoppedError(self._name)
        self._closing = asyncio.Event()
        await asyncio.get_running_loop().run_in_executor(None, _load_event_loop_support)
        opened = asyncio.get_running_loop().create_future()
        self._host = asyncio.create_task(self._run_host(opened), name=self._name)
        try:
            await asyncio.wait({self._host, opened}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._host.cancel()
            await _wait_for_host(self._host)
            raise
        if self._host.done():
            _raise_crash(self._host)
            raise StoreStoppedError(self._name)  # the program has cancelled all tasks, ours as well
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._host is None or self._closing is None:
            return
        self._closing.set()
        interrupted = await _wait_for_host(self._host)
        if exc is None and interrupted is None:
            _raise_crash(self._host)
        if interrupted is not None:
            raise interrupted

    def _check_running(self) -> None:
        """Raise `StoreStoppedError`, caused by the crash if there was one, unless the resource is open."""
        if self._running:
            return
        crash = _crash_of(self._host) if self._host is not None and self._host.done() else None
        raise StoreStoppedError(self._name) from crash

    async def _run_host(self, opened: asyncio.Future[None]) -> None:
        assert self._closing is not None  # noqa: S101 -- set before this task was made
        async with AsyncExitStack() as cleanup:
            try:
                async with anyio.create_task_group() as tasks:
                    await self._start(tasks, cleanup)
                    self._running = True
                    opened.set_result(None)
                    await self._closing.wait()
                    await self._finish()
                    tasks.cancel_scope.cancel()
            finally:
                self._running = False


@cache
def _load_event_loop_support() -> None:
    """Import anyio's backend for asyncio, which would block the loop for too long."""
    anyio.run(anyio.sleep, 0)


async def _wait_for_host(host: asyncio.Task[None]) -> asyncio.CancelledError | None:
    """Wait for the end of *host* even if the caller is cancelled, and return that cancellation."""
    interrupted: asyncio.CancelledError | None = None
    while not host.done():
        try:
            await asyncio.wait({host})
        except asyncio.CancelledError as cancelled:
            interrupted = cancelled
    return interrupted


def _crash_of(host: asyncio.Task[None]) -> BaseException | None:
    if host.cancelled():
        return None
    return _only_error_of_group(host.exception())


def _only_error_of_group(crash: BaseException | None) -> BaseException | None:
    """Return the only error of a group, so that callers can catch it by its class."""
    if not isinstance(crash, BaseExceptionGroup):
        return crash
    group = cast("BaseExceptionGroup[BaseException]", crash)
    return _only_error_of_group(group.exceptions[0]) if len(group.exceptions) == 1 else group


def _raise_crash(host: asyncio.Task[None]) -> None:
    if (crash := _crash_of(host)) is not None:
        raise crash


def is_block_cancelled() -> bool:
    """Return whether a block around the caller was cancelled, and not only a callee by itself."""
    # A cancelled scope of anyio has a deadline in the past of all clocks; nothing else tells the two apart.
    return anyio.current_effective_deadline() == -math.inf


@asynccontextmanager
async def in_background(work: Callable[[], Coroutine[object, object, None]]) -> AsyncGenerator[None]:
    """Run a coroutine function within the block, and leave nothing of it running after the block.

    If the function fails, its error ends the block at once. That error and errors of the block itself are
    raised as they are, not in a group. A cancellation that the function raises and nobody asked for becomes a
    `CancelledItselfError`.
    """
    failure: Exception | None = None

    async def run() -> None:
        nonlocal failure
        try:
            await work()
        except asyncio.CancelledError:
            if is_block_cancelled():
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


class OpenCalls:
    """Counts the calls of a resource; once the count is closed, further calls are refused."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open = 0
        self._closed = False
        self._done = anyio.Event()

    @contextmanager
    def count_call(self) -> Generator[None]:
        """Count a call for the time of a block; `StoreStoppedError` if the count is closed."""
        if self._closed:
            raise StoreStoppedError(self._name)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._done.set()

    async def close(self, limit: timedelta) -> None:
        """Refuse further calls, and wait for the end of those that are open: so long in real time at most."""
        self._closed = True
        with anyio.move_on_after(limit.total_seconds()):
            while self._open:
                self._done = anyio.Event()
                await self._done.wait()


def start_task_in(tasks: TaskGroup, name: str, work: Callable[..., Any], *arguments: Any) -> None:
    """Start a task of a resource; `StoreStoppedError` if the resource has ended, as after a crash."""
    try:
        tasks.start_soon(work, *arguments)
    except RuntimeError as error:  # that is what a group of tasks says that has ended
        raise StoreStoppedError(name) from error
