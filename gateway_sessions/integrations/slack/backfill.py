"""`SlackBackfill`: reads from channels what Slack does not deliver any more, and hands it over in its order.

Slack gives an event up after three retries, and what is sent while no connection of Socket Mode is open may
never come. It is still in the history of its channel, and in its threads. So the adapter writes down how far
each channel is taken. With each connection, and after each failure, it reads on from there, and delivers what
it finds to itself as Slack would have done: an app's own listeners, and the check for repeats, come first.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup
from cachetools import LRUCache

from gateway_sessions.adapters.channel_marks import ChannelMarks
from gateway_sessions.adapters.memory import ProcessMemory
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import InboundMessage, MessageKind, Receipt, Rejected, RejectReason
from gateway_sessions.errors import (
    DeliveryRefusedError,
    GatewaySessionsError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.integrations.slack.conversations import Ask, SlackConversations
from gateway_sessions.integrations.slack.platform import SlackPlatform
from gateway_sessions.integrations.slack.reading import (
    MILLION,
    THREAD,
    UNDECIDED,
    Payload,
    UnreadableSlackError,
    is_direct,
    millionths_of,
    new_message_in,
    timestamp_of,
)
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)

CATCH_UP: Final = timedelta(days=1)
"""The age of the oldest message that is still read, if nobody says otherwise."""
MOST_PAGES: Final = 10
"""The pages of a channel or a thread that are read: 2000 messages, the newest ones."""
MOST_CHANNELS: Final = 500
"""The channels that are remembered: each costs a call with each connection, of fifty in a minute."""
MOST_THREADS: Final = 20
"""The threads of a channel that are remembered, those with the newest messages; each costs a call as well."""
MOST_HEARD: Final = 1000
"""The messages of a channel of which this process remembers that it has them."""
READERS: Final = 2
"""So many channels are read at once; replies need calls, too."""
WAIT_SECONDS: Final = 1.5
"""How long a new message waits for those before it to be read: Slack waits three seconds for everything."""
SETTLE_SECONDS: Final = 5.0
"""The time after which a message that Slack has delivered was taken, or is known to have failed."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""The pauses after a channel that could not be read, or a message that could not be stored."""
MOST_EVENTS: Final = 10_000
"""The events of which this process remembers that they have come."""
RETRY: Final = "x-slack-retry-num"
"""The header that says how often Slack has tried to deliver an event before."""
RETRY_PAUSE: Final = timedelta(minutes=1)
"""The least time between two readings because of retries: Slack tries for minutes before it gives up."""
LAST_SECONDS: Final = 2.0
"""The limit for writing down how far channels are taken when a connection ends."""
FROM_HISTORY: Final = "history:"
"""The beginning of the ids of events that are made of messages from a history."""

_JOINED: Final = frozenset({"channel_join", "group_join"})
_NOT_TAKEN: Final = "the gateway does not take messages at the moment"

RawMessage: TypeAlias = dict[str, Any]
DeliverAgain: TypeAlias = Callable[[Payload], Awaitable[bool]]
"""This function delivers an event as Slack does, and returns whether it was taken."""


class _Way(StrEnum):
    """The ways on which a message comes."""

    DELIVERED = "delivered"
    READ = "read"


class SlackMark(msgspec.Struct, frozen=True):
    """How far the messages of a channel are taken, its threads included."""

    last: str
    threads: list[str] = []
    """The threads of the bot, the one with the newest message last."""


