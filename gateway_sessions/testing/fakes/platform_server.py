"""What all fakes of platforms share: a thread, a port, planned faults, a log of calls, and what people see.

A fake runs in a thread, as a platform runs on a machine of its own: what a program does to its event loop, or
a test to its clock, does not change how the platform behaves.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
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
LONGEST_REFUSAL: Final = 300
"""The most characters of a refusal that are kept."""


@dataclass(frozen=True, slots=True)
class PlatformCall:
    """A call that a fake was asked to do."""

    method: str
    parameters: Mapping[str, Any]
    at: float
    """When, in seconds of the monotonic clock."""
    status: int
    refusal: str = ""
    """What the platform answered in place of doing it; empty if it did it."""


@dataclass(frozen=True, slots=True)
class BotMessage:
    """A message of the bot, as people see it."""

    place: str
    """Where it stands: with a person of that name, or in a group, a channel or a room: `#team`."""
    id: str
    text: str
    """The text as people read it, with the labels of buttons in brackets."""


class FakePlatformServer:
    """A fake of a platform, for `with` or `async with`."""

    def __init__(self) -> None:
        self.faults: Faults = Faults()
        self.calls: list[PlatformCall] = []
        self.failed_deliveries: list[str] = []
        """What went wrong when the platform called the bot, a sentence for each time."""
        self._server = FakeHttpServer(self._answer)
        self._portal: BlockingPortal | None = None
        self._until_end = ExitStack()

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._server.url

    def at_port(self, port: int) -> Self:
        """Listen at that port, and not at any that is free; return the fake itself."""
        self._server.port = port
        return self

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration by which an adapter speaks with this fake.

        A file that they name is written into *folder*.
        """
        raise NotImplementedError

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the bot that people see, wherever they stand."""
        raise NotImplementedError

    @property
    def pending(self) -> int:
        """The number of messages and events that the bot has not taken."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(self._portal.wrap_async_context_manager(self._server.listening()))
            for duty in self._duties():
                stack.callback(_end_duty, self._portal.start_task_soon(duty))
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

    def _log_call(self, method: str, parameters: Mapping[str, Any], response: FakeResponse) -> None:
        refusal = _refusal_in(response)
        self.calls.append(PlatformCall(method, parameters, time.monotonic(), response.status, refusal))

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


def _end_duty(duty: Future[object]) -> None:
    """Cancel what runs as long as the fake does; raise what has ended it before."""
    if not duty.cancel():
        duty.result()


def _refusal_in(response: FakeResponse) -> str:
    """Return what an answer says if it refuses; Slack says so in an answer that looks like success."""
    if response.status < 400 and not response.body.startswith(b'{"ok": false'):
        return ""
    return response.body.decode("utf-8", "replace")[:LONGEST_REFUSAL]
