"""A fake Mattermost with one person, and the adapter to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from gateway_sessions.core.delivery.retry_policy import SendFailure
from gateway_sessions.integrations.mattermost import MattermostAdapter
from gateway_sessions.testing.contract.adapter import AdapterBench
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit, RefusedCall
from gateway_sessions.testing.fakes.mattermost import FakeMattermost

PAUSE_SECONDS = 0.02
FAULTS: dict[SendFailure, Fault] = {
    SendFailure.RATE_LIMITED: RateLimit(PAUSE_SECONDS),
    SendFailure.REFUSED: RefusedCall(403, "You do not have the appropriate permissions."),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}


class MattermostBench(AdapterBench):
    """The person is called ann."""

    def __init__(self, fake: FakeMattermost, adapter: MattermostAdapter) -> None:
        self.fake = fake
        self.adapter: MattermostAdapter = adapter
        self.broken = 0
        self.last = ""

    async def says(self, text: str) -> bool:
        self.last = self.fake.says("ann", text)
        return True  # a server does not learn whether a post was taken

    async def writes_unheard(self, text: str) -> None:
        self.fake.says("ann", text)

    async def delivers_again(self) -> bool:
        await self.fake.is_read()
        self.fake.again(self.last)
        return True

    async def garbles(self) -> bool:
        self.broken += 1
        at = self.fake.workspace.now()
        self.fake.delivers("ann", {"id": f"broken{self.broken}", "create_at": at, "user_id": 7})
        return True

    async def shown(self) -> str:
        return "\n".join(as_seen(self.fake, post) for post in self.fake.shown("ann"))

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
        self.fake.faults.plan(fault, method="create_post", times=ALWAYS)
        try:
            yield
        finally:
            self.fake.faults.clear()
            await asyncio.sleep(2 * PAUSE_SECONDS)


def as_seen(fake: FakeMattermost, post: dict[str, Any]) -> str:
    """Return the text of a post, and the names and contents of its files."""
    files = post["metadata"].get("files", [])
    shown = [f"{file['name']} {fake.workspace.files[file['id']].content.decode()}" for file in files]
    return " ".join([str(post["message"]), *shown])
