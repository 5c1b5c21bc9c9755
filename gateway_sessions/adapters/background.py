"""What an adapter does as long as it is connected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack

from anyio.abc import TaskGroup

from gateway_sessions.resource import Resource

logger = logging.getLogger(__name__)


class Background(Resource):
    """Runs a coroutine function within its block, and nothing behind it.

    If the function fails, that is logged at once, and comes out of the block at its end. What happens in the
    block comes out as it is, not in a group of errors.
    """

    def __init__(self, name: str, work: Callable[[], Coroutine[object, object, None]]) -> None:
        super().__init__(name)
        self._work = work

    async def _start(self, tasks: TaskGroup, cleanup: AsyncExitStack) -> None:
        """Begin."""
        tasks.start_soon(self._run)

    async def _run(self) -> None:
        try:
            await self._work()
        except Exception:
            logger.exception("an adapter hears nothing any more", extra={"action": "adapter_failed"})
            raise
