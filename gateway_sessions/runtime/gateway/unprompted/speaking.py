"""`Speaker`: says what answers no message, now or at a time, durably and once for each idempotency key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import msgspec

from gateway_sessions.config import Config
from gateway_sessions.core.checks import check_value
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, Reply, ReplyTarget
from gateway_sessions.core.delivery.schedules import (
    RunPlan,
    SayTask,
    Schedule,
    ScheduleKind,
    ScheduleState,
    name_of_said,
)
from gateway_sessions.core.delivery.targets import ORIGIN, TargetName, addressable, parse_target
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.instants import as_utc
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.errors import InvalidInputError, NoTurnError, UnknownTargetError
from gateway_sessions.ports import Clock
from gateway_sessions.runtime.agents.protocol import current_turn
from gateway_sessions.runtime.delivery.delivery import Delivery, expecting_replies
from gateway_sessions.runtime.queue.queue_operations import QueueOperations
from gateway_sessions.storage.tables.entries import load_readable
from gateway_sessions.storage.transactions.queue import schedules as transactions
from gateway_sessions.storage.transactions.queue.outbox import Owed

Target: TypeAlias = str | SessionSource | ReplyTarget
"""A name as prompts give it (`origin`, `telegram`, `telegram:42`), a source, or the target of a reply."""
Words: TypeAlias = str | OutboundMessage | Reply
"""What is said: text, a reply as agents give it, or a message with all its parts."""

CHAT_TYPES: Final = ("dm", "group", "channel", "thread")
"""The kinds of chats among which the lane of a chat is looked for, whose kind nobody says."""
KEY_DIGITS: Final = 16
"""The digits of a name that the gateway gives to a message which waits: enough that no two are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SayReceipt:
    """The receipt of an unprompted message: it is durable, and will be said or kept as a dead letter."""

    id: str
    """The name of the message, by which it can be cancelled while it waits for its time."""
    session_key: str
    """The lane on which it is said."""
    session_id: str | None = None
    """The session that remembers it; None: there is none, or the message waits for its time."""
    when: datetime | None = None
    """The time at which it is said; None: at once."""
    duplicate: bool = False
    """Whether it was said, or waits, already under the same idempotency key: it is not said again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A target with its lane."""

    target: ReplyTarget
    session_key: str
    owner: str
    source: SessionSource
    """An origin of messages there."""


