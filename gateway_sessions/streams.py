"""Streams over sockets, let go of in the same way wherever they are used."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio


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
