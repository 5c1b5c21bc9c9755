"""The state machines of a queued message and of a reply as tables, and the outcomes of a turn.

Everything that decides about their states stands in this file.

1. `ITEM_MOVES` and `REPLY_MOVES` are the specification: an event that a state does not list is refused with
   `InvalidTransitionError` and changes nothing. The transactions name the event that each of their statements
   carries out; the tests compare what those statements really change with these tables; the page and the
   pictures of the documentation are drawn from them.
2. An item is a row of the inbox: a message, a command, or the change of a message. No column holds its state.
   `item_state` reads the state from several columns, and nothing else in the package may.
3. A turn has no row. It is the lease of a lane with a token, and the items that carry this token. So a turn
   begins and ends by one event that happens to all of its items; `TURN_ENDS` says which event that is.
4. One item leads a turn; others may have been merged into that turn before it began. Both kinds move
   together, in states of their own, because an item that was merged is never the one that begins, and comes
   back as what it was. What was said into a turn while it ran (steered) gets a turn of its own when it comes
   back, and is not given up with the turn that it was said into.
5. `NEW` and `FORGOTTEN` are the states without a row: before it was written, and after it was deleted.
   `FORGOTTEN` is the only state that no event leads out of.
6. How often a turn was tried, and how often a reply may have been sent, are counts and not states: they
   decide which event happens next (`core/sessions/recovery.py`, `core/delivery/retry_policy.py`), not which
   events may happen.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.errors import InvalidTransitionError


class ItemState(StrEnum):
    """The state of an accepted message, command or change on its way to a turn."""

    NEW = "new"  # nothing is written yet
    WAITING = "waiting"  # it leads a turn that waits
    MERGED = "merged"  # it is part of a turn that waits
    RUNNING = "running"  # it leads a turn that runs
    RUNNING_MERGED = "running_merged"  # it was part of that turn when the turn began
    STEERED = "steered"  # it was said into the turn that runs
    NOTED = "noted"  # a command or a change is written down and being carried out
    DEAD = "dead"  # its turn failed for good; it is kept, and can be tried again
    DEAD_MERGED = "dead_merged"  # the same, as part of that turn
    TURNED = "turned"  # its turn was completed
    INTERRUPTED = "interrupted"  # its turn was stopped; what the turn had done stands
    ROLLED_BACK = "rolled_back"  # its turn was stopped and taken back
    CANCELLED = "cancelled"  # somebody took it back, or it was not carried out
    DROPPED = "dropped"  # it made room for another one
    APPLIED = "applied"  # the change of a message was carried out
    COMMAND = "command"  # a command was carried out
    OBSERVED = "observed"  # it was said to others in the room, and is kept for the next turn
    FORGOTTEN = "forgotten"  # nothing is left of it


class ItemEvent(StrEnum):
    """The events that can happen to an accepted message, command or change."""

    QUEUED = "queued"  # it was accepted, and leads a turn that waits
    JOINED = "joined"  # it was accepted, and is part of a turn that waits
    BEGUN = "begun"  # its turn was claimed
    STEERED = "steered"  # the running turn took it
    PROMOTED = "promoted"  # the item that led its turn left the turn: this item leads now
    RELEASED = "released"  # its turn did not come to an end
    ANSWERED = "answered"  # its turn was completed
    STOPPED = "stopped"  # its turn was stopped, and what the turn had done stands
    TAKEN_BACK = "taken_back"  # its turn was stopped, and what the turn had done is hidden
    GIVEN_UP = "given_up"  # its turn failed for good, or was cut off too often or too long ago
    SET_ASIDE = "set_aside"  # it cannot be read any more
    REQUEUED = "requeued"  # it is tried again although it was given up
    CANCELLED = "cancelled"  # somebody took it out of the queue
    DELETED = "deleted"  # its sender deleted it on the platform
    DROPPED = "dropped"  # it makes room for another one
    NOTED = "noted"  # a command or a change is about to be carried out
    APPLIED = "applied"  # a change was carried out
    COMMANDED = "commanded"  # a command was carried out
    OBSERVED = "observed"  # it was said to others in the room
    ABANDONED = "abandoned"  # a command or a change was not carried out, or its end is unknown
    FORGOTTEN = "forgotten"  # it was settled longer ago than settled items are kept
    ERASED = "erased"  # its sender was erased


class ReplyState(StrEnum):
    """The state of a reply on its way to people."""

    NEW = "new"  # nothing is written yet
    OWED = "owed"  # it waits to be sent, for the first time or again
    SENDING = "sending"  # it is being handed to the platform
    SENT = "sent"  # the platform has it
    DEAD = "dead"  # it was given up; it is kept, and can be tried again
    FORGOTTEN = "forgotten"  # nothing is left of it


class ReplyEvent(StrEnum):
    """The events that can happen to a reply."""

    OWED = "owed"  # it was committed
    STARTED = "started"  # it is handed to the platform, or was committed by the process that sends it next
    CONFIRMED = "confirmed"  # the platform says that it has it
    PUT_OFF = "put_off"  # it was not sent, or its end is unknown: it is tried again later
    REWORDED = "reworded"  # it says something else, and is tried at once
    DOUBTED = "doubted"  # the process that was sending it is gone
    GIVEN_UP = "given_up"  # it is not tried any more
    REVIVED = "revived"  # it is tried again although it was given up
    FORGOTTEN = "forgotten"  # it was sent longer ago than sent replies are kept
    ERASED = "erased"  # the person, or the session, that it may repeat was erased


class Cause(StrEnum):
    """The cause of an event: the person or the part of the gateway that makes it happen."""

    PERSON = "person"  # by a message, an edit, a deletion or a command
    GATEWAY = "gateway"  # by admitting messages, claiming turns and sending replies
    TURN = "turn"  # by its end
    RECOVERY = "recovery"  # of the work of a process that is gone
    OPERATOR = "operator"  # or a program, by a call or on the command line
    CLEANUP = "cleanup"  # of items and replies that were settled long ago
    REPAIR = "repair"  # of a damaged database


class TurnOutcome(StrEnum):
    """The way in which a turn ended."""

    TURNED = "turned"  # it was answered
    REFUSED = "refused"  # a budget or an observer did not let it run; the gateway answered
    INTERRUPTED = "interrupted"  # it was stopped; what it had done stands
    ROLLED_BACK = "rolled_back"  # it was stopped and taken back
    DEAD = "dead"  # it failed for good
    PUT_OFF = "put_off"  # it waits in its old place
    OVERTAKEN = "overtaken"  # it had lost its lane, and left nothing
    UNKNOWN = "unknown"  # it could not be ended; the next start finds it


_S, _E = ItemState, ItemEvent

_LEADS_AND_FOLLOWS: Final = (
    (_S.WAITING, _S.MERGED),
    (_S.RUNNING, _S.RUNNING_MERGED),
    (_S.DEAD, _S.DEAD_MERGED),
)
WAITS: Final = frozenset({_S.WAITING, _S.MERGED})
"""The states of the items of a waiting turn."""
RUNS: Final = frozenset({_S.RUNNING, _S.RUNNING_MERGED, _S.STEERED})
"""The states of the items of a running turn."""
GIVEN_UP: Final = frozenset({_S.DEAD, _S.DEAD_MERGED})
"""The states of dead letters."""
SETTLED: Final = frozenset(
    {_S.TURNED, _S.INTERRUPTED, _S.ROLLED_BACK, _S.CANCELLED, _S.DROPPED, _S.APPLIED, _S.COMMAND, _S.OBSERVED}
)
"""The states of settled items: the row remains for a while, so that a repeated delivery is recognised."""
NO_ROW: Final = frozenset({_S.NEW, _S.FORGOTTEN})

ITEM_MOVES: Final = MappingProxyType(
    {
        (_S.NEW, _E.QUEUED): _S.WAITING,
        (_S.NEW, _E.JOINED): _S.MERGED,
        (_S.NEW, _E.BEGUN): _S.RUNNING,
        (_S.NEW, _E.NOTED): _S.NOTED,
        (_S.NEW, _E.APPLIED): _S.APPLIED,
        (_S.NEW, _E.OBSERVED): _S.OBSERVED,
        (_S.WAITING, _E.BEGUN): _S.RUNNING,
        (_S.WAITING, _E.STEERED): _S.STEERED,
        (_S.WAITING, _E.GIVEN_UP): _S.DEAD,
        (_S.WAITING, _E.CANCELLED): _S.CANCELLED,
        (_S.WAITING, _E.DROPPED): _S.DROPPED,
        (_S.MERGED, _E.BEGUN): _S.RUNNING_MERGED,
        (_S.MERGED, _E.GIVEN_UP): _S.DEAD_MERGED,
        (_S.MERGED, _E.CANCELLED): _S.CANCELLED,
        (_S.MERGED, _E.DROPPED): _S.DROPPED,
        (_S.RUNNING, _E.RELEASED): _S.WAITING,
        (_S.RUNNING, _E.GIVEN_UP): _S.DEAD,
        (_S.RUNNING_MERGED, _E.RELEASED): _S.MERGED,
        (_S.RUNNING_MERGED, _E.GIVEN_UP): _S.DEAD_MERGED,
        # A message that was steered into a turn comes back, or is given up, apart from that turn.
        (_S.STEERED, _E.RELEASED): _S.WAITING,
        (_S.DEAD, _E.REQUEUED): _S.WAITING,
        (_S.DEAD_MERGED, _E.REQUEUED): _S.MERGED,
        (_S.NOTED, _E.APPLIED): _S.APPLIED,
        (_S.NOTED, _E.COMMANDED): _S.COMMAND,
        (_S.NOTED, _E.ABANDONED): _S.CANCELLED,
        (_S.NOTED, _E.SET_ASIDE): _S.CANCELLED,
    }
    | {(follows, _E.PROMOTED): leads for leads, follows in _LEADS_AND_FOLLOWS}
    # The end of a turn is one event for all of its items.
    | {(state, _E.ANSWERED): _S.TURNED for state in RUNS}
    | {(state, _E.STOPPED): _S.INTERRUPTED for state in RUNS}
    | {(state, _E.TAKEN_BACK): _S.ROLLED_BACK for state in RUNS}
    | {(state, _E.DELETED): _S.CANCELLED for state in WAITS | RUNS | GIVEN_UP}
    # No turn can begin, or be tried again, about a message that cannot be read.
    | {(state, _E.SET_ASIDE): _S.DEAD for state in (_S.WAITING, _S.RUNNING, _S.STEERED)}
    | {(state, _E.SET_ASIDE): _S.DEAD_MERGED for state in (_S.MERGED, _S.RUNNING_MERGED)}
    | {(state, _E.FORGOTTEN): _S.FORGOTTEN for state in SETTLED}
    | {(state, _E.ERASED): _S.FORGOTTEN for state in _S if state not in NO_ROW}
)
"""The state of an item after each event; an event that is not listed is refused."""

ITEM_CAUSES: Final = MappingProxyType(
    {
        _E.QUEUED: (Cause.PERSON,),
        _E.JOINED: (Cause.PERSON,),
        _E.BEGUN: (Cause.GATEWAY,),
        _E.STEERED: (Cause.GATEWAY,),
        _E.PROMOTED: (Cause.PERSON, Cause.OPERATOR, Cause.GATEWAY, Cause.REPAIR),
        _E.RELEASED: (Cause.TURN, Cause.RECOVERY, Cause.REPAIR),
        _E.ANSWERED: (Cause.TURN,),
        _E.STOPPED: (Cause.TURN, Cause.PERSON, Cause.OPERATOR),
        _E.TAKEN_BACK: (Cause.TURN,),
        _E.GIVEN_UP: (Cause.TURN, Cause.RECOVERY),
        _E.SET_ASIDE: (Cause.GATEWAY, Cause.REPAIR),
        _E.REQUEUED: (Cause.PERSON, Cause.OPERATOR),
        _E.CANCELLED: (Cause.PERSON, Cause.OPERATOR),
        _E.DELETED: (Cause.PERSON, Cause.RECOVERY),
        _E.DROPPED: (Cause.GATEWAY,),
        _E.NOTED: (Cause.PERSON,),
        _E.APPLIED: (Cause.PERSON, Cause.RECOVERY),
        _E.COMMANDED: (Cause.GATEWAY,),
        _E.OBSERVED: (Cause.PERSON,),
        _E.ABANDONED: (Cause.GATEWAY, Cause.RECOVERY),
        _E.FORGOTTEN: (Cause.CLEANUP,),
        _E.ERASED: (Cause.OPERATOR,),
    }
)
"""The possible causes of each event of an item."""

_R, _V = ReplyState, ReplyEvent
UNSETTLED_REPLIES: Final = frozenset({_R.OWED, _R.SENDING})
"""The states of replies that people still wait for."""

REPLY_MOVES: Final = MappingProxyType(
    {
        (_R.NEW, _V.OWED): _R.OWED,
        (_R.NEW, _V.STARTED): _R.SENDING,
        (_R.OWED, _V.STARTED): _R.SENDING,
        # A process that missed the confirmation of its mark marks the reply once more.
        (_R.SENDING, _V.STARTED): _R.SENDING,
        (_R.SENDING, _V.DOUBTED): _R.OWED,
        (_R.DEAD, _V.REVIVED): _R.OWED,
        (_R.SENT, _V.FORGOTTEN): _R.FORGOTTEN,
    }
    # A reply may be doubted while it is being sent, so the end of the sending can find it owed.
    | {(state, _V.CONFIRMED): _R.SENT for state in UNSETTLED_REPLIES}
    | {(state, _V.PUT_OFF): _R.OWED for state in UNSETTLED_REPLIES}
    | {(state, _V.REWORDED): _R.OWED for state in UNSETTLED_REPLIES}
    | {(state, _V.GIVEN_UP): _R.DEAD for state in UNSETTLED_REPLIES}
    | {(state, _V.ERASED): _R.FORGOTTEN for state in (_R.OWED, _R.SENDING, _R.SENT, _R.DEAD)}
)
"""The state of a reply after each event; an event that is not listed is refused."""

REPLY_CAUSES: Final = MappingProxyType(
    {
        _V.OWED: (Cause.TURN, Cause.GATEWAY, Cause.RECOVERY),
        _V.STARTED: (Cause.TURN, Cause.GATEWAY),
        _V.CONFIRMED: (Cause.GATEWAY,),
        _V.PUT_OFF: (Cause.GATEWAY,),
        _V.REWORDED: (Cause.GATEWAY,),
        _V.DOUBTED: (Cause.RECOVERY,),
        _V.GIVEN_UP: (Cause.GATEWAY, Cause.REPAIR),
        _V.REVIVED: (Cause.OPERATOR,),
        _V.FORGOTTEN: (Cause.CLEANUP,),
        _V.ERASED: (Cause.OPERATOR,),
    }
)
"""The possible causes of each event of a reply."""

TURN_ENDS: Final = MappingProxyType(
    {
        TurnOutcome.TURNED: _E.ANSWERED,
        TurnOutcome.REFUSED: _E.ANSWERED,
        TurnOutcome.INTERRUPTED: _E.STOPPED,
        TurnOutcome.ROLLED_BACK: _E.TAKEN_BACK,
        TurnOutcome.DEAD: _E.GIVEN_UP,
        TurnOutcome.PUT_OFF: _E.RELEASED,
        # The process that took the lane over has moved the items already, or will.
        TurnOutcome.OVERTAKEN: None,
        TurnOutcome.UNKNOWN: None,
    }
)
"""The event of the items for each way in which their turn ends; None: no event."""


def advance_item(state: ItemState, event: ItemEvent) -> ItemState:
    """Return the state that *event* leads to, or raise `InvalidTransitionError`."""
    try:
        return ITEM_MOVES[state, event]
    except KeyError:
        raise InvalidTransitionError(state, event, "a message") from None


def advance_reply(state: ReplyState, event: ReplyEvent) -> ReplyState:
    """Return the state that *event* leads to, or raise `InvalidTransitionError`."""
    try:
        return REPLY_MOVES[state, event]
    except KeyError:
        raise InvalidTransitionError(state, event, "a reply") from None


def outcome_after(state: ItemState, event: ItemEvent) -> Outcome:
    """Return the word that is stored with an item when *event* settles it or gives it up."""
    after = advance_item(state, event)
    return Outcome.DEAD if after in GIVEN_UP else Outcome(after)


TURN_EVENTS: Final = MappingProxyType(
    {
        outcome_after(_S.RUNNING, event): event
        for event in TURN_ENDS.values()
        if event not in (None, _E.RELEASED)
    }
)
"""The event that ends a turn with this outcome of its messages."""
NOTED_ENDS: Final = MappingProxyType(
    {outcome_after(_S.NOTED, event): event for event in (_E.APPLIED, _E.COMMANDED, _E.ABANDONED)}
)
"""The event that ends a command, or a change, with this outcome."""


class ItemColumns(NamedTuple):
    """The columns of an item that determine its state."""

    kind: str
    outcome: str | None
    token: int | None
    """The token of the turn that the item is, or was, part of."""
    merged_into: int | None
    """The place of the message that leads the item's turn; None: this item leads."""
    steered_into: int | None
    """The token of the turn that the message was steered into last."""
    messages: int
    """The number of messages of the turn; programs of schema 6 wrote 0 for a message steered into a running
    turn."""
    settled_at: int | None
    """The instant at which the item was settled or given up; None: work on it goes on."""


