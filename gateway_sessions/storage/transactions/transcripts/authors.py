"""Authors of messages, noted before a session changes its owner or a summary replaces messages.

A message without an author belongs to the owner of its session. So before a session gets another owner, the
old owner is written into each of its messages. A summary of messages of several people belongs to all of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from gateway_sessions.core.transcript.messages import SEVERAL_IDS, Message
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.column_decoding import decode_json
from gateway_sessions.storage.tables.message_rows import decode_messages
from gateway_sessions.storage.tables.sessions import stored_session
from gateway_sessions.storage.transactions.transcripts.messages import MessagePage, load_page

_NOBODY: Final = frozenset[str]()


class Authorship(NamedTuple):
    """The author and the lane of a message, and the people whose words it sums up."""

    author: str | None
    from_lane: str | None
    people: tuple[str, ...] | None


def note_authors(session_id: str, session_key: str | None, owner: str) -> Transaction[None]:
    """Write the owner and the lane into each message of a session that goes to another owner or lane."""
    session = yield from stored_session(session_id)
    if session is None:
        return
    was_key, was_owner = session.session_key, session.owner
    if was_owner != owner:
        yield Statement("say_whose", (was_owner, was_key, session_id))
    elif was_key is not None and was_key != session_key:
        yield Statement("say_where", (was_key, session_id))


def with_authors_of(session_id: str, messages: Sequence[Message]) -> Transaction[list[Message]]:
    """Return *messages*, which are to replace a session's conversation, with their authors.

    A message that was part of the conversation keeps its author. Any other message sums up the conversation,
    so it belongs to everybody who spoke there.
    """
    messages = yield from _with_platform_messages(session_id, messages)
    people = yield from _people_of(session_id)
    if not people:
        return list(messages)
    known: Mapping[str, Authorship] = {
        _content_key(one): Authorship(one.author, one.from_lane, one.people)
        for one in (yield from load_page(session_id, MessagePage(after_seq=0)))
    }
    everybody = Authorship(None, None, tuple(sorted(people)))
    return [_with_authorship(one, known.get(_content_key(one), everybody)) for one in messages]


def _with_platform_messages(session_id: str, messages: Sequence[Message]) -> Transaction[Sequence[Message]]:
    """Return the messages with the platform messages that the stored rows of the conversation name."""
    if not any(SEVERAL_IDS in one.extra and one.platform_messages is None for one in messages):
        return messages
    rows = decode_messages((yield Statement("rows_of_several", (session_id,))))
    known = {_content_key(one): one.platform_messages for one in rows}
    return [
        one.altered(platform_messages=known.get(_content_key(one)))
        if SEVERAL_IDS in one.extra and one.platform_messages is None
        else one
        for one in messages
    ]


def _people_of(session_id: str) -> Transaction[frozenset[str]]:
    """Return the people who spoke in a conversation, except the owner of its session."""
    rows = yield Statement("people_of_conversation", (session_id,))
    session = yield from stored_session(session_id)
    found = {author for author, _ in rows if author is not None}
    for _, people in rows:
        found |= set(decode_json(f"session {session_id!r}", people, tuple[str, ...]) if people else _NOBODY)
    return frozenset(found - {session.owner} if session is not None else found)


def _with_authorship(message: Message, whose: Authorship) -> Message:
    if message.author is not None or message.people is not None:
        return message
    return message.altered(author=whose.author, from_lane=whose.from_lane, people=whose.people)


def _content_key(message: Message) -> str:
    """Return the content of a message as a key by which the stored row is found."""
    said: tuple[Any, ...] = (str(message.role), message.content, message.tool_calls, message.tool_call_id)
    return msgspec.json.encode(said, enc_hook=repr).decode()
