"""A platform that a test plays, and a terminal that is two pipes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway_sessions.adapters.console import Console
from gateway_sessions.errors import GatewaySessionsError
from gateway_sessions.testing import FakePlatform
from gateway_sessions.testing.contract.adapter import AdapterBench, SendFailure


class FakeBench(AdapterBench):
    def __init__(self, adapter: FakePlatform) -> None:
        self.adapter: FakePlatform = adapter
        self.count = 0

    async def says(self, text: str) -> bool:
        self.count += 1
        try:
            await self.adapter.says("ann", text, message_id=f"m{self.count}")
        except GatewaySessionsError:
            return False
        return True

    async def writes_unheard(self, text: str) -> None:
        self.count += 1
        self.adapter.writes_unheard("ann", text, message_id=f"m{self.count}")

    async def presses(self, label: str) -> None:
        await self.adapter.presses("ann", label)

    async def delivers_again(self) -> bool:
        await self.adapter.redelivers(f"m{self.count}")
        return True

    async def garbles(self) -> bool:
        return True  # nothing is mapped here

    async def shown(self) -> str:
        seen: list[str] = []
        for one in self.adapter.sent:
            seen += [one.text, *(file.url for file in one.message.attachments)]
            seen += [button.label for button in one.message.buttons]
        return "\n".join(seen)

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        with self.adapter.late_ack():
            yield

    @asynccontextmanager
    async def failing(self, how: SendFailure) -> AsyncIterator[None]:
        with contextlib.ExitStack() as stack:
            match how:
                case SendFailure.UNAVAILABLE:
                    stack.enter_context(self.adapter.outage())
                case SendFailure.RATE_LIMITED:
                    self.adapter.rate_limit()
                case SendFailure.REFUSED:
                    self.adapter.refuses()
                case SendFailure.UNKNOWN:
                    self.adapter.fails_ambiguously()
            yield


class ConsoleBench(AdapterBench):
    """Two pipes: what is typed goes into one, what is shown comes out of the other."""

    def __init__(self, pipes: contextlib.ExitStack) -> None:
        typed, self.keyboard = os.pipe()
        self.screen, self.written = os.pipe()
        for descriptor in (typed, self.keyboard, self.screen, self.written):
            pipes.callback(os.close, descriptor)
        os.set_blocking(self.keyboard, False)
        os.set_blocking(self.screen, False)
        self.adapter: Console = Console(stdin=typed, stdout=self.written)
        self.seen = b""

    async def says(self, text: str) -> bool:
        os.write(self.keyboard, f"{text}\n".encode())
        return True

    async def garbles(self) -> bool:
        os.write(self.keyboard, b"\xff\xfe \xc3\n")
        return True

    async def shown(self) -> str:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.screen, 1 << 20):
                self.seen += data
        return self.seen.decode()

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        os.set_blocking(self.written, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self.written, b"." * 4096)
        os.set_blocking(self.written, True)
        yield
        await self.shown()
