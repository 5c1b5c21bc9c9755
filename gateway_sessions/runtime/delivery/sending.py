"""The send of a reply, and the marks that replies were sent, written in batches or with the next transaction.

A reply is sent as it is, put in a growing message's place, looked up first, or marked as a repeat. Until it
is marked as sent, it counts as under way: after a crash it is unknown whether it was sent.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

import anyio

from gateway_sessions._process.retry import Backoff, retry
from gateway_sessions.adapters.protocol import Adapter, FindingAdapter
from gateway_sessions.core.delivery.message_parts import render_stored
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.errors import (
    AdapterUnavailableError,
    CancelledItselfError,
    DeliveryRefusedError,
    StorageError,
    StoreStoppedError,
)
from gateway_sessions.ports import Clock, Transaction
from gateway_sessions.storage.ownership import Ownership
from gateway_sessions.storage.transactions.queue import outbox
from gateway_sessions.storage.transactions.queue.outbox import OwedReply, SentReply

T = TypeVar("T")

logger: Final = logging.getLogger(__name__)

Mark: TypeAlias = Callable[[OutboundMessage, ReplyTarget], OutboundMessage]
"""Returns a message with the mark that it may be a repeat."""

MOMENT_SECONDS: Final = 0.005
"""The time for which marks wait for another transaction whose commit they can share."""


class OutboxDatabase(Protocol):
    """Where replies are kept."""

    @property
    def ownership(self) -> Ownership:
        """The opening of the store: who sends what."""
        ...

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction that changes nothing."""
        ...

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction, durably."""
        ...

    def begin_write(self, transaction: Callable[[], Transaction[T]]) -> Awaitable[T]:
        """The same for what is awaited later; if it can, it stands in line from now on."""
        ...

    @property
    def before_writes(self) -> list[Callable[[], object]]:
        """Called before something is written: what they begin to write shares its commit."""
        ...


class PersistentWrites:
    """Tries again until it is done; only a store that has stopped ends that, with `StoreStoppedError`."""

    def __init__(self, truth: OutboxDatabase, clock: Clock, pause: timedelta) -> None:
        self._truth = truth
        self._clock = clock
        self._backoff = Backoff(pause, pause)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction that changes nothing."""
        return await self._retry_until_done(lambda: self._truth.read(transaction))

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        """Run a transaction, durably."""
        return await self._retry_until_done(lambda: self._truth.write(transaction))

    async def finish_write(self, begun: Awaitable[T], transaction: Callable[[], Transaction[T]]) -> T:
        """What comes of a write that was begun; if it fails, the transaction is run again."""
        first = [begun]
        return await self._retry_until_done(lambda: first.pop() if first else self._truth.write(transaction))

    async def _retry_until_done(self, work: Callable[[], Awaitable[T]]) -> T:
        def failed(_: StorageError) -> None:
            logger.exception("the outbox could not be used", extra={"action": "delivery_failed"})

        return await retry(
            work, (StorageError,), backoff=self._backoff, sleep=self._clock.sleep, failed=failed
        )


class _BegunMarks(NamedTuple):
    """Replies whose marks are being written."""

    sent: Sequence[SentReply]
    writing: Awaitable[None]


