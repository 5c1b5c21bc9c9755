"""`ChannelMarks`: the places up to which the messages of channels are taken, kept in an adapter's memory.

A platform that forgets what nobody listens to keeps it in the history of its channels. An adapter reads a
history from the mark of its channel on; a mark that is too old costs a second reading, and loses nothing.
"""

from __future__ import annotations

import logging
from typing import Final, Generic, TypeVar

import anyio
import msgspec

from gateway_sessions.adapters.protocol import AdapterMemory
from gateway_sessions.errors import StorageError

logger: Final = logging.getLogger(__name__)

CHANNELS: Final = "channels"
BEGAN: Final = "began"
"""The names under which the list of channels and the beginning are remembered."""

MarkT = TypeVar("MarkT", bound=msgspec.Struct)


class ChannelMarks(Generic[MarkT]):
    """Keeps the mark of each channel of one adapter, across restarts."""

    def __init__(self, memory: AdapterMemory, kind: type[MarkT]) -> None:
        self.began: str = ""
        """When the adapter was started for the first time, as the platform writes times."""
        self._memory = memory
        self._kind = kind
        self._channels: list[str] = []
        self._listing = anyio.Lock()

    async def load(self, now: str) -> dict[str, MarkT]:
        """Return the marks by channel; what was written before the very first start is not for the bot."""
        began = await self._memory.get(BEGAN)
        if began is None:
            await self._memory.put(BEGAN, now)
        self.began = began or now
        self._channels = msgspec.json.decode(await self._memory.get(CHANNELS) or "[]", type=list[str])
        marks: dict[str, MarkT] = {}
        for channel_id in self._channels:
            if (stored := await self._memory.get(_name_of(channel_id))) is not None:
                marks[channel_id] = msgspec.json.decode(stored, type=self._kind)
        return marks

    def knows(self, channel_id: str) -> bool:
        """Return whether a restart finds a mark of the channel."""
        return channel_id in self._channels

    async def put(self, channel_id: str, mark: MarkT) -> None:
        """Write a mark down; if that fails, a restart takes messages once more that are known again."""
        try:
            await self._memory.put(_name_of(channel_id), msgspec.json.encode(mark).decode())
            async with self._listing:
                if channel_id not in self._channels:
                    self._channels.append(channel_id)
                    await self._remember_list()
        except StorageError as error:
            facts = {"action": "mark_not_kept", "channel": channel_id}
            logger.warning("how far a channel is taken could not be written down: %s", error, extra=facts)

    async def forget(self, channel_id: str) -> None:
        """Forget a channel that is gone."""
        async with self._listing:
            if channel_id in self._channels:
                self._channels.remove(channel_id)
                await self._remember_list()
                await self._memory.put(_name_of(channel_id), None)

    async def _remember_list(self) -> None:
        await self._memory.put(CHANNELS, msgspec.json.encode(self._channels).decode())


def _name_of(channel_id: str) -> str:
    return f"channel:{channel_id}"
