"""A program that talks to a webhook over real sockets: it posts messages, and gets replies."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway_sessions._process.clock import SystemClock
from gateway_sessions._process.streams import closing_stream
from gateway_sessions.adapters.webhook import Signer, Webhook, WebhookSettings
from gateway_sessions.core.delivery.retry_policy import SendFailure
from gateway_sessions.ports import Clock
from gateway_sessions.testing.contract.adapter import AdapterBench
from tests.unit.adapters.loopback import loopback

SECRET = "whsec_" + "c2VjcmV0IG9mIHNpeHRlZW4gYnl0ZXM="
ANSWERS = {
    SendFailure.UNAVAILABLE: "503 Service Unavailable\r\n",
    SendFailure.RATE_LIMITED: "429 Too Many Requests\r\nretry-after: 7\r\n",
    SendFailure.REFUSED: "400 Bad Request\r\n",
    SendFailure.UNKNOWN: "500 Internal Server Error\r\n",
}


class WebhookBench(AdapterBench):
    """Both ends are ours, the bytes between them are spelled out."""

    def __init__(
        self, *, deduplicates: bool = False, clock: Clock | None = None, unreadable: Path | None = None
    ) -> None:
        self.unreadable = unreadable
        self.clock = clock or SystemClock()
        self.signer = Signer([SECRET])
        self.deduplicates = deduplicates
        self.received: dict[str, Any] = {}
        self.answer: str | None = None
        self.answering = asyncio.Event()
        self.answering.set()
        self.numbers = itertools.count(1)
        self.last: tuple[str, str] = ("", "")
        self.told: list[tuple[dict[str, str], bytes]] = []
        self.head = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[WebhookBench]:
        async with loopback(self.take) as self.port:
            self.adapter: Webhook = Webhook(
                WebhookSettings(
                    secrets=[SECRET],
                    callback_url=f"http://127.0.0.1:{self.port}/replies?of=agent",
                    port=0,
                    receiver_deduplicates=self.deduplicates,
                    unreadable=self.unreadable,
                ),
                clock=self.clock,
            )
            yield self

    # The program posts

    async def says(self, text: str) -> bool:
        self.last = (f"m{next(self.numbers)}", text)
        return await self.delivers_again()

    async def delivers_again(self) -> bool:
        message_id, text = self.last
        body = json.dumps({"source": {"chat_id": "desk", "user_id": "ann"}, "text": text}).encode()
        try:
            return (await self.post(body, self.signer.headers(message_id, body, self.clock.now())))[0] == 202
        except (OSError, EOFError):
            return False

    async def garbles(self) -> bool:
        body = b'{"source": 7, "text": "\xff'
        headers = self.signer.headers(f"g{next(self.numbers)}", body, self.clock.now())
        status, _ = await self.post(body, headers)
        return status == (422 if self.unreadable is None else 200)

    async def post(
        self, body: bytes, headers: dict[str, str], first: str = "POST /messages HTTP/1.1"
    ) -> tuple[int, bytes]:
        """Status and body of the answer."""
        told = {"host": "x", "content-length": str(len(body)), **headers}
        head = "\r\n".join([first, *(f"{name}: {value}" for name, value in told.items() if value)])
        return await self.exchange(head.encode("latin-1") + b"\r\n\r\n" + body)

    async def exchange(self, sent: bytes) -> tuple[int, bytes]:
        assert self.adapter.address is not None
        reader, writer = await asyncio.open_connection(*self.adapter.address)
        async with closing_stream(writer):
            writer.write(sent)
            head = await reader.readuntil(b"\r\n\r\n")
            self.head = head.decode("latin-1").lower()
            return int(head.split(b" ")[1]), await reader.read()

    # The program gets

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers["content-length"]))
        assert first == "POST /replies?of=agent HTTP/1.1"
        assert self.signer.is_signed(headers, body, self.clock.now())
        self.told.append((headers, body))
        await self.answering.wait()
        writer.write(self.answered(headers["webhook-id"], json.loads(body)).encode("latin-1"))

    def answered(self, webhook_id: str, reply: dict[str, Any]) -> str:
        if self.answer is not None:
            return f"HTTP/1.1 {self.answer}\r\n"
        key = webhook_id if self.deduplicates else f"{len(self.received)}"
        self.received.setdefault(key, reply)
        answer = json.dumps({"message_id": f"r{list(self.received).index(key)}"})
        return f"HTTP/1.1 200 OK\r\ncontent-length: {len(answer)}\r\n\r\n{answer}"

    async def shown(self) -> str:
        messages = [one["message"] for one in self.received.values()]
        return "\n".join(
            "\n".join([one.get("text", ""), *(each["url"] for each in one.get("attachments", ()))])
            for one in messages
        )

    @asynccontextmanager
    async def hanging(self) -> AsyncIterator[None]:
        self.answering.clear()
        self.answer = ANSWERS[SendFailure.UNKNOWN]
        try:
            yield
        finally:
            self.answer = None
            self.answering.set()

    @asynccontextmanager
    async def failing(self, how: SendFailure) -> AsyncIterator[None]:
        self.answer = ANSWERS[how]
        try:
            yield
        finally:
            self.answer = None
