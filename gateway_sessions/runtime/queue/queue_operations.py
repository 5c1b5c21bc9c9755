"""`QueueOperations`: runs the queue transactions of an open store: admit, claim, settle and stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Container, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final, Protocol, TypeVar
from weakref import WeakValueDictionary

from msgspec import structs

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.core.queue.busy_modes import BusyBook, BusyRules
from gateway_sessions.core.queue.inbound import (
    Duplicate,
    InboundMessage,
    Receipt,
    Rejected,
    RejectReason,
    Speakers,
    encode_message,
)
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.sessions.recovery import ResumeReason
from gateway_sessions.errors import (
    FencedError,
    SentBeforeErasureError,
    SnapshotError,
    StorageCorruptError,
    StorageError,
)
from gateway_sessions.ports import Transaction
from gateway_sessions.runtime.context import StoreContext
from gateway_sessions.runtime.queue.admission import (
    NO_LOCAL_TURN,
    AdmissionRequest,
    Admissions,
    EnteredMessage,
    LocalLane,
    QueueLimits,
    encode_within_limits,
    find_unfitness,
    make_rejection,
)
from gateway_sessions.runtime.queue.observed import ObservedTalk
from gateway_sessions.runtime.queue.routing import MAX_TRIES, RoutedMessage, Routing
from gateway_sessions.runtime.queue.turn import GatewayTurn
from gateway_sessions.runtime.queue.waiting import WaitingTurns
from gateway_sessions.storage.tables.change import Actor, Change
from gateway_sessions.storage.tables.lanes import KnownLane, LaneRow, load_lane
from gateway_sessions.storage.transactions.queue import admit as admissions
from gateway_sessions.storage.transactions.queue import claim as claims
from gateway_sessions.storage.transactions.queue import recover, running_turn, undo_and_retry, waiting
from gateway_sessions.storage.transactions.queue.admit import (
    Admission,
    Admitted,
    MessageRefusedError,
    NotedItem,
)
from gateway_sessions.storage.transactions.queue.claim import (
    ClaimedTurn,
    IdTakenError,
    TurnStarter,
    keep_result,
)
from gateway_sessions.storage.transactions.queue.outbox import Owed
from gateway_sessions.storage.transactions.queue.recover import CutOffRules, CutOffTurn
from gateway_sessions.storage.transactions.queue.running_turn import (
    KnownBeforeEnd,
    SettledTurn,
    TurnChangedError,
    TurnSettlement,
    end_turn,
)
from gateway_sessions.storage.transactions.queue.turn_transcript import TurnLease
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    AliasesUnknown,
    SessionRequest,
)

T = TypeVar("T")

READY_AT_ONCE: Final = 16
"""Ready lanes looked at when somebody takes any of them."""
LOOK_BEHIND: Final = 4
"""The factor by which more ready lanes are read where some of them are left to other nodes."""

logger: Final = logging.getLogger(__name__)


class RestartNotes(Protocol):
    """The file in which operators read how often in a row the turn of each lane was cut off."""

    @property
    def noted(self) -> Container[str]:
        """The lanes of which it says something."""
        ...

    async def refresh(self) -> None:
        """Bring it up to date."""
        ...


class LanesOfOthers(Protocol):
    """The nodes that have the same store open, and their lanes."""

    @property
    def sticky(self) -> timedelta:
        """The time for which turns of other nodes' lanes are left to those nodes."""
        ...

    def is_mine(self, session_key: str) -> bool:
        """Return whether the turns of a lane should begin in this process."""
        ...


