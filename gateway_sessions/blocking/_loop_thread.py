"""The thread with an event loop on which the blocking classes run their calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from anyio import CancelScope
from anyio.from_thread import BlockingPortal, start_blocking_portal

from gateway_sessions.errors import EventLoopRunningError, StoreStoppedError

T = TypeVar("T")
R = TypeVar("R")
PartT = TypeVar("PartT")
ManagedT = TypeVar("ManagedT", bound=AbstractAsyncContextManager[Any])


class LoopThread:
    """Runs work on its loop for whichever thread asks; each waits for its own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._portal: BlockingPortal | None = None
        self._open = ExitStack()

    def start(self, resource: AbstractAsyncContextManager[object]) -> None:
        """Start the thread and open the resource on its loop; once only."""
        _check_no_running_loop()
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal("asyncio"))
            # Calls that still wait when the resource has closed wait for nothing.
            opened.callback(portal.call, partial(portal.stop, cancel_remaining=True))
            opened.enter_context(portal.wrap_async_context_manager(resource))
            self._portal = portal
            self._open = opened.pop_all()

    def stop(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the resource, cancel whatever still waits, and end the thread."""
        self._open.__exit__(exc_type, exc, traceback)

    def run_and_wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """What the work comes to. It is cancelled if this thread is interrupted while it waits."""
        _check_no_running_loop()
        call = _Call(work)
        try:
            return self._start_on_loop(call.run).result()
        except CancelledError as error:
            raise StoreStoppedError(self._what) from error
        finally:
            call.wanted = False
            if call.under_way:  # this thread was interrupted
                with suppress(StoreStoppedError):
                    self._start_on_loop(call.cancel)

    def _start_on_loop(self, work: Callable[[], Awaitable[T]]) -> Future[T]:
        if self._portal is None:
            raise StoreStoppedError(self._what)
        try:
            return self._portal.start_task_soon(work)
        except RuntimeError as error:  # it has stopped
            raise StoreStoppedError(self._what) from error


class _Call(Generic[T]):
    """Work that can be given up, even by a thread that does not know yet that it has begun."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self.wanted = True
        """Whether somebody waits for it; else it is not even begun."""
        self._scope: CancelScope | None = None
        self._over = False

    @property
    def under_way(self) -> bool:
        """Whether it has begun and not ended."""
        return self._scope is not None and not self._over

    async def run(self) -> T:
        """Do the work."""
        with CancelScope() as self._scope:
            try:
                if self.wanted:
                    return await self._work()
            finally:
                self._over = True
        raise CancelledError

    async def cancel(self) -> None:
        """Cancel it."""
        if self._scope is not None:
            self._scope.cancel()


class BlockingPart(Generic[R]):
    """An object that lives on the loop of a thread, for callers on all others."""

    def __init__(self, target: R, loop: LoopThread) -> None:
        self._target = target
        self._loop = loop

    def _run_and_wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """What a coroutine comes to."""
        return self._loop.run_and_wait(work)

    def _call_on_loop(self, look: Callable[[], T]) -> T:
        """What a plain function answers where nothing changes meanwhile: on the loop."""

        async def work() -> T:
            return look()

        return self._loop.run_and_wait(work)

    def _run_for_part(
        self, kind: Callable[[T, LoopThread], PartT], work: Callable[[], Awaitable[T | None]]
    ) -> PartT | None:
        """Return the result of a coroutine as an object of the same thread; None if it returns None."""
        found = self._run_and_wait(work)
        return None if found is None else kind(found, self._loop)

    def _iterate(self, begin: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        """What an asynchronous generator yields, one at a time; it is closed however the iteration ends."""
        _check_no_running_loop()
        return self._wait_for_items(begin())

    def _wait_for_items(self, items: AsyncIterator[T]) -> Iterator[T]:
        try:
            while True:
                yield self._run_and_wait(items.__anext__)
        except StopAsyncIteration:
            return
        finally:
            # A loop that has ended has closed them, and one that runs here closes them when it ends.
            with suppress(StoreStoppedError, EventLoopRunningError):
                if isinstance(items, AsyncGenerator):
                    self._run_and_wait(items.aclose)


class BlockingScope(BlockingPart[ManagedT]):
    """An object of a thread that is used with `with`."""

    def __enter__(self) -> Self:
        self._run_and_wait(self._target.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run_and_wait(lambda: self._target.__aexit__(exc_type, exc, traceback))


class BlockingResource(BlockingPart[ManagedT]):
    """Opened with `with`: then its thread runs; when the block ends, nothing is left running."""

    def __init__(self, target: ManagedT, loop: LoopThread | None = None) -> None:
        super().__init__(target, loop or LoopThread(type(self).__name__))
        self._is_part = loop is not None

    def __enter__(self) -> Self:
        if self._is_part:
            part = f"{type(self).__name__} of a store that is open already"
            raise StoreStoppedError(part)
        self._loop.start(self._target)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.stop(exc_type, exc, traceback)


def _check_no_running_loop() -> None:
    """A loop that waits for another thread stands still, and all of its tasks with it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise EventLoopRunningError
