"""`SendingLimiter`: holds back calls while a platform wants to be left alone, in one chat or everywhere.

Many platforms make a client that calls within a pause wait longer, and shut it out in the end. So a call
within a pause is not made at all, be it a message, an edit or a sign of typing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cachetools import LRUCache

from gateway_sessions.adapters.webhooks.platform import SendingPace
from gateway_sessions.ports import Clock

PAUSED_CHATS: Final = 4096
"""The chats whose pauses are remembered: more are seldom active at once, and each takes a few bytes."""
UNNAMED_PAUSE: Final = timedelta(seconds=1)
"""The first pause where the platform asks for one and does not say how long; it doubles each time."""
LONGEST_UNNAMED: Final = timedelta(minutes=1)
PATIENCE: Final = timedelta(seconds=2)
"""The longest wait for a turn in the pace; whoever had to wait longer is told how long instead."""


class _PlaceState:
    """The state of one chat, or of the account."""

    __slots__ = ("free_at", "paused_until", "unnamed")

    def __init__(self) -> None:
        self.paused_until: datetime | None = None
        self.free_at: datetime | None = None
        self.unnamed: timedelta = UNNAMED_PAUSE


class SendingLimiter:
    """Knows when the next call may be made, in each chat and for the whole account."""

    def __init__(self, pace: SendingPace, clock: Clock) -> None:
        self._clock = clock
        self._chat_interval = pace.chat_interval
        self._account_interval = timedelta(seconds=1 / pace.per_second) if pace.per_second else timedelta()
        self._account = _PlaceState()
        self._chats: LRUCache[str, _PlaceState] = LRUCache(PAUSED_CHATS)

    async def reserve(self, chat: str, *, shows: bool) -> float | None:
        """Wait for the next turn of a chat; return the seconds of a longer wait, and reserve nothing then.

        Only messages that people see count for the pace; a pause is for every call.
        """
        now = self._clock.now()
        places = [(self._account, self._account_interval)]
        if chat:
            places.append((self._place(chat), self._chat_interval))
        begin = max([now, *(at for place, _ in places if (at := place.paused_until) is not None)])
        if begin > now:
            return (begin - now).total_seconds()
        if not shows:
            return None
        begin = max([now, *(at for place, _ in places if (at := place.free_at) is not None)])
        if begin - now > PATIENCE:
            return (begin - now).total_seconds()
        for place, interval in places:  # before the wait: whoever comes meanwhile stands behind this one
            if interval:
                # Each place counts for itself: a chat that waits must not hold up the account.
                place.free_at = max(now, place.free_at or now) + interval
        if begin > now:
            await self._clock.sleep((begin - now).total_seconds())
        return None

    def pause(self, chat: str, after: float | None, *, everywhere: bool) -> float:
        """Begin the pause that the platform asked for; return its seconds."""
        place = self._account if everywhere or not chat else self._place(chat)
        if after is None:
            length, place.unnamed = place.unnamed, min(2 * place.unnamed, LONGEST_UNNAMED)
        else:
            length = timedelta(seconds=after)
        until = self._clock.now() + length
        place.paused_until = max(until, place.paused_until or until)
        return length.total_seconds()

    def went_well(self, chat: str) -> None:
        """Note that a call was carried out: the next pause without a length is short again."""
        self._account.unnamed = UNNAMED_PAUSE
        if chat in self._chats:
            self._chats[chat].unnamed = UNNAMED_PAUSE

    def _place(self, chat: str) -> _PlaceState:
        if chat not in self._chats:
            self._chats[chat] = _PlaceState()
        return self._chats[chat]