class SentReplies:
    """Marks replies as sent in the database."""

    def __init__(
        self,
        truth: OutboxDatabase,
        outbox: PersistentWrites,
        noted: Callable[[OwedReply, bool], Awaitable[object]],
    ) -> None:
        """*noted* is told of each reply, and whether it is marked."""
        self._truth = truth
        self._outbox = outbox
        self._noted = noted
        self._sent: list[SentReply] = []
        self._begun: deque[_BegunMarks] = deque()
        self._news = asyncio.Event()
        self._moment: asyncio.Future[None] | None = None

    def note_sent(self, sent: SentReply) -> None:
        """Mark a reply soon: the platform has it."""
        self._sent.append(sent)
        self._news.set()

    async def run(self) -> None:
        """Mark sent replies until cancelled."""
        with self._joining_all_writes():
            while True:
                await self._news.wait()
                self._news.clear()
                await self._wait_a_moment()
                self._begin_marking()
                while self._begun:
                    sent, writing = self._begun.popleft()
                    await self._finish_marking(sent, writing)

    async def _wait_a_moment(self) -> None:
        """Wait for the next transaction of another task, at most for `MOMENT_SECONDS`."""
        if not self._sent:
            return
        loop = asyncio.get_running_loop()
        self._moment = loop.create_future()
        timer = loop.call_later(MOMENT_SECONDS, self._end_moment)
        try:
            await self._moment
        finally:
            timer.cancel()

    def _end_moment(self) -> None:
        if self._moment is not None and not self._moment.done():
            self._moment.set_result(None)

    @contextmanager
    def _joining_all_writes(self) -> Generator[None]:
        self._truth.before_writes.append(self._begin_marking)
        try:
            yield
        finally:
            self._truth.before_writes.remove(self._begin_marking)
            for _, writing in self._begun:
                if inspect.iscoroutine(writing):
                    writing.close()  # nobody will ever await it

    def _begin_marking(self) -> None:
        """Begin to write all marks in one transaction."""
        if not self._sent:
            return
        sent, self._sent = self._sent, []
        try:
            writing = self._truth.begin_write(partial(outbox.mark_sent, sent))
        except StoreStoppedError as error:
            writing = _raise_when_awaited(error)
        self._begun.append(_BegunMarks(sent, writing))
        self._news.set()
        self._end_moment()

    async def _finish_marking(self, sent: Sequence[SentReply], writing: Awaitable[None]) -> None:
        try:
            await self._outbox.finish_write(writing, partial(outbox.mark_sent, sent))
        except StoreStoppedError:
            is_noted = False  # the next opening of the store treats them as doubtful
        else:
            is_noted = True
        for one in sent:
            await self._noted(one.reply, is_noted)


async def _raise_when_awaited(error: StoreStoppedError) -> None:
    raise error


async def send_reply(
    adapter: Adapter, reply: OwedReply, scope: anyio.CancelScope, now: datetime, mark: Mark
) -> tuple[str | None, Exception | None]:
    """Send a reply, marked if people may see it twice; return its id on the platform, or the error.

    The send is stopped by *scope*; any other cancellation has leaked out of the adapter.
    """
    able = adapter.capabilities
    message = render_stored(reply.message, able)
    try:
        if reply.maybe_duplicate and not able.shows_once(message, now - reply.created_at):
            return await _send_again(adapter, reply, message, mark), None
        return await _send_or_edit(adapter, reply, message), None
    except asyncio.CancelledError:
        if scope.cancel_called:
            raise
        return None, CancelledItselfError("an adapter's send")  # the send may have happened
    except Exception as error:  # noqa: BLE001 -- foreign code: told apart by its kind
        return None, error


async def _send_again(adapter: Adapter, reply: OwedReply, message: OutboundMessage, mark: Mark) -> str | None:
    """Send a reply that people may have: look it up where that is possible, else mark it as a repeat."""
    if not isinstance(adapter, FindingAdapter) or not adapter.capabilities.finds:
        return await _send_or_edit(adapter, reply, mark(message, reply.target))
    try:
        found = await adapter.find(reply.target, idempotency_key=reply.idempotency_key)
    except DeliveryRefusedError as refused:  # it cannot look, now or later
        facts = {"action": "reply_not_findable", "platform": adapter.platform, "reply_id": reply.reply_id}
        logger.warning("it cannot be looked up whether a reply was sent: %s", refused, extra=facts)
        message = mark(message, reply.target)
    except OSError as error:  # what failed is a question, and so nothing was sent
        problem = f"cannot be asked whether a reply was sent ({error})"
        raise AdapterUnavailableError(adapter.platform, problem) from error
    else:
        if found is not None:
            return found
    return await _send_or_edit(adapter, reply, message)


async def _send_or_edit(adapter: Adapter, reply: OwedReply, message: OutboundMessage) -> str | None:
    if message.replaces is not None:
        await adapter.edit(reply.target, message.replaces, message)
        return message.replaces
    return await adapter.send(reply.target, message, idempotency_key=reply.idempotency_key)
