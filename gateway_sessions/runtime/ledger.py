"""The queue of a store: messages come in exactly once, and are given out one turn at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.busy_notices import refusal
from gateway_sessions.core.inbound import InboundMessage, MessageKind, stored_form
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue import ItemKind
from gateway_sessions.core.receipts import Duplicate, Receipt, Rejected, RejectReason
from gateway_sessions.core.source import SessionSource
from gateway_sessions.errors import (
    FencedError,
    SentBeforeErasureError,
    SnapshotError,
    StorageCorruptError,
    StorageError,
    UnidentifiedSourceError,
)
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import Statement, Verb
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.routing import MAX_TRIES, Message, Routing
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.runtime.waiting_turns import WaitingTurns
from gateway_sessions.storage.verbs import beginning, ledger, queue, turns
from gateway_sessions.storage.verbs.access import AliasesFirst, Request, lane_of
from gateway_sessions.storage.verbs.beginning import Claimed, IdTakenError, Starter
from gateway_sessions.storage.verbs.lane_rows import LaneRow, load_lane
from gateway_sessions.storage.verbs.ledger import (
    NO_TURN,
    Admission,
    Admitted,
    Noted,
    NotTakenError,
    RunningTurn,
)
from gateway_sessions.storage.verbs.succession import Actor, Change
from gateway_sessions.storage.verbs.turns import Settled, Settlement

T = TypeVar("T")

READY_AT_ONCE: Final = 16
"""Ready lanes looked at when somebody takes any of them."""
OVERLOADED_RETRY_SECONDS: Final = 30.0

logger = logging.getLogger(__name__)


class Limits:
    """How much may wait, and how large one message may be."""

    __slots__ = ("allow_unidentified", "max_message_bytes", "max_waiting")

    def __init__(self, *, max_waiting: int, max_message_bytes: int, allow_unidentified: bool) -> None:
        self.max_waiting = max_waiting
        self.max_message_bytes = max_message_bytes
        self.allow_unidentified = allow_unidentified


class Ledger(WaitingTurns):
    """Runs the verbs of the queue for one open store, and knows how much waits."""

    def __init__(
        self,
        context: StoreContext,
        routing: Routing,
        limits: Limits,
        rules_for: Callable[[InboundMessage], BusyRules],
    ) -> None:
        super().__init__(context)
        self._routing = routing
        self._limits = limits
        self._rules_for = rules_for
        self.shown: Callable[[], Awaitable[None]] = _at_once
        """Returns when whoever reads sessions.json may see what has changed."""

    # Coming in

    async def enqueue(
        self,
        message: InboundMessage,
        rules: BusyRules | None,
        *,
        solo: bool = False,
        running: RunningTurn = NO_TURN,
        begin: bool = False,
    ) -> tuple[Receipt, Turn | None]:
        """Take a message in, or say why not; without *rules* by those of its platform and chat type.

        If *begin*, its turn begins in the same commit, unless it has to wait.
        """
        rules = rules or self._rules_for(message)
        payload = self._payload_of(message)
        if self.total_waiting >= self._limits.max_waiting and not isinstance(payload, Rejected):
            payload = _rejected(RejectReason.OVERLOADED, OVERLOADED_RETRY_SECONDS, None)
        if isinstance(payload, Rejected):
            return await self.unless_known(message, payload), None
        admission = Admission(message=message, payload=payload, rules=rules, solo=solo, running=running)
        routed = await self._routing.message_for(message.source, touched=not message.internal)
        try:
            admitted = await self._admit(admission, routed, begin=begin)
        except NotTakenError as refusal:
            return _rejected(refusal.reason, refusal.retry_after, refusal.session_key), None
        except SentBeforeErasureError:
            return _rejected(RejectReason.ERASED, None, routed.key), None
        if isinstance(admitted, Duplicate):
            return admitted, None
        failpoint("message_admitted")
        self._routing.keep(admitted.entry)
        if admitted.ended:
            self._context.on_ended()
        turn = self._begun(admitted.claimed) if admitted.claimed is not None else None
        if turn is None:
            self._note_lane(admitted.lane)
        await self._show(turn)
        return admitted.receipt, turn

    async def _admit(self, admission: Admission, routed: Message, *, begin: bool) -> Admitted | Duplicate:
        found: list[Admitted] = []

        async def admit() -> Admitted | Duplicate:
            whole = replace(admission, starter=self._starter()) if begin else admission
            verb: Callable[[Request, Change], Verb[ledger.Outcomes]] = partial(_admitting, whole, found)
            return await self._routing.ask(routed, verb)

        def begun() -> tuple[str, Claimed | None]:
            return (found[-1].lane.session_key, found[-1].claimed) if found else (routed.key, None)

        try:
            return await self._with_free_id(routed.key, admit)
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(begun))
            raise

    async def note(self, message: InboundMessage, kind: ItemKind) -> Noted | Duplicate | Rejected:
        """Write down what is carried out at once, so that it is known when it is delivered again.

        It is not refused because too much waits: it may be what ends that.
        """
        payload = self._payload_of(message)
        if isinstance(payload, Rejected):
            return payload
        routed = await self._routing.message_for(message.source, touched=False)
        note: Callable[[Request, Change], Verb[Noted | Duplicate | AliasesFirst]]
        note = partial(ledger.note, message, payload, kind)
        try:
            noted: Noted | Duplicate = await self._routing.ask(routed, note)
        except SentBeforeErasureError:
            return _rejected(RejectReason.ERASED, None, routed.key)
        return noted

    async def lane_of(self, source: SessionSource) -> tuple[str, str]:
        """The lane that a message of that origin belongs to, whichever name is used, and its owner."""
        routed = await self._routing.message_for(source, touched=False)
        find: Callable[[Request, Change], Verb[tuple[str, str] | AliasesFirst]] = _lane_and_owner
        found: tuple[str, str] = await self._routing.ask(routed, find)
        return found

    # Going out

    async def claim(self, session_key: str | None = None) -> Turn | None:
        """The next turn of a lane, or of the lane that has waited longest; None if none is ready."""
        if session_key is not None:
            return await self._claim(session_key)
        damaged: StorageCorruptError | None = None
        for _ in range(MAX_TRIES):
            ready = await self.ready()
            for key, _owner in ready:
                try:
                    turn = await self._claim(key)
                except StorageCorruptError as error:  # the other lanes can go on
                    damaged = error
                    continue
                if turn is not None:
                    return turn
            if not ready or damaged is not None:
                break
        if damaged is not None:
            raise damaged
        return None

    async def ready(
        self, limit: int = READY_AT_ONCE, but_not: Iterable[str] = ()
    ) -> list[tuple[str, str | None]]:
        """Lanes whose next turn may begin and their owners, but of some, those that waited longest first."""
        return await self.look(partial(queue.ready, self._context.clock.now(), limit, but_not))

    async def next_ready(self) -> timedelta | None:
        """How long until a lane becomes ready that is not; None if none will by itself."""
        now = self._context.clock.now()
        at = await self.look(partial(queue.next_ready, now))
        return None if at is None else at - now

    async def _claim(self, session_key: str) -> Turn | None:
        found: list[Claimed | None] = []

        async def claim() -> Claimed | None:
            verb = partial(beginning.claim, self._starter(), session_key)
            return await self._context.apply(Actor.POLICY, partial(_noting, verb, found))

        try:
            claimed = await self._with_free_id(session_key, claim)
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(lambda: (session_key, found[-1] if found else None)))
            raise
        if claimed is None:
            return None
        failpoint("turn_claimed")
        turn = self._begun(claimed)
        await self._show(turn)
        return turn

    async def put_off(self, session_key: str, pause: timedelta) -> None:
        """Let the lane's next turn not begin before that has passed; nothing happens to what waits."""
        ready_at = to_micros(self._context.clock.now() + pause)
        await self._context.db.change(Statement("put_off_lane", (ready_at, session_key)))

    async def settle(self, settlement: Settlement, *, go_on: bool) -> tuple[Settled, Turn | None]:
        """End a turn; if *go_on*, begin the lane's next one in the same commit."""
        key, found = settlement.held.session_key, list[Settled]()

        async def settle() -> Settled:
            known = replace(settlement, known=self._routing.known(key))
            verb = partial(_ending, known, self._starter() if go_on else None)
            return await self._context.apply(Actor.AGENT, partial(_noting, verb, found))

        try:
            settled = await self._with_free_id(key, settle)
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(lambda: (key, found[-1].next if found else None)))
            raise
        failpoint("turn_ended")
        following = self._after(key, settled)
        await self._show(following)
        return settled, following

    async def _with_free_id(self, session_key: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try with one id for a new session after another, until one is free or none is needed."""
        for _ in range(MAX_TRIES):
            with suppress(IdTakenError):
                return await attempt()
        raise StorageError(session_key, f"no id was free in {MAX_TRIES} tries")

    async def _let_go(self, begun: Callable[[], tuple[str, Claimed | None]]) -> None:
        """Whoever asked has gone: let others have the lane, and a turn that nobody works on wait again."""

        def look(change: Change) -> Verb[LaneRow]:
            # This runs behind whatever was under way, of which it is known only now what it did.
            session_key, claimed = begun()
            if claimed is None:
                return load_lane(session_key)
            return turns.give_back(claimed.held, None, change, counted=False)

        with suppress(StorageError, FencedError):
            self._note_lane(await self.change(look))

    async def _show(self, turn: Turn | None) -> None:
        """Wait until sessions.json may be read. One that cannot be written is reported, and stops nothing."""
        try:
            with suppress(SnapshotError):
                await self.shown()
        except asyncio.CancelledError:
            if turn is not None:
                await asyncio.shield(turn.release())
            raise

    def _after(self, session_key: str, settled: Settled) -> Turn | None:
        if settled.entry is not None:
            self._routing.keep(settled.entry)
        if settled.next is not None:
            return self._begun(settled.next)
        self._note(session_key, settled.waiting)
        if settled.waiting:
            self.on_ready(session_key)
        return None

    def _begun(self, claimed: Claimed) -> Turn:
        self._note(claimed.held.session_key, claimed.waiting)
        self._routing.keep(claimed.entry)
        if claimed.ended:
            self._context.on_ended()
        return Turn(self, claimed)

    def freed(self, lane: LaneRow) -> None:
        """How a lane is now, after a turn has changed it."""
        self._note_lane(lane)

    def new_session_id(self) -> str:
        """An id for a session that begins now; the database refuses it should it exist."""
        return self._context.new_session_id()

    def _starter(self) -> Starter:
        return Starter(
            epoch=self._context.db.opening.epoch,
            new_session_id=self.new_session_id(),
            flags=self._routing.isolation,
        )

    def _payload_of(self, message: InboundMessage) -> str | Rejected:
        """The message as it is stored, unless it says nothing or too much."""
        source, limits = message.source, self._limits
        if not source.has_identifier and not limits.allow_unidentified:
            raise UnidentifiedSourceError(source.platform)
        if message.is_empty and message.kind is MessageKind.NEW:
            return _rejected(RejectReason.EMPTY, None, None)
        fits = len(message.text) <= limits.max_message_bytes
        payload = stored_form(message) if fits else ""
        if not fits or len(payload.encode()) > limits.max_message_bytes:
            return _rejected(RejectReason.TOO_LARGE, None, None)
        return payload

    async def unless_known(self, message: InboundMessage, refused: Rejected) -> Receipt:
        """What was accepted before is not refused because it comes again."""
        known = await self._context.db.read(partial(ledger.known_event, message.idempotency_key))
        return refused if known is None else known


async def _at_once() -> None:
    """Nobody reads it."""


def _lane_and_owner(request: Request, _: Change) -> Verb[tuple[str, str] | AliasesFirst]:
    key = yield from lane_of(request)
    return key if isinstance(key, AliasesFirst) else (key, request.owner)


def _admitting(
    admission: Admission, found: list[Admitted], request: Request, change: Change
) -> Verb[ledger.Outcomes]:
    outcome = yield from ledger.admit(admission, request, change)
    found[:] = [outcome] if isinstance(outcome, Admitted) else []
    return outcome


def _noting(verb: Callable[[Change], Verb[T]], found: list[T], change: Change) -> Verb[T]:
    """Keep what came of a verb, should whoever waits for it go away."""
    found[:] = [(yield from verb(change))]
    return found[0]


def _ending(settlement: Settlement, starter: Starter | None, change: Change) -> Verb[Settled]:
    return turns.end_turn(settlement, change, starter)


def _rejected(reason: RejectReason, retry_after: float | None, session_key: str | None) -> Rejected:
    return Rejected(reason=reason, text=refusal(reason), retry_after=retry_after, session_key=session_key)
