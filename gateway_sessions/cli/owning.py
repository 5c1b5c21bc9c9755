"""How commands own a store for a while, for what only its owner can do, and how they rehearse that."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway_sessions.cli.desk import Desk
from gateway_sessions.cli.seats import seated
from gateway_sessions.errors import NoStoreError
from gateway_sessions.runtime.store import SessionStore
from gateway_sessions.storage.database import SessionDB


@asynccontextmanager
async def owning(
    desk: Desk, *, may_be_new: bool = False, upkeep: bool = False, wait: float = 0
) -> AsyncGenerator[SessionStore]:
    """The store of this command, as its owner.

    Another owner is asked to end, and waited for, for so many seconds.
    Only whoever serves it sees to its *upkeep*: a visitor has not the hooks that must hear of ends.
    """
    if not may_be_new:
        async with seated(desk):
            pass
    home, config = desk.place_to_serve() if upkeep else desk.place()
    async with SessionStore.open(home, config, upkeep=upkeep, wait=wait) as store:
        yield store


@asynccontextmanager
async def rehearsing(desk: Desk) -> AsyncGenerator[SessionDB]:
    """The database for reading only, whoever has it open; where none is yet, an empty one for the moment.

    What is rehearsed leaves no trace: it neither makes a store nor opens one as its owner.
    """
    async with AsyncExitStack() as opened:
        try:
            db = (await opened.enter_async_context(seated(desk))).db
        except NoStoreError:
            folder = opened.enter_context(TemporaryDirectory())
            db = await opened.enter_async_context(SessionDB.open(Path(folder) / "sessions.db"))
        yield db
