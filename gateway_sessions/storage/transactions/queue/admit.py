"""Admit a message in one transaction: deduplicate it, find its session, let it wait or start its turn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

import msgspec

from gateway_sessions.core.identity.keys import (
    author_on_lane,
    canonical_participant,
    person_owner,
    without_account,
)
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.queue.busy_modes import (
    Arrival,
    BusyRules,
    Enqueue,
    LaneLoad,
    Merge,
    Refuse,
    plan_arrival,
)
from gateway_sessions.core.queue.inbound import Accepted, Duplicate, InboundMessage, RejectReason, as_decoded
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.queue.state_machine import NOTED_ENDS, ItemEvent, ItemState, outcome_after
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.errors import GatewaySessionsError, StorageCorruptError
from gateway_sessions.ports import Statement, Transaction, together
from gateway_sessions.storage.tables import tombstones
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.lanes import (
    KnownLane,
    LaneRow,
    NewQueuedItem,
    QueuedItem,
    duplicate_from_rows,
    is_next_turn,
    is_next_turn_ready,
    item_kind,
    items_of_waiting_turn,
    lease_calm_lane,
    load_lane,
    place_of_seq,
    put_lane,
    put_lane_statement,
    queue_on_calm_lane,
    update_ready_at,
)
from gateway_sessions.storage.tables.statements import lane_lock, move_items, move_statement
from gateway_sessions.storage.transactions.queue.claim import (
    AddedItem,
    ClaimedTurn,
    TurnStarter,
    begin_next_turn,
    begin_turn_with,
)
from gateway_sessions.storage.transactions.queue.lane_and_queue_lookup import (
    LaneQueue,
    load_oldest_turn,
    look_up_arrival,
    look_up_queue,
    reload_head,
)
from gateway_sessions.storage.transactions.queue.outbox import owe_unfinished_notices
from gateway_sessions.storage.transactions.queue.turn_transcript import (
    MessageAuthor,
    TurnLease,
    append_turn_rows,
    row_of_messages,
)
from gateway_sessions.storage.transactions.sessions.find_or_create import (
    ActiveWorkUnknown,
    AliasesUnknown,
    GrantedSession,
    SessionIdTaken,
    SessionRequest,
    find_lane_key,
    find_or_create_session,
    only_touches_session,
    touch_statement,
)
from gateway_sessions.storage.transactions.transcripts import messages as transcripts
from gateway_sessions.storage.transactions.transcripts.rewind import adjust_totals

_CALM: Final = LaneLoad()
"""The load of a lane on which no turn runs or waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTurnFacts:
    """Facts of a running turn that only its process knows."""

    can_steer: bool = False
    """True if the turn takes messages while it runs."""
    sub_work: bool = False
    """True if the turn has work under way that must not be cut off."""
    stopping: bool = False
    """True if the turn was told to end."""
    steered: int = 0
    """The number of messages that the turn was given while it ran."""


