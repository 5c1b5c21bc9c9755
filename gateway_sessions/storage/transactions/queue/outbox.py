"""The outbox: replies are owed in the transaction of their turn, then sent, retried or given up.

The platform message in which a reply grows is stored with the message that leads the turn, so that the next
try continues or closes it. Once no try can complete the reply there, people are owed a notice in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Growing, OutboundMessage, ReplyTarget
from gateway_sessions.core.instants import clamp_to_calendar, to_micros
from gateway_sessions.core.notices.notice import notice_message
from gateway_sessions.core.notices.notice_texts import UNFINISHED
from gateway_sessions.core.queue.state_machine import ReplyEvent, ReplyState, advance_reply
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.storable_text import record_as_json, truncated_text
from gateway_sessions.errors import NotGivenUpError, StorageCorruptError
from gateway_sessions.ports import Rows, Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.column_decoding import DAMAGE, raise_damaged
from gateway_sessions.storage.tables.lanes import QueuedItem, decode_message_or_none, item_from_row
from gateway_sessions.storage.tables.sql_files import record_of, row_of
from gateway_sessions.storage.tables.statements import move_statement, reply_lock

T = TypeVar("T")

FIRST: Final = 1 << 62
"""An id above that of every reply: the newest page begins below it."""
MAX_PROBLEM: Final = 500
"""The longest problem that is stored: an error may repeat a whole request."""
_STATES: Final = {
    event: str(advance_reply(ReplyState.NEW, event)) for event in (ReplyEvent.OWED, ReplyEvent.STARTED)
}
"""The states that a new reply begins in."""
_TARGET: Final = msgspec.json.Decoder(ReplyTarget)
_MESSAGE: Final = msgspec.json.Decoder(OutboundMessage)


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """A message to be sent, and its target."""

    target: ReplyTarget
    """The place of the reply: platform, chat and thread."""
    message: OutboundMessage
    owner: str
    seq: int | None = None
    """The seq of the message that it answers."""
    under_way: bool = False
    """True if it is sent right after the commit: after a crash, it may or may not have been sent."""


class OwedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A reply in the outbox."""

    reply_id: int
    session_key: str
    session_id: str | None
    seq: int | None
    """The place of the turn on its lane."""
    owner: str
    target: ReplyTarget
    """The place of the reply: platform, chat and thread."""
    message: OutboundMessage
    attempts: int
    unclear: int
    """The number of attempts that may have reached the platform."""
    created_at: datetime
    due_at: datetime
    problem: str | None = None
    """The reason why the reply was given up or cannot be sent; a damaged reply has no text and no target."""
    sent_by: int | None = None
    """The opening of the store that began to send the reply."""

    @property
    def maybe_duplicate(self) -> bool:
        """Return whether people may have seen the reply already."""
        return self.unclear > 0

    @property
    def idempotency_key(self) -> str:
        """Return the key that is the same for every try."""
        return f"reply:{self.reply_id}"


@record_of("add_reply")
class NewReply(NamedTuple):
    """A reply as it is added to the outbox."""

    reply_id: int
    session_key: str
    session_id: str | None
    seq: int | None
    owner: str
    platform: str
    account: str
    target: str
    content: str
    state: str
    epoch: int | None
    """The opening of the store that begins to send it at once."""
    created_at: int
    next_try_at: int


@row_of("owed_replies", "owed_replies_among", "dead_replies", "all_owed_replies", "all_owed_to_lane")
class ReplyRow(NamedTuple):
    """The row of a reply, as the queries for owed replies and for dead letters return it."""

    reply_id: int
    session_key: str
    session_id: str | None
    seq: int | None
    owner: str
    platform: str
    account: str
    target: str | None
    content: str | None
    attempts: int
    unclear: int
    created_at: int
    due_at: int
    """The time of the next try; of a dead letter, the time at which it was given up."""
    problem: str | None
    sent_by: int | None = None


@row_of("accounts_owing")
class AccountOwing(NamedTuple):
    """The number of replies that are owed on an account."""

    platform: str
    account: str
    replies: int


def owe_replies(
    owed: Sequence[Owed], entry: SessionEntry | None, session_key: str, change: Change
) -> Transaction[tuple[int, ...]]:
    """Add replies to the outbox; return their ids, in order."""
    now = to_micros(change.now)
    last = (yield from _last_owed_reply_id(session_key)) if owed and change.id_above is not None else 0
    session_id = entry.session_id if entry is not None else None
    ids: list[int] = []
    for one in owed:
        reply_id = next(change.ids) if change.id_above is None else change.id_above(last)
        event, sender = (ReplyEvent.STARTED, change.epoch) if one.under_way else (ReplyEvent.OWED, None)
        reply = NewReply(
            reply_id=reply_id,
            session_key=session_key,
            session_id=session_id,
            seq=one.seq,
            owner=one.owner,
            platform=one.target.platform,
            account=one.target.account,
            target=record_as_json("target", one.target, one.target.metadata),
            content=record_as_json("reply", one.message, {}),
            state=_STATES[event],
            epoch=sender,
            created_at=now,
            next_try_at=now,
        )
        yield move_statement("add_reply", event, params=reply)
        ids.append(reply_id)
    return tuple(ids)


