"""What commands change, each in one transaction; their answers are owed with the note that they are done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway_sessions.core.inbound import InboundMessage
from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.messages import STEERED, Message, Rewind
from gateway_sessions.core.queue import Outcome
from gateway_sessions.core.replay import Chat
from gateway_sessions.core.scope import Scope
from gateway_sessions.core.session import SessionEntry
from gateway_sessions.errors import SessionBusyError
from gateway_sessions.ports import Row, Statement, Verb
from gateway_sessions.storage.verbs import lane_lineage, lanes, queue, replaying, rewinding, titles
from gateway_sessions.storage.verbs.access import IdTaken
from gateway_sessions.storage.verbs.beginning import Version, version_of
from gateway_sessions.storage.verbs.entries import load
from gateway_sessions.storage.verbs.inbox_rows import decode_message
from gateway_sessions.storage.verbs.lane_lineage import Branching, Compression
from gateway_sessions.storage.verbs.lane_rows import LaneRow, is_running, load_lane
from gateway_sessions.storage.verbs.ledger import Noted, carried_out
from gateway_sessions.storage.verbs.messages import EVERYTHING, Page, page
from gateway_sessions.storage.verbs.outbox import Owed, owe
from gateway_sessions.storage.verbs.stored import from_json
from gateway_sessions.storage.verbs.succession import Change

MOST_OWED: Final = 64
"""A lane that is owed as much is not told any more: somebody floods it."""
HEADS: Final = 32
"""Turns looked at in one go."""


# Answers


def settle(
    noted: Noted, outcome: Outcome, problem: str | None, owed: Sequence[Owed], change: Change
) -> Verb[tuple[int, ...]]:
    """The command is done, and this is owed for it; the ids of the replies."""
    yield from carried_out(noted, outcome, "command", change.now, problem)
    return (yield from tell(noted.session_key, owed, change))


def tell(session_key: str, owed: Sequence[Owed], change: Change) -> Verb[tuple[int, ...]]:
    """Owe a lane something, unless it is owed too much already; the ids of the replies."""
    if not owed:
        return ()
    rows = yield Statement("count_owed_to_lane", (session_key, MOST_OWED))
    if rows[0][0] >= MOST_OWED:
        return ()
    return (yield from owe(owed, (yield from load(session_key)), session_key, change))


# Other sessions


def start_over(
    change: Change, new_session_id: str, session_key: str, title: str | None, scope: Scope
) -> Verb[SessionEntry | IdTaken | None]:
    """Begin a new session, called so; if the title is taken, nothing happens at all."""
    entry = yield from lanes.reset(change, session_key, new_session_id, None)
    return (yield from _called(entry, title, scope))


def branch(
    change: Change, new_session_id: str, session_key: str, title: str | None, scope: Scope
) -> Verb[SessionEntry | IdTaken | None]:
    """Go on in a copy, called so; if the title is taken, nothing happens at all."""
    entry = yield from lane_lineage.branch(change, new_session_id, Branching(session_key=session_key))
    return (yield from _called(entry, title, scope))


def _called(
    entry: SessionEntry | IdTaken | None, title: str | None, scope: Scope
) -> Verb[SessionEntry | IdTaken | None]:
    if title is not None and isinstance(entry, SessionEntry):
        yield from titles.set_title(entry.session_id, title, scope)
    return entry


# What was said


@dataclass(frozen=True, slots=True)
class TakenBack:
    """Turns that are no part of the conversation any more."""

    session_id: str
    turns: int
    rewind: Rewind
    said: Sequence[Message]
    """All rows of the first of them."""


def take_back(session_key: str, turns: int, change: Change) -> Verb[TakenBack | None]:
    """Take back the last turns, as far as there are any; `SessionBusyError` while one runs."""
    entry = yield from _idle(session_key)
    if entry is None:
        return None
    heads = yield from _heads(entry.session_id, turns)
    if not heads:
        return None
    seq, message_id, _ = heads[-1]
    until = heads[-2][0] if len(heads) > 1 else EVERYTHING
    rows = yield from page(entry.session_id, Page(after_seq=seq - 1, before_seq=until))
    rewind = yield from rewinding.rewind_to(entry.session_id, message_id, change.ids)
    return TakenBack(entry.session_id, len(heads), rewind, rows)


def take_up_failed(session_key: str, change: Change) -> Verb[LaneRow | None]:
    """Let the lane's last turn wait again if it has failed; None if it has not."""
    items = yield Statement("dead_turn_of_lane", (session_key, session_key))
    if not items:
        return None
    entry = yield from load(session_key)
    heads = (yield from _heads(entry.session_id, 1)) if entry is not None else []
    if entry is not None and heads:
        last = (yield from page(entry.session_id, Page(after_seq=heads[0][0] - 1, limit=1)))[0]
        message = decode_message(session_key, items[0][4])
        own = _is_of(last, message)
        if (
            not own
            and last.sent_at is not None
            and last.sent_at >= (message.sent_at or from_micros(items[0][3]))
        ):
            return None
        if own and not (yield from is_running(session_key)):
            yield from rewinding.rewind_to(entry.session_id, heads[0][1], change.ids)
    for item_id, _, merged_into, *_ in items:
        if merged_into is None:
            yield from queue.requeue(item_id, change)
    return (yield from load_lane(session_key))


def _idle(session_key: str) -> Verb[SessionEntry | None]:
    entry = yield from load(session_key)
    if entry is not None and (yield from is_running(session_key)):
        raise SessionBusyError(session_key, entry.session_id)
    return entry


def _heads(session_id: str, turns: int) -> Verb[list[Row]]:
    """What began the last turns, the latest first; what was said into a running turn has begun none."""
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
    """Whether a row of the transcript says what that message said."""
    if message.message_id is not None:
        ids = row.extra.get("platform_message_ids") or [row.platform_message_id]
        return message.message_id in ids
    return row.platform_message_id is None and row.text.startswith(message.text.strip())


def _extra(text: str | None) -> dict[str, Any]:
    return from_json("a message", text or "{}", dict[str, Any])


# Compression


@dataclass(frozen=True, slots=True)
class Compressible:
    """A conversation, and the state of the transcript that it was read from."""

    session_id: str
    version: Version
    chats: list[Chat]


def compressible(session_key: str) -> Verb[Compressible | None]:
    """What can be compressed on a lane; `SessionBusyError` while a turn runs, None if nothing was said."""
    entry = yield from _idle(session_key)
    if entry is None:
        return None
    version = yield from version_of(entry.session_id)
    chats = yield from replaying.conversation(entry.session_id, None, include_ancestors=False)
    return Compressible(entry.session_id, version, chats) if chats else None


def compress(
    change: Change, new_session_id: str, asked: Compression, version: Version
) -> Verb[SessionEntry | IdTaken | None]:
    """Let the lane go on with a summary, unless anything was said since it was made: then None."""
    entry = yield from load(asked.session_key)
    unchanged = entry is not None and entry.session_id == asked.session_id
    if not unchanged or (yield from is_running(asked.session_key)):
        return None
    if (yield from version_of(asked.session_id)) != version:
        return None
    return (yield from lane_lineage.split(change, new_session_id, asked))