NO_TURN: Final = RunningTurnFacts()
ELSEWHERE: Final = RunningTurnFacts(can_steer=True)
"""A turn of another process: the message is offered to it, and waits if the turn does not take it."""


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be admitted, and the facts that the process knows of its lane."""

    message: InboundMessage
    payload: str
    """The message in its stored form."""
    rules: BusyRules
    final: bool = False
    """True if these rules hold even if the session has a busy mode of its own."""
    solo: bool = False
    """True if the message gets a turn of its own in any case."""
    running: RunningTurnFacts = NO_TURN
    """The facts of the turn that runs on the lane in this process, if any."""
    since: datetime | None = None
    """The instant from which the message counts as waiting, which may be before it came; None: now."""
    epoch: int | None = None
    """The opening of the store that admits the message, if other nodes run turns; None: there are none."""
    starter: TurnStarter | None = None
    """The start of the turn in the same commit, if it may begin at once."""
    lane: KnownLane | None = None
    """The lane as the process knows it; only the database tells whether that is current."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """A message that is in the queue."""

    receipt: Accepted
    entry: SessionEntry
    lane: LaneRow
    claimed: ClaimedTurn | None = None
    """The turn that began with the message."""


class MessageRefusedError(GatewaySessionsError):
    """A message was refused; its transaction raises this so that all its writes are taken back."""

    def __init__(
        self,
        session_key: str,
        reason: RejectReason,
        retry_after: float | None = None,
        load: LaneLoad | None = None,
    ) -> None:
        self.session_key = session_key
        self.reason = reason
        self.retry_after = retry_after
        self.load = load
        """The load of the lane, if that is the reason."""
        super().__init__(f"a message for lane {session_key!r} was refused: {reason}")


AdmissionResult: TypeAlias = Admitted | Duplicate | ActiveWorkUnknown | AliasesUnknown | SessionIdTaken


def admit(admission: Admission, request: SessionRequest, change: Change) -> Transaction[AdmissionResult]:
    """Put a message behind those before it; raise `MessageRefusedError` if there is no room for it."""
    arrived = yield from _find_session(admission, request, change)
    if not isinstance(arrived, _ArrivedMessage):
        return arrived
    admitted = yield from _admit_on_calm_lane(arrived, change)
    return admitted or (yield from _queue_or_begin(arrived, change))


def admit_keeping_result(
    admission: Admission, found: list[Admitted], request: SessionRequest, change: Change
) -> Transaction[AdmissionResult]:
    """Admit a message and keep the outcome in *found*, in case nobody waits for the outcome any more."""
    outcome = yield from admit(admission, request, change)
    found[:] = [outcome] if isinstance(outcome, Admitted) else []
    return outcome


def _find_session(
    admission: Admission, request: SessionRequest, change: Change
) -> Transaction[_ArrivedMessage | Duplicate | ActiveWorkUnknown | AliasesUnknown | SessionIdTaken]:
    """Find the session for a message, unless the message is a duplicate."""
    message, found = admission.message, None
    if admission.lane is None:
        found = yield from look_up_arrival(message, request)
        known = found.known
    else:  # then most likely there is nothing to look at
        known = yield from find_duplicate(message.idempotency_key, request.key)
    if known is not None:
        return known
    sender = canonical_sender(message, request)
    arrival = Arrival.of(message, at=change.now, sender=sender, solo=admission.solo)
    if found is not None and found.entry is not None and only_touches_session(request, change, found.entry):
        if found.erasures:
            yield from refuse_erased_sender(message, request, found.entry.owner, found.entry.session_id)
        touched = found.entry.evolve(change.now, last_interaction_at=change.now)
        moves = (touch_statement(found.entry, change.now, alone=False),)
        return _ArrivedMessage(admission, arrival, touched, moves, found.queue)
    granted = yield from find_or_create_session(request, change, alone=False)
    if not isinstance(granted, GrantedSession):
        return granted
    yield from refuse_erased_sender(message, request, granted.entry.owner, granted.entry.session_id)
    return _ArrivedMessage(admission, arrival, granted.entry)


def _queue_or_begin(arrived: _ArrivedMessage, change: Change) -> Transaction[Admitted]:
    admission, entry = arrived.admission, arrived.entry
    queue = arrived.queue or (yield from look_up_queue(entry.session_key))
    lane = queue.lane
    if lane.waiting >= admission.rules.max_queued:
        queue = yield from load_oldest_turn(queue)
    load = yield from _lane_load(admission, queue)
    plan = plan_arrival(arrived.arrival, load, _rules_for(arrived))
    if isinstance(plan, Refuse):
        raise MessageRefusedError(entry.session_key, plan.reason, plan.retry_after, load)
    dropped: tuple[int, ...] = ()
    if isinstance(plan, Enqueue) and plan.drop is not None and queue.oldest is not None:
        dropped = yield from remove_waiting_turn(
            lane, *queue.oldest, ItemEvent.DROPPED, "a later message", change
        )
        queue = yield from reload_head(queue)
    seq, lane.next_seq = lane.next_seq, lane.next_seq + 1
    claimed: ClaimedTurn | None = None
    if admission.starter is not None and _begins_at_once(plan, lane, change.now):
        item, writing = _new_item(arrived, change, lane, seq, plan, token=lane.lease_token + 1)
        yield together(*arrived.moves, writing)
        written = AddedItem(item, as_decoded(admission.message, admission.payload))
        claimed = yield from begin_turn_with(admission.starter, lane, written, entry, change)
    else:
        lining_up = _queue_statements(arrived, change, queue, seq, plan)
        if admission.starter is not None and is_next_turn_ready(lane, change.now):
            yield together(*lining_up)
            claimed = yield from begin_next_turn(admission.starter, lane, change, entry)
        else:
            yield together(*lining_up, put_lane_statement(lane))
    receipt = _receipt(seq, entry, lane, plan, dropped)
    return Admitted(receipt, entry, lane, claimed=claimed)


def _rules_for(arrived: _ArrivedMessage) -> BusyRules:
    admission = arrived.admission
    return admission.rules if admission.final else admission.rules.in_mode(arrived.entry.busy_mode)


def _admit_on_calm_lane(arrived: _ArrivedMessage, change: Change) -> Transaction[Admitted | None]:
    """Admit the message on a lane that is calm, as the process knows it; None if the lane is not.

    The quick way beside `_queue_or_begin`: see `KnownLane` for what shows its gain and holds both equal.
    """
    admission, entry = arrived.admission, arrived.entry
    known, starter = admission.lane, admission.starter
    plan = plan_arrival(arrived.arrival, _CALM, _rules_for(arrived))
    if known is None or not isinstance(plan, Enqueue):
        return None
    begins = starter is not None and plan.ready_at <= change.now
    if starter is not None and begins:
        lane = yield from lease_calm_lane(known, entry.session_key, starter.epoch, to_micros(change.now))
    else:
        ready_at = _ready_since(admission, plan, change.now)
        lane = yield from queue_on_calm_lane(known, entry.session_key, ready_at)
    if lane is None:
        return None
    token = lane.lease_token if begins else None
    item, writing = _new_item(arrived, change, lane, known.next_seq, plan, token=token)
    yield writing
    claimed: ClaimedTurn | None = None
    if starter is not None and begins:
        written = AddedItem(item, as_decoded(admission.message, admission.payload), leased=True)
        claimed = yield from begin_turn_with(starter, lane, written, entry, change)
    return Admitted(_receipt(known.next_seq, entry, lane, plan, ()), entry, lane, claimed=claimed)


def _receipt(
    seq: int, entry: SessionEntry, lane: LaneRow, plan: Enqueue | Merge, dropped: tuple[int, ...]
) -> Accepted:
    return Accepted(
        seq=seq,
        session_key=entry.session_key,
        session_id=entry.session_id,
        disposition=plan.then,
        depth=lane.waiting,
        merged_into=plan.into if isinstance(plan, Merge) else None,
        dropped=dropped,
        demoted=plan.demotion,
    )


def find_duplicate(event: str | None, session_key: str | None = None) -> Transaction[Duplicate | None]:
    """Return the place of a platform event that was delivered before; None if the event is new.

    The lock of the lane comes first, so that a second delivery waits until the first one is committed.
    """
    if event is None:
        return None
    rows = yield Statement(
        "known_event", (event,), lock=lane_lock(session_key) if session_key is not None else None
    )
    return duplicate_from_rows(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedItem:
    """A command, or a change of a message, that was written down before it is carried out."""

    item_id: int
    seq: int
    session_key: str
    owner: str


def note_command(
    message: InboundMessage, payload: str, kind: ItemKind, request: SessionRequest, change: Change
) -> Transaction[NotedItem | Duplicate | AliasesUnknown]:
    """Write down a command or a change before it is carried out, so that a second delivery of it is known."""
    if (known := (yield from find_duplicate(message.idempotency_key, request.key))) is not None:
        return known
    found = yield from find_lane_key(request)
    if isinstance(found, AliasesUnknown):
        return found
    yield from refuse_erased_sender(message, request, request.owner, found)
    lane = yield from load_lane(found, locked=True)
    seq, lane.next_seq = lane.next_seq, lane.next_seq + 1
    item_id = next(change.ids)
    now = to_micros(change.now)
    item = NewQueuedItem(
        item_id=item_id,
        session_key=found,
        seq=seq,
        place=place_of_seq(seq),
        event=message.idempotency_key,
        owner=request.owner,
        sender=canonical_sender(message, request),
        kind=str(kind),
        solo=1,
        media=0,
        merged_into=None,
        messages=1,
        characters=0,
        last_at=now,
        admitted_at=now,
        ready_at=now,
        payload=payload,
    )
    yield move_statement("add_item", ItemEvent.NOTED, params=item)
    yield from put_lane(lane)
    return NotedItem(item_id=item_id, seq=seq, session_key=found, owner=request.owner)


def settle_noted(
    noted: NotedItem, outcome: Outcome, by: str, now: datetime, problem: str | None = None
) -> Transaction[None]:
    """Settle a command or a change that was written down."""
    yield settle_noted_statement(noted.item_id, NOTED_ENDS[outcome], by, now, problem)


def settle_noted_statement(
    item_id: int, event: ItemEvent, by: str, now: datetime, problem: str | None = None
) -> Statement:
    """Settle a command, or the change of a message, that was written down before."""
    outcome = str(outcome_after(ItemState.NOTED, event))
    return move_statement("settle_noted", event, params=(outcome, to_micros(now), by, problem, item_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMessage:
    """A message that is in the transcript and not in the queue, because it is said to others in the room."""

    seq: int
    entry: SessionEntry
    lane: LaneRow


def observe(
    message: InboundMessage, request: SessionRequest, change: Change
) -> Transaction[ObservedMessage | Duplicate | ActiveWorkUnknown | AliasesUnknown | SessionIdTaken]:
    """Append a message to the transcript of the session that would answer it, and begin no turn."""
    if (known := (yield from find_duplicate(message.idempotency_key, request.key))) is not None:
        return known
    granted = yield from find_or_create_session(request, change, alone=False)
    if not isinstance(granted, GrantedSession):
        return granted
    entry, sender = granted.entry, canonical_sender(message, request)
    yield from refuse_erased_sender(message, request, entry.owner, entry.session_id)
    lane = yield from load_lane(entry.session_key, locked=True)
    if lane.running:
        yield from _append_running_turn(lane, entry, change)
    speaker = MessageAuthor(entry.session_key, entry.owner, author_on_lane(entry.owner, sender))
    row = row_of_messages([message], speaker, change.now)
    yield from transcripts.append_messages(entry.session_id, [row], change.now, change.ids, copied=True)
    seq, lane.next_seq = lane.next_seq, lane.next_seq + 1
    yield _observed_statement(message, entry, sender, seq, change)
    yield from put_lane(lane)
    return ObservedMessage(seq=seq, entry=entry, lane=lane)


def _observed_statement(
    message: InboundMessage, entry: SessionEntry, sender: str, seq: int, change: Change
) -> Statement:
    """Return the statement that writes down an observed message, so that a second delivery of it is known."""
    now = to_micros(change.now)
    item = NewQueuedItem(
        item_id=next(change.ids),
        session_key=entry.session_key,
        seq=seq,
        place=place_of_seq(seq),
        event=message.idempotency_key,
        owner=entry.owner,
        sender=sender,
        kind=item_kind(message),
        solo=1,
        media=0,
        merged_into=None,
        messages=1,
        characters=0,
        last_at=now,
        admitted_at=now,
        ready_at=now,
        outcome=str(Outcome.OBSERVED),
        settled_at=now,
        settled_by="person",
    )
    return move_statement("add_item", ItemEvent.OBSERVED, params=item)


def _append_running_turn(lane: LaneRow, entry: SessionEntry, change: Change) -> Transaction[None]:
    """Append the messages of the running turn, which were said before what is appended next."""
    held = TurnLease(session_key=lane.session_key, epoch=lane.lease_epoch or 0, token=lane.lease_token)
    try:
        yield from append_turn_rows(held, entry.session_id, (), change)
    except StorageCorruptError:
        # A message that cannot be read must not keep what others say from being stored.
        return
    # The agent of the running turn has not seen what comes: it must read the conversation anew.
    yield from adjust_totals(entry.session_id, edits=1)


def remove_waiting_turn(
    lane: LaneRow, seq: int, item_id: int, event: ItemEvent, by: str, change: Change
) -> Transaction[tuple[int, ...]]:
    """Take one waiting turn out of the queue, with all that is part of it; the places of those messages."""
    was_next = yield from is_next_turn(lane, seq)
    items = yield from items_of_waiting_turn(lane.session_key, item_id, seq)
    yield from owe_unfinished_notices(lane.session_key, items[:1], change)
    settled = (str(outcome_after(ItemState.WAITING, event)), to_micros(change.now), by)
    yield from move_items("cancel_item", event, [(*settled, one.item_id) for one in items])
    lane.waiting -= 1
    yield from update_ready_at(lane, another=was_next)
    return tuple(one.seq for one in items)


def _lane_load(admission: Admission, queue: LaneQueue) -> Transaction[LaneLoad]:
    lane, turn, last, deferred = queue.lane, admission.running, None, 0
    if lane.running and admission.epoch not in (None, lane.lease_epoch):
        turn = ELSEWHERE
    if lane.waiting:
        last = queue.last_turn
        if turn.can_steer:
            ((deferred,),) = yield Statement("count_deferred", (lane.session_key,))
    return LaneLoad(
        running=lane.running,
        can_steer=turn.can_steer,
        sub_work=turn.sub_work,
        stopping=turn.stopping,
        steered=turn.steered,
        waiting=lane.waiting,
        deferred=deferred,
        last=last,
        oldest=None if queue.oldest is None else queue.oldest.seq,
    )


def canonical_sender(message: InboundMessage, request: SessionRequest) -> str:
    """Return the author's id, under the one name that all their aliases share."""
    return canonical_participant(message.source, request.aliases) or message.sender


