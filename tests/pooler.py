"""A pooler in transaction mode, as strict as can be: each transaction gets another connection of the server.

Nothing is reset between transactions, and nothing is remembered of statements: whoever leaves something on a
connection, or looks for it there, is found out. A real one is used instead if `GATEWAY_SESSIONS_POOLER` names
its host and port.
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from tests.postgresql import SERVER

REAL = os.environ.get("GATEWAY_SESSIONS_POOLER")
CONNECTIONS = 6
"""Of the server, for each database."""
SSL_REQUEST, CANCEL_REQUEST = 80877103, 80877102
READY, TERMINATE = b"Z", b"X"
ENDS_WITH_READY = (b"Q", b"S")
IDLE = b"I"


class WireConnection:
    """A connection and its messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.greeting = b""
        """What the server said of itself when the connection was made."""

    async def read_startup(self) -> bytes:
        """The first message of a client, which has no kind."""
        size = await self._reader.readexactly(4)
        return size + await self._reader.readexactly(struct.unpack("!I", size)[0] - 4)

    async def read_message(self) -> tuple[bytes, bytes]:
        """The kind of the next message, and all of it."""
        head = await self._reader.readexactly(5)
        body = await self._reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
        return head[:1], head + body

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._writer.close()


class Pooler:
    """Takes clients in, and lends each of them a connection for a transaction."""

    def __init__(self) -> None:
        self._idle: dict[bytes, deque[WireConnection]] = defaultdict(deque)
        self._room: dict[bytes, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(CONNECTIONS))
        self._every: set[WireConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.transactions = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        client = WireConnection(reader, writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await PooledClient(self, client).stay()
        finally:
            client.close()

    async def lend_connection(self, startup: bytes) -> WireConnection:
        """The connection that has been idle for longest."""
        await self._room[startup].acquire()
        self.transactions += 1
        idle = self._idle[startup]
        if idle and (len(idle) == CONNECTIONS or len(idle) > 1):
            return idle.popleft()
        return await self._connect(startup)

    def take_connection_back(self, startup: bytes, wire: WireConnection | None) -> None:
        """A connection that is idle again; None: it is lost."""
        if wire is not None:
            self._idle[startup].append(wire)
        self._room[startup].release()

    async def greeting(self, startup: bytes) -> bytes:
        """What a client is told at first."""
        wire = await self.lend_connection(startup)
        self.take_connection_back(startup, wire)
        return wire.greeting

    async def stop(self) -> None:
        for one in self._every:
            one.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, startup: bytes) -> WireConnection:
        where = urlsplit(SERVER)
        wire = WireConnection(*await asyncio.open_connection(where.hostname, where.port or 5432))
        self._every.add(wire)
        wire.send(startup)
        kind = b""
        while kind != READY:
            kind, message = await wire.read_message()
            wire.greeting += message
        return wire


class PooledClient:
    """One client, and the connection that it has at the moment."""

    def __init__(self, pooler: Pooler, client: WireConnection) -> None:
        self._pooler = pooler
        self._client = client
        self._startup = b""
        self._wire: WireConnection | None = None
        self._answers = 0
        """How many more times the server will say that it is ready."""
        self._relay: asyncio.Task[None] | None = None

    async def stay(self) -> None:
        self._startup = await self._client.read_startup()
        if struct.unpack("!I", self._startup[4:8])[0] == SSL_REQUEST:
            self._client.send(b"N")
            self._startup = await self._client.read_startup()
        if struct.unpack("!I", self._startup[4:8])[0] == CANCEL_REQUEST:
            return
        self._client.send(await self._pooler.greeting(self._startup))
        try:
            while True:
                kind, message = await self._client.read_message()
                if kind == TERMINATE:
                    return
                if self._wire is None:
                    self._wire = await self._pooler.lend_connection(self._startup)
                    self._relay = asyncio.create_task(self._pass_on(self._wire))
                self._answers += kind in ENDS_WITH_READY
                self._wire.send(message)
        finally:
            self._leave()

    async def _pass_on(self, wire: WireConnection) -> None:
        try:
            while True:
                kind, message = await wire.read_message()
                self._client.send(message)
                if kind == READY:
                    self._answers -= 1
                    if not self._answers and message[-1:] == IDLE:
                        self._wire = None
                        self._pooler.take_connection_back(self._startup, wire)
                        return
        except (OSError, asyncio.IncompleteReadError):
            self._wire = None
            self._pooler.take_connection_back(self._startup, None)
            self._client.close()

    def _leave(self) -> None:
        """A transaction that was not ended is not lent to anybody else."""
        if self._relay is not None:
            self._relay.cancel()
        if self._wire is not None:
            self._wire.close()
            self._pooler.take_connection_back(self._startup, None)


@asynccontextmanager
async def running_pooler(dsn: str) -> AsyncIterator[str]:
    """The same database behind a pooler."""
    if REAL is not None:
        yield _through(dsn, REAL)
        return
    pooler = Pooler()
    listening = await asyncio.start_server(pooler.serve, "127.0.0.1", 0)
    try:
        host, port = listening.sockets[0].getsockname()
        yield _through(dsn, f"{host}:{port}")
    finally:
        listening.close()
        await pooler.stop()


def _through(dsn: str, place: str) -> str:
    parts = urlsplit(dsn)
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{user}@{place}" if user else place).geturl()
