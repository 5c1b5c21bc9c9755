"""`DiscordReceiver`: takes messages in, those of one channel in their order, and those that nobody brought.

Discord's gateway forgets what nobody listens to. What it forgot is in the channels: with each new session of
the gateway, the history of every known channel is read from the last message on that was taken.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway_sessions.adapters.channel_marks import ChannelMarks
from gateway_sessions.adapters.protocol import AdapterMemory
from gateway_sessions.errors import InvalidInputError, StorageError
from gateway_sessions.integrations.discord.objects import DiscordMessage, DiscordPlace, snowflake_at
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

PAGE: Final = 100
"""Discord gives out no more messages at once."""
READERS: Final = 4
"""So many histories are read at once: Discord takes fifty requests a second, and replies need some."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""The pauses after a message that could not be stored, or a history that could not be read."""
MOST_WAITING: Final = 1000
"""So many messages of a channel wait in memory while a store does not take them; the history has the rest."""
PASSED_OVER: Final = 50
"""After so many messages that are for somebody else, the place in a channel is written down all the same: a
restart reads no more than one page of them again."""


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message as a library brought it."""

    message: DiscordMessage
    native: object = None
    """The library's own object, for handlers of the program."""

    @property
    def number(self) -> int:
        """The id, which tells the order."""
        return int(self.message.id)


class HistoryClosedError(Exception):
    """A channel is gone, or closed to the bot: there is nothing to read, now or later."""


class DiscordInbox(Protocol):
    """What a receiver asks of its surroundings."""

    async def submit(self, place: DiscordPlace, received: ReceivedMessage) -> bool:
        """Hand over what a message brings; return False if it is for somebody else.

        Raise `InvalidInputError` for a message that nobody can read.
        """
        ...

    async def history(self, place: DiscordPlace, after: int, limit: int) -> Sequence[ReceivedMessage]:
        """Return the messages of a channel behind an id, the oldest first; `HistoryClosedError` if none."""
        ...

    async def look_up(self, place: DiscordPlace) -> DiscordPlace:
        """Return a channel of which only the id is known, with all that there is to know."""
        ...

    async def set_aside(self, what: object, error: InvalidInputError) -> None:
        """Keep what nobody can read."""
        ...


PlaceWork: TypeAlias = Callable[[DiscordPlace], Awaitable[object]]
"""This function does something in a channel, in the order of what happens there."""


class ChannelMark(msgspec.Struct, frozen=True):
    """How far the messages of a channel are taken."""

    last: str
    place: DiscordPlace


@dataclass(slots=True)
class _ChannelLine:
    """A channel whose messages are taken one after the other."""

    place: DiscordPlace
    last: int = 0
    """The newest message that was taken or passed over."""
    fetched: int = 0
    """The newest message that the history had: what Discord brings as well is not taken again."""
    waiting: deque[ReceivedMessage | PlaceWork] = field(default_factory=deque["ReceivedMessage | PlaceWork"])
    behind: bool = True
    """Whether messages may be missing, so that the history has to be read first."""
    runs: bool = False
    passed_over: int = 0


