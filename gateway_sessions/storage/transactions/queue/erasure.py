"""Erasure of the messages that a person queued and of the replies that they are owed.

The lanes of a person are theirs alone. In rooms, the queue tells the sender of each message that waits or was
settled lately: so it is known which transcript rows are the person's, if a version that did not store authors
wrote them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.checks import plain_value
from gateway_sessions.core.identity.keys import room_owner_prefixes
from gateway_sessions.core.instants import from_micros
from gateway_sessions.core.queue.inbound import message_id_in
from gateway_sessions.core.queue.state_machine import ItemEvent, ReplyEvent
from gateway_sessions.core.sessions.erasure import ErasureSubject
from gateway_sessions.errors import SessionBusyError
from gateway_sessions.ports import Row, Statement, Transaction
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.entries import load
from gateway_sessions.storage.tables.lanes import (
    NextTurn,
    decode_message_or_none,
    load_lane,
    next_turn,
    put_lane,
    recount_waiting_turns,
)
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_statement
from gateway_sessions.storage.transactions.queue.schedules import export_schedules_of_person
from gateway_sessions.storage.transactions.transcripts import rewrite

PAGE: Final = 500
"""The number of rows removed in one commit."""
SCRUBBED: Final = "scrubbed"
"""The name, in a receipt, of rows of other owners from which the person's name was taken."""


@row_of("open_items_of_person", "items_of_person_until")
class ItemOfPerson(NamedTuple):
    """A message in the queue that is a person's."""

    item_id: int
    session_key: str
    event: str | None
    transcript_id: int | None
    token: int | None = None


@row_of("kept_items_of_person")
class KeptItemOfPerson(NamedTuple):
    """A message of a person that waits, runs or was given up."""

    session_key: str
    seq: int
    token: int | None
    outcome: str | None
    admitted_at: int
    payload: str | None


@row_of("kept_replies_of_person")
class KeptReplyOfPerson(NamedTuple):
    """A reply to a person that is owed or was given up."""

    session_key: str
    state: str
    created_at: int
    content: str | None


def erase_waiting(
    subject: ErasureSubject, lanes: Sequence[str], ids: Iterator[int]
) -> Transaction[Counter[str]]:
    """Remove the person's messages from all queues; `SessionBusyError` while one is being answered."""
    items = [
        ItemOfPerson(*row)
        for row in (yield Statement("open_items_of_person", _person_params(subject, lanes)))
    ]
    for one in items:
        if one.token is not None:
            entry = yield from load(one.session_key)
            raise SessionBusyError(one.session_key, entry.session_id if entry is not None else "")
    gone, heads = {one.item_id for one in items}, dict[str, NextTurn | None]()
    for session_key in sorted({one.session_key for one in items}):
        heads[session_key] = yield from next_turn(session_key)
    removed = yield from _delete_items(items, lanes, ids)
    for session_key, head in heads.items():
        lane = yield from load_lane(session_key)
        yield from recount_waiting_turns(lane, another=head is not None and head.item_id in gone)
        yield from put_lane(lane)
    return removed


def erase_settled(
    subject: ErasureSubject, lanes: Sequence[str], until: int, ids: Iterator[int]
) -> Transaction[Counter[str]]:
    """Remove some of the person's settled messages and replies; an empty count means that none is left."""
    whose = (until, *_person_params(subject, lanes), PAGE)
    # First the replies: in rooms, only the messages that they answer tell that they are the person's.
    ((replies,),) = yield move_statement("delete_replies_of_person", ReplyEvent.ERASED, params=whose)
    if replies:
        return Counter(outbox=replies)
    listed = msgspec.json.encode(list(lanes)).decode()
    ((schedules,),) = yield Statement("delete_schedules_of_person", (until, subject.owner, listed))
    if schedules:
        return Counter(schedules=schedules)
    items = [ItemOfPerson(*row) for row in (yield Statement("items_of_person_until", whose))]
    return (yield from _delete_items(items, lanes, ids))


def export_queue_of_person(
    subject: ErasureSubject, lanes: Sequence[str]
) -> Transaction[dict[str, dict[str, list[dict[str, Any]]]]]:
    """Return, by lane, the person's messages that wait or were given up, and the replies they are owed."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: {"queue": [], "replies": []})
    items = yield Statement("kept_items_of_person", _person_params(subject, lanes))
    for item in map(KeptItemOfPerson._make, items):
        found[item.session_key]["queue"].append(_item_as_dict(item))
    replies = yield Statement("kept_replies_of_person", _person_params(subject, lanes))
    for reply in map(KeptReplyOfPerson._make, replies):
        owed = {
            "state": reply.state,
            "created_at": _iso_time(reply.created_at),
            "message": decode_json(f"a reply on lane {reply.session_key!r}", reply.content, object),
        }
        found[reply.session_key]["replies"].append(owed)
    for session_key, schedules in (yield from export_schedules_of_person(subject.owner, lanes)).items():
        found[session_key]["schedules"] = schedules
    return dict(found)


def _delete_items(
    items: Sequence[ItemOfPerson], lanes: Sequence[str], ids: Iterator[int]
) -> Transaction[Counter[str]]:
    """Remove messages; before them their rows in rooms, which do not name an author."""
    removed = 0
    for one in items:
        if one.session_key not in lanes:
            removed += yield from _delete_unattributed_rows(one, ids)
    yield move_statement("delete_item", ItemEvent.ERASED, many=[(one.item_id,) for one in items])
    return Counter(inbox=len(items), messages=removed) if items else Counter()


def _delete_unattributed_rows(item: ItemOfPerson, ids: Iterator[int]) -> Transaction[int]:
    """Remove the transcript rows of a message that name no author themselves."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    rows: list[Row] = []
    if item.transcript_id is not None:
        rows += yield Statement("row_without_author", (item.transcript_id,))
    if (message_id := message_id_in(item.event)) is not None:
        rows += yield Statement("rows_without_author", (item.session_key, message_id))
    for row_id, session_id in rows:
        found[session_id].add(row_id)
    for session_id, chosen in found.items():
        yield from rewrite.remove_messages(session_id, chosen, ids)
    return sum(map(len, found.values()))


def _item_as_dict(item: KeptItemOfPerson) -> dict[str, Any]:
    message = decode_message_or_none(item.session_key, item.payload)
    return {
        "seq": item.seq,
        "state": item.outcome or ("running" if item.token is not None else "waiting"),
        "admitted_at": _iso_time(item.admitted_at),
        "message": None if message is None else msgspec.to_builtins(message, enc_hook=plain_value),
    }


def _iso_time(instant: int) -> str:
    return from_micros(instant).isoformat()


def _person_params(subject: ErasureSubject, lanes: Sequence[str]) -> tuple[str | None, ...]:
    """Return the parameters by which the person's messages are told from those of others."""
    rooms, others = room_owner_prefixes(subject.owner)
    theirs = (subject.owner, msgspec.json.encode(list(lanes)).decode(), subject.user_id)
    return (*theirs, rooms, rooms, others, others)
