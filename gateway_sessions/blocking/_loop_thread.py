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
    """A thread with an event loop, on which other threads run calls and wait for them."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._portal: BlockingPortal | None = None
        self._open = ExitStack()

    def start(self, resource: AbstractAsyncContextManager[object]) -> None:
        """Start the thread, once only, and open the resource on its loop."""
        _check_no_running_loop()
        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal("asyncio"))
            # After the resource has closed, waiting calls would never end: they are cancelled.
            opened.callback(portal.call, partial(portal.stop, cancel_remaining=True))
            opened.enter_context(portal.wrap_async_context_manager(resource))
            self._portal = portal
            self._open = opened.pop_all()

    def stop(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the resource, cancel waiting calls, and end the thread."""
        self._open.__exit__(exc_type, exc, traceback)

    def run_and_wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a coroutine, which is cancelled if this thread is interrupted meanwhile."""
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
    """A call that can be cancelled, even by a thread that does not know whether it has begun."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self.wanted = True
        """False once nobody waits for the call, which then does not begin."""
        self._scope: CancelScope | None = None
        self._over = False

    @property
    def under_way(self) -> bool:
        """Whether the call has begun and not ended."""
        return self._scope is not None and not self._over

    async def run(self) -> T:
        """Run the call on the loop."""
        with CancelScope() as self._scope:
            try:
                if self.wanted:
                    return await self._work()
            finally:
                self._over = True
        raise CancelledError

    async def cancel(self) -> None:
        """Cancel the call."""
        if self._scope is not None:
            self._scope.cancel()


class BlockingPart(Generic[R]):
    """An object that lives on the loop of a thread, for callers on all others."""

    def __init__(self, target: R, loop: LoopThread) -> None:
        self._target = target
        self._loop = loop

    def _run_and_wait(self, work: Callable[[], Awaitable[T]]) -> T:
        return self._loop.run_and_wait(work)

    def _call_on_loop(self, look: Callable[[], T]) -> T:
        """Return the result of a plain function that runs on the loop, so that nothing changes meanwhile."""

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
        """Yield the items of an asynchronous generator, which is closed however the iteration ends."""
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
    """A part that is used with `with`."""

    def __enter__(self) -> Self:
        self._run_and_wait(self._target.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._run_and_wait(lambda: self._target.__aexit__(exc_type, exc, traceback))


class BlockingResource(BlockingPart[ManagedT]):
    """A resource that runs its thread within a `with` block, and leaves nothing running after it."""

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
    """Raise on a thread with a running event loop, which would stand still with all its tasks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise EventLoopRunningError
