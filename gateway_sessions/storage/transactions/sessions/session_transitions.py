"""Steps that every change of a lane shares: begin, end or succeed a session, and log the transition."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import msgspec

from gateway_sessions.core.committed_changes import SessionEnd, Transition
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.state_machine import Event, advance
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change, LaneEvent
from gateway_sessions.storage.tables.entries import encode_archive, put, remove
from gateway_sessions.storage.tables.sessions import stored_session
from gateway_sessions.storage.tables.sql_files import record_of
from gateway_sessions.storage.transactions.sessions import titles
from gateway_sessions.storage.transactions.sessions.session_rows import add_session_row


@record_of("add_transition")
class TransitionColumns(NamedTuple):
    """A row of the transition log."""

    change_id: int
    session_key: str
    session_id: str
    at: int
    event: str
    from_state: str | None
    to_state: str
    reason: str | None
    actor: str


@record_of("add_hook_call")
class NewHookCall(NamedTuple):
    """A call of a hook as it is owed."""

    idempotency_key: str
    hook: str
    session_key: str
    session_id: str
    event: str
    payload: str
    created_at: int
    next_try_at: int


def interaction_at(entry: SessionEntry, change: Change) -> datetime:
    """Return the instant of an interaction now. A clock that was set back does not bring a reset nearer."""
    return max(change.now, entry.last_interaction_at)


def begin_entry(change: Change, entry: SessionEntry, parent: str | None) -> Transaction[SessionEntry]:
    """Write a new session and make it the current one of its lane."""
    yield from add_session_row(entry, change.now, parent)
    if not entry.entry_id:
        entry = entry.altered(entry_id=next(change.entry_ids))
    return (yield from put(change.with_due_instant(entry)))


def end_entry(change: Change, entry: SessionEntry, reason: EndReason) -> Transaction[bool]:
    """End the entry's session and owe the hooks a call; a session that has ended already stays as it is."""
    session = yield from stored_session(entry.session_id)
    if session is None or session.ended_at is not None:
        return False
    yield end_session_statement(entry, change.now, str(reason))
    for hook in change.hooks:
        yield Statement("add_hook_call", _new_hook_call(change, entry, reason, hook, session.ends))
    return True


def replace_entry(
    change: Change, old: SessionEntry, new: SessionEntry, reason: EndReason
) -> Transaction[SessionEntry]:
    """End the old session and begin the new one, which names the old one and has no failed tries.

    The model and the title that people chose for a session before they said anything in it go over to the new
    session, because they chose them for what they say first.
    """
    yield from end_entry(change, old, reason)
    # A waiting turn may have been tried: its tries count in the new session too, unless it was given up.
    given_up = reason is EndReason.SUSPENDED
    yield Statement("clear_attempts" if given_up else "clear_attempts_of_nothing", (old.session_key,))
    totals = yield Statement("transcript_version", (old.session_id,))
    last_seq, message_count, *_ = totals[0] if totals else (0, 0)
    if message_count:  # something was said: also by an agent that tells nobody what it used
        new = new.altered(reset_had_activity=True)
    untouched = not last_seq
    if untouched:
        new = new.altered(model_override=old.model_override)
    written = yield from begin_entry(change, new, parent=old.session_id)
    if untouched:
        yield from titles.hand_on_title(old.session_id, new.session_id)
    replaced = old.session_id
    yield transition_statement(
        change, written, Event.RESET, came_from=old.state, reason=reason, replaced=replaced
    )
    return written


def apply_event(
    change: Change, entry: SessionEntry, event: Event, reason: str | None, *, since: datetime | None = None
) -> Transaction[SessionEntry]:
    """Take an event of the state machine and write the entry; an illegal one raises and changes nothing.

    The new state holds *since* that instant, or since now.
    """
    moved = entry.evolve(
        change.now,
        state=advance(entry.state, event),
        state_reason=reason,
        state_since=(since or change.now) if reason is not None else None,
    )
    written = yield from put(change.with_due_instant(moved))
    yield transition_statement(change, written, event, came_from=entry.state, reason=reason)
    return written


def take_from_lane(change: Change, entry: SessionEntry) -> Transaction[None]:
    """Take the session away from its lane, because another lane goes on with it."""
    yield from remove(entry)
    yield Statement("mark_moved", (entry.session_key, entry.session_id))
    yield Statement("clear_attempts", (entry.session_key,))
    yield transition_statement(change, entry, Event.SWITCHED, came_from=entry.state, reason=EndReason.MOVED)


def transition_statement(
    change: Change,
    entry: SessionEntry,
    event: Event | LaneEvent,
    *,
    came_from: SessionState | None = None,
    reason: str | None = None,
    replaced: str | None = None,
) -> Statement:
    """Log the event that led to the entry as it is now; listeners also get the *replaced* session."""
    row = Transition(
        at=change.now,
        session_key=entry.session_key,
        session_id=entry.session_id,
        event=str(event),
        from_state=_text_or_none(came_from),
        to_state=str(entry.state),
        reason=_text_or_none(reason),
        actor=str(change.actor),
        previous_session_id=replaced,
    )
    return log_statement(next(change.ids), row)


def log_statement(change_id: int, row: Transition) -> Statement:
    """Write a row of the transition log. No other function writes one."""
    columns = TransitionColumns(
        change_id=change_id,
        session_key=row.session_key,
        session_id=row.session_id,
        at=to_micros(row.at),
        event=row.event,
        from_state=row.from_state,
        to_state=row.to_state,
        reason=row.reason,
        actor=row.actor,
    )
    return Statement("add_transition", columns, news=row)


def end_session_statement(entry: SessionEntry, at: datetime, reason: str) -> Statement:
    """End the entry's session, and keep its record so that it can come back."""
    news = SessionEnd(at=at, session_key=entry.session_key, session_id=entry.session_id, reason=reason)
    return Statement(
        "end_session", (to_micros(at), reason, encode_archive(entry), entry.session_id), news=news
    )


def _text_or_none(word: str | None) -> str | None:
    """Return a plain string: drivers refuse members of string enums."""
    return str(word) if word is not None else None


def _new_hook_call(
    change: Change, entry: SessionEntry, reason: EndReason, hook: str, ends: int
) -> NewHookCall:
    now = to_micros(change.now)
    payload = msgspec.json.encode(
        {"reason": str(reason), "platform": entry.platform, "chat_type": entry.chat_type, "ended_at": now}
    ).decode()
    # The key counts the session's ends. The entry's version would not do: each lane counts its own.
    key = f"{entry.session_id}:{ends + 1}:{hook}"
    return NewHookCall(
        idempotency_key=key,
        hook=hook,
        session_key=entry.session_key,
        session_id=entry.session_id,
        event="session_finalized",
        payload=payload,
        created_at=now,
        next_try_at=now,
    )
