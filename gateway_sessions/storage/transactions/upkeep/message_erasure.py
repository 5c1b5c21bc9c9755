"""Erase the messages of a person in sessions of other owners, session by session.

A session that loses messages keeps all others, numbered without gaps. Its title is removed if it was made
from messages, or given while the session was the person's. Its prompt is removed because it may name the
person.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from gateway_sessions.core.export.session_members import message_members
from gateway_sessions.core.identity.keys import is_room_owner
from gateway_sessions.core.queue.state_machine import ReplyEvent
from gateway_sessions.core.transcript.messages import Message
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.tables.message_rows import decode_messages
from gateway_sessions.storage.tables.sessions import stored_session
from gateway_sessions.storage.tables.sql_files import row_of
from gateway_sessions.storage.tables.statements import move_statement
from gateway_sessions.storage.transactions.transcripts import rewrite
from gateway_sessions.storage.transactions.transcripts.messages import EVERYTHING
from gateway_sessions.storage.transactions.transfer.import_session import read_note, with_note, without_note

FORGOTTEN: Final = "not known any more: it may have repeated what somebody said who was erased"
"""The text that takes the place of a problem."""


class MessagesOfPerson(NamedTuple):
    """The messages of a person up to the beginning of an erasure."""

    owner: str
    last_message_id: int = EVERYTHING
    sent_until: int = EVERYTHING
    """A message is erased if either bound covers it: the clock of its platform may be ahead of ours."""

    @property
    def params(self) -> tuple[str | int, ...]:
        """Return the parameters of the statements that look for the messages."""
        return (self.owner, json.dumps(self.owner, ensure_ascii=False), self.last_message_id, self.sent_until)


@row_of("titles_given_by")
class GivenTitle(NamedTuple):
    """A session of somebody else that a person gave its title."""

    session_id: str
    source: str
    title: str


def sessions_with(said: MessagesOfPerson, after: str, limit: int) -> Transaction[list[tuple[str, str]]]:
    """Return other owners' sessions with messages of the person, behind an id, each with its platform."""
    rows = yield Statement("sessions_with_words_of", (*said.params, said.owner, after, limit))
    return [(session_id, platform) for session_id, platform in rows]


def count_messages_of(said: MessagesOfPerson) -> Transaction[int]:
    """Return the number of the person's messages in sessions of other owners."""
    ((count,),) = yield Statement("count_words_in_sessions_of_others", (*said.params, said.owner))
    return int(count)


def export_messages_of(
    said: MessagesOfPerson, session_id: str, platform: str
) -> Transaction[dict[str, Any] | None]:
    """Return the person's messages in another owner's session; None if there are only summaries.

    A summary is left out because it also tells what others said.
    """
    found = [one for one in (yield from _load_messages(said, session_id)) if one.author == said.owner]
    if not found:
        return None
    messages: list[dict[str, Any]] = []
    for one in found:
        versions = (yield from rewrite.load_versions(session_id, one.message_id)) if one.edited_at else []
        messages.append(message_members(one, None, [(old.content, old.replaced_at) for old in versions]))
    return {"said_in": session_id, "platform": platform, "messages": messages}


def erase_some(said: MessagesOfPerson, ids: Iterator[int]) -> Transaction[Counter[str]]:
    """Erase the person's messages in one session of another owner; an empty count: none is left."""
    sessions = yield from sessions_with(said, "", 1)
    if not sessions:
        return Counter()
    ((session_id, _),) = sessions
    found = yield from _load_messages(said, session_id)
    gone = {one.message_id for one in found} | (yield from _answers_to_others(said, session_id, found))
    yield from remove_messages_and_title(session_id, gone, ids, title_owner=said.owner)
    return Counter(messages=len(gone))


def _answers_to_others(
    said: MessagesOfPerson, session_id: str, found: Sequence[Message]
) -> Transaction[set[int]]:
    """Return agents' messages behind messages that came from another lane, because they may repeat these.

    In a room, an agent's answers to the people who write there belong to everybody and stay.
    """
    session = yield from stored_session(session_id)
    if session is None:
        return set()
    from_elsewhere = [
        one.seq
        for one in found
        if one.from_lane != session.session_key
        and not (one.from_lane is None and is_room_owner(session.owner))
    ]
    if not from_elsewhere:
        return set()
    until = (session_id, said.sent_until)
    yield move_statement("forget_replies_of_session", ReplyEvent.ERASED, params=until)
    if session.session_key is not None:
        yield Statement("forget_problems_of_lane", (FORGOTTEN, session.session_key, said.sent_until))
    answers = yield Statement(
        "answers_behind", (session_id, min(from_elsewhere), said.last_message_id, said.sent_until)
    )
    return {message_id for (message_id,) in answers}


def remove_messages_and_title(
    session_id: str, message_ids: Collection[int], ids: Iterator[int], *, title_owner: str
) -> Transaction[None]:
    """Remove messages of a session, and its title, prompt and extra title if they may repeat them."""
    yield from rewrite.remove_messages(session_id, message_ids, ids)
    yield Statement("forget_title_of_words", (title_owner, session_id))
    yield Statement("set_system_prompt", (None, session_id))
    rows = yield Statement("extra_of_session", (session_id,))
    for (extra,) in rows:
        if extra is not None and (left := _without_title(extra)) != extra:
            yield Statement("set_extra_of_session", (left, session_id))


def forget_titles(owner: str) -> Transaction[Counter[str]]:
    """Remove the titles that other owners' sessions got while they were the person's."""
    ((changed,),) = yield Statement("forget_titles_of_owner", (owner, owner))
    return Counter(titles=changed)


def titles_given_by(owner: str, after: str, limit: int) -> Transaction[list[dict[str, Any]]]:
    """Return the titles that a person gave to other owners' sessions, behind an id."""
    rows = yield Statement("titles_given_by", (owner, owner, after, limit))
    return [
        {"titled": one.session_id, "platform": one.source, "title": one.title}
        for one in map(GivenTitle._make, rows)
    ]


def _load_messages(said: MessagesOfPerson, session_id: str) -> Transaction[list[Message]]:
    return decode_messages((yield Statement("words_in_session", (session_id, *said.params))))


def _without_title(extra: str) -> str | None:
    """Return the `extra` of a session without the title that an imported file had."""
    note = read_note(extra)
    if "title" not in note:
        return extra
    return with_note(without_note(extra), {name: value for name, value in note.items() if name != "title"})
