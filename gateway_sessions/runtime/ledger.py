"""The queue of a store: messages come in exactly once, and are given out one turn at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from gateway_sessions.core.busy import BusyRules
from gateway_sessions.core.busy_notices import refusal
from gateway_sessions.core.inbound import InboundMessage, MessageKind, stored_form
from gateway_sessions.core.queue import DeadLetter, ItemKind, QueuedMessage
from gateway_sessions.core.receipts import Duplicate, Receipt, Rejected, RejectReason
from gateway_sessions.core.source import SessionSource
from gateway_sessions.errors import SentBeforeErasureError, StorageError, UnidentifiedSourceError
from gateway_sessions.failpoints import failpoint
from gateway_sessions.ports import Verb
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.routing import MAX_TRIES, Routing
from gateway_sessions.runtime.turn import Turn
from gateway_sessions.storage.verbs import ledger, queue, turns
from gateway_sessions.storage.verbs.access import AliasesFirst, IdTaken, Request, lane_of
from gateway_sessions.storage.verbs.lane_rows import LaneRow
from gateway_sessions.storage.verbs.ledger import (
    NO_TURN,
    Admission,
    Admitted,
    Noted,
    NotTakenError,
    RunningTurn,
)
from gateway_sessions.storage.verbs.overtaking import AndOvertaken, overtaking
from gateway_sessions.storage.verbs.queue import Overtaken, Reworded
from gateway_sessions.storage.verbs.succession import Actor, Change
from gateway_sessions.storage.verbs.turns import Claimed, Settled, Settlement, Starter

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


class Ledger:
    """Runs the verbs of the queue for one open store, and knows how much waits."""

    def __init__(
        self,
        context: StoreContext,
        routing: Routing,
        limits: Limits,
        rules_for: Callable[[InboundMessage], BusyRules],
    ) -> None:
        self._context = context
        self._routing = routing
        self._limits = limits
        self._rules_for = rules_for
        self._waiting: dict[str, int] = {}
        self.total_waiting = 0
        """Turns that wait on all lanes."""
        self.on_ready: Callable[[str], object] = _nobody
        """Told of a lane on which a turn waits and none runs."""
        self.on_overtaken: Callable[[str, int], object] = _nobody
        """Told of a lane whose turn may not write any more, and that turn's token."""

    async def count(self) -> None:
        """Find out how much waits."""
        for session_key, waiting in (await self._context.db.read(queue.waiting_lanes)).items():
            self._note(session_key, waiting)

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
        payload = stored_form(message)
        if (refused := self._too_much(message, payload)) is not None:
            return await self.unless_known(message, refused), None
        routed = await self._routing.message_for(message.source, touched=not message.internal)
        admission = Admission(
            message=message,
            payload=payload,
            rules=rules,
            solo=solo,
            running=running,
            starter=self._starter() if begin else None,
        )
        admit: Callable[[Request, Change], Verb[ledger.Outcomes]] = partial(ledger.admit, admission)
        try:
            admitted: Admitted | Duplicate = await self._routing.ask(routed, admit)
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
        if admitted.claimed is not None:
            return admitted.receipt, self._begun(admitted.claimed)
        self._note_lane(admitted.lane)
        return admitted.receipt, None

    async def note(self, message: InboundMessage, kind: ItemKind) -> Noted | Duplicate | Rejected:
        """Write down what is carried out at once, so that it is known when it is delivered again.

        It is not refused because too much waits: it may be what ends that.
        """
        payload = stored_form(message)
        if (refused := self._unfit(message, payload)) is not None:
            return refused
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
        keys = [session_key] if session_key is not None else [key for key, _ in await self.ready()]
        for key in keys:
            if (turn := await self._claim(key)) is not None:
                return turn
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

    @property
    def lanes_waiting(self) -> int:
        """On how many lanes turns wait."""
        return len(self._waiting)

    def waiting_on(self, session_key: str) -> int:
        """How many turns wait on a lane."""
        return self._waiting.get(session_key, 0)

    async def _claim(self, session_key: str) -> Turn | None:
        for _ in range(MAX_TRIES):
            verb = partial(turns.claim, self._starter(), session_key)
            claimed = await self._context.apply(Actor.POLICY, verb)
            if claimed is None:
                return None
            if not isinstance(claimed, IdTaken):
                failpoint("turn_claimed")
                return self._begun(claimed)
        raise StorageError(session_key, f"no id was free in {MAX_TRIES} tries")

    async def settle(self, settlement: Settlement, *, go_on: bool) -> tuple[Settled, Turn | None]:
        """End a turn; if *go_on*, begin the lane's next one in the same commit."""
        key = settlement.held.session_key
        for _ in range(MAX_TRIES):
            starter = self._starter() if go_on else None
            verb = partial(_ending, settlement, starter)
            settled = await self._context.apply(Actor.AGENT, verb)
            if not isinstance(settled, IdTaken):
                failpoint("turn_ended")
                return settled, self._after(key, settled)
        raise StorageError(key, f"no id was free in {MAX_TRIES} tries")

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

    async def change(self, verb: Callable[[Change], Verb[T]]) -> T:
        """Run a changing verb for a turn."""
        return await self._context.apply(Actor.AGENT, verb)

    async def look(self, verb: Callable[[], Verb[T]]) -> T:
        """Run a verb that changes nothing."""
        return await self._context.db.read(verb)

    def freed(self, lane: LaneRow) -> None:
        """A lane has been given back."""
        self._note_lane(lane)

    # Overtaking

    async def overtaking(
        self, session_key: str, verb: Callable[[Change], Verb[T]], *, by: str, actor: Actor = Actor.PERSON
    ) -> tuple[T, Overtaken]:
        """Make a change that overtakes whatever runs or waits on a lane."""
        whole: Callable[[Change], Verb[AndOvertaken[T]]] = partial(_overtaking, session_key, verb, by)
        both = await self._context.apply(actor, whole)
        self._note(session_key, 0)
        if both.overtaken.token is not None:
            self.on_overtaken(session_key, both.overtaken.token)
        return both.outcome, both.overtaken

    async def stop(self, session_key: str, *, by: str) -> Overtaken:
        """End the lane's turn and empty its queue."""
        _, overtaken = await self.overtaking(session_key, _nothing, by=by)
        return overtaken

    # Looking, and changing what waits

    async def depth(self, session_key: str) -> int:
        """How many turns wait on a lane."""
        return await self.look(partial(queue.depth, session_key))

    async def listed(self, session_key: str) -> list[QueuedMessage]:
        """All that waits or runs on a lane."""
        return await self.look(partial(queue.listed, session_key))

    async def cancel(self, session_key: str, seq: int, *, by: str) -> int:
        """Take a waiting message out; how many messages were part of its turn."""
        return await self._rearranged(session_key, partial(queue.cancel, session_key, seq, by))

    async def clear(self, session_key: str, *, by: str) -> int:
        """Take everything out that waits; how many messages."""
        return await self._rearranged(session_key, partial(queue.clear, session_key, by))

    async def move(self, session_key: str, seq: int, to: int) -> list[int]:
        """Let a waiting turn begin as the *to*-th; the new order."""
        return await self._rearranged(session_key, lambda _: queue.move(session_key, seq, to))

    async def reword(self, event: str, said: InboundMessage | None) -> Reworded | None:
        """Let a waiting message say something else, or, with None, take it back; None if none of it waits."""
        found = await self.change(lambda change: queue.reword(event, said, "person", change.now))
        if found is not None and not found.running:
            self._note(found.session_key, await self.depth(found.session_key))
        return found

    async def dead_letters(self, limit: int, before: int | None) -> list[DeadLetter]:
        """Messages whose turns failed for good, the newest first."""
        return await self.look(partial(queue.dead_letters, limit, before or queue.FIRST))

    async def requeue(self, item_id: int) -> str:
        """Let a dead letter wait again; its lane."""
        session_key = await self.change(lambda change: queue.requeue(item_id, change.now))
        self._note(session_key, await self.depth(session_key))
        self.on_ready(session_key)
        return session_key

    async def forget(self, before: datetime) -> int:
        """Forget what was settled before that; how many rows."""
        forgotten = 0
        while some := await self.change(lambda _: queue.forget(before)):
            forgotten += some
        return forgotten

    async def _rearranged(self, session_key: str, verb: Callable[[datetime], Verb[T]]) -> T:
        outcome = await self.change(lambda change: verb(change.now))
        self._note(session_key, await self.depth(session_key))
        self.on_ready(session_key)
        return outcome

    def new_session_id(self) -> str:
        """An id for a session that begins now; the database refuses it should it exist."""
        return self._context.new_session_id()

    def _starter(self) -> Starter:
        return Starter(
            epoch=self._context.db.opening.epoch,
            new_session_id=self.new_session_id(),
            flags=self._routing.isolation,
        )

    def _unfit(self, message: InboundMessage, payload: str) -> Rejected | None:
        source, limits = message.source, self._limits
        if not source.has_identifier and not limits.allow_unidentified:
            raise UnidentifiedSourceError(source.platform)
        if message.is_empty and message.kind is MessageKind.NEW:
            return _rejected(RejectReason.EMPTY, None, None)
        if len(payload) > limits.max_message_bytes:
            return _rejected(RejectReason.TOO_LARGE, None, None)
        return None

    def _too_much(self, message: InboundMessage, payload: str) -> Rejected | None:
        if (unfit := self._unfit(message, payload)) is not None:
            return unfit
        if self.total_waiting >= self._limits.max_waiting:
            return _rejected(RejectReason.OVERLOADED, OVERLOADED_RETRY_SECONDS, None)
        return None

    async def unless_known(self, message: InboundMessage, refused: Rejected) -> Receipt:
        """What was accepted before is not refused because it comes again."""
        known = await self._context.db.read(partial(ledger.known_event, message.idempotency_key))
        return refused if known is None else known

    def _note_lane(self, lane: LaneRow) -> None:
        self._note(lane.session_key, lane.waiting)
        if lane.waiting and not lane.running:
            self.on_ready(lane.session_key)

    def _note(self, session_key: str, waiting: int) -> None:
        before = self._waiting.pop(session_key, 0)
        self.total_waiting += waiting - before
        if waiting:
            self._waiting[session_key] = waiting


def _nothing(_: Change) -> Verb[None]:
    """Change nothing else."""
    yield from ()


def _nobody(*_: object) -> None:
    """Nobody wants to know."""


def _lane_and_owner(request: Request, _: Change) -> Verb[tuple[str, str] | AliasesFirst]:
    key = yield from lane_of(request)
    return key if isinstance(key, AliasesFirst) else (key, request.owner)


def _ending(settlement: Settlement, starter: Starter | None, change: Change) -> Verb[Settled | IdTaken]:
    return turns.end_turn(settlement, change, starter)


def _overtaking(
    session_key: str, verb: Callable[[Change], Verb[T]], by: str, change: Change
) -> Verb[AndOvertaken[T]]:
    return overtaking(change, session_key, verb, by)


def _rejected(reason: RejectReason, retry_after: float | None, session_key: str | None) -> Rejected:
    return Rejected(reason=reason, text=refusal(reason), retry_after=retry_after, session_key=session_key)
