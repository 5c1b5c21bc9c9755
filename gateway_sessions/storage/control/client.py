"""The client end of the control socket: one connection to the owner of a store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from gateway_sessions._process.streams import closing_stream
from gateway_sessions.core.control_protocol import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    PROTOCOL,
    ControlAnswer,
    ControlRequest,
    Greeting,
    decode,
    encode,
    error_from_failure,
)
from gateway_sessions.core.identity.row_ids import ids_to_text
from gateway_sessions.errors import ControlError, GatewaySessionsError, InvalidInputError
from gateway_sessions.storage.control.frames import FrameStream
from gateway_sessions.storage.control.socket_address import find_address, is_trusted_peer, owner_of_home
from gateway_sessions.storage.files.threads import in_thread

GREETING_SECONDS: Final = 5.0
"""The time for which the owner's greeting is waited for; an owner that hangs sends none."""
GRACE_SECONDS: Final = 1.0
"""The owner keeps the deadline of a request; its answer needs a moment more to arrive."""


class OwnerConnection:
    """Talks with the owner of a store, for one task. After a `ControlError` it cannot be used again."""

    def __init__(self, frames: FrameStream, home: Path) -> None:
        self._frames = frames
        self._home = home
        self.greeting: Greeting = Greeting(protocol=PROTOCOL, program="", schema=0, pid=0, database="")
        """Names the program and the database of the owner."""

    async def read_greeting(self) -> None:
        """Read the owner's greeting; raise `ControlError` if it has another protocol."""
        self.greeting = self._decode_frame(await self._next_frame(GREETING_SECONDS, happened=False), Greeting)
        if self.greeting.protocol != PROTOCOL:
            problem = (
                f"is version {self.greeting.program} of gateway_sessions, which speaks protocol "
                f"{self.greeting.protocol}; this program speaks {PROTOCOL}"
            )
            raise self._control_error(problem, happened=False)

    async def request(self, do: str, parameters: object, kind: Any, *, seconds: float) -> Any:
        """Have an operation carried out; return its result as *kind*, or raise its error."""
        told = encode(ids_to_text(parameters, outside=True))
        request = ControlRequest(do=do, parameters=msgspec.Raw(told), seconds=seconds)
        try:
            await self._frames.send(request, seconds=seconds)
        except OSError as error:
            problem = "has closed the connection"
            raise self._control_error(problem, happened=False, passing=True) from error
        answer = self._decode_frame(
            await self._next_frame(seconds + GRACE_SECONDS, happened=True), ControlAnswer
        )
        if answer.failure is not None:
            raise error_from_failure(answer.failure)
        return self._decode_frame(answer.result, kind)

    async def _next_frame(self, seconds: float, *, happened: bool) -> bytes:
        cause: Exception
        gone = False
        try:
            return await self._frames.receive(seconds=seconds)
        except TimeoutError as error:
            problem, cause = f"did not answer within {seconds:g} s", error
        except OSError as error:
            problem, cause, gone = "has closed the connection without an answer", error, True
        except InvalidInputError as error:
            problem, cause = f"sends what is no answer: {error}", error
        raise self._control_error(problem, happened=happened, passing=gone and not happened) from cause

    def _decode_frame(self, body: bytes | msgspec.Raw, kind: Any) -> Any:
        try:
            return decode(body, kind)
        except InvalidInputError as error:
            problem = f"gave an answer that is {error}"
            raise self._control_error(problem, happened=True) from error

    def _control_error(self, problem: str, *, happened: bool, passing: bool = False) -> ControlError:
        what = f"the owner of {self._home}"
        return ControlError(what, problem, may_have_happened=happened, passing=passing)


@asynccontextmanager
async def connect_to_owner(home: Path) -> AsyncGenerator[OwnerConnection | None]:
    """Connect to the owner of *home*; None if nobody listens there."""
    place = await in_thread(partial(find_address, home))
    try:
        opened = await asyncio.open_unix_connection(place) if place is not None else None
    except OSError:
        opened = None  # the socket of an owner that was killed, or that is ending
    if opened is None:
        yield None
        return
    reader, writer = opened
    async with closing_stream(writer):
        trusted = await in_thread(partial(owner_of_home, home))
        try:
            allowed = is_trusted_peer(writer.get_extra_info("socket"), trusted=trusted)
        except OSError:  # the owner has ended meanwhile, and its socket is closed
            yield None
            return
        if not allowed:
            who, problem = f"whoever listens at {place}", "is a program of another user"
            raise ControlError(who, problem, may_have_happened=False)
        frames = FrameStream(reader, writer, receives=MAX_ANSWER_BYTES, sends=MAX_REQUEST_BYTES)
        connection = OwnerConnection(frames, home)
        await connection.read_greeting()
        yield connection


async def ask_to_drain(home: Path, *, seconds: float) -> bool:
    """Ask the owner of *home* to drain; return False if nobody listens yet."""
    try:
        with anyio.move_on_after(seconds):
            async with connect_to_owner(home) as owner:
                if owner is None:
                    return False
                await owner.request("drain", {}, Any, seconds=seconds)
    except GatewaySessionsError:
        return True  # the owner cannot drain on request: the caller has to wait for its end
    return True