class Targets:
    """Finds the place that a target means, among those that this gateway reaches."""

    def __init__(
        self,
        queue: QueueOperations,
        config: Config,
        accounts: Collection[tuple[str, str]],
        only: Collection[str] | None,
    ) -> None:
        """*accounts* are the platforms and accounts of the adapters; *only* the only lanes, None: all."""
        self._queue = queue
        self._homes = {
            name: one.home_channel
            for name, one in config.platforms.items()
            if one.enabled and one.home_channel is not None
        }
        self._accounts = accounts
        self._only = only

    async def find(self, target: Target) -> Place:
        """Return the place; `UnknownTargetError` names what can be addressed instead."""
        place = await self._find_by_kind(target)
        if (place.target.platform, place.target.account) not in self._accounts:
            raise self._unknown(target, f"no adapter of this gateway serves {_account_name(place.target)}")
        if self._only is not None and place.session_key not in self._only:
            raise self._unknown(target, "this gateway does not answer on that lane")
        return place

    async def _find_by_kind(self, target: Target) -> Place:
        match target:
            case SessionSource():
                return await self._place_of(target, ReplyTarget.at(target))
            case ReplyTarget():
                return await self._place_of_chat(msgspec.structs.replace(target, reply_to=None))
            case str():
                return await self._place_named(target)
        check_value("target", target, str, SessionSource, ReplyTarget)  # untyped callers exist
        raise self._unknown(str(target), "it is no target")

    async def _place_named(self, name: str) -> Place:
        if name.strip().lower() == ORIGIN:
            origin = _message_of_turn()
            if origin is None:
                raise self._unknown(name, "no turn runs here that came from anywhere")
            target = msgspec.structs.replace(ReplyTarget.answering(origin), reply_to=None)
            return await self._place_of(origin.source, target)
        return await self._place_of_chat(self._target_named(name, parse_target(name)))

    def _target_named(self, name: str, parts: TargetName) -> ReplyTarget:
        platform, chat_id, thread_id = parts
        accounts = self._accounts_of(name, platform)
        account, home = accounts[0], self._homes.get(platform)
        if chat_id:
            if len(accounts) > 1:
                listed = ", ".join(sorted(accounts))
                problem = f"{platform} has several accounts ({listed}): give a ReplyTarget with one"
                raise self._unknown(name, problem)
            return ReplyTarget(platform=platform, account=account, chat_id=chat_id, thread_id=thread_id)
        if home is not None:
            return ReplyTarget(
                platform=platform, account=account, chat_id=home.chat_id, thread_id=home.thread_id
            )
        if platform == Platform.LOCAL:
            return ReplyTarget(platform=platform, account=account)  # a terminal is one place
        raise self._unknown(name, f"{platform} has no home channel")

    def _accounts_of(self, name: str, platform: str) -> list[str]:
        """Return the account that speaks on a platform; several, the first one first, if any of them may."""
        accounts = [account for known, account in self._accounts if known == platform]
        if not accounts:
            raise self._unknown(name, f"no adapter of this gateway serves {platform or 'that'}")
        origin = _message_of_turn()
        if origin is not None and origin.source.platform == platform and origin.source.account in accounts:
            return [origin.source.account]
        return [""] if "" in accounts else accounts

    async def _place_of(self, source: SessionSource, target: ReplyTarget) -> Place:
        session_key, owner = await self._queue.routing.lane_of(source)
        return Place(target=target, session_key=session_key, owner=owner, source=source)

    async def _place_of_chat(self, target: ReplyTarget) -> Place:
        """Return the place of a chat: the lane that has a session, else that of a direct chat."""
        sources = [
            SessionSource(
                platform=target.platform,
                chat_id=target.chat_id,
                chat_type=chat_type,
                user_id=target.user_id if chat_type == "dm" else None,
                thread_id=target.thread_id,
                account=target.account,
            )
            for chat_type in CHAT_TYPES
            if target.chat_id or target.user_id or target.platform == Platform.LOCAL
        ]
        if not sources:
            raise self._unknown(target.platform, "it names neither a chat nor a person")
        for source in sources:
            routed = await self._queue.routing.route_message(source, touched=False)
            entry = await self._queue.read(partial(load_readable, routed.key))
            if entry is not None and (entry.origin is None or entry.origin.chat_id == source.chat_id):
                origin = entry.origin or source
                return Place(target=target, session_key=routed.key, owner=entry.owner, source=origin)
        return await self._place_of(sources[0], target)

    def _unknown(self, target: Target, problem: str) -> UnknownTargetError:
        origin = _message_of_turn()
        platforms = [platform for platform, _ in self._accounts]
        settled = {platform for platform, account in self._accounts if not account}
        if origin is not None:
            settled.add(origin.source.platform)
        ambiguous = {one for one in platforms if platforms.count(one) > 1} - settled
        known = addressable(platforms, self._homes, in_turn=origin is not None, ambiguous=ambiguous)
        shown = target if isinstance(target, str) else _account_name(target)
        return UnknownTargetError(shown, known, problem)


def _message_of_turn() -> InboundMessage | None:
    """Return the last message of the turn that runs here; None outside of turns."""
    try:
        return current_turn().messages[-1]
    except NoTurnError:
        return None


