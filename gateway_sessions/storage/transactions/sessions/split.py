"""Create a session from another one: the continuation of a compressed session, or a branch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway_sessions.core.committed_changes import Transition
from gateway_sessions.core.instants import to_micros
from gateway_sessions.core.sessions.entry import SessionEntry, check_session_id
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.sessions.titles import TitledBy
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.errors import (
    InvalidInputError,
    InvalidSessionIdError,
    SessionEndedError,
    SessionNotFoundError,
)
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import tombstones
from gateway_sessions.storage.tables.change import Actor, LaneEvent
from gateway_sessions.storage.tables.entries import load_by_session, put
from gateway_sessions.storage.tables.sessions import AncestorRow, ancestor
from gateway_sessions.storage.transactions.sessions import titles
from gateway_sessions.storage.transactions.sessions.remove import remove_earlier_session
from gateway_sessions.storage.transactions.sessions.session_transitions import (
    end_session_statement,
    log_statement,
)
from gateway_sessions.storage.transactions.transcripts import messages as transcript
from gateway_sessions.storage.transactions.transcripts.authors import with_authors_of
from gateway_sessions.storage.transactions.transcripts.messages import MessagePage


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """A session that is to be created from another one."""

    session_id: str
    new_session_id: str
    now: datetime
    ids: Iterator[int]
    model: str | None = None
    """The model that answers from now on; None: the model of the old session."""
    system_prompt: str | None = None


def continue_in_new_session(descent: Descent, messages: Sequence[Message]) -> Transaction[str]:
    """End the session and go on with *messages*, a summary of it, in a new one; the lane follows.

    A later caller gets the continuation that exists already.
    """
    check_session_id(descent.new_session_id)
    if not messages:
        problem = "a continuation needs the messages that it goes on with"
        raise InvalidInputError(problem)
    parent = yield from _require_parent(descent.session_id)
    there = yield Statement("continuation_of_session", (descent.session_id,))
    compressed = parent.end_reason == EndReason.COMPRESSION
    for (continuation,) in there:
        if compressed:
            return str(continuation)
    if parent.ended_at is not None and not compressed:
        raise SessionEndedError(descent.session_id, parent.end_reason)
    if there:
        # A person went back to the original, so the old continuation is a conversation of its own by now.
        yield Statement("continuation_to_branch", (descent.session_id,))
    entry = yield from load_by_session(descent.session_id)
    reason = str(EndReason.COMPRESSION)
    if entry is not None:
        yield end_session_statement(entry, descent.now, reason)
    else:
        yield Statement("end_session", (to_micros(descent.now), reason, None, descent.session_id))
    yield from _add_descendant(descent, Relation.CONTINUATION, parent)
    summary = yield from with_authors_of(descent.session_id, messages)
    yield from transcript.append_messages(descent.new_session_id, summary, descent.now, descent.ids)
    if entry is not None:
        yield from _move_lane_to(descent, entry)
    return descent.new_session_id


def branch_session(descent: Descent, at_message_id: int | None) -> Transaction[str]:
    """Create a session with a copy of the transcript up to that message; the old session does not change."""
    check_session_id(descent.new_session_id)
    parent = yield from _require_parent(descent.session_id)
    before = None
    if at_message_id is not None:
        places = yield Statement("place_of_message", (at_message_id, descent.session_id))
        if not places:
            problem = f"message {at_message_id} is none of session {descent.session_id!r}"
            raise InvalidInputError(problem)
        ((seq,),) = places
        before = seq + 1
    rows = yield Statement("parent_of_session", (descent.new_session_id,))
    if rows and tuple(rows[0]) == (descent.session_id, Relation.BRANCH):
        return descent.new_session_id  # asked for again by somebody who did not get the answer
    yield from _add_descendant(descent, Relation.BRANCH, parent)
    said = yield from transcript.load_page(descent.session_id, MessagePage(after_seq=0, before_seq=before))
    yield from transcript.append_messages(descent.new_session_id, said, descent.now, descent.ids, copied=True)
    return descent.new_session_id


def _require_parent(session_id: str) -> Transaction[AncestorRow]:
    parent = yield from ancestor(session_id)
    if parent is None:
        raise SessionNotFoundError(session_id)
    return parent


def _add_descendant(descent: Descent, relation: Relation, parent: AncestorRow) -> Transaction[None]:
    """Add the row of the new session, with the lane, the owner and the next title of the old one."""
    new_id, micros = descent.new_session_id, to_micros(descent.now)
    if (yield Statement("session_exists", (new_id,))):
        raise InvalidSessionIdError(new_id, "is the id of another session")
    yield from tombstones.refuse_if_being_erased(descent.session_id, parent.owner, parent.started_at)
    called: tuple[str | None, str | None] = (None, None)
    if parent.title is not None:
        called = (yield from titles.next_free_title(parent.owner, parent.title)), str(TitledBy.LINEAGE)
    yield from remove_earlier_session(new_id, descent.ids)
    answered = (descent.model, descent.system_prompt)
    yield Statement("add_descendant", (new_id, str(relation), micros, *called, *answered, descent.session_id))
    yield Statement("add_totals_of_descendant", (new_id, micros, descent.session_id))


def _move_lane_to(descent: Descent, entry: SessionEntry) -> Transaction[None]:
    """Let the lane go on with the new session; its due instant does not change."""
    yield from put(entry.evolve(descent.now, session_id=descent.new_session_id))
    row = Transition(
        at=descent.now,
        session_key=entry.session_key,
        session_id=descent.new_session_id,
        event=str(LaneEvent.COMPRESSED),
        from_state=str(entry.state),
        to_state=str(entry.state),
        reason=str(EndReason.COMPRESSION),
        actor=str(Actor.AGENT),
        previous_session_id=entry.session_id,
    )
    yield log_statement(next(descent.ids), row)
