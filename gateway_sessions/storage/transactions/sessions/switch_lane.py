"""Switch a lane to a related session: its continuation, a branch of it, or a resumed one."""

from __future__ import annotations

from dataclasses import dataclass

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.errors import SessionEndedError, SessionNotFoundError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables import lineage
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.sessions import ancestor
from gateway_sessions.storage.transactions.sessions import lane_changes, titles
from gateway_sessions.storage.transactions.sessions import split as session_split
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionIdTaken
from gateway_sessions.storage.transactions.sessions.split import Descent


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """A session of a lane, and the summary with which the lane goes on."""

    session_key: str
    session_id: str
    messages: tuple[Message, ...]
    model: str | None = None
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branching:
    """A lane whose session is copied, up to a message if one is named."""

    session_key: str
    at_message_id: int | None = None


def continue_lane(
    change: Change, new_session_id: str, asked: Compression
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Let the lane go on with the summary, if it still has the session that was summarised."""
    entry = yield from load(asked.session_key)
    if entry is None:
        return None
    if entry.session_id != asked.session_id:
        yield from _require_continued(asked.session_id, entry)
        return entry
    if (yield Statement("session_exists", (new_session_id,))):
        return SessionIdTaken()
    descent = Descent(
        session_id=asked.session_id,
        new_session_id=new_session_id,
        now=change.now,
        ids=change.ids,
        model=asked.model,
        system_prompt=asked.system_prompt,
    )
    yield from session_split.continue_in_new_session(descent, asked.messages)
    return (yield from load(asked.session_key))


def branch_lane(
    change: Change, new_session_id: str, asked: Branching
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Let the lane go on with a copy of its session."""
    entry = yield from load(asked.session_key)
    if entry is None:
        return None
    if (yield Statement("session_exists", (new_session_id,))):
        return SessionIdTaken()
    descent = Descent(
        session_id=entry.session_id, new_session_id=new_session_id, now=change.now, ids=change.ids
    )
    yield from session_split.branch_session(descent, asked.at_message_id)
    return (
        yield from lane_changes.switch_session(
            change, asked.session_key, new_session_id, Scope.lane(asked.session_key)
        )
    )


def resume_on_lane(
    change: Change, session_key: str, text: str, scope: Scope, fork_id: str | None
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Let the lane go on with the session that *text* means; with a fork if it has another owner.

    Without a *fork_id*, the session itself moves.
    """
    target = yield from titles.resolve_session(text, scope)
    if fork_id is None:
        return (yield from lane_changes.switch_session(change, session_key, target, scope))
    return (yield from lane_changes.switch_or_fork(change, session_key, target, scope, fork_id))


def _require_continued(session_id: str, entry: SessionEntry) -> Transaction[None]:
    """Return if another call has compressed the session already; else raise `SessionEndedError`."""
    line = yield from lineage.compression_line_ids(session_id)
    if entry.session_id in line[line.index(session_id) :]:
        return
    session = yield from ancestor(session_id)
    if session is None:
        raise SessionNotFoundError(session_id)
    raise SessionEndedError(session_id, session.end_reason or EndReason.MOVED)
