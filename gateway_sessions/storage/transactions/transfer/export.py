"""Read whole sessions for an export, in pages of bounded size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gateway_sessions.core.export.session_members import (
    Version,
    message_members,
    session_members,
    usage_members,
)
from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.sessions.record import Relation
from gateway_sessions.core.usage.usage_events import CostStatus, Usage
from gateway_sessions.errors import SessionNotFoundError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import lineage
from gateway_sessions.storage.tables.column_decoding import decode_content_parts, decode_json, enum_member
from gateway_sessions.storage.tables.message_rows import decode_messages
from gateway_sessions.storage.tables.sessions import stored_session
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.transactions.sessions.session_rows import decode_record
from gateway_sessions.storage.transactions.sessions.titles import scope_params
from gateway_sessions.storage.transactions.transcripts.messages import EVERYTHING
from gateway_sessions.storage.transactions.transcripts.usage import UsageRow

PAGE: Final = 200
"""The largest number of messages in a page."""
PAGE_BYTES: Final = 4 << 20
"""The approximate size of a page's texts, which bounds the memory of an export."""
BEGINNING: Final = (-EVERYTHING, "")

Position = tuple[int, str]
"""The place of a session in the order of an export."""
Members = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportQuery:
    """The sessions to export, and the parts of them."""

    scope: Scope
    source: str | None = None
    include_hidden: bool = True

    @property
    def params(self) -> tuple[Any, ...]:
        """Return the parameters of the statements that look for sessions."""
        return (self.source, self.source, *scope_params(self.scope))


@dataclass(frozen=True, slots=True)
class ExportHead:
    """A session without its messages."""

    members: Members
    page: int
    """The number of messages to read at a time, so that a page has a bounded size."""
    acts: dict[int, int]
    """The number of each change that hid messages, by its id."""
    weight: int
    """The average size of a message's text in bytes."""


@row_of("sessions_to_export")
class ExportableSession(NamedTuple):
    """A session in the order in which sessions are exported."""

    session_id: str
    started_at: int
    relation: str | None


@row_of("versions_of_messages")
class EarlierVersion(NamedTuple):
    """The content of a message before an edit."""

    seq: int
    content: str | None
    parts: str | None
    replaced_at: int


@dataclass(frozen=True, slots=True)
class SessionBeginning:
    """A session with its first messages."""

    session_id: str
    head: ExportHead
    messages: list[Members]

    @property
    def whole(self) -> bool:
        """Return whether there are no more messages."""
        return len(self.messages) < self.head.page


def list_exportable(
    wanted: ExportQuery, after: Position, limit: int
) -> Transaction[list[tuple[Position, bool]]]:
    """Return a page of sessions: their positions, and whether each may continue another one."""
    rows = yield Statement("sessions_to_export", (*after, *wanted.params, limit))
    return [
        ((one.started_at, one.session_id), one.relation == Relation.CONTINUATION)
        for one in map(ExportableSession._make, rows)
    ]


def count_exportable(wanted: ExportQuery) -> Transaction[int]:
    """Return the number of sessions to export."""
    ((count,),) = yield Statement("count_sessions_to_export", wanted.params)
    return int(count)


def visible_line(session_id: str, scope: Scope) -> Transaction[list[str]]:
    """Return the visible sessions of the line of compressions around a session, in its order."""
    links = yield from lineage.compression_line(session_id)
    return [link.session_id for link in links if link.visible(scope)]


def load_head(session_id: str, scope: Scope) -> Transaction[ExportHead]:
    """Return a session without its messages; `SessionNotFoundError` if *scope* does not see it."""
    rows = yield Statement("session_record", (session_id,))
    more = yield from stored_session(session_id)
    if not rows or more is None or not scope.sees(owner=more.owner, session_key=more.session_key):
        raise SessionNotFoundError(session_id)
    record = decode_record(rows[0])
    entry: Any = decode_json(f"session {session_id!r}", more.entry, object)
    members = session_members(record, ends=more.ends, entry=entry)
    usage = yield Statement("usage_to_export", (session_id,))
    members["usage_events"] = [usage_members(_usage_from_row(UsageRow(*row))) for row in usage]
    acts = yield Statement("acts_of_hiding", (session_id,))
    average = record.text_bytes // max(record.last_seq, 1)
    page = max(1, min(PAGE, PAGE_BYTES // max(average, 1)))
    return ExportHead(members, page, {act: number for number, (act,) in enumerate(acts, 1)}, average)


def load_beginnings(session_ids: Sequence[str], wanted: ExportQuery) -> Transaction[list[SessionBeginning]]:
    """Return the first of these sessions: at least one, and as many as fit into a page of bounded size."""
    found: list[SessionBeginning] = []
    rows = size = 0
    for session_id in session_ids:
        first = yield from load_head(session_id, wanted.scope)
        page = yield from load_messages(session_id, first, 0, wanted)
        found.append(SessionBeginning(session_id, first, page))
        rows, size = rows + len(page), size + first.weight * len(page)
        if rows >= PAGE or size >= PAGE_BYTES:
            break
    return found


def load_messages(
    session_id: str, of: ExportHead, after_seq: int, wanted: ExportQuery
) -> Transaction[list[Members]]:
    """Return the next page of messages."""
    asked = (after_seq, EVERYTHING, wanted.include_hidden, of.page)
    found = decode_messages((yield Statement("messages_after", (session_id, *asked))))
    if not found:
        return []
    between = (session_id, found[0].seq, found[-1].seq)
    hidden = (yield Statement("hidden_messages", between)) if of.acts else ()
    hidden_by: dict[int, int] = {seq: act for seq, act in hidden}  # noqa: C416 -- a row is no pair by its type
    versions: defaultdict[int, list[Version]] = defaultdict(list)
    for old in map(EarlierVersion._make, (yield Statement("versions_of_messages", between))):
        content = (
            old.content if old.parts is None else decode_content_parts(f"session {session_id!r}", old.parts)
        )
        versions[old.seq].append((content, from_micros(old.replaced_at)))
    return [
        message_members(one, of.acts.get(hidden_by.get(one.seq, 0)), versions.get(one.seq, ()))
        for one in found
    ]


def load_session(session_id: str, wanted: ExportQuery) -> Transaction[Members]:
    """Return a session with all of its messages."""
    first = yield from load_head(session_id, wanted.scope)
    found: list[Members] = []
    while page := (yield from load_messages(session_id, first, found[-1]["seq"] if found else 0, wanted)):
        found += page
    return first.members | {"messages": found}


def load_session_if_there(session_id: str, wanted: ExportQuery) -> Transaction[Members | None]:
    """Return a session with all of its messages; None if it was removed since its id was read."""
    try:
        return (yield from load_session(session_id, wanted))
    except SessionNotFoundError:
        return None


def _usage_from_row(row: UsageRow) -> Usage:
    columns = row._asdict()
    del columns["session_id"]
    columns["at"] = from_micros(row.at)
    columns["cost_status"] = enum_member(f"use {row.event_id!r}", CostStatus, row.cost_status)
    return Usage(**columns)
