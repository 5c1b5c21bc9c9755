"""A server on this machine for a test, which leaves no connection behind."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway_sessions._process.streams import closing_stream

CERTIFICATE = Path(__file__).parents[2] / "data" / "localhost.pem"
Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def localhost() -> ssl.SSLContext:
    """What a server has to be `localhost` to whoever trusts `CERTIFICATE`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def send_endless_file(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a request with a file that has no end: nobody who reads it whole ever has it."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\n\r\n")
    while True:
        writer.write(bytes(64 << 10))
        await writer.drain()


@asynccontextmanager
async def loopback(converse: Conversation, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port at which *converse* is held with everybody who connects."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        async with asyncio.TaskGroup() as conversations:
            accepting = conversations.create_task(accept(listener, conversations, converse, tls))
            yield listener.getsockname()[1]
            accepting.cancel()


async def accept(
    listener: socket.socket,
    conversations: asyncio.TaskGroup,
    converse: Conversation,
    tls: ssl.SSLContext | None,
) -> None:
    while True:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        conversations.create_task(hold_conversation(connection, converse, tls))


async def hold_conversation(
    connection: socket.socket, converse: Conversation, tls: ssl.SSLContext | None
) -> None:
    """Hold one conversation; whoever fails in it, or before it, is just gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    with connection, contextlib.suppress(OSError, EOFError):
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=tls)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        async with closing_stream(writer):
            await converse(reader, writer)
            await writer.drain()
