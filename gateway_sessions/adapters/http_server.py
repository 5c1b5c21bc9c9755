"""Answering requests: each has a connection, a deadline and a limit of bytes of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio
from anyio.abc import TaskGroup

from gateway_sessions.adapters.http import MAX_HEAD, HttpError, Request, Response, receive_request
from gateway_sessions.streams import accept, closing

MAX_CONNECTIONS: Final = 64
BACKLOG: Final = 128
ARRIVAL_SECONDS: Final = 10.0
"""How long a request may take to arrive, and an answer to be taken."""
PAUSE_SECONDS: Final = 0.1
"""How long to leave those outside who cannot be let in, because this process may open no more files."""
LEFTOVERS_SECONDS: Final = 1.0

Answer: TypeAlias = Callable[[Request], Awaitable[Response]]


class HttpServer:
    """Listens at an address, and answers with what the function it was given returns."""

    def __init__(self, listener: socket.socket, answer: Answer, *, max_body: int) -> None:
        self._listener = listener
        self._answer = answer
        self._max_body = max_body
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)

    async def serve(self) -> None:
        """Answer for ever. Whoever comes while there is no room waits outside."""
        async with anyio.create_task_group() as conversations:
            await self._accept(conversations)

    async def _accept(self, conversations: TaskGroup) -> None:
        while True:
            await self._room.acquire()
            try:
                connection = await accept(self._listener)
            except OSError:
                self._room.release()
                await anyio.sleep(PAUSE_SECONDS)
                continue
            conversations.start_soon(self._converse, connection)

    async def _converse(self, connection: socket.socket) -> None:
        try:
            with connection:
                reader, writer = await asyncio.open_connection(sock=connection, limit=MAX_HEAD)
                async with closing(writer):
                    response = await self._response(reader, writer)
                    writer.write(response.encode())
                    with anyio.fail_after(ARRIVAL_SECONDS):
                        await writer.drain()
                    await _take_leftovers(reader, writer)
        except (OSError, EOFError):
            pass  # it went away, or was too slow: there is nobody to answer
        finally:
            self._room.release()

    async def _response(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Response:
        try:
            with anyio.fail_after(ARRIVAL_SECONDS):
                request = await receive_request(reader, writer, max_body=self._max_body)
        except HttpError as error:
            return Response(error.status, error.problem.encode())
        return await self._answer(request)


async def _take_leftovers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what still comes: to close on unread bytes may throw away an answer that is on its way."""
    writer.write_eof()
    with anyio.move_on_after(LEFTOVERS_SECONDS):
        while await reader.read(MAX_HEAD):
            pass


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; `OSError` if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listener.setblocking(False)  # noqa: FBT003 -- the only form there is
    return listener