class QueueOperations(WaitingTurns):
    """Runs the transactions of the queue for one open store, and knows how much waits."""

    def __init__(
        self,
        context: StoreContext,
        routing: Routing,
        limits: QueueLimits,
        busy_rules: BusyBook,
        tries: RestartNotes,
        *,
        on_turned: Callable[[str], object],
        speakers: Speakers,
        others: LanesOfOthers | None = None,
        shown: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """*on_turned* is told the session of each turn that was completed, whoever has run it.

        *others* says which lanes are left to other nodes; None: there are none. *shown* returns when whoever
        reads sessions.json may see what has changed; None: nobody waits for that.
        """
        super().__init__(context, most_of_a_lane=limits.max_waiting_per_owner)
        self.routing: Routing = routing
        """The way of messages to their lanes and sessions."""
        self._limits = limits
        self._busy_rules = busy_rules
        self._tries = tries
        self._on_turned = on_turned
        self._speakers = speakers
        self._observed = ObservedTalk(self, routing, limits, speakers)
        self._admissions = Admissions(self, routing, limits, context.clock)
        self._given: WeakValueDictionary[tuple[str, int], GatewayTurn] = WeakValueDictionary()
        """The turns that somebody has, by lane and token."""
        self._others = others
        self._shown = shown
        self._calm: dict[str, KnownLane] = {}
        """Some lanes on which nothing runs or waits, as far as is known here."""

    # Coming in

    async def enqueue(
        self,
        message: InboundMessage,
        rules: BusyRules | None,
        *,
        solo: bool = False,
        here: LocalLane = NO_LOCAL_TURN,
    ) -> tuple[Receipt, GatewayTurn | None]:
        """Take a message in, or say why not; without *rules* by those of its session or place.

        If its turn may begin *here*, it begins in the same commit, unless it has to wait.
        """
        if message.observed:
            return await self._observe(message), None
        if (refused := find_unfitness(message, self._limits)) is not None:
            return await self.answer_refusal(message, refused), None
        given, rules = rules is not None, rules or self._rules_for(message)
        routed = await self.routing.route_message(message.source, touched=not message.internal)
        wish = AdmissionRequest(
            message, rules, given, solo, here, routed, self.routing.owner_of_message(routed)
        )
        entered = await self._admissions.enter(wish)
        if isinstance(entered, Rejected):
            return self._duplicate_or_refusal(message, entered), None
        try:
            receipt, turn = await self._admit_entered(wish, entered)
        finally:
            self._admissions.leave(wish, entered)
        if isinstance(receipt, Rejected):
            return await self.answer_refusal(message, receipt), None
        return receipt, turn

    async def _observe(self, message: InboundMessage) -> Receipt:
        receipt = await self._observed.keep(message)
        if isinstance(receipt, Rejected):
            return await self.answer_refusal(message, receipt)
        await self._refresh_files(receipt.session_key, None)
        return receipt

    async def _admit_entered(
        self, wish: AdmissionRequest, entered: EnteredMessage
    ) -> tuple[Receipt, GatewayTurn | None]:
        message, routed = wish.message, wish.routed
        payload = encode_within_limits(message, self._limits)
        if isinstance(payload, Rejected):
            return payload, None
        message, payload = self._name_speaker(message, payload, routed)
        admission = Admission(
            message=message,
            payload=payload,
            rules=wish.rules,
            final=wish.final,
            solo=wish.solo,
            running=entered.running,
            since=entered.since,
        )
        try:
            admitted = await self._run_admission(admission, routed, begin=entered.begins)
        except MessageRefusedError as refusal:
            if refusal.load is not None:
                self._admissions.note_full_lane(refusal.session_key, refusal.load, entered.running)
            return make_rejection(refusal.reason, refusal.retry_after, refusal.session_key), None
        except SentBeforeErasureError:
            return make_rejection(RejectReason.ERASED, None, routed.key), None
        receipt = admitted if isinstance(admitted, Duplicate) else admitted.receipt
        self.known_events.remember(message.idempotency_key, receipt.seq, receipt.session_key)
        if isinstance(admitted, Duplicate):
            return admitted, None
        failpoint("message_admitted")
        self.routing.remember_entry(admitted.entry)
        if admitted.receipt.dropped:
            self.announce_taken_out()
        turn = self._make_turn(admitted.claimed) if admitted.claimed is not None else None
        if turn is None:
            self.note_lane(admitted.lane, admitted.entry.owner)
        await self._refresh_files(admitted.entry.session_key, turn)
        return admitted.receipt, turn

    async def requeue_last_turn(self, session_key: str, asked: InboundMessage) -> LaneRow | Rejected | None:
        """Let a lane's last turn wait once more, if there is room for it; None if nothing was said."""
        rules, routed = self._rules_for(asked), await self.routing.route_message(asked.source, touched=False)
        owner = self.routing.owner_of_message(routed)
        wish = AdmissionRequest(
            asked, rules, final=False, solo=True, here=NO_LOCAL_TURN, routed=routed, owner=owner
        )
        if isinstance(entered := await self._admissions.enter(wish), Rejected):
            return entered
        try:
            return await self.apply(partial(undo_and_retry.retry_answered_turn, session_key, asked))
        finally:
            self._admissions.leave(wish, entered)

    async def answer_refusal(self, message: InboundMessage, refused: Rejected) -> Receipt:
        """Answer with a refusal, no faster than its cost allows; or with what is known of the message.

        What was accepted before is not refused because it comes again, as long as this process remembers it.
        """
        await self._admissions.pace.wait_to_answer()
        return self._duplicate_or_refusal(message, refused)

    def _duplicate_or_refusal(self, message: InboundMessage, refused: Rejected) -> Receipt:
        return self.known_events.find(message.idempotency_key) or refused

    async def _run_admission(
        self, admission: Admission, routed: RoutedMessage, *, begin: bool
    ) -> Admitted | Duplicate:
        found: list[Admitted] = []

        async def admit() -> Admitted | Duplicate:
            whole = admission
            if self._others is not None:
                whole = structs.replace(whole, epoch=self._context.db.ownership.epoch)
            if (lane := self._calm.pop(routed.key, None)) is not None:
                whole = structs.replace(whole, lane=lane)
            if begin:
                whole = structs.replace(whole, starter=self._make_starter())
            return await self.routing.run_until_answered(
                routed, partial(admissions.admit_keeping_result, whole, found)
            )

        def begun() -> tuple[str, ClaimedTurn | None]:
            return (found[-1].lane.session_key, found[-1].claimed) if found else (routed.key, None)

        try:
            return await self._retry_until_id_free(routed.key, admit)
        except asyncio.CancelledError:
            await asyncio.shield(self._release_abandoned_lane(begun))
            raise

    async def record_arrival(
        self, message: InboundMessage, kind: ItemKind
    ) -> NotedItem | Duplicate | Rejected:
        """Write down what is carried out at once, so that it is known when it is delivered again.

        It is not refused because too much waits: it may be what ends that.
        """
        payload = encode_within_limits(message, self._limits)
        if isinstance(payload, Rejected):
            return payload
        routed = await self.routing.route_message(message.source, touched=False)
        message, payload = self._name_speaker(message, payload, routed)
        note: Callable[[SessionRequest, Change], Transaction[NotedItem | Duplicate | AliasesUnknown]]
        note = partial(admissions.note_command, message, payload, kind)
        try:
            noted: NotedItem | Duplicate = await self.routing.run_until_answered(routed, note)
        except SentBeforeErasureError:
            return make_rejection(RejectReason.ERASED, None, routed.key)
        self.known_events.remember(message.idempotency_key, noted.seq, noted.session_key)
        return noted

    # Going out

    async def claim(self, session_key: str | None = None) -> GatewayTurn | None:
        """Claim the next turn of a lane, or of the longest waiting lane; None if no turn is ready."""
        if session_key is not None:
            return await self._claim_lane(session_key)
        damaged: StorageCorruptError | None = None
        for _ in range(MAX_TRIES):
            ready = await self.ready_lanes()
            for key, _owner in ready:
                try:
                    turn = await self._claim_lane(key)
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

    async def ready_lanes(
        self, limit: int = READY_AT_ONCE, but_not: Iterable[str] = ()
    ) -> list[tuple[str, str | None]]:
        """Return ready lanes with their owners, without *but_not*, the longest waiting first."""
        now, others = self._context.clock.now(), self._others
        sticky = None if others is None else others.sticky
        # Those of others are passed over for a while; some of ours may stand behind them.
        found = await self.read(
            partial(waiting.ready_lanes, now, limit * (LOOK_BEHIND if sticky else 1), but_not)
        )
        mine = (
            one
            for one in found
            if others is None or not sticky or others.is_mine(one.session_key) or one.since + sticky <= now
        )
        return [(one.session_key, one.owner) for one in mine][:limit]

    async def time_until_ready(self) -> timedelta | None:
        """Return the time until the next lane becomes ready; None if no lane will by itself."""
        now = self._context.clock.now()
        at = await self.read(partial(waiting.next_ready_time, now))
        return None if at is None else at - now

    async def _claim_lane(self, session_key: str) -> GatewayTurn | None:
        found: list[ClaimedTurn | None] = []

        async def claim() -> ClaimedTurn | None:
            transaction = partial(claims.claim, self._make_starter(session_key), session_key)
            return await self._context.apply(Actor.POLICY, partial(keep_result, transaction, found))

        try:
            claimed = await self._retry_until_id_free(session_key, claim)
        except asyncio.CancelledError:
            await asyncio.shield(
                self._release_abandoned_lane(lambda: (session_key, found[-1] if found else None))
            )
            raise
        if claimed is None:
            return None
        failpoint("turn_claimed")
        turn = self._make_turn(claimed)
        await self._refresh_files(session_key, turn)
        return turn

    @property
    def is_alone(self) -> bool:
        """Return whether no other process runs turns of this database; its transactions then run in a row."""
        return self._context.db.ownership.membership is None

    async def settle(
        self, settlement: TurnSettlement, *, go_on: bool | str
    ) -> tuple[SettledTurn, GatewayTurn | None]:
        """End a turn; if *go_on*, begin the lane's next one in the same commit, or that of another lane.

        Another one has to be named, and only a store that `is_alone` begins that: two transactions that have
        two lanes each could wait for each other.
        """
        if isinstance(go_on, str) and not self.is_alone:
            go_on = False
        try:
            return await self._settle_turn(settlement, go_on=go_on)
        except StorageCorruptError:
            if not isinstance(go_on, str):
                raise
            # Perhaps it is the other lane that cannot be read: nothing keeps this turn from its end.
            return await self._settle_turn(settlement, go_on=False)

    async def _settle_turn(
        self, settlement: TurnSettlement, *, go_on: bool | str
    ) -> tuple[SettledTurn, GatewayTurn | None]:
        key, found = settlement.held.session_key, list[SettledTurn]()
        next_lane = go_on if isinstance(go_on, str) else None

        async def settle() -> SettledTurn:
            known = KnownBeforeEnd(
                entry=self.routing.known_entry(key),
                starter=self._make_starter(next_lane) if go_on else None,
                next_lane=next_lane,
                others_wait=self.is_alone and self.waiting_on_lane(key) > 0,
                versioned=self._listener.wants_versions,
            )
            transaction = partial(end_turn, settlement, known=known)
            return await self._context.apply(Actor.AGENT, partial(keep_result, transaction, found))

        try:
            try:
                settled = await self._retry_until_id_free(key, settle)
            except TurnChangedError:
                settlement = structs.replace(settlement, begun=None)
                settled = await self._retry_until_id_free(key, settle)
        except asyncio.CancelledError:
            await asyncio.shield(self._release_abandoned_lane(lambda: _find_following(key, found)))
            if next_lane is not None:
                await asyncio.shield(self._release_abandoned_lane(lambda: (key, None)))
            raise
        failpoint("turn_ended")
        following = self._note_settled(key, settled)
        if settlement.outcome is Outcome.TURNED and settled.entry is not None:
            self._on_turned(settled.entry.session_id)
        await self._refresh_files(key, following)
        if following is not None and following.session_key != key:
            await self._refresh_files(following.session_key, following)
        return settled, following

    async def _retry_until_id_free(self, session_key: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try with one id for a new session after another, until one is free or none is needed."""
        for _ in range(MAX_TRIES):
            with suppress(IdTakenError):
                return await attempt()
        raise StorageError(session_key, f"no id was free in {MAX_TRIES} tries")

    async def _release_abandoned_lane(self, begun: Callable[[], tuple[str, ClaimedTurn | None]]) -> None:
        """Let a lane go whose caller was cancelled: a turn that nobody works on waits again."""

        def look(change: Change) -> Transaction[LaneRow]:
            # This runs behind whatever was under way, of which it is known only now what it did.
            session_key, claimed = begun()
            if claimed is None:
                return load_lane(session_key)
            return running_turn.give_back_turn(claimed.held, None, change, counted=False)

        with suppress(StorageError, FencedError):
            self.note_lane(await self.apply(look))

    async def _refresh_files(self, session_key: str, turn: GatewayTurn | None) -> None:
        """Wait until the files that tell of a lane may be read. Those that cannot be written stop nothing."""
        noted = session_key in self._tries.noted
        if self._shown is None and not noted:
            return
        try:
            if noted:
                await self.refresh_restart_records()
            if self._shown is not None:
                with suppress(SnapshotError):
                    await self._shown()
        except asyncio.CancelledError:
            if turn is not None:
                await asyncio.shield(turn.release())
            raise

    def _note_settled(self, session_key: str, settled: SettledTurn) -> GatewayTurn | None:
        if settled.entry is not None:
            self.routing.remember_entry(settled.entry)
        following = self._make_turn(settled.next) if settled.next is not None else None
        if following is not None and following.session_key == session_key:
            return following
        if settled.lane is not None:
            self._remember_calm_lane(session_key, settled.lane)
        self._set_waiting(session_key, settled.waiting)
        if settled.waiting:
            self._listener.hear_waiting_turn(session_key)
        return following

    def _remember_calm_lane(self, session_key: str, lane: KnownLane) -> None:
        """Remember a lane without turns: most likely its next message finds the lane like that."""
        self._calm[session_key] = lane
        if len(self._calm) > self._limits.remembered_lanes:
            del self._calm[next(iter(self._calm))]

    def _make_turn(self, claimed: ClaimedTurn) -> GatewayTurn:
        self._set_waiting(claimed.held.session_key, claimed.waiting, claimed.entry.owner)
        self.routing.remember_entry(claimed.entry)
        turn = self._given[claimed.held.session_key, claimed.held.token] = GatewayTurn(self, claimed)
        return turn

    def has_turn(self, session_key: str, token: int) -> bool:
        """Return whether a caller in this process has that turn."""
        return (session_key, token) in self._given

    def find_turn_on(self, session_key: str) -> GatewayTurn | None:
        """Return the turn of a lane that a caller in this process has and has not ended."""
        turns = (turn for (key, _), turn in self._given.items() if key == session_key)
        return next((turn for turn in turns if not turn.ended), None)

    async def give_turn_back(self, session_key: str, token: int) -> None:
        """Let a turn wait again that began while no caller heard of it."""
        held = TurnLease(session_key=session_key, epoch=self._context.db.ownership.epoch, token=token)
        with suppress(FencedError):
            self.note_lane(
                await self.apply(
                    lambda change: running_turn.give_back_turn(held, None, change, counted=False)
                )
            )

    async def cut_turn_short(
        self, held: TurnLease, reason: ResumeReason, notices: Sequence[Owed]
    ) -> CutOffTurn:
        """Give a turn back that a drain had no time for, which was a try."""
        end = CutOffRules(limit=self._context.restart_limit, reason=reason, by="drain", notices=notices)
        cut = await self.apply(partial(recover.cut_off_turn_at_drain_end, held, end))
        if cut.entry is not None:
            self.routing.remember_entry(cut.entry)
        await self.refresh_restart_records()
        return cut

    async def put_stale_turns_aside(self, only: Collection[str] | None) -> int:
        """Let turns that were cut off too long ago wait for people to ask for them; how many that are."""
        found = 0
        after: str | None = ""
        while after is not None:
            put_aside = partial(recover.bury_stale_turns, only=only, after=after)
            page, after = await self._context.apply(Actor.RECOVERY, put_aside)
            for one in page:
                self.routing.remember_entry(one.entry)
                self.note_lane(one.lane)
            found += len(page)
        if found:
            logger.warning(
                "turns were cut off too long ago", extra={"action": "turns_put_aside", "turns": found}
            )
            await self.refresh_restart_records()
        return found

    async def refresh_restart_records(self) -> None:
        """Bring up to date what operators read of turns that were cut off. It only informs."""
        with suppress(StorageError):
            await self._tries.refresh()

    def new_session_id(self) -> str:
        """An id for a session that begins now; the database refuses it should it exist."""
        return self._context.new_session_id()

    def _set_waiting(self, session_key: str, waiting: int, owner: str | None = None) -> None:
        super()._set_waiting(session_key, waiting, owner)
        self._admissions.lane_changed(session_key, waiting)

    def _make_starter(self, session_key: str | None = None) -> TurnStarter:
        """Return the starter of turns in this process, with the remembered entry of that lane."""
        return TurnStarter(
            epoch=self._context.db.ownership.opening.epoch,
            new_session_id=self.new_session_id(),
            flags=self.routing.isolation,
            versioned=self._listener.wants_versions,
            known=None if session_key is None else self.routing.known_entry(session_key),
        )

    def _rules_for(self, message: InboundMessage) -> BusyRules:
        return self._busy_rules.rules_for(message.source.platform, message.source.chat_type)

    def _name_speaker(
        self, message: InboundMessage, payload: str, routed: RoutedMessage
    ) -> tuple[InboundMessage, str]:
        """Return the message with the name of its speaker for a model, and its stored form."""
        named = self._speakers.with_speaker_names(message, routed.key, routed.aliases)
        return named, payload if named is message else encode_message(named)


def _find_following(session_key: str, found: Sequence[SettledTurn]) -> tuple[str, ClaimedTurn | None]:
    """Return the turn that began when another one on that lane ended, with its lane."""
    following = found[-1].next if found else None
    return (session_key if following is None else following.held.session_key), following
