"""Transactions of slash commands: settle a command with its answers; `/new`, `/branch` and `/compress`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.queue.items import Outcome
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.lanes import is_running
from gateway_sessions.storage.transactions.queue.admit import NotedItem, settle_noted
from gateway_sessions.storage.transactions.queue.claim import TranscriptVersion, transcript_version
from gateway_sessions.storage.transactions.queue.outbox import Owed, owe_replies
from gateway_sessions.storage.transactions.queue.undo_and_retry import entry_without_turn
from gateway_sessions.storage.transactions.sessions import lane_changes, switch_lane, titles
from gateway_sessions.storage.transactions.sessions.find_or_create import SessionIdTaken
from gateway_sessions.storage.transactions.sessions.switch_lane import Branching, Compression
from gateway_sessions.storage.transactions.transcripts import messages

MOST_OWED: Final = 64
"""The number of owed replies from which a lane gets no more answers to commands: it is being flooded."""


def settle_command(
    noted: NotedItem, outcome: Outcome, problem: str | None, owed: Sequence[Owed], change: Change
) -> Transaction[tuple[int, ...]]:
    """Settle a command and owe the answers to it; return the ids of the replies."""
    yield from settle_noted(noted, outcome, "command", change.now, problem)
    return (yield from owe_answers(noted.session_key, owed, change))


def owe_answers(session_key: str, owed: Sequence[Owed], change: Change) -> Transaction[tuple[int, ...]]:
    """Owe a lane some messages, unless it is owed too many already; return the ids of the replies."""
    if not owed:
        return ()
    ((already,),) = yield Statement("count_owed_to_lane", (session_key, MOST_OWED))
    if already >= MOST_OWED:
        return ()
    return (yield from owe_replies(owed, (yield from load(session_key)), session_key, change))


def begin_new_session(
    change: Change, new_session_id: str, session_key: str, title: str | None, scope: Scope, author: str | None
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Begin a new session with that title; if the title is taken, no row is changed."""
    entry = yield from lane_changes.reset_lane(change, session_key, new_session_id, None)
    return (yield from _with_title(entry, title, scope, author))


def branch_session(
    change: Change, new_session_id: str, session_key: str, title: str | None, scope: Scope, author: str | None
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Switch the lane to a copy of its session with that title; if the title is taken, no row is changed."""
    entry = yield from switch_lane.branch_lane(change, new_session_id, Branching(session_key=session_key))
    return (yield from _with_title(entry, title, scope, author))


def _with_title(
    entry: SessionEntry | SessionIdTaken | None, title: str | None, scope: Scope, author: str | None
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    if title is not None and isinstance(entry, SessionEntry):
        yield from titles.set_title(entry.session_id, title, scope, author)
    return entry


@dataclass(frozen=True, slots=True)
class CompressibleSession:
    """A conversation, and the version of its transcript."""

    session_id: str
    version: TranscriptVersion
    chats: list[Chat]


def load_compressible(session_key: str) -> Transaction[CompressibleSession | None]:
    """Return the lane's conversation to compress; `SessionBusyError` while a turn runs, None if empty."""
    entry = yield from entry_without_turn(session_key)
    if entry is None:
        return None
    version = yield from transcript_version(entry.session_id)
    chats = yield from messages.load_conversation(entry.session_id, None, include_ancestors=False)
    return CompressibleSession(entry.session_id, version, chats) if chats else None


def compress_lane(
    change: Change, new_session_id: str, asked: Compression, version: TranscriptVersion
) -> Transaction[SessionEntry | SessionIdTaken | None]:
    """Let the lane go on with a summary; None if anything was written since the summary was made."""
    entry = yield from load(asked.session_key)
    unchanged = entry is not None and entry.session_id == asked.session_id
    if not unchanged or (yield from is_running(asked.session_key)):
        return None
    if (yield from transcript_version(asked.session_id)) != version:
        return None
    return (yield from switch_lane.continue_lane(change, new_session_id, asked))
