"""Frames over a connected socket, each within a deadline."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import anyio

from gateway_sessions.core.control_frames import Frames, frame

CHUNK: Final = 1 << 16


class FrameStream:
    """Sends and receives frames. After any error it is of no further use."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, receives: int, sends: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = Frames(receives)
        self._sends = sends
        self._received: deque[bytes] = deque()

    async def send(self, value: object, *, seconds: float) -> None:
        """Send one value; TimeoutError if the other side does not take it in time."""
        data = frame(value, self._sends)
        with anyio.fail_after(seconds):
            self._writer.write(data)
            await self._writer.drain()

    async def receive(self, *, seconds: float, idle: float | None = None) -> bytes:
        """The next frame. It may take *seconds* to arrive from its first byte, which may take *idle*."""
        if idle is not None and not self._received and not self._frames.partial:
            with anyio.fail_after(idle):
                await self._take_some()
        with anyio.fail_after(seconds):
            while not self._received:
                await self._take_some()
        return self._received.popleft()

    async def _take_some(self) -> None:
        data = await self._reader.read(CHUNK)
        if not data:
            raise ConnectionResetError
        self._received.extend(self._frames.feed(data))