@dataclass(slots=True)
class _SlackChannel:
    """A channel whose messages are taken in their order."""

    channel: str
    last: int = 0
    """Everything up to here was taken or is for somebody else, in millionths of a second."""
    threads: dict[str, None] = field(default_factory=dict[str, None])
    newest: int = 0
    """The newest message that Slack has delivered; it may still fail."""
    settled: int = 0
    """The newest one of some seconds ago."""
    heard: LRUCache[str, _Way] = field(default_factory=lambda: LRUCache[str, _Way](MOST_HEARD))
    """How the messages came that have not failed."""
    behind: bool = False
    """Whether messages may be missing, so that the history must be read."""
    failures: int = 0
    pause: float = FIRST_PAUSE
    runs: bool = False
    reading: str = ""
    """The message from the history that is being handed over."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    passable: anyio.Event = field(default_factory=anyio.Event)
    """Set when a new message need not wait for those before it."""


class SlackBackfill:
    """Reads again for one app in one workspace."""

    def __init__(
        self,
        platform: SlackPlatform,
        conversations: SlackConversations,
        *,
        ask: Ask,
        deliver_again: DeliverAgain,
        clock: Clock,
        catch_up: timedelta,
    ) -> None:
        """*catch_up* is the age of the oldest message that is still read; nothing is read if it is zero."""
        self.memory: AdapterMemory = ProcessMemory()
        self._platform = platform
        self._conversations = conversations
        self._ask = ask
        self._deliver_again = deliver_again
        self._clock = clock
        self._catch_up = catch_up
        self._marks: ChannelMarks[SlackMark] | None = None
        self._lines: dict[str, _SlackChannel] = {}
        self._tasks: TaskGroup | None = None
        self._readers = anyio.CapacityLimiter(READERS)
        self._told: set[str] = set()
        self._events: LRUCache[str, bool] = LRUCache(MOST_EVENTS)
        self._read_for_retry: datetime | None = None

    # A connection

    @asynccontextmanager
    async def remembering(self) -> AsyncGenerator[None]:
        """Know within the block how far each channel is taken, and write it down at its end."""
        if not self._catch_up:
            yield
            return
        self._marks = marks = ChannelMarks(self.memory, SlackMark)
        found = await marks.load(timestamp_of(self._now()))
        self._lines = {
            channel: _SlackChannel(channel, millionths_of(mark.last), dict.fromkeys(mark.threads))
            for channel, mark in found.items()
        }
        for line in self._lines.values():
            line.behind = True
        try:
            yield
        finally:
            with anyio.move_on_after(LAST_SECONDS, shield=True):
                for _ in range(2):  # nothing is under way any more, so all that was heard is settled
                    await self._settle()
            self._lines, self._marks = {}, None

    async def run(self) -> None:
        """Read what was missed, and write down now and then how far each channel is taken."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                self._start_all()
                while True:
                    await self._clock.sleep(SETTLE_SECONDS)
                    await self._settle()
            finally:
                self._tasks = None

    def catch_up(self) -> None:
        """Read what every channel has missed: for a while there was no connection."""
        for line in self._lines.values():
            line.behind = True
            line.failures += line.lock.locked()  # what is being read now may have been asked for too early
            if line.passable.is_set():
                line.passable = anyio.Event()
        self._start_all()

    def _start_all(self) -> None:
        for line in sorted(self._lines.values(), key=lambda line: line.last, reverse=True):
            if line.behind:
                self._start(line)

    # What Slack delivers

    async def hear(self, payload: Payload, *, retry: str = "") -> bool:
        """Hear of an event before it is read; a new message waits for those of its channel before it.

        *retry* is what Slack's header says: how often the event was tried before. Return True if the message
        was taken from the history meanwhile, so that it needs no more than an answer.
        """
        event_id = str(payload.get("event_id") or "")
        if self._marks is None or event_id.startswith(FROM_HISTORY):
            return False
        self._note_event(event_id, is_retry=retry not in ("", "0"))
        found = new_message_in(payload)
        if found is None:
            return False
        channel, ts = found
        line = self._lines.get(channel) or await self._add_line(self._marks, channel)
        if ts not in line.heard and ts != line.reading:
            line.heard[ts] = _Way.DELIVERED
        has_waited = False
        try:
            await self._wait_for_earlier(line)
            has_waited = True
        finally:
            if not has_waited:  # nobody waits for the answer any more, and Slack delivers it again
                line.heard.pop(ts, None)
        line.newest = max(line.newest, millionths_of(ts))
        return line.heard.get(ts) is _Way.READ

    def _note_event(self, event_id: str, *, is_retry: bool) -> None:
        """Read all channels if an event comes as a retry, and has never come before.

        Then Slack could not reach this process, and may have given up others of that time.
        """
        if not event_id or event_id in self._events:
            return
        self._events[event_id] = True
        now, last = self._clock.now(), self._read_for_retry
        if is_retry and (last is None or now - last >= RETRY_PAUSE):
            self._read_for_retry = now
            self.catch_up()

    async def _wait_for_earlier(self, line: _SlackChannel) -> None:
        if line.behind and not line.passable.is_set():
            if self._tasks is not None:
                self._tasks.start_soon(self._read, line)
            with anyio.move_on_after(WAIT_SECONDS):
                await line.passable.wait()

    async def _add_line(self, marks: ChannelMarks[SlackMark], channel: str) -> _SlackChannel:
        """Begin to remember a channel; what was said there since the first start may be missing."""
        oldest = min(self._lines.values(), key=lambda one: max(one.last, one.newest), default=None)
        line = self._lines[channel] = _SlackChannel(channel, behind=True)
        if oldest is not None and len(self._lines) > MOST_CHANNELS:
            del self._lines[oldest.channel]
            await marks.forget(oldest.channel)
        return line

    async def submit(self, submit: Submit, message: InboundMessage) -> Receipt:
        """Hand a message over; if that fails, its channel is read again."""
        is_settled = False
        try:
            receipt = await self._conversations.submit(submit, message)
            reason = receipt.reason if isinstance(receipt, Rejected) else None
            is_settled = reason is not RejectReason.DRAINING
        except InvalidInputError:
            is_settled = True  # it will never be taken, and is kept elsewhere
            raise
        finally:
            if not is_settled:
                self._note_failure(message)
        if is_settled and reason is not RejectReason.NOT_ADDRESSED:
            self._note_thread(message)
        return receipt

    def _note_failure(self, message: InboundMessage) -> None:
        line, ts = self._lines.get(message.source.chat_id), message.message_id or ""
        if line is None or message.kind is not MessageKind.NEW or not millionths_of(ts):
            return
        line.heard.pop(ts, None)
        line.failures += 1
        line.behind = True
        line.last = min(line.last, millionths_of(ts) - 1)
        self._start(line, after=FIRST_PAUSE)

    def _note_thread(self, message: InboundMessage) -> None:
        """Remember the thread in which a message stands, or in which the answer to it will."""
        source = message.source
        own = "" if is_direct(source.chat_id) else message.message_id
        thread = str(source.thread_id or message.metadata.get(THREAD) or own)
        if (line := self._lines.get(source.chat_id)) is not None and millionths_of(thread):
            line.threads.pop(thread, None)
            line.threads[thread] = None
            while len(line.threads) > MOST_THREADS:
                del line.threads[next(iter(line.threads))]

    # Channels that are behind

    def _start(self, line: _SlackChannel, *, after: float = 0.0) -> None:
        if self._tasks is not None and not line.runs:
            line.runs = True
            self._tasks.start_soon(self._work_off, line, after)

    async def _work_off(self, line: _SlackChannel, after: float) -> None:
        """Read a channel until nothing is missing there."""
        try:
            while line.behind:
                if after:
                    await self._clock.sleep(after)
                async with self._readers:
                    await self._read(line)
                after = line.pause
        finally:
            line.runs = False

    async def _read(self, line: _SlackChannel) -> None:
        """Read once what a channel has missed; whatever fails, nothing waits for it any longer."""
        async with line.lock:
            if not line.behind:
                return
            failures = line.failures
            try:
                await self._read_history(line)
                line.behind, line.pause = line.failures != failures, FIRST_PAUSE
            except DeliveryRefusedError as refused:
                line.behind = False
                self._tell_once(refused.problem)
            except (GatewaySessionsError, OSError, msgspec.MsgspecError) as error:
                line.pause = min(2 * line.pause, LONGEST_PAUSE)
                facts = {"action": "history_not_read", "platform": Platform.SLACK, "channel": line.channel}
                logger.warning("missed messages of a channel are not taken yet: %s", error, extra=facts)
            finally:
                line.passable.set()
            line.settled = 0  # what was delivered meanwhile may still fail

    async def _read_history(self, line: _SlackChannel) -> None:
        since = max(line.last, self._began, self._now() - self._catch_up // timedelta(microseconds=1))
        said = await self._said_behind(line, "", since)
        joined = max((millionths_of(one.get("ts")) for one in said if self._is_own_entry(one)), default=0)
        for thread in dict.fromkeys([*line.threads, *self._own_threads_in(line.channel, said)]):
            try:
                said += await self._said_behind(line, thread, since)
            except DeliveryRefusedError:  # the thread is gone
                line.threads.pop(thread, None)
        by_time = {millionths_of(one.get("ts")): one for one in said}
        missed = [by_time[at] for at in sorted(by_time) if at > max(since, joined)]
        taken = 0
        for raw in missed:
            taken += await self._hand_over(line, raw)
        if taken:
            facts = {"action": "history_read", "platform": Platform.SLACK, "channel": line.channel}
            logger.info("%d messages that did not come were read again", taken, extra=facts)

    def _is_own_entry(self, raw: RawMessage) -> bool:
        """Return whether the bot was let in: what was said before is not for it, even where it is named."""
        return raw.get("subtype") in _JOINED and raw.get("user") == self._platform.bot.user_id

    def _own_threads_in(self, channel: str, said: list[RawMessage]) -> list[str]:
        """Return the threads that messages have begun which are for the bot, or are its own."""
        return [str(one["ts"]) for one in said if one.get("reply_count") and self._is_own(channel, one)]

    def _is_own(self, channel: str, raw: RawMessage) -> bool:
        if raw.get("user") == self._platform.bot.user_id:
            return True
        try:
            message = self._platform.read(self._event_of(channel, raw))
        except UnreadableSlackError:
            return False
        return message is not None and UNDECIDED not in message.metadata

    async def _said_behind(self, line: _SlackChannel, thread: str, since: int) -> list[RawMessage]:
        said: list[RawMessage] = []
        cursor = ""
        for _ in range(MOST_PAGES):
            call = self._platform.calls.said_behind(line.channel, thread, timestamp_of(since), cursor)
            answer = await self._answer_to(call, line)
            said += msgspec.convert(answer.member("messages") or [], list[RawMessage])
            cursor = str(answer.member("response_metadata", "next_cursor") or "")
            if not cursor:
                return said
        facts = {"action": "history_too_long", "platform": Platform.SLACK, "channel": line.channel}
        told = "more was said in a channel than is read again: %d messages are read, others are passed over"
        logger.warning(told, len(said), extra=facts)
        return said

    async def _answer_to(self, call: ApiCall, line: _SlackChannel) -> PlatformAnswer:
        """Make a call, after all the pauses that Slack asks for."""
        while True:
            try:
                return await self._ask(call)
            except RateLimitedError as limited:
                line.passable.set()  # a pause may last for a minute, and new messages can be answered
                await self._clock.sleep(limited.retry_after or FIRST_PAUSE)

    async def _hand_over(self, line: _SlackChannel, raw: RawMessage) -> bool:
        """Deliver a message from the history; return False if it came by itself, or is our own."""
        ts = str(raw["ts"])
        if ts in line.heard or raw.get("user") == self._platform.bot.user_id:
            return False
        line.reading = ts
        try:
            if not await self._deliver_again(self._event_of(line.channel, raw)):
                raise ConnectionError(_NOT_TAKEN)
        finally:
            line.reading = ""
        line.heard[ts] = _Way.READ
        line.last = max(line.last, millionths_of(ts))
        await self._remember(line)
        return True

    def _event_of(self, channel: str, raw: RawMessage) -> RawMessage:
        """Return the event by which Slack would tell of a message."""
        said = {**raw, "type": "message", "channel": channel}
        if said.get(THREAD) == said.get("ts"):
            del said[THREAD]  # the message was there before its thread
        team = self._platform.bot.team_id
        named = {"event_id": f"{FROM_HISTORY}{channel}:{raw.get('ts')}", "team_id": team}
        return {"type": "event_callback", **named, "event": said}

    # Marks

    async def _settle(self) -> None:
        """Move the marks over what was heard some time ago and did not fail."""
        for line in list(self._lines.values()):
            if line.behind:
                continue
            if line.settled > line.last:
                line.last = line.settled
                await self._remember(line)
            line.settled = line.newest

    async def _remember(self, line: _SlackChannel) -> None:
        if self._marks is not None:
            await self._marks.put(line.channel, SlackMark(timestamp_of(line.last), [*line.threads]))

    @property
    def _began(self) -> int:
        return millionths_of(self._marks.began) if self._marks is not None else 0

    def _now(self) -> int:
        return int(self._clock.now().timestamp() * MILLION)

    def _tell_once(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            facts = {"action": "history_refused", "platform": Platform.SLACK}
            logger.warning("what did not come cannot be read again: %s", problem, extra=facts)
