"""Changes of a lane on request: reset, undo, switch, suspend, mark for resume, configure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.sessions.entry import SessionEntry, SessionState
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.recovery import Recovery, plan_recovery
from gateway_sessions.core.sessions.state_machine import (
    Event,
    is_allowed,
    missed_boundary_of,
    policy_for,
)
from gateway_sessions.errors import NothingToUndoError, SessionBusyError, SessionNotFoundError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import (
    decode_archive,
    load,
    load_by_session,
    put,
    put_record_and_clocks,
)
from gateway_sessions.storage.tables.index_notes import note_moved_session
from gateway_sessions.storage.tables.lanes import lane_lease
from gateway_sessions.storage.tables.sessions import StoredSession, stored_session
from gateway_sessions.storage.transactions.sessions import split, titles
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionIdTaken
from gateway_sessions.storage.transactions.sessions.session_transitions import (
    apply_event,
    end_entry,
    interaction_at,
    replace_entry,
    take_from_lane,
    transition_statement,
)
from gateway_sessions.storage.transactions.sessions.split import Descent
from gateway_sessions.storage.transactions.transcripts.authors import note_authors

CRASH_LOOP = "crash_loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfTurn:
    """The end of a turn, as the session's clocks need it."""

    session_key: str
    session_id: str | None = None
    """The session that the turn belonged to; None: the one that the lane has."""
    last_prompt_tokens: int | None = None
    touch: bool = True
    """True if a person was answered. A turn of a program moves no interaction clock."""
    known: SessionEntry | None = None


def settle_clocks(change: Change, turn: EndOfTurn) -> Transaction[SessionEntry | None]:
    """Move the clocks of the lane's entry after a turn, unless the lane has another session by now."""
    entry = yield from load(turn.session_key, turn.known, locked=True)
    if entry is None or turn.session_id not in (None, entry.session_id):
        return entry
    ended = settle_answered_turn if turn.touch else settle_internal_turn
    return (yield from ended(change, entry, turn.last_prompt_tokens))


def settle_internal_turn(
    change: Change, entry: SessionEntry, last_prompt_tokens: int | None
) -> Transaction[SessionEntry]:
    """Return the entry after a turn that answered nobody; people hear of a reset when they come back."""
    if last_prompt_tokens in (None, entry.last_prompt_tokens):
        return entry
    return (yield from _put_settled(change, entry.evolve(change.now, last_prompt_tokens=last_prompt_tokens)))


def settle_answered_turn(
    change: Change, entry: SessionEntry, last_prompt_tokens: int | None
) -> Transaction[SessionEntry]:
    """Return the entry after a turn that answered a person; the entry was read in this transaction."""
    tokens = entry.last_prompt_tokens if last_prompt_tokens is None else last_prompt_tokens
    policy = policy_for(entry, change.policies)
    moment = interaction_at(entry, change)
    boundary = missed_boundary_of(entry, policy, moment)
    settled = entry.evolve(
        change.now,
        last_interaction_at=moment,
        last_prompt_tokens=tokens,
        opened_by=None,
        deferred_boundary=boundary,
    )
    return (yield from _put_settled(change, settled))


def _put_settled(change: Change, settled: SessionEntry) -> Transaction[SessionEntry]:
    if settled.policy_fingerprint != policy_for(settled, change.policies).fingerprint:
        # The watcher may be about to store new instants, and leaves out what was written meanwhile.
        return (yield from put(change.with_due_instant(settled)))
    return (yield from put_record_and_clocks(settled))