def _last_owed_reply_id(session_key: str) -> Transaction[int]:
    """Return the id of the last reply that a lane is owed, or 0: new replies get higher ids on any node."""
    ((reply_id,),) = yield Statement("last_owed", (session_key,))
    return int(reply_id or 0)


class DueReplies(NamedTuple):
    """The replies that are due on an account."""

    replies: list[OwedReply]
    """The next reply of each lane, if its time has come; the one owed for longest first."""
    next_at: datetime | None
    """The time at which the next reply becomes due; None if none will."""


def due_replies(
    platform: str,
    account: str,
    now: datetime,
    limit: int,
    *,
    lanes: Collection[str] | None = None,
    but_not: Iterable[int] = (),
) -> Transaction[DueReplies]:
    """Return the replies due on an account, or to some *lanes* only, except those that are being sent."""
    at = (platform, account, to_micros(now))
    sent = msgspec.json.encode(list(but_not)).decode()
    if lanes is None:
        rows = yield Statement("owed_replies", (*at, sent, limit))
        ((next_at,),) = yield Statement("next_reply_due", at)
    else:
        listed = msgspec.json.encode(sorted(lanes)).decode()
        rows = yield Statement("owed_replies_among", (*at, sent, listed, limit))
        ((next_at,),) = yield Statement("next_reply_due_among", (*at, listed))
    return DueReplies(_replies_from_rows(rows), None if next_at is None else clamp_to_calendar(next_at))


def lane_is_owed(session_key: str) -> Transaction[bool]:
    """Return whether a lane is owed any reply."""
    return bool((yield Statement("lane_is_owed", (session_key,))))


def rewrite_owed_reply(reply_id: int, message: OutboundMessage, now: datetime) -> Transaction[None]:
    """Replace the content of an owed reply, and send it at once."""
    content = record_as_json("reply", message, {})
    yield move_statement("reword_reply", ReplyEvent.REWORDED, params=(content, to_micros(now), reply_id))


def lanes_owed(platform: str, account: str) -> Transaction[set[str]]:
    """Return the lanes that are owed a reply on an account."""
    return {session_key for (session_key,) in (yield Statement("lanes_owed", (platform, account)))}


def count_owed_by_account() -> Transaction[dict[tuple[str, str], int]]:
    """Return the number of owed replies, by platform and account."""
    rows = yield Statement("accounts_owing")
    return {(one.platform, one.account): one.replies for one in map(AccountOwing._make, rows)}


def mark_sending(reply: OwedReply, epoch: int) -> Transaction[bool]:
    """Note that a reply is about to be sent; False if another try came first.

    After a crash, the note tells that the reply may have been sent.
    """
    what = (epoch, reply.reply_id, reply.attempts, epoch)
    lock = reply_lock(reply.reply_id)
    ((marked,),) = yield move_statement("mark_sending", ReplyEvent.STARTED, params=what, lock=lock)
    return bool(marked)


class SentReply(NamedTuple):
    """A reply that the platform has accepted, with its id there and the time."""

    reply: OwedReply
    sent_message_id: str | None
    at: datetime


def mark_sent(replies: Sequence[SentReply]) -> Transaction[None]:
    """Settle replies that the platform has accepted."""
    for reply, sent_message_id, at in replies:
        became = (to_micros(at), sent_message_id, reply.attempts + 1, reply.reply_id)
        lock = reply_lock(reply.reply_id)
        yield move_statement("reply_sent", ReplyEvent.CONFIRMED, params=became, lock=lock)


def put_off_reply(reply: OwedReply, at: datetime, problem: str, *, unclear: int) -> Transaction[None]:
    """Put a reply off until that time."""
    what = truncated_text(problem, MAX_PROBLEM)
    becomes = (reply.attempts + 1, to_micros(at), unclear, what, reply.reply_id)
    yield move_statement("reply_retry", ReplyEvent.PUT_OFF, params=becomes, lock=reply_lock(reply.reply_id))


def give_up_reply(reply: OwedReply, now: datetime, problem: str, *, unclear: int) -> Transaction[None]:
    """Make a reply a dead letter, which is kept for operators."""
    what = truncated_text(problem, MAX_PROBLEM)
    becomes = (reply.attempts + 1, to_micros(now), unclear, what, reply.reply_id)
    yield move_statement(
        "reply_given_up", ReplyEvent.GIVEN_UP, params=becomes, lock=reply_lock(reply.reply_id)
    )