_OF_MESSAGES: Final = frozenset(Outcome) - {Outcome.APPLIED, Outcome.COMMAND}
_OF_COMMANDS: Final = frozenset({Outcome.APPLIED, Outcome.COMMAND, Outcome.CANCELLED})


def item_state(row: ItemColumns) -> ItemState | None:
    """Return the state of a row of the inbox; None if the columns contradict each other."""
    if (row.outcome is None) != (row.settled_at is None):
        return None
    match row.kind:
        case ItemKind.MESSAGE | ItemKind.INTERNAL:
            return _state_of_open_message(row) if row.outcome is None else _settled_state(row, _OF_MESSAGES)
        case ItemKind.COMMAND | ItemKind.CHANGE:
            return _state_of_open_command(row) if row.outcome is None else _settled_state(row, _OF_COMMANDS)
        case _:
            return None


def _state_of_open_message(row: ItemColumns) -> ItemState | None:
    if row.token is None:
        return _S.WAITING if row.merged_into is None else _S.MERGED
    if row.steered_into == row.token or row.messages == 0:
        return _S.STEERED if row.merged_into is None else None
    return _S.RUNNING if row.merged_into is None else _S.RUNNING_MERGED


def _state_of_open_command(row: ItemColumns) -> ItemState | None:
    """Return the state of a command or a change that is not settled: neither is ever part of a turn."""
    return _S.NOTED if row.token is None and row.merged_into is None else None


def _settled_state(row: ItemColumns, words: frozenset[Outcome]) -> ItemState | None:
    if row.outcome not in words:
        return None
    if row.outcome == Outcome.DEAD and row.merged_into is not None:
        return _S.DEAD_MERGED
    return _S(row.outcome)


def reply_state(state: str, settled_at: int | None) -> ReplyState | None:
    """Return the state of a row of the outbox; None if the columns contradict each other."""
    if state not in _STORED_REPLIES:
        return None
    is_settled = state in (ReplyState.SENT, ReplyState.DEAD)
    return ReplyState(state) if is_settled == (settled_at is not None) else None


_STORED_REPLIES: Final = frozenset(ReplyState) - {ReplyState.NEW, ReplyState.FORGOTTEN}
