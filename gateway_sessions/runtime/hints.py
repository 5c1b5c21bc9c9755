"""What a platform is asked for that may be lost: nothing depends on it, and nobody waits long for it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.outbound import ReplyTarget
from gateway_sessions.errors import RateLimitedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.foreign_code import problem_within
from gateway_sessions.runtime.pauses import Pauses

logger = logging.getLogger(__name__)

HINT: Final = timedelta(seconds=5)
"""How long a platform may take for what nothing depends on."""


class Hints:
    """Asks platforms for what may be lost; within a pause that one has asked for, it is lost at once."""

    def __init__(self, clock: Clock, pauses: Pauses) -> None:
        self._clock = clock
        self.pauses = pauses

    async def give(
        self, adapter: Adapter, target: ReplyTarget, call: Callable[[], Awaitable[object]]
    ) -> bool:
        """Ask for something at that place; whether it went well."""
        if self.pauses.left(target):
            return False
        problem = await problem_within(HINT, self._clock, lambda: self._minding(target, call))
        if problem is not None:
            facts = {"action": "hint_lost", "platform": adapter.platform, "account": adapter.name}
            logger.debug("a hint was lost", extra={**facts, "problem": problem})
        return problem is None

    async def _minding(self, target: ReplyTarget, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except RateLimitedError as error:
            self.pauses.note(target, error)
            raise
