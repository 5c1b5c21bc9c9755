"""Queries along a lineage: the line of compressions around a session, its root, tip and family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.sessions.lineage import chain_of, family_of, root_of
from gateway_sessions.errors import SessionNotFoundError
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.sql_files import row_of


@row_of("continuations")
class ContinuationRow(NamedTuple):
    """A session of a line of compressions, as it is stored."""

    session_id: str
    continued: str
    """The session that this one continues."""
    owner: str
    session_key: str | None
    message_count: int
    started_at: int
    relation: str | None


@dataclass(frozen=True, slots=True)
class LineageLink:
    """One session of a line of compressions."""

    session_id: str
    owner: str = ""
    session_key: str | None = None
    message_count: int = 0
    started_at: int = 0
    relation: str | None = None

    def visible(self, scope: Scope) -> bool:
        """Return whether *scope* may see the session."""
        return scope.sees(owner=self.owner, session_key=self.session_key)


def compression_line(session_id: str) -> Transaction[list[LineageLink]]:
    """Return the sessions from the first one to the tip; each continues the one before."""
    rows = yield Statement("continuations", (session_id, session_id))
    found = [ContinuationRow._make(row) for row in rows]
    links = {
        one.session_id: LineageLink(
            one.session_id, one.owner, one.session_key, one.message_count, one.started_at, one.relation
        )
        for one in found
    }
    ids = chain_of(session_id, {one.session_id: one.continued for one in found})
    return [links.get(one) or LineageLink(one) for one in ids]


def compression_line_ids(session_id: str) -> Transaction[list[str]]:
    """Return the ids of the line; the session's alone if the session is unknown."""
    return [link.session_id for link in (yield from compression_line(session_id))]


def tip(session_id: str) -> Transaction[str]:
    """Return the last session of the line: the session itself if it was never compressed."""
    return (yield from compression_line_ids(session_id))[-1]


def visible_tip(session_id: str, scope: Scope) -> Transaction[str]:
    """Return the last session that *scope* sees on the line before the first session that it may not see."""
    links = yield from compression_line(session_id)
    start = [link.session_id for link in links].index(session_id)
    found = session_id
    for link in links[start + 1 :]:
        if not link.visible(scope):
            break
        found = link.session_id
    return found


def session_to_resume(session_id: str) -> Transaction[str]:
    """Return the latest session of the line with messages; the session itself if none after it has any."""
    links = yield from compression_line(session_id)
    start = [link.session_id for link in links].index(session_id)
    said = [link.session_id for link in links[start:] if link.message_count > 0]
    return said[-1] if said else session_id


def root(session_id: str) -> Transaction[str]:
    """Return the session that the conversation began with, before compressions, branches and delegations."""
    rows = yield Statement("ancestors", (session_id,))
    return root_of(session_id, _parents_by_child(rows))


def family_ids(session_id: str) -> Transaction[list[str]]:
    """Return the ids of all sessions that descend from the same root, sorted."""
    first = yield from root(session_id)
    rows = yield Statement("descendants", (first,))
    return sorted(family_of(first, _parents_by_child(rows)) | {session_id})


def set_line_archived(session_id: str, *, archived: bool) -> Transaction[None]:
    """Hide the whole line from listings, or show it again."""
    ids = yield from compression_line_ids(session_id)
    for one in ids:
        ((changed,),) = yield Statement("set_archived", (int(archived), one))
        if not changed:
            raise SessionNotFoundError(session_id)


def _parents_by_child(rows: Rows) -> dict[str, str | None]:
    """Return each session's parent; None for a parent that is not among the rows."""
    known = {session_id for session_id, _ in rows}
    return {child: parent if parent in known else None for child, parent in rows}
