"""The rows of sessions: create, read, end and reopen one, and change its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.identity.keys import encode_part
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.sessions.entry import SessionEntry, check_one_line_reason, check_session_id
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.sessions.record import Relation, SessionRecord
from gateway_sessions.core.storable_text import StorableEncoder, check_word
from gateway_sessions.core.transcript.messages import NO_EXTRA
from gateway_sessions.errors import (
    InvalidInputError,
    SessionNotFoundError,
    SessionOnLaneError,
)
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables import tombstones
from gateway_sessions.storage.tables.column_decoding import DAMAGE, raise_damaged
from gateway_sessions.storage.tables.index_notes import note_new_lane
from gateway_sessions.storage.tables.sessions import ancestor
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.tables.statements import session_lock
from gateway_sessions.storage.transactions.sessions.remove import remove_earlier_session

UNKNOWN_SOURCE: Final = "unknown"
TOOL_SOURCE: Final = "tool"
"""The source of sessions that programs hold with themselves."""
LONGEST_DESCENT: Final = 10_000
"""The largest number of ancestors that are followed: a damaged database may have a circle."""
_MARKERS: Final = {"_branched_from": Relation.BRANCH, "_delegate_from": Relation.DELEGATE}
_RELATIONS: Final = {str(relation): relation for relation in Relation}
_read_json = msgspec.json.Decoder(dict[str, Any]).decode
_make_record: Callable[..., SessionRecord] = row_of("session_record")(SessionRecord)
"""Takes the columns in their order, once those are decoded that are instants, JSON or words of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """The facts of a session that a caller creates by hand."""

    session_id: str
    source: str
    started_at: datetime
    is_new: bool = True
    """True if the session begins now, and not at an instant that the caller names."""
    user_id: str | None = None
    session_key: str | None = None
    parent_session_id: str | None = None
    relation: Relation | None = None
    model: str | None = None
    model_config: Mapping[str, Any] | None = None
    system_prompt: str | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_EXTRA)

    @property
    def owner(self) -> str | None:
        """Return the owner that follows from the session's own user; None without one."""
        return f"{self._platform}:user:{encode_part(self.user_id)}" if self.user_id else None

    @property
    def owner_without_user(self) -> str:
        """Return the owner of sessions that name no user."""
        return f"{self._platform}:local"

    @property
    def _platform(self) -> str:
        return f"main:{encode_part(self.source)}"

    @property
    def stated_relation(self) -> Relation | None:
        """Return the session's relation to its parent, as far as the caller states it."""
        marked = [
            kind for marker, kind in _MARKERS.items() if self.model_config and marker in self.model_config
        ]
        return self.relation or next(iter(marked), None)

    def encoded_settings(self) -> tuple[str | None, ...]:
        """Return the model, its settings, the prompt and the extra fields as they are stored."""
        intake = StorableEncoder()
        return (
            intake.text("model", self.model),
            intake.json("model_config", dict(self.model_config) if self.model_config else None),
            intake.text("system_prompt", self.system_prompt),
            intake.json("extra", dict(self.extra) or None),
        )


@record_of("add_session_row")
class NewSessionRow(NamedTuple):
    """A session as it is added, without any message."""

    session_id: str
    session_key: str | None
    owner: str
    source: str
    user_id: str | None
    parent_session_id: str | None
    relation: str | None
    started_at: int
    model: str | None = None
    model_config: str | None = None
    system_prompt: str | None = None
    extra: str | None = None


def add_session_row(
    entry: SessionEntry, started_at: datetime, parent: str | None, relation: Relation = Relation.SUCCESSION
) -> Transaction[None]:
    """Add the row of a lane's new session, without any message."""
    row = NewSessionRow(
        session_id=entry.session_id,
        session_key=entry.session_key,
        owner=entry.owner,
        source=entry.platform or UNKNOWN_SOURCE,
        user_id=None if entry.origin is None else entry.origin.participant_id,
        parent_session_id=parent,
        relation=None if parent is None else str(relation),
        started_at=to_micros(started_at),
    )
    yield Statement("add_session_row", row)
    yield Statement("add_totals", (row.session_id, row.started_at))


def create_session(new: NewSession, ids: Iterator[int]) -> Transaction[str]:
    """Create a session by hand; a session that exists already gets only the fields that it lacks."""
    check_session_id(new.session_id)
    source = check_word("source", new.source)
    user = None if new.user_id is None else check_word("user_id", new.user_id)
    new = replace(new, source=source, user_id=user)
    key = None if new.session_key is None else check_word("session_key", new.session_key, 4096)
    settings = new.encoded_settings()
    there = bool((yield Statement("session_exists", (new.session_id,))))
    parent, relation = yield from _checked_descent(new, there=there)
    if there:
        if key is not None:
            yield from note_new_lane(new.session_id, ids)
        yield Statement("fill_session_row", (key, relation, parent, *settings, new.session_id))
        return new.session_id
    owner = yield from _owner_of_new(new, key, parent)
    started = to_micros(new.started_at)
    if not new.is_new:
        yield from tombstones.refuse_if_erased(new.session_id, owner, started)
    row = NewSessionRow(new.session_id, key, owner, source, user, parent, relation, started, *settings)
    yield from remove_earlier_session(new.session_id, ids)
    yield Statement("add_session_row", row)
    yield Statement("add_totals", (new.session_id, started))
    return new.session_id


def load_record(session_id: str) -> Transaction[SessionRecord | None]:
    """Return the record of a session; None if there is none."""
    rows = yield Statement("session_record", (session_id,))
    return decode_record(rows[0]) if rows else None


