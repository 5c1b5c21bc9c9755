"""The platform message in which a reply grows, stored so that the next try continues or closes it.

Which one it is stands with the message that leads the turn. Once no reply can come to its end there any more,
people are owed a word in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from gateway_sessions.core.delivery.outbound import Growing, OutboundMessage, ReplyTarget
from gateway_sessions.core.notices.notice_texts import UNFINISHED
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.change import Change
from gateway_sessions.storage.tables.columns import DAMAGE
from gateway_sessions.storage.tables.inbox import InboxItem, inbox_item, readable
from gateway_sessions.storage.transactions.queue.outbox import Owed, owe

_READ: Final = msgspec.json.Decoder(Growing)


def growing_in(stored: str | None) -> Growing | None:
    """Return what is known of the growing reply of a turn; None if nothing is, or it is damaged."""
    try:
        return None if stored is None else _READ.decode(stored)
    except DAMAGE:
        return None  # a reply that is sent anew stops nothing


def noting(session_key: str, token: int, growing: Growing) -> Statement:
    """Write down which message the reply of a turn grows in that is known to have its lane."""
    return Statement("note_growing", (_stored(growing), session_key, token))


def grow_no_more(items: Iterable[InboxItem]) -> Transaction[None]:
    """Let no later try of a turn go on in what was shown: it stands above what is said next."""
    shown = [(one, growing) for one in items if (growing := growing_in(one.growing)) is not None]
    ended = [(_stored(Growing(number=growing.number)), one.item_id) for one, growing in shown]
    if ended:
        yield Statement("grows_no_more", many=ended)


def left_unfinished(session_key: str, items: Iterable[InboxItem]) -> list[Owed]:
    """Return what people are owed in the place of replies that will not come to their end."""
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
    """Owe people a word in the place of replies that will not come to their end, if anything was shown."""
    owed = left_unfinished(session_key, items)
    if owed:
        yield from owe(owed, None, session_key, change)


def owe_unfinished_waiting(session_key: str, change: Change) -> Transaction[None]:
    """Do so for all replies of turns that wait on a lane."""
    items = map(inbox_item, (yield Statement("waiting_half_answered", (session_key,))))
    yield from owe_unfinished(session_key, items, change)


def _stored(growing: Growing) -> str:
    return msgspec.json.encode(growing).decode()