class DiscordReceiver:
    """Takes the messages of all channels in, until its task group ends."""

    def __init__(
        self,
        inbox: DiscordInbox,
        memory: AdapterMemory,
        clock: Clock,
        tasks: TaskGroup,
        *,
        catch_up: timedelta,
    ) -> None:
        """*catch_up* is the age of the oldest message that is still fetched."""
        self._inbox = inbox
        self._marks = ChannelMarks(memory, ChannelMark)
        self._clock = clock
        self._tasks = tasks
        self._catch_up = catch_up
        self._lines: dict[str, _ChannelLine] = {}
        self._began = 0
        self._readers = anyio.CapacityLimiter(READERS)

    async def start(self) -> None:
        """Learn from the memory how far each channel is taken."""
        now = snowflake_at(int(self._clock.now().timestamp() * 1000))
        for channel_id, mark in (await self._marks.load(str(now))).items():
            self._lines[channel_id] = _ChannelLine(mark.place, int(mark.last))
        self._began = int(self._marks.began)

    # What happens

    def take(self, place: DiscordPlace, received: ReceivedMessage) -> None:
        """Take a message once those before it are taken."""
        line = self._line(place)
        if len(line.waiting) >= MOST_WAITING:
            line.behind = True
        else:
            line.waiting.append(received)
        self._run(line)

    def take_in_order(self, place: DiscordPlace, work: PlaceWork) -> None:
        """Do something once the messages before it are taken, such as an edit of one of them."""
        line = self._line(place)
        line.waiting.append(work)
        self._run(line)

    def catch_up(self) -> None:
        """Read what every known channel has missed: a new session of the gateway has begun."""
        for line in sorted(self._lines.values(), key=lambda line: line.last, reverse=True):
            line.behind = True
            self._run(line)

    def catch_up_with(self, newest: Iterable[tuple[DiscordPlace, int]]) -> None:
        """Read what channels have missed whose newest messages are not taken."""
        for place, number in newest:
            known = self._lines.get(place.channel_id)
            if number > max(self._began, known.last if known is not None else 0):
                line = self._line(place)
                line.behind = True
                self._run(line)

    def _line(self, place: DiscordPlace) -> _ChannelLine:
        line = self._lines.get(place.channel_id)
        if line is None:
            line = self._lines[place.channel_id] = _ChannelLine(place)
        if place.known:
            line.place = place
        return line

    def _run(self, line: _ChannelLine) -> None:
        if not line.runs:
            line.runs = True
            self._tasks.start_soon(self._work_off, line)

    # One channel

    async def _work_off(self, line: _ChannelLine) -> None:
        """Do what waits in a channel, and try again for as long as it takes."""
        pause = FIRST_PAUSE
        while line.behind or line.waiting:
            try:
                await self._next_step(line)
                pause = FIRST_PAUSE
            except Exception as error:  # noqa: BLE001 -- whatever fails: the message is still there
                facts = {"action": "message_not_taken", "channel": line.place.channel_id}
                level = logging.ERROR if isinstance(error, StorageError) else logging.WARNING
                logger.log(level, "messages of a channel could not be taken: %s", error, extra=facts)
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        line.runs = False

    async def _next_step(self, line: _ChannelLine) -> None:
        if not line.place.known:
            line.place = await self._inbox.look_up(line.place)
        elif line.behind:
            line.behind, has_read = False, False  # what happens from now on may set it again
            try:
                await self._read_history(line)
                has_read = True
            finally:
                line.behind = line.behind or not has_read
        else:
            first = line.waiting[0]
            if not isinstance(first, ReceivedMessage):
                await first(line.place)
            elif first.number > line.fetched:
                await self._take(line, first)
            line.waiting.popleft()

    async def _read_history(self, line: _ChannelLine) -> None:
        oldest = self._clock.now() - self._catch_up
        # The clock of this machine may be fast: it says what is fetched, and not what was taken.
        begin = max(self._began, snowflake_at(int(oldest.timestamp() * 1000)))
        while True:
            async with self._readers:
                try:
                    page = await self._inbox.history(line.place, max(line.last, begin), PAGE)
                except HistoryClosedError:
                    await self._marks.forget(line.place.channel_id)
                    return
            for received in page:
                await self._take(line, received)
                line.fetched = received.number
            if len(page) < PAGE:
                return

    async def _take(self, line: _ChannelLine, received: ReceivedMessage) -> None:
        if line.place.guild_id is None and not self._marks.knows(line.place.channel_id):
            # Discord does not list private channels: after a crash from here on, nobody would read this one.
            await self._keep_mark(line, received.number - 1)
        try:
            taken = await self._inbox.submit(line.place, received)
        except InvalidInputError as error:
            await self._inbox.set_aside(received.message, error)
            taken = True
        line.last = max(line.last, received.number)
        line.passed_over = 0 if taken else line.passed_over + 1
        if taken or line.passed_over >= PASSED_OVER:
            line.passed_over = 0
            await self._keep_mark(line, line.last)

    async def _keep_mark(self, line: _ChannelLine, last: int) -> None:
        await self._marks.put(line.place.channel_id, ChannelMark(str(last), line.place))