def reset_lane(
    change: Change, session_key: str, new_session_id: str, display_name: str | None
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """End the lane's session and begin a new one, as a person asked for."""
    old = yield from load(session_key)
    if old is None:
        return None
    if (yield Statement("session_exists", (new_session_id,))):
        return SessionIdTaken()
    new = _blank_entry(change, old).altered(
        session_id=new_session_id,
        display_name=display_name if display_name is not None else old.display_name,
        opened_by=EndReason.SESSION_RESET,
        reset_had_activity=old.had_activity,
        previous_session_id=old.session_id,
    )
    return (yield from replace_entry(change, old, new, EndReason.SESSION_RESET))


def switch_or_fork(
    change: Change, session_key: str, target_id: str, scope: Scope, fork_id: str
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Switch the lane to another session, or to a fork of it if that session has another owner."""
    old = yield from load(session_key)
    target = yield from stored_session(target_id)
    if old is None or target is None or target.owner == old.owner or not _can_see(scope, target):
        return (yield from switch_session(change, session_key, target_id, scope))
    if (yield Statement("session_exists", (fork_id,))):
        return SessionIdTaken()
    descent = Descent(session_id=target_id, new_session_id=fork_id, now=change.now, ids=change.ids)
    yield from split.branch_session(descent, None)
    return (yield from _take_over_session(change, old, _blank_entry(change, old), fork_id))


def switch_session(
    change: Change, session_key: str, target_id: str, scope: Scope
) -> Transaction[SessionEntry | None]:
    """Move another existing session here, whoever owns it; a lane that holds it now loses it."""
    old = yield from load(session_key)
    if old is None or old.session_id == target_id:
        return old
    target = yield from stored_session(target_id)
    if target is None or not _can_see(scope, target):
        raise SessionNotFoundError(target_id)
    holder = yield from load_by_session(target_id)
    if holder is not None:
        lane = yield from lane_lease(holder.session_key)
        if lane is not None and lane.lease_epoch is not None:
            raise SessionBusyError(holder.session_key, target_id)
        yield from take_from_lane(change, holder)
    was = holder or (decode_archive(target.entry) if target.entry is not None else _blank_entry(change, old))
    return (yield from _take_over_session(change, old, was, target_id))


def undo_reset(change: Change, session_key: str) -> Transaction[SessionEntry | None]:
    """Bring back the session that the lane's last reset ended, with its record as it was."""
    current = yield from load(session_key)
    if current is None:
        return None
    was = yield from session_before_reset(current)
    yield from end_entry(change, current, EndReason.RESET_UNDONE)
    for last_seq, *_ in (yield Statement("transcript_version", (current.session_id,))):
        if not last_seq:  # perhaps it has the title from the one that comes back
            yield from titles.hand_on_title(current.session_id, was.session_id)
    back = was.altered(
        entry_id=current.entry_id,
        session_key=session_key,
        owner=current.owner,
        version=current.version + 1,
        updated_at=change.now,
        last_interaction_at=change.now,
        state=SessionState.ACTIVE,
        state_reason=None,
        state_since=None,
        opened_by=None,
        deferred_boundary=None,
        zone=current.zone,
    )
    return (yield from _reopen(change, current, back, Event.UNDONE, EndReason.RESET_UNDONE))


def session_before_reset(current: SessionEntry) -> Transaction[SessionEntry]:
    """Return the session that the lane's last reset ended; `NothingToUndoError` if it cannot come back."""
    key, target_id = current.session_key, current.previous_session_id
    if target_id is None:
        raise NothingToUndoError(key, "its session did not replace another one")
    target = yield from stored_session(target_id)
    if target is None or target.session_key != key or target.entry is None:
        raise NothingToUndoError(key, f"session {target_id} is gone, or lives on another lane now")
    return decode_archive(target.entry)


def suspend_session(change: Change, session_key: str, reason: str) -> Transaction[SessionEntry | None]:
    """Let the next message start afresh, whatever the policy says."""
    entry = yield from load(session_key)
    if entry is None or entry.suspended:
        return entry
    return (yield from apply_event(change, entry, Event.SUSPENDED, reason))


def mark_resume_pending(change: Change, session_key: str, reason: str) -> Transaction[SessionEntry | None]:
    """Mark the session to go on with the next message, because its turn was cut off; None if it may not."""
    entry = yield from load(session_key)
    if entry is None or not is_allowed(entry.state, Event.INTERRUPTED):
        return None
    return (yield from apply_event(change, entry, Event.INTERRUPTED, reason))


def clear_resume_pending(change: Change, session_key: str) -> Transaction[SessionEntry | None]:
    """Forget the mark and the failed tries after a resumed turn succeeded; None if there was no mark."""
    yield Statement("clear_attempts", (session_key,))
    entry = yield from load(session_key)
    if entry is None or not is_allowed(entry.state, Event.RECOVERED):
        return None
    return (yield from apply_event(change, entry, Event.RECOVERED, None))


def mark_cut_off(
    change: Change,
    entry: SessionEntry,
    attempts: int,
    limit: int,
    reason: str,
    *,
    since: datetime | None = None,
) -> Transaction[SessionEntry]:
    """Count one more interrupted run; resume the session, or suspend it when that keeps failing.

    The age of the mark counts from *since*, the last instant at which the run is known to have lived; without
    it, from now.
    """
    yield Statement("set_attempts", (entry.session_key, attempts))
    if plan_recovery(attempts, limit) is Recovery.SUSPEND:
        return (yield from apply_event(change, entry, Event.SUSPENDED, CRASH_LOOP))
    return (yield from apply_event(change, entry, Event.INTERRUPTED, reason, since=since))


def configure_session(
    change: Change, session_key: str, settings: Mapping[str, object]
) -> Transaction[SessionEntry | None]:
    """Set fields of the entry by name, as a person or an operator chose them for this session or chat."""
    entry = yield from load(session_key)
    if entry is None or all(getattr(entry, name) == value for name, value in settings.items()):
        return entry
    return (yield from put(change.with_due_instant(entry.evolve(change.now, **settings))))


def _blank_entry(change: Change, old: SessionEntry) -> SessionEntry:
    """Return the lane's next entry: the lane's fields stay, the fields of the session start over."""
    return SessionEntry(
        entry_id=old.entry_id,
        session_key=old.session_key,
        session_id=old.session_id,
        created_at=change.now,
        updated_at=change.now,
        last_interaction_at=change.now,
        origin=old.origin,
        display_name=old.display_name,
        platform=old.platform,
        chat_type=old.chat_type,
        owner=old.owner,
        zone=old.zone,
        version=old.version + 1,
    )


def _can_see(scope: Scope, session: StoredSession) -> bool:
    return scope.sees(owner=session.owner, session_key=session.session_key)


def _take_over_session(
    change: Change, old: SessionEntry, was: SessionEntry, target_id: str
) -> Transaction[SessionEntry]:
    yield from end_entry(change, old, EndReason.SESSION_SWITCH)
    here = _blank_entry(change, old).altered(
        session_id=target_id,
        previous_session_id=was.previous_session_id,
        input_tokens=was.input_tokens,
        output_tokens=was.output_tokens,
        cache_read_tokens=was.cache_read_tokens,
        cache_write_tokens=was.cache_write_tokens,
        total_tokens=was.total_tokens,
        last_prompt_tokens=was.last_prompt_tokens,
        estimated_cost_usd=was.estimated_cost_usd,
        cost_status=was.cost_status,
    )
    return (yield from _reopen(change, old, here, Event.SWITCHED, EndReason.SESSION_SWITCH))


def _reopen(
    change: Change, old: SessionEntry, entry: SessionEntry, event: Event, reason: EndReason
) -> Transaction[SessionEntry]:
    yield from titles.number_if_taken(entry.session_id, entry.owner)
    yield from note_authors(entry.session_id, entry.session_key, entry.owner)
    yield from note_moved_session(entry.session_id, entry.session_key, entry.owner, change.ids)
    yield Statement("reopen_session", (entry.session_key, entry.owner, entry.session_id))
    yield Statement("clear_attempts", (entry.session_key,))
    written = yield from put(change.with_due_instant(entry))
    replaced = old.session_id
    yield transition_statement(change, written, event, came_from=old.state, reason=reason, replaced=replaced)
    return written
