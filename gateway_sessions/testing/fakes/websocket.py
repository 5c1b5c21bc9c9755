"""The server's side of a WebSocket, for fakes of platforms that speak through one.

A fake answers a request with `web_socket(request, talk)`; *talk* gets the open socket, and when it returns,
the socket is closed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import anyio

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.testing.fakes.http_server import (
    CHUNK,
    ConnectionCutError,
    FakeRequest,
    FakeResponse,
    UpgradedConnection,
)

if TYPE_CHECKING:
    from wsproto.connection import Connection as WsConnection
    from wsproto.events import Event

NORMAL: Final = 1000
"""The code of a close with which all is well."""
ABNORMAL: Final = 1006
"""The code that stands for a connection that ended without a close."""
CLOSE_SECONDS: Final = 2.0
"""The limit for the client's answer to a close; behind it the connection is cut."""


class WebSocketClosedError(Exception):
    """The client has closed the socket, or has gone."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"the socket was closed with {code}: {reason}" if reason else f"closed with {code}")
        self.code: int = code
        self.reason: str = reason


class FakeWebSocket:
    """An open socket of a client. Pings and closes of the client are answered by themselves."""

    def __init__(
        self,
        request: FakeRequest,
        protocol: WsConnection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.request: FakeRequest = request
        """The request by which the client opened the socket."""
        self.closed: WebSocketClosedError | None = None
        """How the socket ended; None while it is open."""
        self._protocol = protocol
        self._reader = reader
        self._writer = writer
        self._arrived: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._ended = anyio.Event()

    async def send(self, message: str | bytes) -> None:
        """Send a message: text or bytes."""
        from wsproto.events import BytesMessage, TextMessage  # noqa: PLC0415 -- only these fakes need wsproto

        if isinstance(message, str):
            await self._write(TextMessage(data=message))
        else:
            await self._write(BytesMessage(data=message))

    async def send_json(self, value: object) -> None:
        """Send a value as text in JSON."""
        await self.send(json.dumps(value))

    async def receive(self) -> str | bytes:
        """Return the client's next message; raise `WebSocketClosedError` behind the last one."""
        message = await self._arrived.get()
        if message is None:
            self._arrived.put_nowait(None)  # whoever asks next hears it as well
            raise self.closed or WebSocketClosedError(ABNORMAL)
        return message

    async def receive_json(self) -> Any:
        """Return the value in the client's next message."""
        return json.loads(await self.receive())

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close the socket, and wait a moment for the client's answer; do nothing if it is closed."""
        from wsproto.events import CloseConnection  # noqa: PLC0415 -- as above

        if self.closed is None:
            self.closed = WebSocketClosedError(code, reason)
            self._writer.write(self._protocol.send(CloseConnection(code=code, reason=reason)))
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._ended.wait()

    def cut(self) -> None:
        """End the connection without a close."""
        self.closed = self.closed or WebSocketClosedError(ABNORMAL)
        self._writer.transport.abort()

    async def talk(self, talk: TalkOfServer) -> None:
        """Read beside a conversation, and close the socket when it ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read)
            try:
                await talk(self)
                await self.close()
            except* WebSocketClosedError:  # maybe out of a group of tasks
                pass
            except* ConnectionCutError:
                self.cut()
            tasks.cancel_scope.cancel()

    async def _write(self, event: Event) -> None:
        if self.closed is not None:
            raise self.closed
        self._writer.write(self._protocol.send(event))
        with suppress(ConnectionError):  # the reader hears of it as well
            await self._writer.drain()

    async def _read(self) -> None:
        """Take what the client sends, until it closes or goes."""
        parts: list[str] | list[bytes] = []
        while not self._ended.is_set():
            for event in self._protocol.events():
                parts = self._take(event, parts)
            if not self._ended.is_set():
                self._protocol.receive_data(await self._next_bytes())
        self._arrived.put_nowait(None)

    async def _next_bytes(self) -> bytes | None:
        try:
            return await self._reader.read(CHUNK) or None
        except ConnectionError:
            return None

    def _take(self, event: Event, parts: list[Any]) -> list[Any]:
        """Take an event of the protocol; return the parts of a message that is not complete."""
        from wsproto.events import (  # noqa: PLC0415 -- as above
            BytesMessage,
            CloseConnection,
            Ping,
            TextMessage,
        )

        match event:
            case TextMessage() | BytesMessage():
                return self._take_part(event.data, parts, finished=event.message_finished)
            case Ping() if self.closed is None:
                self._writer.write(self._protocol.send(event.response()))
            case CloseConnection():
                if self.closed is None:
                    self.closed = WebSocketClosedError(event.code, event.reason or "")
                    if event.code != ABNORMAL:  # then somebody is there to read the answer
                        self._writer.write(self._protocol.send(event.response()))
                self._ended.set()
            case _:
                pass
        return parts

    def _take_part(self, data: str | bytes | bytearray, parts: list[Any], *, finished: bool) -> list[Any]:
        parts = [*parts, data]
        if not finished:
            return parts
        self._arrived.put_nowait("".join(parts) if isinstance(parts[0], str) else b"".join(parts))
        return []


TalkOfServer: TypeAlias = Callable[[FakeWebSocket], Awaitable[None]]
"""This function speaks with the client; when it returns, the socket is closed."""


def wants_web_socket(request: FakeRequest) -> bool:
    """Return whether a request asks for a WebSocket."""
    return request.headers.get("upgrade", "").lower() == "websocket"


def require_wsproto() -> None:
    """Raise `InvalidInputError` if WebSockets cannot be spoken, before a client meets a server that fails."""
    if find_spec("wsproto") is None:
        problem = "a fake that speaks through WebSockets needs wsproto: pip install 'gateway-sessions[test]'"
        raise InvalidInputError(problem)


def web_socket(request: FakeRequest, talk: TalkOfServer) -> FakeResponse | UpgradedConnection:
    """Return the answer that opens a WebSocket, or refuses a request that does not ask for one."""
    from wsproto.connection import Connection, ConnectionType  # noqa: PLC0415 -- only these fakes need it
    from wsproto.utilities import generate_accept_token  # noqa: PLC0415 -- the same

    key = request.headers.get("sec-websocket-key")
    if not wants_web_socket(request) or key is None:
        return FakeResponse(426, b"This address speaks WebSocket.", {"upgrade": "websocket"})

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, read_already: bytes) -> None:
        protocol = Connection(ConnectionType.SERVER, trailing_data=read_already)
        await FakeWebSocket(request, protocol, reader, writer).talk(talk)

    headers = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": generate_accept_token(key.encode()).decode(),
    }
    return UpgradedConnection(headers=headers, speak=speak)