class Speaker:
    """Says unprompted messages for one gateway."""

    def __init__(
        self,
        targets: Targets,
        queue: QueueOperations,
        clock: Clock,
        deliveries: Mapping[tuple[str, str], Delivery],
        *,
        zone: ZoneInfo,
        new_digits: Callable[[int], str],
        on_scheduled: Callable[[], object],
    ) -> None:
        """*zone* is that of naive times; *on_scheduled* is called when a message waits for its time."""
        self.targets = targets
        self._queue = queue
        self._clock = clock
        self._deliveries = deliveries
        self._zone = zone
        self._new_digits = new_digits
        self._on_scheduled = on_scheduled

    async def say(
        self, target: Target, words: Words, *, when: datetime | None, idempotency_key: str | None
    ) -> SayReceipt:
        """Say something at once, or let it wait for its time."""
        message, at = message_of(words), self.instant_of(when)
        name = None if idempotency_key is None else name_of_said(idempotency_key)
        place = await self.targets.find(target)
        if at is not None:
            return await self._say_later(place, message, at, name)
        schedule = None if name is None else self.make_said_once(name, place, None, None)
        said = await self._say_now(place, message, name, schedule)
        if not said.is_new:
            return SayReceipt(id=name or "", session_key=place.session_key, duplicate=True)
        known_as = name or f"reply:{said.reply_ids[0]}"
        return SayReceipt(id=known_as, session_key=place.session_key, session_id=said.session_id)

    async def cancel(self, said_id: str) -> bool:
        """Cancel a message that waits for its time; False if its time has come."""
        check_value("said_id", said_id, str)
        return await self._queue.apply(lambda _: transactions.cancel_schedule(said_id))

    async def say_for(self, schedule: Schedule, plan: RunPlan) -> transactions.Said | None:
        """Say what a schedule says; None if another node has said it."""
        task = schedule.task_at_account
        if not isinstance(task, SayTask):
            return await self._queue.apply(
                lambda change: transactions.run_say(schedule, plan, (), None, change)
            )
        target = task.target
        owed = Owed(target=target, message=task.message, owner=schedule.owner)
        delivery = self._deliveries.get((target.platform, target.account))
        row = Reply(task.message.text, attachments=task.message.attachments).row
        with expecting_replies(delivery, schedule.session_key, [owed]) as expected:
            said = await self._queue.apply(
                lambda change: transactions.run_say(schedule, plan, expected.replies, row, change)
            )
            if said is not None:
                expected.note_committed(said.reply_ids, said.session_id)
        return said

    def make_said_once(
        self, name: str, place: Place, message: OutboundMessage | None, at: datetime | None
    ) -> Schedule:
        """Return the row of a message that is said once: it waits, or without a message it is said."""
        return Schedule(
            name=name,
            kind=ScheduleKind.SAY,
            session_key=place.session_key,
            owner=place.owner,
            platform=place.target.platform,
            account=place.target.account,
            task=None if message is None else SayTask(target=place.target, message=message),
            timing=None,
            state=ScheduleState.DONE if message is None else ScheduleState.WAITING,
            due_at=at,
            runs=int(message is None),
            created_at=self._clock.now(),
        )

    def instant_of(self, when: datetime | None) -> datetime | None:
        """Return the instant that a caller means; a naive one is read in the configured zone."""
        if when is None:
            return None
        check_value("when", when, datetime)
        return as_utc(when, naive_zone=self._zone)

    async def _say_now(
        self, place: Place, message: OutboundMessage, name: str | None, schedule: Schedule | None
    ) -> transactions.Said:
        owed = Owed(target=place.target, message=message, owner=place.owner)
        delivery = self._deliveries.get((place.target.platform, place.target.account))
        row = Reply(message.text, attachments=message.attachments).row
        with expecting_replies(delivery, place.session_key, [owed]) as expected:
            said = await self._queue.apply(
                lambda change: transactions.say(schedule, place.session_key, expected.replies, row, change)
            )
            expected.note_committed(said.reply_ids, said.session_id)
        return said

    async def _say_later(
        self, place: Place, message: OutboundMessage, at: datetime, name: str | None
    ) -> SayReceipt:
        known_as = name or name_of_said(self._new_digits(KEY_DIGITS))
        wanted = self.make_said_once(known_as, place, message, at)
        saved = await self._queue.apply(lambda _: transactions.add_said(wanted))
        if saved.is_new:
            self._on_scheduled()
        known = saved.schedule
        return SayReceipt(
            id=known_as, session_key=known.session_key, when=known.due_at, duplicate=not saved.is_new
        )


def message_of(words: Words) -> OutboundMessage:
    """Return what is said as a message; `InvalidInputError` if it says nothing."""
    match words:
        case str():
            message = OutboundMessage(text=words)
        case Reply():
            message = words.message or OutboundMessage()
        case OutboundMessage():
            message = words
        case _:  # pyright: ignore[reportUnnecessaryComparison]  # untyped callers exist
            check_value("message", words, str, OutboundMessage, Reply)
            message = OutboundMessage()
    if message.is_empty:
        problem = "message says nothing: give text or attachments"
        raise InvalidInputError(problem)
    return message


def _account_name(target: SessionSource | ReplyTarget) -> str:
    return f"{target.platform} as {target.account!r}" if target.account else target.platform
