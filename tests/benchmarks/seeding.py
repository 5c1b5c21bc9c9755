"""Fills a store with lanes, quickly: what arrives together is committed together."""

from __future__ import annotations

import asyncio
from typing import Final

from gateway_sessions import SessionSource, SessionStore

TOGETHER: Final = 2_000


def source_of(number: int) -> SessionSource:
    """The origin that names one lane."""
    return SessionSource(
        platform="telegram",
        chat_id=str(100_000 + number),
        user_id=str(100_000 + number),
        user_name=f"Person {number}",
    )


async def seed_lanes(store: SessionStore, lanes: int) -> None:
    """Make that many lanes, each with a session."""
    for first in range(0, lanes, TOGETHER):
        numbers = range(first, min(first + TOGETHER, lanes))
        await asyncio.gather(*(store.get_or_create_session(source_of(number)) for number in numbers))
