"""Transactions of slash commands such as `/new`, `/branch`, `/undo`, `/retry` and `/compress`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway_sessions.core.identity.scope import Scope
from gateway_sessions.core.instants import from_micros, to_micros
from gateway_sessions.core.queue.commands import asked_again
from gateway_sessions.core.queue.inbound import InboundMessage, stored_form
from gateway_sessions.core.queue.items import ItemKind, Outcome
from gateway_sessions.core.queue.state_machine import ItemEvent
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.transcript.messages import STEERED, Message, Rewind
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import SessionBusyError
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.column_decoding import from_json
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.inbox import decode_message, place_of, reckon_ready
from gateway_sessions.storage.tables.lanes import LaneRow, is_running, load_lane, put_lane
from gateway_sessions.storage.tables.moves import moving
from gateway_sessions.storage.transactions.queue import waiting
from gateway_sessions.storage.transactions.queue.admit import Noted, carried_out
from gateway_sessions.storage.transactions.queue.claim import Version, version_of
from gateway_sessions.storage.transactions.queue.outbox import Owed, owe
from gateway_sessions.storage.transactions.sessions import lane_changes, switch_lane, titles
from gateway_sessions.storage.transactions.sessions.find_or_create import IdTaken
from gateway_sessions.storage.transactions.sessions.switch_lane import Branching, Compression
from gateway_sessions.storage.transactions.transcripts import conversation
from gateway_sessions.storage.transactions.transcripts import rewind as rewinds
from gateway_sessions.storage.transactions.transcripts.messages import EVERYTHING, MessagePage, page

MOST_OWED: Final = 64
"""The number of owed replies from which a lane gets no more answers to commands: it is being flooded."""
HEADS: Final = 32
"""The number of turns read by one query."""
_OUTCOME: Final = 5
"""The place of the outcome in the row of `kept_event`."""


# Answers


def settle(
    noted: Noted, outcome: Outcome, problem: str | None, owed: Sequence[Owed], change: Change
) -> Transaction[tuple[int, ...]]:
    """Settle a command and owe the answers to it; return the ids of the replies."""
    yield from carried_out(noted, outcome, "command", change.now, problem)
    return (yield from tell(noted.session_key, owed, change))


def tell(session_key: str, owed: Sequence[Owed], change: Change) -> Transaction[tuple[int, ...]]:
    """Owe a lane some messages, unless it is owed too many already; return the ids of the replies."""
    if not owed:
        return ()
    rows = yield Statement("count_owed_to_lane", (session_key, MOST_OWED))
    if rows[0][0] >= MOST_OWED:
        return ()
    return (yield from owe(owed, (yield from load(session_key)), session_key, change))


# Other sessions


def start_over(
    change: Change, new_session_id: str, session_key: str, title: str | None, scope: Scope, author: str | None
) -> Transaction[SessionEntry | IdTaken | None]:
    """Begin a new session with that title; if the title is taken, no row is changed."""
    entry = yield from lane_changes.reset(change, session_key, new_session_id, None)
    return (yield from _called(entry, title, scope, author))


def branch(
    change: Change, new_session_id: str, session_key: str, title: str | None, scope: Scope, author: str | None
) -> Transaction[SessionEntry | IdTaken | None]:
    """Switch the lane to a copy of its session with that title; if the title is taken, no row is changed."""
    entry = yield from switch_lane.branch(change, new_session_id, Branching(session_key=session_key))
    return (yield from _called(entry, title, scope, author))


def _called(
    entry: SessionEntry | IdTaken | None, title: str | None, scope: Scope, author: str | None
) -> Transaction[SessionEntry | IdTaken | None]:
    if title is not None and isinstance(entry, SessionEntry):
        yield from titles.set_title(entry.session_id, title, scope, author)
    return entry


# What was said


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Turns that are no longer part of the conversation."""

    session_id: str
    turns: int
    rewind: Rewind
    said: Sequence[Message]
    """All rows of the first of these turns."""


def take_back(session_key: str, turns: int, change: Change) -> Transaction[TakenBack | None]:
    """Take back the last turns, as far as there are any; `SessionBusyError` while a turn runs."""
    entry = yield from _idle(session_key)
    if entry is None:
        return None
    heads = yield from _heads(entry.session_id, turns)
    if not heads:
        return None
    seq, message_id, _ = heads[-1]
    until = heads[-2][0] if len(heads) > 1 else EVERYTHING
    rows = yield from page(entry.session_id, MessagePage(after_seq=seq - 1, before_seq=until))
    rewind = yield from rewinds.rewind_to(entry.session_id, message_id, change.ids)
    return TakenBack(entry.session_id, len(heads), rewind, rows)


def take_up_failed(session_key: str, change: Change) -> Transaction[LaneRow | None]:
    """Let the lane's last turn wait again if it has failed; None if it has not."""
    items = yield Statement("dead_turn_of_lane", (session_key, session_key))
    if not items:
        return None
    entry = yield from load(session_key)
    heads = (yield from _heads(entry.session_id, 1)) if entry is not None else []
    if entry is not None and heads:
        last = (yield from page(entry.session_id, MessagePage(after_seq=heads[0][0] - 1, limit=1)))[0]
        message = decode_message(session_key, items[0][4])
        own = _is_of(last, message)
        if (
            not own
            and last.sent_at is not None
            and last.sent_at >= (message.sent_at or from_micros(items[0][3]))
        ):
            return None
        if own and not (yield from is_running(session_key)):
            yield from rewinds.rewind_to(entry.session_id, heads[0][1], change.ids)
    for item_id, _, merged_into, *_ in items:
        if merged_into is None:
            yield from waiting.requeue(item_id, change)
    return (yield from load_lane(session_key))


