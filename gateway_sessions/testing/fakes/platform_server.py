"""What all fakes of platforms share: a thread with a loop of its own, a port, planned faults, a log of calls.

A fake runs in a thread, as a platform runs on a machine of its own: what a program does to its event loop, or
a test to its clock, does not change how the platform behaves.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from gateway_sessions.testing.fakes.faults import Faults
from gateway_sessions.testing.fakes.http_server import (
    FakeHttpServer,
    FakeRequest,
    FakeResponse,
    UpgradedConnection,
)

LOOK_SECONDS: Final = 0.005
"""The pause between two looks of a test at what a fake has seen."""


@dataclass(frozen=True, slots=True)
class PlatformCall:
    """A call that a fake was asked to do."""

    method: str
    parameters: Mapping[str, Any]
    at: float
    """When, in seconds of the monotonic clock."""
    status: int


class FakePlatformServer:
    """A fake of a platform, for `with` or `async with`."""

    def __init__(self) -> None:
        self.faults: Faults = Faults()
        self.calls: list[PlatformCall] = []
        self._server = FakeHttpServer(self._answer)
        self._portal: BlockingPortal | None = None
        self._until_end = ExitStack()

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._server.url

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._server.listening()))
            for duty in self._duties():
                stack.callback(self._portal.start_task_soon(duty).cancel)
            self._until_end = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._until_end.close()

    async def __aenter__(self) -> Self:
        return await anyio.to_thread.run_sync(self.__enter__)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.__exit__)

    @asynccontextmanager
    async def outage(self) -> AsyncGenerator[None]:
        """Be unreachable within the block; what people write meanwhile is delivered afterwards."""
        await self._in_thread(self._server.stop)
        try:
            yield
        finally:
            await self._in_thread(self._server.start)

    async def wait_until(self, true: Callable[[], object], *, seconds: float = 10) -> None:
        """Wait until something is so."""
        with anyio.fail_after(seconds):
            while not true():
                await anyio.sleep(LOOK_SECONDS)

    async def _in_thread(self, work: Callable[[], Awaitable[object]]) -> None:
        portal = self._portal
        assert portal is not None, "the fake is not running"
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: portal.call(work))

    def _duties(self) -> list[Callable[[], Awaitable[object]]]:
        """Return what runs as long as the fake does."""
        return []

    async def _answer(self, request: FakeRequest) -> FakeResponse | UpgradedConnection:
        """Answer a request; this runs in the fake's thread."""
        raise NotImplementedError
