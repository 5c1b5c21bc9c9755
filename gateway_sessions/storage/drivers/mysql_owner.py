"""Being the only process that has a store on a MySQL server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import anyio

from gateway_sessions.errors import StoreBusyError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.drivers.limits import Limits
from gateway_sessions.storage.drivers.mysql import hang_up
from gateway_sessions.storage.drivers.mysql_asyncmy import OwnPool
from gateway_sessions.storage.drivers.mysql_errors import FOREIGN, WHAT, translate
from gateway_sessions.storage.drivers.mysql_link import Link, Links
from gateway_sessions.storage.drivers.mysql_locks import EPOCH

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.1
CHECK_SECONDS: Final = 1.0
GONE_SECONDS: Final = 30
"""For so long the server keeps the lock of a machine that has vanished without a word."""
_FAREWELL_SECONDS: Final = 2.0
NOBODY_KNOWN: Final = "another process"
LOCK: Final = "concat('gateway_sessions.', left(sha2(database(), 256), 32), '.owner')"
"""Names of locks are common to all databases of a server."""
TRY_TO_OWN: Final = f"SELECT GET_LOCK({LOCK}, 0)"
LET_GO: Final = f"DO RELEASE_LOCK({LOCK})"
STILL_OWNED: Final = f"SELECT IS_USED_LOCK({LOCK}) = CONNECTION_ID()"
OWNER: Final = f"SELECT host FROM information_schema.processlist WHERE id = IS_USED_LOCK({LOCK})"  # noqa: S608 -- ours
"""Where the owner has connected from; only words, the lock decides."""


class Ownership:
    """A lock that a connection of its own holds for as long as the store is open.

    It ends with the connection, however that ends, and keeps a second owner away. An earlier one that lost
    its connection is kept from writing by its epoch.
    """

    def __init__(self, connect: Callable[[], Awaitable[OwnPool]], limits: Limits) -> None:
        self._connect = connect
        self._limits = limits
        self._link: Link | None = None
        self._holds = AsyncExitStack()
        """The connection that has the lock, and its pool of one."""

    @asynccontextmanager
    async def held(self, clock: Clock, *, wait: float) -> AsyncGenerator[None]:
        """Own the store until the end of the block; another owner is waited for up to *wait* seconds."""
        waited = 0.0
        async with AsyncExitStack() as cleanup:
            cleanup.push_async_callback(self._let_go)
            try:
                while (other := await self._try_to_own()) is not None:
                    if waited >= wait:
                        raise StoreBusyError(WHAT, other)
                    await clock.sleep(POLL_SECONDS)
                    waited += POLL_SECONDS
            except FOREIGN as error:
                raise translate(error) from error
            yield

    async def keep(self, epoch: Callable[[], int | None]) -> None:
        """Take the lock again whenever its connection was lost, as when the server was started anew.

        Whoever had the store meanwhile has begun an *epoch* of its own: then it is not taken back. The server
        is asked often: so it knows that this machine is there, and a lost lock is noticed.
        """
        lost = False
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if await self._is_owner():
                lost = False
                continue
            if not lost:
                logger.warning(
                    "the lock on the store was lost with its connection", extra={"action": "owner_lost"}
                )
            lost = True
            with suppress(*FOREIGN):
                if await self._try_to_own() is None and not await self._is_still(epoch()):
                    await self._let_go()
                    return

    async def _is_owner(self) -> bool:
        with suppress(*FOREIGN):
            return self._link is not None and (await self._link.fetch(STILL_OWNED))[0][0] == 1
        return False

    async def _is_still(self, epoch: int | None) -> bool:
        if epoch is None:  # it will be the latest, as none was begun yet
            return True
        return self._link is not None and await self._link.fetch(EPOCH) == [(str(epoch),)]

    async def _try_to_own(self) -> str | None:
        """Who owns the store; None if it is this process, from now on."""
        await self._let_go()
        async with AsyncExitStack() as holds:
            pool = await self._connect()
            holds.push_async_callback(hang_up, pool)
            link = await holds.enter_async_context(Links(pool, self._limits, 1).lent())
            holds.callback(link.close)
            await link.say(f"SET SESSION wait_timeout = {GONE_SECONDS}")
            if (await link.fetch(TRY_TO_OWN))[0][0] != 1:
                owner = await link.fetch(OWNER)
                return f"a process on {str(owner[0][0]).partition(':')[0]}" if owner else NOBODY_KNOWN
            self._link, self._holds = link, holds.pop_all()
        return None

    async def _let_go(self) -> None:
        link, self._link = self._link, None
        if link is not None:  # whoever comes next need not wait until the server has noticed that we are gone
            with anyio.move_on_after(_FAREWELL_SECONDS, shield=True), suppress(*FOREIGN):
                await link.say(LET_GO)
        await self._holds.aclose()