def take_up_answered(session_key: str, asked: InboundMessage, change: Change) -> Transaction[LaneRow | None]:
    """Take the lane's last turn back and let its messages wait once more; None if it has none.

    The idempotency keys of its messages go to those that wait now. `SessionBusyError` while a turn runs.
    """
    entry = yield from _idle(session_key)
    heads = (yield from _heads(entry.session_id, 1)) if entry is not None else []
    if entry is None or not heads:
        return None
    seq, message_id, _ = heads[0]
    said = asked_again((yield from page(entry.session_id, MessagePage(after_seq=seq - 1))), asked, entry)
    if not said:
        return None
    lane = yield from load_lane(session_key)
    if (yield from _wait_already(said)):  # the turn was cut off, and is tried again by itself
        return lane
    yield from rewinds.rewind_to(entry.session_id, message_id, change.ids)
    yield Statement("hand_over_event", many=[(one.idempotency_key,) for one in said if one.message_id])
    first_seq = lane.next_seq
    rows = [
        _asked_again(one, entry, first_seq, first_seq + at, change, among=said) for at, one in enumerate(said)
    ]
    yield moving("add_item", ItemEvent.QUEUED, ItemEvent.JOINED, many=rows)
    lane.next_seq += len(said)
    lane.waiting += 1
    yield from reckon_ready(lane)
    yield from put_lane(lane)
    return lane


def _wait_already(said: Sequence[InboundMessage]) -> Transaction[bool]:
    for one in said:
        kept = (yield Statement("kept_event", (one.idempotency_key,))) if one.message_id else ()
        if kept and kept[0][_OUTCOME] is None:
            return True
    return False


def _asked_again(
    message: InboundMessage,
    entry: SessionEntry,
    head: int,
    seq: int,
    change: Change,
    *,
    among: Sequence[InboundMessage],
) -> tuple[object, ...]:
    """Return the row of a message whose turn a person asked for explicitly."""
    leads, now = seq == head, to_micros(change.now)
    what = (next(change.ids), entry.session_key, seq, place_of(seq), message.idempotency_key, entry.owner)
    kind = str(ItemKind.INTERNAL if message.internal else ItemKind.MESSAGE)
    size = sum(len(one.text) for one in among) if leads else len(message.text)
    media = int(any(one.has_media for one in among) if leads else message.has_media)
    turn = (message.sender, kind, 1, media, None if leads else head, len(among) if leads else 1, size)
    return (*what, *turn, now, now, now, None, stored_form(message), None, None, None)


def _idle(session_key: str) -> Transaction[SessionEntry | None]:
    entry = yield from load(session_key)
    if entry is not None and (yield from is_running(session_key)):
        raise SessionBusyError(session_key, entry.session_id)
    return entry


def _heads(session_id: str, turns: int) -> Transaction[list[Row]]:
    """Return the first rows of the last turns, the latest first; a steered message begins no turn."""
    found: list[Row] = []
    before = EVERYTHING
    while len(found) < turns:
        rows = yield Statement("recent_turn_heads", (session_id, before, HEADS))
        found += [row for row in rows if not _extra(row[2]).get(STEERED)]
        if len(rows) < HEADS:
            break
        before = rows[-1][0]
    return found[:turns]


def _is_of(row: Message, message: InboundMessage) -> bool:
    """Return whether a row of the transcript was made of that message."""
    if message.message_id is not None:
        ids = row.extra.get("platform_message_ids") or [row.platform_message_id]
        return message.message_id in ids
    return row.platform_message_id is None and row.text.startswith(message.text.strip())


def _extra(text: str | None) -> dict[str, Any]:
    return from_json("a message", text or "{}", dict[str, Any])


# Compression


@dataclass(frozen=True, slots=True)
class Compressible:
    """A conversation, and the version of its transcript."""

    session_id: str
    version: Version
    chats: list[Chat]


def compressible(session_key: str) -> Transaction[Compressible | None]:
    """Return the lane's conversation to compress; `SessionBusyError` while a turn runs, None if empty."""
    entry = yield from _idle(session_key)
    if entry is None:
        return None
    version = yield from version_of(entry.session_id)
    chats = yield from conversation.conversation(entry.session_id, None, include_ancestors=False)
    return Compressible(entry.session_id, version, chats) if chats else None


def compress(
    change: Change, new_session_id: str, asked: Compression, version: Version
) -> Transaction[SessionEntry | IdTaken | None]:
    """Let the lane go on with a summary; None if anything was written since the summary was made."""
    entry = yield from load(asked.session_key)
    unchanged = entry is not None and entry.session_id == asked.session_id
    if not unchanged or (yield from is_running(asked.session_key)):
        return None
    if (yield from version_of(asked.session_id)) != version:
        return None
    return (yield from switch_lane.split(change, new_session_id, asked))
