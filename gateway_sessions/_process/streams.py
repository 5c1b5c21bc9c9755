"""All servers and clients of the package accept and close connections by these functions."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio


async def accept_connection(listener: socket.socket) -> socket.socket:
    """Return the next connection. If the wait is cancelled, the connection is left to the next call.

    The loop's own `sock_accept` would accept the connection for a caller that is gone, and log an error.
    """
    while True:
        await anyio.wait_readable(listener)
        with contextlib.suppress(BlockingIOError):  # the client is gone, or another process has accepted it
            connection, _ = listener.accept()
            connection.setblocking(False)  # noqa: FBT003 -- the only form there is
            return connection


@asynccontextmanager
async def closing_stream(writer: asyncio.StreamWriter) -> AsyncGenerator[None]:
    """Close the connection at the end of the block, without waiting for the other side to read."""
    try:
        yield
    finally:
        writer.close()
        # A second is enough for a live peer; a dead one must not keep the caller from its end.
        with anyio.move_on_after(1, shield=True) as patience, contextlib.suppress(OSError):
            await writer.wait_closed()
        if patience.cancelled_caught:
            writer.transport.abort()
