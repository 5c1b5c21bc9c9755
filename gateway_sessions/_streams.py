"""Connections, waited for and let go of in the same way wherever they are used."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio


async def accept(listener: socket.socket) -> socket.socket:
    """Whoever comes next; who comes just as the wait is cancelled is left to the next that asks.

    The loop's own `sock_accept` would take them in for nobody, and report an error about it.
    """
    while True:
        await anyio.wait_readable(listener)
        with contextlib.suppress(BlockingIOError):  # gone again, or another process was quicker
            connection, _ = listener.accept()
            connection.setblocking(False)  # noqa: FBT003 -- the only form there is
            return connection


@asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
    """Close the connection at the end of the block, without waiting for the other side to read."""
    try:
        yield
    finally:
        writer.close()
        with anyio.move_on_after(1, shield=True) as patience, contextlib.suppress(OSError):
            await writer.wait_closed()
        if patience.cancelled_caught:
            writer.transport.abort()
