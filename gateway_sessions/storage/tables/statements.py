"""The moves that statements make in the state machines of the queue, and the locks that statements take.

A transaction that yields such a statement names the event that it carries out. Each statement changes only
rows in a state that its events lead out of: tests run every statement on a row in every state, and find each
of them here.

Only the transactions that run for every message name locks. They take the lock of their lane before they read
any row of the lane, its entry included, and the lock of a session after that: always in this order, so that
no two of them wait for each other. All other transactions name no lock: they run alone, and may read any row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from gateway_sessions.core.queue.state_machine import ItemEvent, ReplyEvent
from gateway_sessions.errors import InvalidTransitionError
from gateway_sessions.ports import Statement, Transaction

Move: TypeAlias = ItemEvent | ReplyEvent
_ENDS: Final = frozenset({ItemEvent.ANSWERED, ItemEvent.STOPPED, ItemEvent.TAKEN_BACK})

MOVES: Final[Mapping[str, frozenset[Move]]] = MappingProxyType(
    {
        "add_item": frozenset(
            {
                ItemEvent.QUEUED,
                ItemEvent.JOINED,
                ItemEvent.BEGUN,
                ItemEvent.NOTED,
                ItemEvent.APPLIED,
                ItemEvent.OBSERVED,
            }
        ),
        "take_item": frozenset({ItemEvent.BEGUN}),
        "steer_item": frozenset({ItemEvent.STEERED}),
        "lead_item": frozenset({ItemEvent.PROMOTED}),
        "give_own_turn": frozenset({ItemEvent.PROMOTED}),
        "give_back_turn": frozenset({ItemEvent.RELEASED}),
        "give_back_item": frozenset({ItemEvent.RELEASED}),
        "free_turns": frozenset({ItemEvent.RELEASED}),
        "settle_turn": _ENDS,
        "settle_turn_as_begun": _ENDS,
        "bury_turn": frozenset({ItemEvent.GIVEN_UP}),
        "bury_item": frozenset({ItemEvent.GIVEN_UP, ItemEvent.SET_ASIDE}),
        "revive": frozenset({ItemEvent.REQUEUED}),
        "settle_waiting": frozenset({ItemEvent.CANCELLED}),
        "cancel_item": frozenset({ItemEvent.CANCELLED, ItemEvent.DROPPED}),
        "retract_item": frozenset({ItemEvent.DELETED}),
        "drop_dead_item": frozenset({ItemEvent.DELETED}),
        "settle_noted": frozenset({ItemEvent.APPLIED, ItemEvent.COMMANDED, ItemEvent.ABANDONED}),
        "forget_items": frozenset({ItemEvent.FORGOTTEN}),
        "delete_item": frozenset({ItemEvent.ERASED}),
        "add_reply": frozenset({ReplyEvent.OWED, ReplyEvent.STARTED}),
        "mark_sending": frozenset({ReplyEvent.STARTED}),
        "reply_sent": frozenset({ReplyEvent.CONFIRMED}),
        "reply_retry": frozenset({ReplyEvent.PUT_OFF}),
        "reword_reply": frozenset({ReplyEvent.REWORDED}),
        "doubt_replies": frozenset({ReplyEvent.DOUBTED}),
        "reply_given_up": frozenset({ReplyEvent.GIVEN_UP}),
        "revive_reply": frozenset({ReplyEvent.REVIVED}),
        "forget_replies": frozenset({ReplyEvent.FORGOTTEN}),
        "delete_replies_of_person": frozenset({ReplyEvent.ERASED}),
        "forget_replies_of_session": frozenset({ReplyEvent.ERASED}),
    }
)
"""The events that each statement may carry out, by the statement's name."""

AS_THEY_WERE: Final = frozenset({"move_in_inbox", "move_in_outbox"})
"""Statements that copy rows of another database, in any state."""
FROM_NO_STATE: Final = frozenset({"mend_item", "mend_reply"})
"""Statements that repair rows whose columns contradict each other."""
KEEPS_ITS_STATE: Final = frozenset({"follow_item", "extend_item", "change_size"})
"""Statements that write columns of which a state is made up, and leave every row in its state."""


ELSEWHERE: Final = "in another state"


def move_statement(
    name: str,
    *events: Move,
    params: Sequence[Any] = (),
    many: Sequence[Sequence[Any]] | None = None,
    lock: str | None = None,
) -> Statement:
    """Return the statement of that name, which carries out one of these events for each row it changes."""
    if not MOVES[name].issuperset(events):
        problem = f"{name} carries out {sorted(MOVES[name])}, not {sorted(events)}"
        raise ValueError(problem)
    return Statement(name, params, many, lock=lock, moves=events)


def move_items(name: str, event: ItemEvent, rows: Sequence[Sequence[Any]]) -> Transaction[None]:
    """Let an event happen to some items; *rows* has the parameters of each.

    Raise `InvalidTransitionError` if one of them is in a state that does not take the event.
    """
    if not rows:
        return
    ((changed,),) = yield move_statement(name, event, many=rows)
    if changed != len(rows):
        raise InvalidTransitionError(ELSEWHERE, event, "a message")


_LANE: Final = "lane "


def lane_lock(session_key: str) -> str:
    """Return the name of the lock on a lane with its entry, its queue and its lease."""
    return f"{_LANE}{session_key}"


def is_lane_lock(lock: str) -> bool:
    """Return whether a lock is the lock of a lane."""
    return lock.startswith(_LANE)


def session_lock(session_id: str) -> str:
    """Return the name of the lock on the transcript of a session and its totals."""
    return f"session {session_id}"


INDEX_LOCK: Final = "index"
"""The lock on the notes of changes that the search index in the database has not read yet."""


def reply_lock(reply_id: int) -> str:
    """Return the name of the lock on a reply that is being sent."""
    return f"reply {reply_id}"


def signals_lock(epoch: int) -> str:
    """Return the name of the lock on the signals that other nodes leave for a node."""
    return f"mail {epoch}"
