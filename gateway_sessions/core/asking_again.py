"""What people said in a turn, as messages that ask for it once more.

Each is the message that it was: it keeps its id, so that an edit or a deletion finds it, and who said it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gateway_sessions.core.commands import attachments_in
from gateway_sessions.core.inbound import NAME, InboundMessage
from gateway_sessions.core.keys import is_room, participant_in
from gateway_sessions.core.messages import Message, Role
from gateway_sessions.core.platform_messages import PlatformMessage, messages_of
from gateway_sessions.core.session import SessionEntry


def asked_again(rows: Iterable[Message], asked: InboundMessage, entry: SessionEntry) -> list[InboundMessage]:
    """Return what people said in these rows of a session, which *asked* wants to be answered once more."""
    found = [
        _message(one, row, asked, entry)
        for row in rows
        if row.role == Role.USER and not row.observed
        for one in _said_in(row)
    ]
    return [one for one in found if not one.is_empty]


def _said_in(row: Message) -> list[PlatformMessage]:
    """The messages of a row; one without an id if they cannot be told apart."""
    known = [one for one in messages_of(row) or () if not one.deleted]
    if known:
        return known
    parts = row.content if isinstance(row.content, list) else []
    return [PlatformMessage(text=row.text.strip(), attachments=parts)]


def _message(
    one: PlatformMessage, row: Message, asked: InboundMessage, entry: SessionEntry
) -> InboundMessage:
    # Ids of another chat say nothing here: two chats may have messages of the same id.
    is_from_here = row.from_lane in (None, entry.session_key)
    source = asked.source
    if is_room(entry.owner):
        source = replace(
            source,
            user_id=participant_in(row.author) if row.author is not None else None,
            user_id_alt=None,
            user_name=row.extra.get(NAME),
        )
    return InboundMessage(
        source=source,
        account=asked.account,
        text=one.text,
        attachments=attachments_in(one.attachments),
        message_id=one.id if is_from_here else None,
        revision=one.revision,
        metadata=asked.metadata,
        speaker=row.extra.get(NAME),
    )
