"""`SentEvidence`: tells after a send without an answer whether the platform has the message.

Some platforms report later what became of each message, and repeat the key with which it was sent. Every
attempt is written down before it is made, and the first report on it when it comes. So three answers are
possible: it was sent, it was never attempted, or nobody knows.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cachetools import LRUCache

from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import AdapterMemory
from gateway_sessions.errors import DeliveryRefusedError
from gateway_sessions.ports import Clock

SLOTS: Final = 4096
"""The attempts that are remembered; each slot is a row in the store, so there is an end to them."""
REPORT_WAIT: Final = timedelta(seconds=10)
"""The time in which a platform reports on a message that it has; reports come within a few seconds."""


class SendAttempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last attempt that was made in a slot."""

    key: str
    at: datetime
    message_id: str | None = None
    """The id that the platform reported."""


class SentEvidence:
    """Knows attempts at messages, and what the platform reported on them."""

    def __init__(self, platform: str, clock: Clock, *, wait: timedelta = REPORT_WAIT) -> None:
        self.memory: AdapterMemory = ProcessMemory()
        self.listening_since: datetime | None = None
        """When the adapter began to listen for reports; None while it does not."""
        self._platform = platform
        self._clock = clock
        self._wait = wait
        self._answered: LRUCache[str, str] = LRUCache(SLOTS)
        """What this process was told in the answer to a send."""

    async def note_attempt(self, key: str) -> None:
        """Write down that a message is about to be sent."""
        known = await self._attempt_in(_slot_of(key))
        if known is None or known.key != key:
            await self._write(SendAttempt(key=key, at=self._clock.now()))

    def note_answer(self, key: str, message_id: str) -> None:
        """Remember that the platform has answered with an id."""
        self._answered[key] = message_id

    async def note_report(self, key: str, message_id: str) -> None:
        """Write down that the platform has reported on a message; only the first report changes anything."""
        known = await self._attempt_in(_slot_of(key))
        if known is not None and known.key == key and known.message_id is None:
            await self._write(msgspec.structs.replace(known, message_id=message_id))

    async def find(self, key: str) -> str | None:
        """Return the id of the message that was sent with that key; None: it certainly was not sent.

        `ConnectionError`: a report may still come. `DeliveryRefusedError`: it will never be known.
        """
        if key in self._answered:
            return self._answered[key]
        known = await self._attempt_in(_slot_of(key))
        if known is None:
            return None
        if known.key != key:
            raise DeliveryRefusedError(
                self._platform, "too many messages were sent since to know of this one"
            )
        if known.message_id is None and self._may_be_reported(known):
            problem = f"{self._platform} has not reported yet whether it has the message"
            raise ConnectionError(problem)
        if known.message_id is None:
            raise DeliveryRefusedError(self._platform, "has not reported whether it has the message")
        return known.message_id

    def _may_be_reported(self, attempt: SendAttempt) -> bool:
        """Return whether a report may still come: what nobody listened to, the platform delivers again."""
        since = self.listening_since
        return since is None or self._clock.now() - max(attempt.at, since) < self._wait

    async def _attempt_in(self, slot: str) -> SendAttempt | None:
        stored = await self.memory.get(slot)
        return None if stored is None else _DECODER.decode(stored)

    async def _write(self, attempt: SendAttempt) -> None:
        await self.memory.put(_slot_of(attempt.key), msgspec.json.encode(attempt).decode())


_DECODER: Final = msgspec.json.Decoder(SendAttempt)


def _slot_of(key: str) -> str:
    """Return the name of the slot for a key: an attempt takes the place of an older one there."""
    digest = hashlib.sha256(key.encode("utf-8", "replace")).digest()
    return f"sent-{int.from_bytes(digest[:4]) % SLOTS}"
