"""Pauses that a platform asked for, by account and chat.

Whoever calls within a pause is made to wait longer by many platforms, and in the end shut out.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cachetools import LRUCache

from gateway_sessions.core.delivery.outbound import ReplyTarget
from gateway_sessions.core.delivery.retry_policy import pause_left, pause_of
from gateway_sessions.errors import RateLimitedError
from gateway_sessions.ports import Clock

CHATS: Final = 4096
"""Of so many chats it is remembered that they are paused."""


class _Pause(NamedTuple):
    begun_at: datetime
    length: timedelta


class Pauses:
    """Knows which chats of which accounts take nothing at the moment."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._chats: LRUCache[tuple[str, str, str], _Pause] = LRUCache(CHATS)

    def note(self, target: ReplyTarget, error: RateLimitedError) -> None:
        """The platform has asked for a pause."""
        self._chats[_chat(target)] = _Pause(self._clock.now(), pause_of(error.retry_after))

    def left(self, target: ReplyTarget) -> timedelta:
        """How long nothing may be asked of that chat; nothing if it is not paused."""
        pause = self._chats.get(_chat(target))
        if pause is None:
            return timedelta()
        left = pause_left(pause.begun_at, pause.length, self._clock.now())
        if not left:
            del self._chats[_chat(target)]
        return left


def _chat(target: ReplyTarget) -> tuple[str, str, str]:
    return target.platform, target.account, target.chat_id or target.user_id or ""
