"""The platform's side of an adapter, as a test plays it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import StrEnum
from typing import Final

import anyio

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery import SendFailure
from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.keys import build_session_key
from gateway_sessions.core.receipts import Accepted, Disposition, Receipt

PATIENCE_SECONDS: Final = 10


class Ability(StrEnum):
    """What a platform may have or lack besides what its capabilities tell."""

    ACKNOWLEDGES = "acknowledges"  # it learns whether a message was taken, and keeps it if it was not
    REDELIVERS = "redelivers"  # its messages have ids, and may come twice


class AdapterBench(ABC):
    """A platform, and the adapter to it. One person writes in one chat."""

    adapter: Adapter

    @abstractmethod
    async def says(self, text: str) -> bool:
        """That person writes a new message. Where the platform learns it: whether the message was taken."""

    @abstractmethod
    async def garbles(self) -> bool:
        """The platform brings something that the mapping cannot read: whether it will not bring that again.

        True as well where there is nothing that could not be read.
        """

    @abstractmethod
    async def shown(self) -> str:
        """What people see, the oldest first, in one text; of attachments their names and addresses."""

    @abstractmethod
    def hanging(self) -> AbstractAsyncContextManager[None]:
        """Within the block the platform answers to no send."""

    async def delivers_again(self) -> bool:
        """The platform delivers its last message once more; asked only of those that can."""
        raise NotImplementedError

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        """Within the block each send fails like that; asked only for what stands in `failures`."""
        raise NotImplementedError


class Inbox:
    """Takes what an adapter hands over, as a gateway does."""

    def __init__(self) -> None:
        self.messages: list[InboundMessage] = []
        self.calls = 0
        self.under_way = 0
        self.failure: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()
        self._changed = asyncio.Condition()

    async def __call__(self, message: InboundMessage) -> Receipt:
        """Take it, once the inbox is open, or fail."""
        self.calls += 1
        self.under_way += 1
        await self._tell()
        try:
            await self.open.wait()
            if self.failure is not None:
                raise self.failure
            self.messages.append(message)
        finally:
            self.under_way -= 1
            await self._tell()
        return Accepted(
            seq=len(self.messages),
            session_key=build_session_key(message.source),
            session_id="s",
            disposition=Disposition.STARTS,
        )

    async def wait_for(self, count: int) -> list[InboundMessage]:
        """What has arrived, once it is so many."""
        await self._until(lambda: len(self.messages) >= count)
        return self.messages

    async def wait_for_text(self, text: str) -> None:
        """Wait until a message of that text has arrived, whatever comes before it."""
        await self._until(lambda: any(one.text == text for one in self.messages))

    async def wait_for_call(self) -> None:
        """Wait until something is being handed over, or was."""
        await self._until(lambda: self.calls > 0)

    async def wait_for_rest(self) -> None:
        """Wait until nothing is being handed over."""
        await self._until(lambda: self.under_way == 0)

    async def _until(self, met: Callable[[], bool]) -> None:
        async with self._changed:
            with anyio.fail_after(PATIENCE_SECONDS):
                await self._changed.wait_for(met)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def nothing_left() -> AsyncGenerator[None]:
    """No task that was started in the block is there behind it, given a moment."""
    before = asyncio.all_tasks()
    yield
    if left := asyncio.all_tasks() - before:
        await asyncio.wait(left, timeout=PATIENCE_SECONDS)
    assert asyncio.all_tasks() - before == set()
