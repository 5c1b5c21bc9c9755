"""`Delivery`: sends the outbox of one account in order, retries failures, and keeps a platform's pauses.

A reply is durable before it is sent. A reply that is sent right after its commit is marked as being sent by
that very commit; so after a crash exactly those replies are doubtful that may have been sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import Final, NamedTuple

import anyio
from cachetools import LRUCache
from msgspec import structs

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.core.delivery.message_parts import cut_to_fit, mark_in_words, split_message
from gateway_sessions.core.delivery.outbound_messages import GROWING, OutboundMessage, ReplyTarget
from gateway_sessions.core.delivery.retry_policy import (
    DeliveryRules,
    GiveUp,
    ResendMarked,
    SendFailure,
    Tried,
    classify_failure,
    is_too_old,
    pause_left,
    plan_delivery,
    requested_pause,
)
from gateway_sessions.core.notices.notice import notice_message
from gateway_sessions.core.notices.notice_texts import MAYBE_REPEAT
from gateway_sessions.core.queue.slash_commands import spelled_with_underscores
from gateway_sessions.errors import GatewaySessionsError, RateLimitedError, StoreStoppedError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.alarm import NEVER, Alarm, ClockSteps
from gateway_sessions.runtime.delivery.fetching import FetchFile, fetching_from
from gateway_sessions.runtime.delivery.notice_wording import Wording, word_notice
from gateway_sessions.runtime.delivery.sending import (
    OutboxDatabase,
    PersistentWrites,
    SentReplies,
    send_reply,
)
from gateway_sessions.runtime.duty import repeat_sweep
from gateway_sessions.runtime.observability.event_stream import EventKind, Events
from gateway_sessions.runtime.user_code import check_function
from gateway_sessions.storage.transactions.queue import clock_set_back, outbox
from gateway_sessions.storage.transactions.queue.outbox import Owed, OwedReply, SentReply

logger: Final = logging.getLogger(__name__)

AT_ONCE: Final = 64
"""The most replies that one account sends at the same time, each for another lane."""
RETRY: Final = timedelta(seconds=1)
"""The pause after a failure of the database."""
_STORE_DIGEST: Final = 8
"""The bytes that tell stores apart; they tell nothing of the secret that they are made of."""
PAUSED_CHATS: Final = 4096
"""The number of chats whose pauses are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The rules for retries, and the time that one send may take."""

    rules: DeliveryRules
    timeout: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeWords:
    """The choice of words for notices."""

    wording: Wording | None = None
    """Gives notices other words; None: ours stay."""
    command_names: Collection[str] = ()
    """The names of all commands, which notices mention."""

    def __post_init__(self) -> None:
        if self.wording is not None:
            check_function("wording", self.wording, "give a function of a notice and a target")


class _Pause(NamedTuple):
    begun_at: datetime
    length: timedelta


class Pauses:
    """The pauses that platforms asked for, by account and chat.

    Many platforms make a client that calls within a pause wait longer, and shut it out in the end.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._chats: LRUCache[tuple[str, str, str], _Pause] = LRUCache(PAUSED_CHATS)

    def begin_pause(self, target: ReplyTarget, error: RateLimitedError) -> None:
        """Begin the pause that the platform asked for."""
        self._chats[_chat_of(target)] = _Pause(self._clock.now(), requested_pause(error.retry_after))

    def time_left(self, target: ReplyTarget) -> timedelta:
        """Return how long nothing may be asked of that chat; zero if the chat is not paused."""
        pause = self._chats.get(_chat_of(target)) if self._chats else None
        if pause is None:
            return timedelta()
        left = pause_left(pause.begun_at, pause.length, self._clock.now())
        if not left:
            del self._chats[_chat_of(target)]
        return left


def _chat_of(target: ReplyTarget) -> tuple[str, str, str]:
    return target.platform, target.account, target.chat_id or target.user_id or ""


def _wake_nobody() -> None:
    """Do nothing: nobody waits until nothing is sent."""


@dataclass(slots=True)
class _Lane:
    """The replies of a lane that are owed, or about to be."""

    expected: int = 0
    """The number of commits under way that may owe more replies."""
    owed: set[int] = field(default_factory=set[int])
    """The replies that this process has committed and that are not settled."""
    more: bool = False
    """Whether other processes may owe the lane replies that are not counted here."""

    @property
    def is_calm(self) -> bool:
        return not (self.expected or self.owed or self.more)


