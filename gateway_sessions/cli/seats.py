"""How commands reach a store: they read it directly, and act through whoever owns it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from gateway_sessions.cli.desk import Desk
from gateway_sessions.errors import NoStoreError
from gateway_sessions.runtime.seat import Seat, connect


@asynccontextmanager
async def seated(desk: Desk) -> AsyncGenerator[Seat]:
    """A seat at the store of this command."""
    home, config = desk.place()
    async with connect(home, config) as seat:
        yield seat


async def has_store(desk: Desk) -> bool:
    """Whether somebody has made the store."""
    try:
        async with seated(desk):
            return True
    except NoStoreError:
        return False