def dead_replies(limit: int, before: int = FIRST) -> Transaction[list[OwedReply]]:
    """Return replies that were given up, the newest first."""
    return _replies_from_rows((yield Statement("dead_replies", (before, limit))))


def owed_replies(limit: int, session_key: str | None = None) -> Transaction[list[OwedReply]]:
    """Return owed replies, of all lanes or of one, the one owed for longest first, due or not."""
    if session_key is None:
        rows = yield Statement("all_owed_replies", (limit,))
    else:
        rows = yield Statement("all_owed_to_lane", (session_key, limit))
    return _replies_from_rows(rows)


def revive_reply(reply_id: int, now: datetime) -> Transaction[None]:
    """Owe a reply again that was given up."""
    ((revived,),) = yield move_statement(
        "revive_reply", ReplyEvent.REVIVED, params=(to_micros(now), reply_id)
    )
    if not revived:
        problem = f"reply {reply_id} was not given up"
        raise NotGivenUpError(problem)


def _replies_from_rows(rows: Rows) -> list[OwedReply]:
    return [_reply_from_row(ReplyRow(*row)) for row in rows]


def _reply_from_row(row: ReplyRow) -> OwedReply:
    problem = row.problem
    try:
        target, message = (
            _decode_json(_TARGET, row.reply_id, row.target),
            _decode_json(_MESSAGE, row.reply_id, row.content),
        )
    except StorageCorruptError as error:
        target, message = ReplyTarget(platform=row.platform, account=row.account), OutboundMessage()
        problem = str(error)
    return OwedReply(
        reply_id=row.reply_id,
        session_key=row.session_key,
        session_id=row.session_id,
        seq=row.seq,
        owner=row.owner,
        target=target,
        message=message,
        attempts=row.attempts,
        unclear=row.unclear,
        created_at=clamp_to_calendar(row.created_at),
        due_at=clamp_to_calendar(row.due_at),
        problem=problem,
        sent_by=row.sent_by,
    )


def _decode_json(decoder: msgspec.json.Decoder[T], reply_id: int, text: str | None) -> T:
    try:
        return decoder.decode(text or "")
    except DAMAGE as error:
        raise_damaged(f"reply {reply_id}", error)


_READ: Final = msgspec.json.Decoder(Growing)


def decode_growing(stored: str | None) -> Growing | None:
    """Return the growing reply of a turn; None if there is none, or it is damaged."""
    try:
        return None if stored is None else _READ.decode(stored)
    except DAMAGE:
        return None  # a damaged note must stop no turn: the reply is sent anew


def note_growing_statement(session_key: str, token: int, growing: Growing) -> Statement:
    """Return the statement that stores where the reply of a turn grows; the caller has checked the lease."""
    return Statement("note_growing", (_growing_as_json(growing), session_key, token))


def forget_growing(items: Iterable[QueuedItem]) -> Transaction[None]:
    """Forget the platform message in which a reply grew: later tries reply in a message of their own."""
    shown = [(one, growing) for one in items if (growing := decode_growing(one.growing)) is not None]
    ended = [(_growing_as_json(Growing(number=growing.number)), one.item_id) for one, growing in shown]
    if ended:
        yield Statement("grows_no_more", many=ended)


def unfinished_notices(session_key: str, items: Iterable[QueuedItem]) -> list[Owed]:
    """Return the notices that are owed in the place of replies which will not be completed."""
    found: list[Owed] = []
    for one in items:
        growing, message = decode_growing(one.growing), decode_message_or_none(session_key, one.payload)
        if growing is None or growing.message_id is None or message is None:
            continue
        said = notice_message(UNFINISHED, replaces=growing.message_id)
        target = ReplyTarget.answering(message)
        found.append(Owed(target=target, message=said, owner=one.owner, seq=one.seq))
    return found


def owe_unfinished_notices(
    session_key: str, items: Iterable[QueuedItem], change: Change
) -> Transaction[None]:
    """Owe notices in the place of replies which will not be completed, if any part of them was shown."""
    owed = unfinished_notices(session_key, items)
    if owed:
        yield from owe_replies(owed, None, session_key, change)


def owe_notices_of_waiting(session_key: str, change: Change) -> Transaction[None]:
    """Owe notices in the place of the unfinished replies of all turns that wait on a lane."""
    items = map(item_from_row, (yield Statement("waiting_half_answered", (session_key,))))
    yield from owe_unfinished_notices(session_key, items, change)


def _growing_as_json(growing: Growing) -> str:
    return msgspec.json.encode(growing).decode()
