"""A fake Slack with one person, and one of the adapters to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from gateway_sessions.adapters import Adapter
from gateway_sessions.testing.contract.adapter import PATIENCE_SECONDS, AdapterBench, SendFailure
from gateway_sessions.testing.fakes.faults import ALWAYS, CutConnection, Delay, Fault, RateLimit, RefusedCall
from gateway_sessions.testing.fakes.slack import FakeSlack

PAUSE_SECONDS = 1
"""Slack tells pauses in whole seconds."""
FAULTS: dict[SendFailure, Fault] = {
    SendFailure.RATE_LIMITED: RateLimit(PAUSE_SECONDS),
    SendFailure.REFUSED: RefusedCall(200, "restricted_action"),
    SendFailure.UNKNOWN: CutConnection.AFTER,
}
SHOWS = ("chat.postMessage", "chat.update", "files.completeUploadExternal")


class SlackBench(AdapterBench):
    """The person is called ann, and writes to the bot, or in the thread of a channel."""

    def __init__(self, slack: FakeSlack, adapter: Adapter, channel: str | None = None) -> None:
        self.slack = slack
        self.adapter: Adapter = adapter
        self.channel = channel
        self.thread: str | None = None
        self.last = ""

    async def says(self, text: str) -> bool:
        if self.channel is None:
            self.last = self.slack.people.says("ann", text)
        elif self.thread is None:
            self.last = self.thread = self.slack.people.says("ann", f"@helper {text}", channel=self.channel)
        else:
            self.last = self.slack.people.says("ann", text, channel=self.channel, thread=self.thread)
        return await self.slack.is_taken(self.last, seconds=PATIENCE_SECONDS)

    async def writes_unheard(self, text: str) -> None:
        await self.says(text)
        about = [one for one in self.slack.deliveries.all if one.ts == self.last]
        await self.slack.wait_until(lambda: all(one.given_up for one in about), seconds=PATIENCE_SECONDS)

    async def delivers_again(self) -> bool:
        before = len(self.slack.deliveries.all)
        self.slack.deliveries.again(self.last)
        repeated = self.slack.deliveries.all[before:]
        await self.slack.wait_until(lambda: all(one.taken for one in repeated), seconds=PATIENCE_SECONDS)
        return True

    async def garbles(self) -> bool:
        event = {"type": "message", "channel": "D1", "user": "U1", "text": "x", "ts": "seven"}
        number = self.slack.workspace.new_id("garbled")
        self.slack.people.owe_event({"type": "event_callback", "event": event}, number)
        return await self.slack.is_taken(number, seconds=PATIENCE_SECONDS)

    async def presses(self, label: str) -> None:
        assert await self.slack.is_taken(self.slack.people.presses("ann", label, channel=self.channel))

    async def shown(self) -> str:
        shown = []
        for message in self.slack.shown("ann", channel=self.channel):
            files = [self.slack.workspace.contents[one["id"]].decode() for one in message.get("files", [])]
            shown += [self.slack.seen(message), *files]
        return "\n".join(shown)

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        async with self._with_fault(Delay(1000)):
            yield

    def failing(self, how: SendFailure) -> AbstractAsyncContextManager[None]:
        if how is SendFailure.UNAVAILABLE:
            return self.slack.outage()
        return self._with_fault(FAULTS[how])

    @asynccontextmanager
    async def _with_fault(self, fault: Fault) -> AsyncIterator[None]:
        self.slack.faults.plan(fault, matches=lambda method, _: method in SHOWS, times=ALWAYS)
        try:
            yield
        finally:
            self.slack.faults.clear()
            await asyncio.sleep(2.1 * PAUSE_SECONDS if isinstance(fault, RateLimit) else 0)
