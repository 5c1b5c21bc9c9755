"""A messaging platform for tests: people who write on it, an adapter to it, and everything that can go wrong.

platform = FakePlatform()
async with Gateway(store, agent=echo, adapters=[platform]):
    await platform.says("ann", "hello")
    assert (await platform.wait_for_reply("ann")).text == "hello"
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from secrets import token_hex
from typing import Final, TypeAlias
from warnings import warn

import anyio
import msgspec

from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import Attachment, InboundMessage, MessageKind, Receipt, ReplyTo
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    GatewaySessionsError,
    InvalidInputError,
    RateLimitedError,
)
from gateway_sessions.ports import Clock
from gateway_sessions.testing.clock import FakeClock

ABLE: Final = AdapterCapabilities(
    edit=True, typing=True, max_length=4096, min_edit_interval=timedelta(), buttons=True
)
PATIENCE: Final = timedelta(seconds=10)
"""The real time for which a reply is waited for: much more than a slow machine needs."""
AMBIGUOUS: Final = "the connection broke before the platform has answered"

Failure: TypeAlias = Callable[[], Exception]


class NoReplyError(GatewaySessionsError, TimeoutError):
    """The reply for which a test waits did not come."""

    def __init__(self, chat: str | None, seen: Sequence[Sent]) -> None:
        self.seen: tuple[Sent, ...] = tuple(seen)
        texts = ", ".join(repr(one.text) for one in seen) or "nothing"
        super().__init__(f"no further reply came to {chat or 'any chat'}; there was: {texts}")


@dataclass(slots=True, kw_only=True)
class Sent:
    """A message as people see it."""

    message_id: str
    target: ReplyTarget
    message: OutboundMessage
    idempotency_key: str
    before: list[OutboundMessage] = field(default_factory=list[OutboundMessage])
    """Its contents before it was edited."""
    read: bool = False

    @property
    def text(self) -> str:
        """Return its present text."""
        return self.message.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A call of `send`, whatever its outcome."""

    target: ReplyTarget
    message: OutboundMessage
    idempotency_key: str


@dataclass(slots=True)
class _Mishap:
    """Makes one of the next sends fail."""

    error: Failure
    shown: bool = False