def refuse_erased_sender(
    message: InboundMessage, request: SessionRequest, owner: str, session_id: str
) -> Transaction[None]:
    """Raise `SentBeforeErasureError` if the message is older than an erasure of its owner or author."""
    if message.sent_at is None:
        return
    sent_at, person = to_micros(message.sent_at), person_owner(message.source, request.flags, request.aliases)
    erased = {owner, person or owner}
    # A person erased before their account had lanes of its own was erased under the name without the account.
    for one in erased | {without_account(one) for one in erased}:
        yield from tombstones.refuse_if_erased(session_id, one, sent_at)


class _ArrivedMessage(NamedTuple):
    """A new message, with the session to which it belongs."""

    admission: Admission
    arrival: Arrival
    entry: SessionEntry
    moves: tuple[Statement, ...] = ()
    """The statements that are still to be run for the entry."""
    queue: LaneQueue | None = None
    """The lane's queue, if it was looked at."""


def _begins_at_once(plan: Enqueue | Merge, lane: LaneRow, now: datetime) -> bool:
    """Return whether the message begins the lane's next turn, and that turn may begin now."""
    return isinstance(plan, Enqueue) and not lane.running and not lane.waiting and plan.ready_at <= now


def _queue_statements(
    arrived: _ArrivedMessage, change: Change, queue: LaneQueue, seq: int, plan: Enqueue | Merge
) -> tuple[Statement, ...]:
    """Change the lane for a message that waits; return the statements that write the message.

    The caller writes the lane, unless a turn begins at once and writes it.
    """
    lane, ready = queue.lane, to_micros(plan.ready_at)
    into = plan.into if isinstance(plan, Merge) else None
    item, writing = _new_item(arrived, change, lane, seq, plan)
    statements = (*arrived.moves, writing)
    if into is not None:
        message = arrived.admission.message
        extent = (len(message.text), int(message.has_media), item.admitted_at, ready)
        statements += (Statement("extend_item", (*extent, queue.last_id)),)
    else:
        lane.waiting += 1
    if not lane.running:
        lane.ready_at = queue.next_ready_at(_ready_since(arrived.admission, plan, change.now), into)
    return statements


