"""An endpoint for chat completions on this machine, which answers as a test says, or does not."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from gateway_sessions.adapters._http import Request, ServerExchange
from tests.unit.adapters.loopback import loopback

USED = {"prompt_tokens": 30, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10}}
Script = Callable[["ModelConnection"], Awaitable[None]]


@dataclass
class ModelConnection:
    """The line to whoever asks."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    left: asyncio.Event
    kept: bool = False
    """Whether another question may follow."""

    async def send(self, *pieces: bytes) -> None:
        """Each piece goes out by itself."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def wait_until_closed(self) -> None:
        """Until whoever asks has gone away."""
        await self.reader.read()
        self.left.set()


@dataclass
class FakeModel:
    """Answers each request with the next script."""

    scripts: list[Script] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Whoever asked has closed the connection before it was answered."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    url: str = ""

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.requests]

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeModel]:
        async with loopback(self._converse, tls=tls) as port:
            self.url = f"https://localhost:{port}/v1" if tls else f"http://127.0.0.1:{port}/v1"
            yield self

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        line = ModelConnection(reader, writer, self.left, kept=True)
        while line.kept:
            line.kept = False
            self.requests.append(await ServerExchange(reader, writer, max_body=1 << 20).receive())
            self.asked.set()
            await self.scripts.pop(0)(line)


def event(data: object) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def chunk(text: str | None = None, finish: str | None = None, **delta: object) -> bytes:
    said = {"content": text, **delta} if text is not None else delta
    return event({"model": "large-2026", "choices": [{"delta": said, "finish_reason": finish}]})


def whole_answer(*texts: str) -> bytes:
    """All that a model sends that says this."""
    used = event({"model": "large-2026", "choices": [], "usage": USED})
    return b"".join([*map(chunk, texts), chunk(finish="stop"), used, event("[DONE]")])


def head(kind: str = "text/event-stream", **more: str) -> bytes:
    lines = {"content-type": kind, "connection": "close", **more}
    return "\r\n".join(
        ["HTTP/1.1 200 OK", *(f"{name}: {one}" for name, one in lines.items()), "", ""]
    ).encode()


def send_and_close(*pieces: bytes) -> Script:
    """Send these pieces, and close."""

    async def script(line: ModelConnection) -> None:
        await line.send(*pieces)

    return script


def says(*texts: str) -> Script:
    return send_and_close(head() + whole_answer(*texts))


def send_and_keep_open(*pieces: bytes) -> Script:
    """Send these pieces, and wait for another question."""

    async def script(line: ModelConnection) -> None:
        await line.send(*pieces)
        line.kept = True

    return script


def send_and_hang(*pieces: bytes) -> Script:
    """Send these pieces, and then nothing any more."""

    async def script(line: ModelConnection) -> None:
        await line.send(*pieces)
        await line.wait_until_closed()

    return script


def refuses(status: int, told: object = None, headers: Mapping[str, str] | None = None) -> Script:
    body = json.dumps({"error": {"message": told}}).encode() if told is not None else b""
    lines = {"content-type": "application/json", "connection": "close", **(headers or {})}
    lines["content-length"] = str(len(body))
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
    return send_and_close("\r\n".join([first, *map(": ".join, lines.items()), "", ""]).encode() + body)


def chunked_body(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> Sequence[bytes]:
    """The pieces as chunks of a body whose end is told; without that it is cut off."""
    written = [f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces]
    return [head(**{"transfer-encoding": "chunked", "connection": "keep-alive"}), *written, end]


def calls_tools(*calls: tuple[str, str], text: str | None = None) -> Script:
    """Call these tools with these arguments, the arguments in two pieces."""
    pieces = [chunk(text)] if text is not None else []
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": arguments[:3]}
        begun = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        rest = {"index": index, "function": {"arguments": arguments[3:]}}
        pieces += [chunk(tool_calls=[begun]), chunk(tool_calls=[rest])]
    used = event({"model": "large-2026", "choices": [], "usage": USED})
    return send_and_close(head(), *pieces, chunk(finish="tool_calls"), used, event("[DONE]"))
