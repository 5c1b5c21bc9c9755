"""A fake homeserver with one person, and the adapter to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from gateway_sessions.core.delivery.retry_policy import SendFailure
from gateway_sessions.integrations.matrix import HomeserverAdapter
from gateway_sessions.testing.contract.adapter import PATIENCE_SECONDS, AdapterBench
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit, RefusedCall
from gateway_sessions.testing.fakes.matrix import FakeMatrix

PAUSE_SECONDS = 0.02
FAULTS: dict[SendFailure, Fault] = {
    SendFailure.RATE_LIMITED: RateLimit(PAUSE_SECONDS),
    SendFailure.REFUSED: RefusedCall(403, "You don't have permission to post that to the room."),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}


class MatrixBench(AdapterBench):
    """The person is called ann."""

    def __init__(self, fake: FakeMatrix, adapter: HomeserverAdapter) -> None:
        self.fake = fake
        self.adapter: HomeserverAdapter = adapter
        self.last = ""

    async def says(self, text: str) -> bool:
        self.last = self.fake.says("ann", text)
        return await self.fake.is_taken(self.last, seconds=PATIENCE_SECONDS)

    async def writes_unheard(self, text: str) -> None:
        self.fake.says("ann", text)

    async def delivers_again(self) -> bool:
        return await self.fake.is_taken(self.fake.again(self.last))

    async def garbles(self) -> bool:
        return await self.fake.is_taken(self.fake.delivers("ann", {"type": 7, "content": "…"}))

    async def shown(self) -> str:
        return "\n".join(as_seen(self.fake, message) for message in self.fake.shown("ann"))

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        async with self._with_fault(Delay(1000)):
            yield

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        if how is SendFailure.UNAVAILABLE:
            return self.fake.outage()
        return self._with_fault(FAULTS[how])

    @asynccontextmanager
    async def _with_fault(self, fault: Fault) -> AsyncIterator[None]:
        self.fake.faults.plan(fault, method="send", times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()
            await asyncio.sleep(2 * PAUSE_SECONDS)


def as_seen(fake: FakeMatrix, message: dict[str, Any]) -> str:
    """Return the text of a message, and the address, name and content of its file."""
    content = message["content"]
    url = content.get("url", content.get("geo_uri", ""))
    file = fake.endpoints.media.get(url.rpartition("/")[2])
    return " ".join([str(content["body"]), url, file.content.decode() if file else ""])