def _ready_since(admission: Admission, plan: Enqueue | Merge, now: datetime) -> int:
    """Return the instant from which a message stands in line; a later one if its burst may still go on."""
    since = admission.since
    return to_micros(plan.ready_at if since is None or plan.ready_at > now else min(since, plan.ready_at))


def _new_item(
    arrived: _ArrivedMessage,
    change: Change,
    lane: LaneRow,
    seq: int,
    plan: Enqueue | Merge,
    token: int | None = None,
) -> tuple[QueuedItem, Statement]:
    """Return the message as a row, and the statement that adds it; with a *token*, as part of that turn."""
    admission, message = arrived.admission, arrived.admission.message
    now, ready, owner = to_micros(change.now), to_micros(plan.ready_at), arrived.entry.owner
    sender, payload, place = arrived.arrival.sender, admission.payload, place_of_seq(seq)
    into = plan.into if isinstance(plan, Merge) else None
    new = NewQueuedItem(
        item_id=next(change.ids),
        session_key=lane.session_key,
        seq=seq,
        place=place,
        event=message.idempotency_key,
        owner=owner,
        sender=sender,
        kind=item_kind(message),
        solo=int(admission.solo),
        media=int(message.has_media),
        merged_into=into,
        messages=1,
        characters=len(message.text),
        last_at=now,
        admitted_at=now,
        ready_at=ready,
        token=token,
        payload=payload,
    )
    item = QueuedItem(new.item_id, seq, owner, into, now, None, payload, place, sender)
    queued = ItemEvent.QUEUED if into is None else ItemEvent.JOINED
    return item, move_statement("add_item", queued if token is None else ItemEvent.BEGUN, params=new)
