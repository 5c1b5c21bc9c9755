"""Forgetting what somebody sent and is owed, and telling them of it.

Their lanes are theirs alone. In rooms it is known of what waits, and of what was settled lately, who sent it;
what became of that in the transcript stays, without their name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gateway_sessions.core.erasure import Subject
from gateway_sessions.core.inbound import message_id_in, without_name
from gateway_sessions.core.instants import from_micros
from gateway_sessions.errors import SessionBusyError
from gateway_sessions.ports import Row, Statement, Verb
from gateway_sessions.storage.verbs.entries import load
from gateway_sessions.storage.verbs.inbox_rows import readable, recount
from gateway_sessions.storage.verbs.lane_rows import load_lane, put_lane
from gateway_sessions.storage.verbs.rewinding import adjust
from gateway_sessions.storage.verbs.stored import from_json

PAGE: Final = 500
"""Rows removed in one go."""
SCRUBBED: Final = "scrubbed"
"""What a receipt calls rows of others that named somebody."""


def erase_waiting(subject: Subject, lanes: Sequence[str]) -> Verb[Counter[str]]:
    """Take out of all queues what they sent; `SessionBusyError` while some of that is being answered."""
    rows = yield Statement("open_items_of_person", _whose(subject, lanes))
    for _, session_key, _, _, token in rows:
        if token is not None:
            entry = yield from load(session_key)
            raise SessionBusyError(session_key, entry.session_id if entry is not None else "")
    changed = yield from _forget_items(rows, lanes)
    for session_key in sorted({row[1] for row in rows}):
        lane = yield from load_lane(session_key)
        yield from recount(lane)
        yield from put_lane(lane)
    return changed


def erase_settled(subject: Subject, lanes: Sequence[str], until: int) -> Verb[Counter[str]]:
    """Remove some of the rest, as far as it came in before; nothing counted means that none is left."""
    whose = (until, *_whose(subject, lanes), PAGE)
    # First the replies: in rooms their messages tell which are to them.
    replies = yield Statement("delete_replies_of_person", whose)
    if replies[0][0]:
        return Counter(outbox=replies[0][0])
    items = yield Statement("items_of_person_until", whose)
    return (yield from _forget_items(items, lanes))


def waiting_of(subject: Subject, lanes: Sequence[str]) -> Verb[dict[str, dict[str, list[dict[str, Any]]]]]:
    """What waits of what they sent, or was given up, and what they are owed; by lane."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: {"queue": [], "replies": []})
    for row in (yield Statement("kept_items_of_person", _whose(subject, lanes))):
        found[row[0]]["queue"].append(_item(row))
    for session_key, state, created_at, content in (
        yield Statement("kept_replies_of_person", _whose(subject, lanes))
    ):
        owed = {
            "state": state,
            "created_at": _shown(created_at),
            "message": from_json(f"a reply on lane {session_key!r}", content, object),
        }
        found[session_key]["replies"].append(owed)
    return dict(found)


def _forget_items(items: Sequence[Row], lanes: Sequence[str]) -> Verb[Counter[str]]:
    """Remove messages; with them goes who sent them, so their rows in rooms lose the name first."""
    changed = 0
    for row in items:
        if row[1] not in lanes:
            changed += yield from _forget_name(row)
    yield Statement("delete_item", many=[(row[0],) for row in items])
    return Counter({"inbox": len(items), SCRUBBED: changed}) if items else Counter()


def _forget_name(item: Row) -> Verb[int]:
    """Take the sender's name out of the rows that a message has in the transcript; how many had it."""
    _, session_key, event, transcript_id, *_ = item
    rows: dict[int, Row] = {}
    if transcript_id is not None:
        rows.update((row[0], row) for row in (yield Statement("named_row", (transcript_id,))))
    if (message_id := message_id_in(event)) is not None:
        rows.update((row[0], row) for row in (yield Statement("named_rows", (session_key, message_id))))
    changed = 0
    for row_id, session_id, told, extra in rows.values():
        named: dict[str, Any] = _read(session_id, extra)
        becomes, left = without_name(_read(session_id, told), named)
        if left == named:
            continue
        changed += 1
        now = (_written(becomes), _written(left or None))
        yield Statement("set_named_row", (*now, row_id))
        yield from adjust(session_id, size=_size(*now) - _size(told, extra))
    return changed


def _read(session_id: str, stored: str | None) -> Any:
    return from_json(f"a message of session {session_id!r}", stored, object)


def _written(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _size(*texts: str | None) -> int:
    return sum(len(text.encode()) for text in texts if text is not None)


def _item(row: Row) -> dict[str, Any]:
    session_key, seq, token, outcome, admitted_at, payload = row
    message = readable(session_key, payload)
    return {
        "seq": seq,
        "state": outcome or ("running" if token is not None else "waiting"),
        "admitted_at": _shown(admitted_at),
        "message": None if message is None else msgspec.to_builtins(message, enc_hook=dict),
    }


def _shown(instant: int) -> str:
    return from_micros(instant).isoformat()


def _whose(subject: Subject, lanes: Sequence[str]) -> tuple[str | None, ...]:
    """How their messages are told from those of others."""
    namespace, platform, *_ = subject.owner.split(":")
    rooms = f"{namespace}:{platform}:"
    return subject.owner, msgspec.json.encode(list(lanes)).decode(), subject.user_id, rooms, rooms