class FakePlatform:
    """One account of a platform that exists in a test only; several may have the same *platform*.

    A chat is a name: that of a person for a private one, any other for a group.
    """

    def __init__(
        self,
        platform: str = "fake",
        name: str = "",
        *,
        capabilities: AdapterCapabilities = ABLE,
        clock: Clock | None = None,
        patience: timedelta = PATIENCE,
        run: str | None = None,
    ) -> None:
        """Message ids begin with *run*, which differs between instances; with "" they are m1, m2, m3."""
        self.platform = platform
        self.name = name
        self.capabilities = capabilities
        self.sent: list[Sent] = []
        """All messages that people see, in the order in which they came."""
        self.attempts: list[Attempt] = []
        """All calls of `send`."""
        self.typing_shown: list[ReplyTarget] = []
        self._clock = clock
        self._patience = patience
        self._submit: Submit | None = None
        self._calls: set[anyio.CancelScope] = set()
        self._events: dict[str, InboundMessage] = {}
        self._unheard: list[InboundMessage] = []
        self._numbers = count(1)
        # A store outlives the test that filled it, and would take a second message of an id for a repetition.
        self._run = f"{token_hex(4)}-" if run is None else run
        self._down = False
        self._mishaps: deque[_Mishap] = deque()
        self._acknowledging = asyncio.Event()
        self._acknowledging.set()
        self._news = asyncio.Event()

    # What people do

    async def says(
        self,
        person: str,
        text: str = "",
        *,
        chat: str | None = None,
        thread: str | None = None,
        attachments: Sequence[Attachment] = (),
        reply_to: ReplyTo | None = None,
        message_id: str | None = None,
        group_id: str | None = None,
    ) -> Receipt:
        """Let a person write, in a chat with the agent or in a group."""
        message = msgspec.structs.replace(
            self._written(person, text, message_id, chat=chat, thread=thread),
            attachments=tuple(attachments),
            reply_to=reply_to,
            group_id=group_id,
        )
        return await self.delivers(message)

    def writes_unheard(self, person: str, text: str, *, message_id: str | None = None) -> None:
        """Let a person write while nobody is connected: the message comes later, if the platform keeps it."""
        self._unheard.append(self._written(person, text, message_id))

    async def presses(self, person: str, label: str, *, chat: str | None = None) -> Receipt:
        """Let a person press a button below the last message that has one with this label."""
        for one in reversed(self._sent_in(chat or person)):
            for button in one.message.buttons:
                if button.label == label and button.url is None:
                    pressed = self._written(person, label, None, chat=chat)
                    return await self.delivers(msgspec.structs.replace(pressed, action=button.action))
        problem = f"{person} sees no button {label!r}"
        raise InvalidInputError(problem)

    def _written(
        self,
        person: str,
        text: str,
        message_id: str | None,
        *,
        chat: str | None = None,
        thread: str | None = None,
    ) -> InboundMessage:
        return InboundMessage(
            source=self.source(person, chat=chat, thread=thread),
            text=text,
            message_id=message_id or self._unused_id(),
            account=self.name,
            sent_at=self._clock.now() if self._clock is not None else None,
        )

    async def edits(self, message_id: str, text: str) -> Receipt:
        """Let the author of a message edit it."""
        last = self._find_event(message_id)
        return await self.delivers(
            msgspec.structs.replace(last, kind=MessageKind.EDIT, revision=last.revision + 1, text=text)
        )

    async def deletes(self, message_id: str) -> Receipt:
        """Let the author of a message delete it."""
        last = self._find_event(message_id)
        return await self.delivers(msgspec.structs.replace(last, kind=MessageKind.DELETE, text=""))

    async def redelivers(self, message_id: str | None = None) -> Receipt:
        """Deliver the last event once more, or the last one of that message."""
        return await self.delivers(self._find_event(message_id or self.last_message_id))

    @property
    def last_message_id(self) -> str:
        """Return the id of the message that was delivered, edited or deleted last."""
        return next(reversed(self._events), "")

    async def delivers(self, message: InboundMessage) -> Receipt:
        """Deliver any message."""
        if self._submit is None:
            raise AdapterUnavailableError(self.platform, "is not connected")
        if message.message_id is not None:
            self._events.pop(message.message_id, None)  # moves to the end: `last_message_id` reads it there
            self._events[message.message_id] = message
        with anyio.CancelScope() as call:
            self._calls.add(call)
            try:
                return await self._submit(message)
            finally:
                self._calls.remove(call)
        raise AdapterUnavailableError(self.platform, "was disconnected before the message was taken")

    def source(self, person: str, *, chat: str | None = None, thread: str | None = None) -> SessionSource:
        """Return the source of a message of that person."""
        return SessionSource(
            platform=self.platform,
            account=self.name,
            chat_id=chat or person,
            chat_name=chat,
            chat_type="group" if chat else "dm",
            user_id=person,
            user_name=person.capitalize(),
            thread_id=thread,
        )

    # What goes wrong

    @contextmanager
    def outage(self) -> Generator[None]:
        """Let the platform be unreachable within the block."""
        self._down = True
        try:
            yield
        finally:
            self._down = False

    def rate_limit(self, retry_after: float | None = 30.0, *, times: int = 1) -> None:
        """Let the next sends exceed the rate limit."""
        self._plan_mishaps(lambda: RateLimitedError(self.platform, retry_after), times)

    def refuses(self, problem: str = "the chat is gone", *, times: int = 1) -> None:
        """Let the platform refuse the next sends for good."""
        self._plan_mishaps(lambda: DeliveryRefusedError(self.platform, problem), times)

    def fails_ambiguously(self, *, shown: bool = True, times: int = 1) -> None:
        """Let the next sends end without an answer; people see the messages if *shown*."""
        self._plan_mishaps(lambda: ConnectionResetError(AMBIGUOUS), times, shown=shown)

    @contextmanager
    def late_ack(self) -> Generator[None]:
        """Within the block, show messages at once and acknowledge them at its end."""
        self._acknowledging.clear()
        try:
            yield
        finally:
            self._acknowledging.set()

    # What people see

    def shown(self, chat: str | None = None) -> list[str]:
        """Return the texts in a chat, or in all, as they are now."""
        return [one.text for one in self._sent_in(chat)]

    async def wait_for_reply(self, chat: str | None = None, *, notices: bool = False) -> Sent:
        """Wait for the first reply in a chat, or in any, that was not returned before.

        Notices count only if they are asked for.
        """
        with anyio.move_on_after(self._patience.total_seconds()):
            while True:
                for one in self._sent_in(chat):
                    if not one.read and (notices or not one.message.is_notice):
                        one.read = True
                        return one
                await self._news.wait()
        raise NoReplyError(chat, self._sent_in(chat))

    async def wait_until_idle(self) -> None:
        """Wait until nothing moves: all work is done, or waits for a clock, an event or a person.

        A turn that waits is idle as well, and not `settled`, for which `Gateway.settled` waits.
        """
        await FakeClock(patience=self._patience).advance()

    async def settles(self) -> None:
        """Wait until nothing moves. This is the old name of `wait_until_idle`."""
        warn("FakePlatform.settles() is called wait_until_idle()", DeprecationWarning, stacklevel=2)
        await self.wait_until_idle()

    # What a gateway sees: the adapter

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Let people write within the block; a message that is not taken at its end has to come again."""
        self._submit = submit
        unheard, self._unheard = self._unheard, []
        try:
            if self.capabilities.receives in {ReceiveClass.CURSOR, ReceiveClass.BACKFILLED}:
                for message in unheard:
                    await self.delivers(message)
            yield
        finally:
            self._submit = None
            for call in self._calls:
                call.cancel()

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Show a message, or fail as planned."""
        self.attempts.append(Attempt(target=target, message=message, idempotency_key=idempotency_key))
        self._check_reachable()
        _encode_for_wire(message)
        if not self.capabilities.fits(message.text):
            raise DeliveryRefusedError(self.platform, "the text is too long")
        mishap = self._mishaps.popleft() if self._mishaps else None
        if mishap is not None and not mishap.shown:
            raise mishap.error()
        sent = self._show(target, message, idempotency_key)
        await self._acknowledging.wait()
        if mishap is not None:
            raise mishap.error()
        return sent.message_id

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Return the id of the message that was sent with this key; None if people do not see it."""
        self._check_reachable()
        seen = (one for one in self._sent_in(target.chat_id) if one.idempotency_key == idempotency_key)
        return next((one.message_id for one in seen), None)

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Change a message that was sent."""
        self._check_reachable()
        _encode_for_wire(message)
        for one in self._sent_in(target.chat_id):
            if one.message_id == message_id and self.capabilities.edit:
                one.before.append(one.message)
                one.message = message
                self._wake_waiting()
                return
        raise DeliveryRefusedError(self.platform, f"there is no message {message_id!r} to edit")

    async def typing(self, target: ReplyTarget) -> None:
        """Note that typing was shown."""
        self._check_reachable()
        self.typing_shown.append(target)

    def _show(self, target: ReplyTarget, message: OutboundMessage, idempotency_key: str) -> Sent:
        if self.capabilities.idempotent_for:
            for one in self.sent:
                if one.idempotency_key == idempotency_key:
                    return one
        sent = Sent(
            message_id=f"r{self._run}{next(self._numbers)}",
            target=target,
            message=message,
            idempotency_key=idempotency_key,
        )
        self.sent.append(sent)
        self._wake_waiting()
        return sent

    def _sent_in(self, chat: str | None) -> list[Sent]:
        return [one for one in self.sent if chat in (None, one.target.chat_id)]

    def _unused_id(self) -> str:
        """Return an id that no test has given to a message."""
        ids = (f"m{self._run}{number}" for number in self._numbers)
        return next(one for one in ids if one not in self._events)

    def _find_event(self, message_id: str) -> InboundMessage:
        if message_id not in self._events:
            problem = f"nobody has written a message {message_id!r}"
            raise InvalidInputError(problem)
        return self._events[message_id]

    def _plan_mishaps(self, error: Failure, times: int, *, shown: bool = False) -> None:
        self._mishaps.extend(_Mishap(error, shown) for _ in range(times))

    def _check_reachable(self) -> None:
        if self._down:
            raise AdapterUnavailableError(self.platform, "cannot be reached")

    def _wake_waiting(self) -> None:
        """Wake all that wait for a message."""
        self._news.set()
        self._news = asyncio.Event()


def _encode_for_wire(message: OutboundMessage) -> bytes:
    """Encode a message, as an adapter would: text that cannot be sent, such as half a character, fails."""
    return msgspec.json.encode(message)
