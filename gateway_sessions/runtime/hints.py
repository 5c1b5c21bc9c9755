"""What a platform is asked for that may be lost: nothing depends on it, and nobody waits long for it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from gateway_sessions.adapters.port import Adapter
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.foreign_code import problem_within

logger = logging.getLogger(__name__)

HINT: Final = timedelta(seconds=5)
"""How long a platform may take for what nothing depends on."""


async def hint(adapter: Adapter, clock: Clock, call: Callable[[], Awaitable[object]]) -> bool:
    """Ask the platform for something that may be lost; whether it went well."""
    problem = await problem_within(HINT, clock, call)
    if problem is not None:
        facts = {"action": "hint_lost", "platform": adapter.platform, "account": adapter.name}
        logger.debug("a hint was lost", extra={**facts, "problem": problem})
    return problem is None