def end_session_row(session_id: str, reason: str, now: datetime) -> Transaction[bool]:
    """End a session that is on no lane; False if it has ended already, and that reason stands."""
    check_one_line_reason(reason)
    yield from _require_no_lane(session_id)
    ((changed,),) = yield Statement("end_session_row", (to_micros(now), reason, session_id))
    return bool(changed)


def reopen_session_row(session_id: str) -> Transaction[bool]:
    """Let a session that is on no lane go on; False if it has not ended."""
    yield from _require_no_lane(session_id)
    ((changed,),) = yield Statement("reopen_session_row", (session_id,))
    return bool(changed)


def set_columns(statement: str, session_id: str, *values: object) -> Transaction[None]:
    """Set columns of a session's row; `SessionNotFoundError` if there is none."""
    ((changed,),) = yield Statement(statement, (*values, session_id), alone=True)
    if not changed:
        raise SessionNotFoundError(session_id)


def store_first_prompt(session_id: str, prompt: str) -> Transaction[bool]:
    """Store the prompt of a session that has none; return whether it was stored."""
    ((noted,),) = yield Statement(
        "note_system_prompt", (prompt, session_id), alone=True, lock=session_lock(session_id)
    )
    return bool(noted)


def count_messages(session_id: str, *, include_hidden: bool) -> Transaction[int]:
    """Count the messages that are part of the conversation, or with *include_hidden* all that are stored."""
    for shown, stored in (yield Statement("stored_messages_of_session", (session_id,))):
        return int(stored if include_hidden else shown)
    raise SessionNotFoundError(session_id)


def count_sessions(
    scope: Scope, *, source: str | None, min_message_count: int, include_archived: bool
) -> Transaction[int]:
    """Count the sessions that *scope* may see."""
    wanted = (source, source, min_message_count, include_archived)
    if scope.sees_everything:
        ((sessions,),) = yield Statement("count_sessions", wanted)
    else:
        owners = msgspec.json.encode(sorted(scope.owners)).decode()
        ((sessions,),) = yield Statement("count_sessions_of_owners", (owners, scope.session_key, *wanted))
    return int(sessions)


def decode_record(row: Row) -> SessionRecord:
    """Return the record in a row of the columns that `session_record` asks for."""
    stored: Any = _make_record(*row)  # its fields hold what the columns hold
    try:
        record: SessionRecord = msgspec.structs.replace(
            stored,
            started_at=from_micros(stored.started_at),
            last_active=from_micros(stored.last_active),
            relation=None if stored.relation is None else _RELATIONS[stored.relation],
            ended_at=None if stored.ended_at is None else from_micros(stored.ended_at),
            model_config=NO_EXTRA if stored.model_config is None else _read_json(stored.model_config),
            pinned=stored.pinned != 0,
            archived=stored.archived != 0,
            extra=NO_EXTRA if stored.extra is None else _read_json(stored.extra),
        )
    except DAMAGE as error:
        raise_damaged(f"session {stored.session_id!r}", error, "its row")
    return record


def _owner_of_new(new: NewSession, key: str | None, parent: str | None) -> Transaction[str]:
    """Return the owner of the lane, or the user named; else the owner of the parent session."""
    for (owner,) in (yield Statement("owner_of_lane", (key,))) if key else ():
        return str(owner)
    if new.owner is None and parent is not None and (came_from := (yield from ancestor(parent))) is not None:
        return came_from.owner
    return new.owner or new.owner_without_user


def _checked_descent(new: NewSession, *, there: bool) -> Transaction[tuple[str | None, str | None]]:
    """Return the parent and the relation to store, after a check that the sessions stay a tree."""
    parent = new.parent_session_id
    if parent is None:
        return None, None
    yield from _require_no_descendant(parent, new.session_id)
    relation = new.stated_relation or (yield from _usual_relation(parent, new))
    if relation == Relation.CONTINUATION:
        for (taken,) in (yield Statement("continuation_of_session", (parent,))):
            if taken != new.session_id:
                problem = f"session {parent!r} goes on in {taken!r} already"
                raise InvalidInputError(problem)
    if there:
        ((has, _),) = yield Statement("parent_of_session", (new.session_id,))
        if has is not None:
            return None, None
    return parent, str(relation)


def _usual_relation(parent: str, new: NewSession) -> Transaction[Relation]:
    """Return the relation if none was stated: a continuation if the parent was compressed."""
    ended = yield from ancestor(parent)
    if ended is None or ended.end_reason != EndReason.COMPRESSION or new.source == TOOL_SOURCE:
        return Relation.SUCCESSION
    taken = yield Statement("continuation_of_session", (parent,))
    return Relation.SUCCESSION if any(one != new.session_id for (one,) in taken) else Relation.CONTINUATION


def _require_no_descendant(parent: str, session_id: str) -> Transaction[None]:
    """Raise an error if the parent does not exist, or descends from the session itself."""
    current: str | None = parent
    for _ in range(LONGEST_DESCENT):
        if current == session_id:
            problem = f"session {session_id!r} cannot come from its own descendant {parent!r}"
            raise InvalidInputError(problem)
        rows = yield Statement("parent_of_session", (current,))
        if not rows and current == parent:
            raise SessionNotFoundError(parent)
        current = next((came_from for came_from, _ in rows), None)
        if current is None:
            return


def _require_no_lane(session_id: str) -> Transaction[None]:
    if not (yield Statement("session_exists", (session_id,))):
        raise SessionNotFoundError(session_id)
    for (session_key,) in (yield Statement("lane_of_session", (session_id,))):
        raise SessionOnLaneError(session_key, session_id)
