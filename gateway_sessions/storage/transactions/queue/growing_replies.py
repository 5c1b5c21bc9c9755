"""The platform message in which a reply grows, stored so that the next try continues or closes it.

It is stored with the message that leads the turn. Once no try can complete the reply there any more, the
people are owed a notice in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from gateway_sessions.core.delivery.outbound_messages import Growing, OutboundMessage, ReplyTarget
from gateway_sessions.core.notices.notice_texts import UNFINISHED
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.column_decoding import DAMAGE
from gateway_sessions.storage.tables.inbox import InboxItem, inbox_item, readable
from gateway_sessions.storage.transactions.queue.outbox import Owed, owe

_READ: Final = msgspec.json.Decoder(Growing)


def growing_in(stored: str | None) -> Growing | None:
    """Return the growing reply of a turn; None if there is none, or it is damaged."""
    try:
        return None if stored is None else _READ.decode(stored)
    except DAMAGE:
        return None  # a damaged note must stop no turn: the reply is sent anew


def noting(session_key: str, token: int, growing: Growing) -> Statement:
    """Return the statement that stores where the reply of a turn grows; the caller has checked the lease."""
    return Statement("note_growing", (_stored(growing), session_key, token))


def grow_no_more(items: Iterable[InboxItem]) -> Transaction[None]:
    """Forget the platform message in which a reply grew: later tries reply in a message of their own."""
    shown = [(one, growing) for one in items if (growing := growing_in(one.growing)) is not None]
    ended = [(_stored(Growing(number=growing.number)), one.item_id) for one, growing in shown]
    if ended:
        yield Statement("grows_no_more", many=ended)


def left_unfinished(session_key: str, items: Iterable[InboxItem]) -> list[Owed]:
    """Return the notices that are owed in the place of replies which will not be completed."""
    found: list[Owed] = []
    for one in items:
        growing, message = growing_in(one.growing), readable(session_key, one.payload)
        if growing is None or growing.message_id is None or message is None:
            continue
        said = OutboundMessage(text=UNFINISHED, is_notice=True, replaces=growing.message_id)
        target = ReplyTarget.answering(message)
        found.append(Owed(target=target, message=said, owner=one.owner, seq=one.seq))
    return found


def owe_unfinished(session_key: str, items: Iterable[InboxItem], change: Change) -> Transaction[None]:
    """Owe notices in the place of replies which will not be completed, if any part of them was shown."""
    owed = left_unfinished(session_key, items)
    if owed:
        yield from owe(owed, None, session_key, change)


def owe_unfinished_waiting(session_key: str, change: Change) -> Transaction[None]:
    """Owe notices in the place of the unfinished replies of all turns that wait on a lane."""
    items = map(inbox_item, (yield Statement("waiting_half_answered", (session_key,))))
    yield from owe_unfinished(session_key, items, change)


def _stored(growing: Growing) -> str:
    return msgspec.json.encode(growing).decode()
