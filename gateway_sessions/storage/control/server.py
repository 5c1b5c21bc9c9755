"""The owner's end of the control socket: it answers clients within limits of time and number.

Clients run as the user of the store and are trusted with its data, but not to behave. So each client has
deadlines and a bounded buffer. When too many are connected, the one that has been idle for the longest time
is disconnected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway_sessions._process.streams import accept_connection, closing_stream
from gateway_sessions._process.waits import rests_while_waiting
from gateway_sessions.core.control_protocol import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    ControlAnswer,
    ControlRequest,
    Greeting,
    decode,
    encode,
    failure_from_error,
)
from gateway_sessions.errors import (
    ControlError,
    GatewaySessionsError,
    InvalidInputError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.control.frames import FrameStream
from gateway_sessions.storage.control.socket_address import (
    HAS_SOCKETS,
    forget_address,
    is_trusted_peer,
    prepare_address,
)
from gateway_sessions.storage.files.private_files import bind_private
from gateway_sessions.storage.files.threads import in_thread

logger: Final = logging.getLogger(__name__)

WHAT: Final = "session store"
MAX_CONNECTIONS: Final = 64
"""The most clients at once: each has a buffer and a file."""
BACKLOG: Final = 128
"""Clients that may wait to be accepted."""
MAX_RESULT_BYTES: Final = MAX_ANSWER_BYTES - 64
"""The rest of an answer's frame is for the members around its result."""
FRAME_SECONDS: Final = 10.0
"""The time for one frame to arrive, or to be sent."""
IDLE_SECONDS: Final = 600.0
"""The time that a client may take between two requests."""
LONGEST_SECONDS: Final = 3600.0
"""The latest deadline that a request can have."""
LAST_ANSWERS_SECONDS: Final = 5.0
"""The time for which the end of the server waits for running requests."""
PAUSE_SECONDS: Final = 0.1
"""The pause after a failed accept, as when this process can open no more files."""


class ControlServer:
    """Listens on the socket of a home, and hands each request to a function."""

    def __init__(
        self, home: Path, greeting: Greeting, carry_out: Callable[[str, msgspec.Raw], Awaitable[object]]
    ) -> None:
        self._home = home
        self._greeting = greeting
        self._carry_out = carry_out
        self._connected = 0
        self._idle: dict[anyio.CancelScope, None] = {}
        """The connections without a running request, the longest idle first."""
        self._under_way = 0
        self._ended = asyncio.Event()
        """Set whenever a request has ended."""
        self._finishing = False

    async def start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Begin to listen; raise `OSError` or `UnsupportedStorageError` if that is not possible here."""
        if not HAS_SOCKETS:
            raise UnsupportedStorageError(str(self._home), "cannot have a control socket on this platform")
        listener = socket.socket(socket.AF_UNIX)
        cleanup.callback(listener.close)
        cleanup.push_async_callback(in_thread, partial(forget_address, self._home))
        await in_thread(partial(_listen_on_socket, listener, self._home))
        tasks.start_soon(self._accept_clients, listener)

    async def finish(self) -> None:
        """Refuse new requests, and wait a moment for the end of running ones."""
        self._finishing = True
        with anyio.move_on_after(LAST_ANSWERS_SECONDS):
            while self._under_way:
                self._ended.clear()
                await self._ended.wait()

    @rests_while_waiting
    async def _accept_clients(self, listener: socket.socket) -> None:
        async with anyio.create_task_group() as conversations:
            while True:
                try:
                    connection = await accept_connection(listener)
                except OSError:
                    await anyio.sleep(PAUSE_SECONDS)
                    continue
                if is_trusted_peer(connection) and self._make_room_for_client():
                    self._connected += 1
                    conversations.start_soon(self._serve_client, connection)
                else:
                    connection.close()

    def _make_room_for_client(self) -> bool:
        """Return True if one more client fits; disconnect an idle one for it."""
        if self._connected < MAX_CONNECTIONS:
            return True
        for scope in self._idle:
            scope.cancel()
            del self._idle[scope]
            return True
        return False

    async def _serve_client(self, connection: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connection)
            async with closing_stream(writer):
                frames = FrameStream(reader, writer, receives=MAX_REQUEST_BYTES, sends=MAX_ANSWER_BYTES)
                await frames.send(self._greeting, seconds=FRAME_SECONDS)
                while request := await self._next_request(frames):
                    await self._answer_request(frames, request)
        except OSError:
            pass  # the client is gone, or sent or took only a part of a frame: nobody is left to tell
        finally:
            self._connected -= 1

    @rests_while_waiting
    async def _next_request(self, frames: FrameStream) -> ControlRequest | None:
        """Return the next request; None if the client sends none that can be read, or its place is needed."""
        with anyio.CancelScope() as scope:
            self._idle[scope] = None
            try:
                body = await frames.receive(seconds=FRAME_SECONDS, idle=IDLE_SECONDS)
                return decode(body, ControlRequest)
            except InvalidInputError as error:
                await frames.send(ControlAnswer(failure=failure_from_error(error)), seconds=FRAME_SECONDS)
            finally:
                self._idle.pop(scope, None)
        return None

    async def _answer_request(self, frames: FrameStream, request: ControlRequest) -> None:
        self._under_way += 1
        try:
            try:
                answer = ControlAnswer(result=msgspec.Raw(await self._run_operation(request)))
                await frames.send(answer, seconds=FRAME_SECONDS)
            except GatewaySessionsError as error:
                await frames.send(ControlAnswer(failure=failure_from_error(error)), seconds=FRAME_SECONDS)
        finally:
            self._under_way -= 1
            self._ended.set()

    async def _run_operation(self, request: ControlRequest) -> bytes:
        if self._finishing:
            problem = "is just being closed"
            raise ControlError(WHAT, problem, may_have_happened=False, passing=True)
        seconds = min(max(request.seconds, 0), LONGEST_SECONDS)
        try:
            with anyio.fail_after(seconds):
                answer = encode(await self._carry_out(request.do, request.parameters))
        except GatewaySessionsError:
            raise
        except TimeoutError as error:
            problem = f"was not done within {seconds:g} s"
            raise ControlError(request.do, problem, may_have_happened=True) from error
        except Exception as error:  # a bug in one operation must not stop the store
            logger.exception(
                "a request failed", extra={"action": "control_failed", "operation": request.do[:64]}
            )
            problem = "failed in a way that nobody foresaw; the log of the owner has more"
            raise ControlError(request.do, problem, may_have_happened=True) from error
        if len(answer) > MAX_RESULT_BYTES:
            problem = (
                f"has a result of {len(answer):,} bytes, more than the {MAX_RESULT_BYTES:,} of an answer"
            )
            raise ControlError(request.do, problem, may_have_happened=True)
        return answer


def _listen_on_socket(listener: socket.socket, home: Path) -> None:
    """Begin to listen for *home*. Nobody can connect before the mode of the socket is set."""
    place = prepare_address(home)
    listener.setblocking(False)  # noqa: FBT003 -- the only form there is
    bind_private(listener, place)
    listener.listen(BACKLOG)
