"""The queue of a store: messages come in exactly once, and are given out one turn at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import structs

from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.inbound import InboundMessage, MessageKind, stored_form
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.keys import NO_ALIASES, owner_of
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
from gateway_sessions.runtime.queue_limits import OVERLOADED, Limits, rejected
from gateway_sessions.runtime.routing import MAX_TRIES, Message, Routing
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.runtime.waiting_turns import WaitingTurns
from gateway_sessions.storage.verbs import beginning, ledger, locks, queue, turns
from gateway_sessions.storage.verbs.access import AliasesFirst, Request, lane_of
from gateway_sessions.storage.verbs.beginning import Claimed, IdTakenError, Starter
from gateway_sessions.storage.verbs.lane_rows import KnownLane, LaneRow, load_lane
from gateway_sessions.storage.verbs.ledger import (
    NO_TURN,
    Admission,
    Admitted,
    Noted,
    NotTakenError,
    RunningTurn,
)
from gateway_sessions.storage.verbs.succession import Actor, Change
from gateway_sessions.storage.verbs.turn_rows import Held
from gateway_sessions.storage.verbs.turns import Known, NotAsKnownError, Settled, Settlement

T = TypeVar("T")

READY_AT_ONCE: Final = 16
"""Ready lanes looked at when somebody takes any of them."""
LOOK_BEHIND: Final = 4
"""So many times more are looked at where some are left to others."""

logger = logging.getLogger(__name__)


class Ledger(WaitingTurns):
    """Runs the verbs of the queue for one open store, and knows how much waits."""

    def __init__(
        self,
        context: StoreContext,
        routing: Routing,
        limits: Limits,
        rules_for: Callable[[InboundMessage], BusyRules],
    ) -> None:
        super().__init__(context, most_of_a_lane=limits.max_waiting_per_owner)
        self._routing = routing
        self._limits = limits
        self._rules_for = rules_for
        self._given: WeakValueDictionary[tuple[str, int], Turn] = WeakValueDictionary()
        """The turns that somebody has, by lane and token."""
        self.is_mine: Callable[[str], bool] = lambda _: True
        """Whether the turns of a lane should begin in this process."""
        self.sticky: timedelta | None = None
        """How long those of other lanes are left to others; None: there are no others."""
        self.shown: Callable[[], Awaitable[None]] | None = None
        """Returns when whoever reads sessions.json may see what has changed; None: nobody waits for that."""
        self.versioned = True
        """Whether turns know what the transcript is like, to tell whether a warm agent has seen it."""
        self._calm: dict[str, KnownLane] = {}
        """Some lanes on which nothing runs or waits, as far as is known here."""

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
        """Take a message in, or say why not; without *rules* by those of its session or place.

        If *begin*, its turn begins in the same commit, unless it has to wait.
        """
        payload = self._payload_of(message)
        if self.total_waiting >= self._limits.max_waiting and not isinstance(payload, Rejected):
            payload = OVERLOADED
        if isinstance(payload, Rejected):
            return await self.unless_known(message, payload), None
        given, rules = rules is not None, rules or self._rules_for(message)
        admission = Admission(
            message=message, payload=payload, rules=rules, final=given, solo=solo, running=running
        )
        routed = await self._routing.message_for(message.source, touched=not message.internal)
        if self.waiting_for(self._routing.owner_of(routed)) >= self._limits.max_waiting_per_owner:
            return await self.unless_known(message, OVERLOADED), None
        try:
            admitted = await self._admit(admission, routed, begin=begin)
        except NotTakenError as refusal:
            return rejected(refusal.reason, refusal.retry_after, refusal.session_key), None
        except SentBeforeErasureError:
            return rejected(RejectReason.ERASED, None, routed.key), None
        if isinstance(admitted, Duplicate):
            return admitted, None
        failpoint("message_admitted")
        self._routing.keep(admitted.entry)
        turn = self._begun(admitted.claimed) if admitted.claimed is not None else None
        if turn is None:
            self._note_lane(admitted.lane, admitted.entry.owner)
        await self._show(turn)
        return admitted.receipt, turn

    async def _admit(self, admission: Admission, routed: Message, *, begin: bool) -> Admitted | Duplicate:
        found: list[Admitted] = []

        async def admit() -> Admitted | Duplicate:
            whole = admission
            if self.sticky is not None:
                whole = structs.replace(whole, epoch=self._context.db.epoch)
            if begin:
                lane = self._calm.pop(routed.key, None)
                whole = structs.replace(whole, starter=self._starter(), lane=lane)
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
            return rejected(RejectReason.ERASED, None, routed.key)
        return noted

    def owner_on(self, session_key: str, source: SessionSource) -> str:
        """Whose the lane of that plain key is, as far as that is known without asking the database."""
        known = self._routing.known(session_key)
        return owner_of(source, self._routing.isolation, NO_ALIASES) if known is None else known.owner

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
        now, sticky = self._context.clock.now(), self.sticky
        # Those of others are passed over for a while; some of ours may stand behind them.
        found = await self.look(partial(queue.ready, now, limit * (LOOK_BEHIND if sticky else 1), but_not))
        mine = (
            one for one in found if not sticky or self.is_mine(one.session_key) or one.since + sticky <= now
        )
        return [(one.session_key, one.owner) for one in mine][:limit]

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
        lock = locks.of_lane(session_key)
        await self._context.db.change(Statement("put_off_lane", (ready_at, session_key), lock=lock))

    async def settle(self, settlement: Settlement, *, go_on: bool) -> tuple[Settled, Turn | None]:
        """End a turn; if *go_on*, begin the lane's next one in the same commit."""
        key, found = settlement.held.session_key, list[Settled]()

        async def settle() -> Settled:
            known = Known(
                entry=self._routing.known(key),
                starter=self._starter() if go_on else None,
                versioned=self.versioned,
            )
            verb = partial(_ending, settlement, known)
            return await self._context.apply(Actor.AGENT, partial(_noting, verb, found))

        try:
            try:
                settled = await self._with_free_id(key, settle)
            except NotAsKnownError:
                settlement = structs.replace(settlement, begun=None)
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
        if self.shown is None:
            return
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
        if settled.lane is not None:
            self._remember(session_key, settled.lane)
        self._note(session_key, settled.waiting)
        if settled.waiting:
            self.on_ready(session_key)
        return None

    def _remember(self, session_key: str, lane: KnownLane) -> None:
        """The lane as it was left: most likely its next message finds it like that."""
        self._calm[session_key] = lane
        if len(self._calm) > self._limits.remembered_lanes:
            del self._calm[next(iter(self._calm))]

    def _begun(self, claimed: Claimed) -> Turn:
        self._note(claimed.held.session_key, claimed.waiting, claimed.entry.owner)
        self._routing.keep(claimed.entry)
        turn = self._given[claimed.held.session_key, claimed.held.token] = Turn(self, claimed)
        return turn

    def knows(self, session_key: str, token: int) -> bool:
        """Whether somebody in this process has that turn."""
        return (session_key, token) in self._given

    async def take_back(self, session_key: str, token: int) -> None:
        """Let a turn wait again that began without anybody hearing of it."""
        held = Held(session_key=session_key, epoch=self._context.db.epoch, token=token)
        with suppress(FencedError):
            self.freed(await self.change(lambda change: turns.give_back(held, None, change, counted=False)))

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
            versioned=self.versioned,
        )

    def _payload_of(self, message: InboundMessage) -> str | Rejected:
        """The message as it is stored, unless it says nothing or too much."""
        source, limits = message.source, self._limits
        if not source.has_identifier and not limits.allow_unidentified:
            raise UnidentifiedSourceError(source.platform)
        if message.is_empty and message.kind is MessageKind.NEW:
            return rejected(RejectReason.EMPTY, None, None)
        fits = len(message.text) <= limits.max_message_bytes
        payload = stored_form(message) if fits else ""
        if not fits or len(payload.encode()) > limits.max_message_bytes:
            return rejected(RejectReason.TOO_LARGE, None, None)
        return payload

    async def unless_known(self, message: InboundMessage, refused: Rejected) -> Receipt:
        """What was accepted before is not refused because it comes again."""
        known = await self._context.db.read(partial(ledger.known_event, message.idempotency_key))
        return refused if known is None else known


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


def _ending(settlement: Settlement, known: Known, change: Change) -> Verb[Settled]:
    return turns.end_turn(settlement, change, known)
