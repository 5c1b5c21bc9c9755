"""Frames of the control protocol that are sent and received over a stream, each within a deadline."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import anyio

from gateway_sessions.core.control_protocol import FrameDecoder, encode_frame

CHUNK: Final = 1 << 16
"""Bytes that are read at once."""


class FrameStream:
    """Sends and receives frames. After an error it cannot be used again."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, receives: int, sends: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameDecoder(receives)
        self._sends = sends
        self._received: deque[bytes] = deque()

    async def send(self, value: object, *, seconds: float) -> None:
        """Send one value; raise `TimeoutError` if the other side does not take it in time."""
        data = encode_frame(value, self._sends)
        with anyio.fail_after(seconds):
            self._writer.write(data)
            await self._writer.drain()

    async def receive(self, *, seconds: float, idle: float | None = None) -> bytes:
        """Return the next frame, within *seconds* of its first byte, which may take *idle* to arrive."""
        if idle is not None and not self._received and not self._frames.has_partial_frame:
            with anyio.fail_after(idle):
                await self._receive_bytes()
        with anyio.fail_after(seconds):
            while not self._received:
                await self._receive_bytes()
        return self._received.popleft()

    async def _receive_bytes(self) -> None:
        data = await self._reader.read(CHUNK)
        if not data:
            raise ConnectionResetError
        self._received.extend(self._frames.feed(data))