@dataclass(slots=True)
class _Send:
    """The send of a reply."""

    overdue_at: datetime = NEVER
    """The time at which the send is given up."""
    is_taken: bool = False
    """Whether the platform has the reply, which remains to be marked."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Delivery:
    """Sends the owed replies of one account of a platform."""

    adapter: Adapter
    fetch: FetchFile | None

    def __init__(
        self,
        truth: OutboxDatabase,
        adapter: Adapter,
        clock: Clock,
        patience: Patience,
        events: Events,
        pauses: Pauses | None = None,
        *,
        lanes: Collection[str] | None = None,
        alone: bool = True,
        on_idle: Callable[[], object] = _wake_nobody,
        words: NoticeWords | None = None,
    ) -> None:
        """*lanes* are the only lanes whose replies are sent; None: all lanes.

        A delivery is *alone* if no other node may owe replies to the same lanes. *on_idle* is called when
        `idle` may have become true.
        """
        self.adapter, self.fetch = adapter, fetching_from(adapter)
        self._truth = truth
        self._outbox = PersistentWrites(truth, clock, RETRY)
        self._clock = clock
        self._patience = patience
        self._events = events
        self._pauses, self._words = pauses or Pauses(clock), words or NoticeWords()
        self._alarm, self._clock_steps = Alarm(clock), ClockSteps(clock)
        self._lanes: dict[str, _Lane] = {}
        self._commits = 0
        """The number of commits under way that may owe replies."""
        self._sends: dict[int, _Send] = {}
        self._with_platform = 0
        """The number of sends that the platform has yet to answer; the others remain to be marked."""
        self._crowded = False
        """Whether more replies are due than may be sent at the same time."""
        self._tasks: asyncio.TaskGroup | None = None
        self._ended, self._to_look = False, True
        """Whether replies may be due that no sweep has found yet."""
        self._due_at = NEVER
        """The time of the next sweep, at which more replies are due."""
        self._check_at = NEVER
        """The time of the next check for sends that take too long."""
        self._only, self._alone = lanes, alone
        self._sent = SentReplies(truth, self._outbox, self._end_marked_send)
        self._on_idle = on_idle

    @property
    def is_idle(self) -> bool:
        """Whether no reply is being sent or due; replies that wait for a retry do not count."""
        if self._commits or self._sends:
            return False
        return self._ended or not self._to_look

    def expect_commit(self, session_key: str) -> bool:
        """Note that a commit may owe a lane replies; return whether the first can be sent right after it.

        `note_commit` must follow, also if the commit fails; until then no other reply overtakes these.
        """
        room = self._with_platform < AT_ONCE and not self._crowded  # else the reply would overtake others
        lane = self._lanes.setdefault(session_key, _Lane())
        free = not (lane.expected or lane.more) and all(map(self._platform_has, lane.owed))
        lane.expected += 1
        self._commits += 1
        return self._tasks is not None and room and free and self._alone

    def _platform_has(self, reply_id: int) -> bool:
        send = self._sends.get(reply_id)
        return send is not None and send.is_taken

    def owes_lane(self, session_key: str) -> bool:
        """Return whether a lane is owed replies, or is about to be: a hint must not overtake them."""
        lane = self._lanes.get(session_key)
        if lane is None or self._alone:
            return lane is not None
        # What other nodes have sent is not known here: only sends of this node are certain.
        return lane.expected > 0 or not lane.owed.isdisjoint(self._sends)

    def word_for_people(self, message: OutboundMessage, target: ReplyTarget) -> OutboundMessage:
        """Return a notice in the program's words, with commands as people can tap them there."""
        if self._words.wording is not None:
            message = word_notice(self._words.wording, message, target)
        if self.adapter.capabilities.hyphens_in_commands:
            return message
        return message.with_text(spelled_with_underscores(message.text, self._words.command_names))

    def split_for_platform(self, message: OutboundMessage, target: ReplyTarget) -> Sequence[OutboundMessage]:
        """Return the messages to send for one that may be too long for the platform, or show too much."""
        if message.is_notice:
            message = self.word_for_people(message, target)
        has_more = message.attachments or message.buttons
        shown = self.adapter.capabilities.in_words(message) if has_more else message
        if len(shown.attachments) < len(message.attachments):
            facts = {"action": "attachment_in_words", "platform": self.adapter.platform}
            logger.warning("an attachment cannot be shown and is told in words", extra=facts)
        return split_message(shown, self.adapter.capabilities)

    def growing_key(self, session_key: str, seq: int, number: int) -> str:
        """Return the idempotency key of a message that is sent to grow; no other store has the same."""
        # Lanes and places begin anew in another store, and some platforms remember a key for ever.
        store = blake2b(self._truth.ownership.opening.install_secret, digest_size=_STORE_DIGEST).hexdigest()
        return f"{GROWING}{store}:{session_key}:{seq}:{number}"

    def note_commit(
        self,
        session_key: str,
        session_id: str | None = None,
        owed: Sequence[Owed] = (),
        ids: Sequence[int] = (),
    ) -> None:
        """Note the end of an expected commit: send the reply that it marked as under way, then the others."""
        lane = self._lanes[session_key]
        lane.expected -= 1
        self._commits -= 1
        lane.owed.update(ids)
        self._forget_calm_lane(session_key)
        now = self._clock.now()
        for one, reply_id in zip(owed, ids, strict=True):
            if not one.under_way:
                continue
            reply = OwedReply(
                reply_id=reply_id,
                session_key=session_key,
                session_id=session_id,
                seq=one.seq,
                owner=one.owner,
                target=one.target,
                message=one.message,
                attempts=0,
                unclear=0,
                created_at=now,
                due_at=now,
            )
            self._start_sending(reply)
        if not all(one.under_way for one in owed):
            self.look_for_due_replies()
        self._on_idle()

    def look_for_due_replies(self) -> None:
        """Sweep at once: replies may be due."""
        self._to_look = True
        self._alarm.ring()

    def check_soon(self) -> None:
        """Sweep soon, for replies of other nodes; `idle` does not wait for that sweep."""
        self._due_at = self._clock.now()
        self._alarm.ring()

    async def run(self) -> None:
        """Send owed replies until cancelled."""
        async with anyio.create_task_group() as noting:
            noting.start_soon(self._sent.run)
            async with asyncio.TaskGroup() as tasks:
                try:
                    await self._repeat_sweeps(tasks)
                except asyncio.CancelledError:
                    for send in self._sends.values():
                        send.scope.cancel()  # also if an adapter survives one cancellation
                    raise
                finally:
                    self._tasks, self._ended = None, True
                    self._on_idle()
            noting.cancel_scope.cancel()

    async def sweep(self) -> None:
        """Begin to send the replies that are due."""
        now = self._clock.now()
        room = max(AT_ONCE - self._with_platform, 0)
        most = 2 * AT_ONCE if room else 0
        look = partial(
            outbox.due_replies, *self._account, now, most, lanes=self._only, but_not=list(self._sends)
        )
        due, next_at = await self._truth.read(look)
        waiting = [one for one in due if self._is_free_to_send(one)]
        self._crowded = not room or len(waiting) > room
        for reply in waiting[:room]:
            if await self._mark_sending(reply, now):
                self._start_sending(reply)
        self._due_at = NEVER if next_at is None else next_at

    async def _repeat_sweeps(self, tasks: asyncio.TaskGroup) -> None:
        await repeat_sweep(
            partial(self._sweep_if_due, tasks), self._wait_until_due, failed=self._retry_sweep_later
        )

    async def _sweep_if_due(self, tasks: asyncio.TaskGroup) -> None:
        """Sweep if replies may be due; give up sends that take too long."""
        self._alarm.reset()
        self._stop_overdue_sends()
        if self._clock_steps.was_set_back():
            await self._pull_replies_forward()
        if self._to_look or self._due_at <= self._clock.now():
            if self._tasks is None:
                await self._find_owed_lanes()
                self._tasks = tasks
            await self.sweep()
            self._to_look = self._alarm.is_rung

    def _retry_sweep_later(self, error: GatewaySessionsError) -> None:
        logger.error("owed replies could not be read", exc_info=error, extra={"action": "delivery_failed"})
        self._to_look, self._due_at = self._alarm.is_rung, self._clock.now() + RETRY

    async def _wait_until_due(self, _: None) -> None:
        self._on_idle()
        await self._alarm.wait_until(min(self._due_at, self._check_at))

    async def _pull_replies_forward(self) -> None:
        """Shorten all waits after the clock was set back: they were meant for the clock that was ahead."""
        now = self._clock.now()
        for send in self._sends.values():
            if send.overdue_at != NEVER:
                self._check_at = send.overdue_at = now + self._patience.timeout
        await self._truth.write(partial(clock_set_back.pull_replies_forward, now))
        self._to_look = True

    async def _find_owed_lanes(self) -> None:
        """Find the lanes to which an earlier process owes replies, which no new reply may overtake."""
        for session_key in await self._truth.read(partial(outbox.lanes_owed, *self._account)):
            self._lanes.setdefault(session_key, _Lane()).more = True

    def _stop_overdue_sends(self) -> None:
        """Cancel sends that take too long; whether they happened is unknown."""
        now = self._clock.now()
        if now < self._check_at:
            return
        late = [one for one in self._sends.values() if one.overdue_at <= now]
        for send in late:
            send.overdue_at = NEVER
            send.scope.cancel()
        self._check_at = min((one.overdue_at for one in self._sends.values()), default=NEVER)

    def _is_free_to_send(self, reply: OwedReply) -> bool:
        """Return whether a reply is sent neither here nor on another node, and by no commit under way."""
        if reply.reply_id in self._sends or reply.sent_by is None:
            return reply.reply_id not in self._sends
        lane = self._lanes.get(reply.session_key)
        return reply.sent_by == self._truth.ownership.epoch and (lane is None or not lane.expected)

    async def _mark_sending(self, reply: OwedReply, now: datetime) -> bool:
        """Mark a reply as being sent; return False if it was given up as damaged or too old.

        False also if the reply was sent after the sweep had read it.
        """
        if reply.problem or is_too_old(reply.created_at, now, self._patience.rules):
            await self._give_up(reply, reply.problem or "nobody waits for it any more", reply.unclear)
            return False
        return await self._truth.write(partial(outbox.mark_sending, reply, self._truth.ownership.epoch))

    def _start_sending(self, reply: OwedReply) -> None:
        if self._tasks is not None and reply.reply_id not in self._sends:
            send = self._sends[reply.reply_id] = _Send()
            self._with_platform += 1
            self._tasks.create_task(self._deliver_reply(reply, send))

    async def _deliver_reply(self, reply: OwedReply, send: _Send) -> None:
        """Send a reply once, and mark it as sent or plan the next try."""
        is_sent = False
        try:
            sent_id, problem = await self._send_and_free_place(reply, send)
            failpoint("after_deliver")
            if problem is None:
                self._sent.note_sent(SentReply(reply, sent_id, self._clock.now()))
                is_sent = send.is_taken = True
            else:
                await self._retry_or_give_up(reply, problem)
        except StoreStoppedError:
            return
        finally:
            if not is_sent:
                self._end_send(reply)

    async def _send_and_free_place(
        self, reply: OwedReply, send: _Send
    ) -> tuple[str | None, Exception | None]:
        try:
            failpoint("before_deliver")
            return await self._send_in_time(reply, send)
        finally:
            self._with_platform -= 1
            if self._crowded:  # a waiting reply has room now
                self.look_for_due_replies()

    async def _end_marked_send(self, reply: OwedReply, is_noted: bool) -> None:  # noqa: FBT001 -- what `SentReplies` tells
        try:
            if is_noted:
                await self._note_settled(reply, EventKind.REPLY_SENT)
        except StoreStoppedError:
            return
        finally:
            self._end_send(reply)

    def _end_send(self, reply: OwedReply) -> None:
        """Forget the send of a reply, and look for the next one of the lane."""
        del self._sends[reply.reply_id]
        lane = self._lanes.get(reply.session_key)
        if self._crowded or (lane is not None and (lane.more or not lane.owed <= self._sends.keys())):
            self.look_for_due_replies()
        self._on_idle()

    async def _send_in_time(self, reply: OwedReply, send: _Send) -> tuple[str | None, Exception | None]:
        """Send a reply within the time limit; return its id on the platform, or the error."""
        if left := self._pauses.time_left(reply.target):  # an edit or a hint was refused meanwhile
            return None, RateLimitedError(self.adapter.platform, left.total_seconds())
        reply = self._in_final_words(reply)
        with send.scope:
            self._set_time_limit(send)
            try:
                return await send_reply(
                    self.adapter, reply, send.scope, self._clock.now(), self._mark_as_repeat
                )
            finally:
                send.overdue_at = NEVER
        return None, TimeoutError(f"took longer than {self._patience.timeout}")

    def _mark_as_repeat(self, message: OutboundMessage, target: ReplyTarget) -> OutboundMessage:
        mark = self.word_for_people(notice_message(MAYBE_REPEAT), target).text
        return mark_in_words(message, self.adapter.capabilities, mark)

    def _in_final_words(self, reply: OwedReply) -> OwedReply:
        """Return a reply worded, if it was owed where nobody could word it, as by a start or another node."""
        message = reply.message
        if self._words.wording is None or message.notice_code is None or message.worded:
            return reply
        worded = self.word_for_people(message, reply.target)
        if worded.text == message.text:
            return reply
        # One row of the outbox is one message: what was stored in our words cannot become several.
        return structs.replace(reply, message=cut_to_fit(worded, self.adapter.capabilities))

    def _set_time_limit(self, send: _Send) -> None:
        """Set the time at which a send is given up."""
        send.overdue_at = overdue_at = self._clock.now() + self._patience.timeout
        if overdue_at < self._check_at:
            # Kept when the send has ended, so that many sends cost one check.
            self._check_at = overdue_at
            self._alarm.ring()

    async def _retry_or_give_up(self, reply: OwedReply, error: Exception) -> None:
        failed, now = classify_failure(error), self._clock.now()
        if isinstance(error, RateLimitedError):
            self._pauses.begin_pause(reply.target, error)
        unclear = reply.unclear + (failed.how is SendFailure.UNKNOWN)
        problem = f"{type(error).__name__}: {error}"[:500]
        if failed.how is SendFailure.REFUSED and reply.message.replaces is not None:
            # The growing message is gone from the platform: send a new one.
            message = reply.message.instead_of(None)
            await self._outbox.write(partial(outbox.rewrite_owed_reply, reply.reply_id, message, now))
            return
        tried = Tried(
            reply_id=reply.reply_id, owed_since=reply.created_at, attempts=reply.attempts + 1, unclear=unclear
        )
        plan = plan_delivery(
            failed,
            tried,
            now=now,
            idempotent=self._is_doubtless(reply, now),
            rules=self._patience.rules,
        )
        if isinstance(plan, GiveUp):
            await self._give_up(reply, f"{plan.reason}: {problem}", unclear)
            return
        counted = unclear if isinstance(plan, ResendMarked) or unclear else 0
        await self._outbox.write(partial(outbox.put_off_reply, reply, plan.at, problem, unclear=counted))
        facts = {"action": "reply_retry", "reply_id": reply.reply_id, "problem": problem}
        logger.warning("a reply could not be sent", extra=facts)

    def _is_doubtless(self, reply: OwedReply, now: datetime) -> bool:
        """Return whether a repeat of the reply is shown once, or made only if it was not sent."""
        able = self.adapter.capabilities
        return able.finds or able.shows_once(reply.message, now - reply.created_at)

    async def _give_up(self, reply: OwedReply, problem: str, unclear: int) -> None:
        await self._outbox.write(
            partial(outbox.give_up_reply, reply, self._clock.now(), problem, unclear=unclear)
        )
        facts = {"action": "reply_given_up", "reply_id": reply.reply_id, "problem": problem}
        logger.error("a reply was given up", extra={**facts, "session_key": reply.session_key})
        await self._note_settled(reply, EventKind.REPLY_GIVEN_UP)
        self.look_for_due_replies()  # the next reply of the lane may be sent

    async def _note_settled(self, reply: OwedReply, kind: EventKind) -> None:
        """Emit the end of a reply, and find out whether new replies of the lane must wait for others."""
        self._events.emit(kind, reply.session_key, reply.session_id, reply_id=reply.reply_id)
        lane = self._lanes.get(reply.session_key)
        if lane is None:  # another process owed the reply, and maybe more
            self.look_for_due_replies()
            return
        lane.owed.discard(reply.reply_id)
        if lane.more:
            # Replies that this process owes meanwhile are in `owed`, whether the read sees them or not.
            lane.more = await self._outbox.read(partial(outbox.lane_is_owed, reply.session_key))
        self._forget_calm_lane(reply.session_key)

    def _forget_calm_lane(self, session_key: str) -> None:
        lane = self._lanes.get(session_key)
        if lane is not None and lane.is_calm:
            del self._lanes[session_key]

    @property
    def _account(self) -> tuple[str, str]:
        return self.adapter.platform, self.adapter.name


@dataclass(slots=True)
class ExpectedReplies:
    """Replies before and after their commit."""

    replies: Sequence[Owed]
    ids: Sequence[int] = ()
    session_id: str | None = None

    def note_committed(self, ids: Sequence[int], session_id: str | None) -> None:
        """Note that the replies are durable, under these ids."""
        self.ids, self.session_id = ids, session_id


@contextmanager
def expecting_replies(
    delivery: Delivery | None, session_key: str, replies: Sequence[Owed]
) -> Generator[ExpectedReplies]:
    """Yield replies for a commit, in parts that fit; tell the delivery afterwards which are committed."""
    if delivery is None or not replies:
        yield ExpectedReplies(replies)
        return
    parts = [
        structs.replace(one, message=part)
        for one in replies
        for part in delivery.split_for_platform(one.message, one.target)
    ]
    follows = delivery.expect_commit(session_key)
    expected = ExpectedReplies(
        [structs.replace(one, under_way=follows and not at) for at, one in enumerate(parts)]
    )
    try:
        yield expected
    finally:
        committed = expected.replies if expected.ids else ()
        delivery.note_commit(session_key, expected.session_id, committed, expected.ids)
