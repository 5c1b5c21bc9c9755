"""Arguments of slash commands, and the messages of a turn that `/retry` asks again.

What people type behind a slash: what they mean by it, and how they are told what went wrong.

What people said in a turn, as messages that ask for it once more.

Each is the message that it was: it keeps its id, so that an edit or a deletion finds it, and who said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

import msgspec

from gateway_sessions.core.identity.keys import is_room, participant_in
from gateway_sessions.core.queue.edits import PlatformMessage, messages_of
from gateway_sessions.core.queue.inbound import NAME, Attachment, InboundMessage
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.titles import one_line
from gateway_sessions.core.text import shortened
from gateway_sessions.core.transcript.messages import Content, Message, Role
from gateway_sessions.errors import (
    AmbiguousSessionError,
    GatewaySessionsError,
    InvalidInputError,
    InvalidTitleError,
    NothingToUndoError,
    SessionBusyError,
    SessionEndedError,
    SessionNotFoundError,
    StorageError,
    TitleTakenError,
)

MOST_TURNS: Final = 100
"""So many turns at most are taken back in one go."""
MAX_MODEL: Final = 200
MAX_SHOWN: Final = 80
"""So much is shown of what somebody said."""

_NAME = re.compile(r"[^\W_][\w-]{0,31}")
_WRAPPED: Final = (("<", ">"), ("[", "]"), ('"', '"'), ("'", "'"))
_CANCEL = re.compile(r"cancel\s+#?(\d{1,15})", re.IGNORECASE)
_MOVE = re.compile(r"move\s+#?(\d{1,15})\s+(?:to\s+)?#?(\d{1,9})", re.IGNORECASE)


def check_command_name(name: str) -> str:
    """Return the name of a command, or raise `InvalidInputError` for what nobody could type as one."""
    if _NAME.fullmatch(name) and name == name.lower():
        return name
    problem = f"a command cannot be called {name!r}: up to 32 lower-case letters, digits, - and _"
    raise InvalidInputError(problem)


def spelled_with_underscores(text: str, names: Iterable[str]) -> str:
    """Return a text in which the commands of these names are written so that people can tap them anywhere.

    Many platforms end a command at a hyphen, so that `/undo-reset` would be tapped as `/undo`.
    """
    for name in names:
        if "-" in name:
            text = re.sub(rf"(?<![\w/-])/{re.escape(name)}(?![\w-])", f"/{name.replace('-', '_')}", text)
    return text


# /queue


class QueueWish(Enum):
    """What somebody wants of the queue."""

    ADD = auto()
    LIST = auto()
    CANCEL = auto()
    MOVE = auto()
    CLEAR = auto()


@dataclass(frozen=True, slots=True)
class QueueAsked:
    """A wish, and the numbers that came with it."""

    wish: QueueWish
    seq: int = 0
    place: int = 0


def queue_asked(arguments: str) -> QueueAsked:
    """What somebody means behind /queue. Whatever is not exactly a word of the command is to be queued."""
    said = arguments.strip()
    if said.lower() in ("", "list"):
        return QueueAsked(QueueWish.LIST)
    if said.lower() == "clear":
        return QueueAsked(QueueWish.CLEAR)
    if cancel := _CANCEL.fullmatch(said):
        return QueueAsked(QueueWish.CANCEL, int(cancel[1]))
    if move := _MOVE.fullmatch(said):
        return QueueAsked(QueueWish.MOVE, int(move[1]), int(move[2]))
    return QueueAsked(QueueWish.ADD)


def to_be_queued(message: InboundMessage) -> InboundMessage | None:
    """The message that /queue brings; None if it brings none."""
    adds = queue_asked(message.arguments).wish is QueueWish.ADD
    if not adds and not message.attachments:
        return None
    _, *rest = message.text.split(maxsplit=1)
    return message.with_text(rest[0].strip() if rest else "", message.attachments)


# Other arguments


def unwrapped(text: str) -> str:
    """The text without brackets or quotation marks around it, as help texts and people put them there."""
    said = text.strip()
    for opening, closing in _WRAPPED:
        if len(said) > 1 and said.startswith(opening) and said.endswith(closing):
            return said[1:-1].strip()
    return said


def turns_asked(arguments: str) -> int:
    """How many turns to take back: one, if nothing is said."""
    said = unwrapped(arguments)
    if not said:
        return 1
    if said.isascii() and said.isdigit() and 1 <= int(said[:9]) <= MOST_TURNS:
        return int(said)
    problem = f"give a number of turns from 1 to {MOST_TURNS}"
    raise InvalidInputError(problem)


def model_asked(arguments: str) -> str | None:
    """The name of a model; None for the default one."""
    name = unwrapped(arguments)
    if name.lower() in ("default", "none", "auto"):
        return None
    if not name or name != one_line(name) or " " in name or len(name) > MAX_MODEL:
        problem = f"give the name of a model: one word of up to {MAX_MODEL} characters, or default"
        raise InvalidInputError(problem)
    return name


def said_in(rows: Iterable[Message]) -> tuple[str, tuple[Attachment, ...]]:
    """What a person said in a turn and what came with it, as one message says it."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for row in rows:
        if row.role == Role.USER and not row.observed:
            texts.append(row.text.strip())
            attachments += attachments_in(row.content)
    return "\n".join(filter(None, texts)), tuple(attachments)


def attachments_in(content: Content) -> tuple[Attachment, ...]:
    """What came with a message, out of its content."""
    parts = content if isinstance(content, list) else []
    found: list[Attachment] = []
    for part in parts:
        match part:
            case {"type": "attachment", **members}:
                found.append(msgspec.convert(members, Attachment))
            case _:
                pass
    return tuple(found)


# What went wrong


def sentence_for(error: GatewaySessionsError) -> str:
    """What a person is told who asked for something that could not be done."""
    match error:
        case AmbiguousSessionError():
            lines = [f"- {one.session_id} ({one.title or 'no title'})" for one in error.candidates]
            return "\n".join([f"{quoted(error.text)} could be any of these; give the whole id:", *lines])
        case SessionNotFoundError():
            return f"I know no conversation of yours by {quoted(error.session_id)}. /resume lists them."
        case TitleTakenError():
            return f"Another conversation is called {quoted(error.title)} already; choose another title."
        case InvalidTitleError():
            return f"The title must have 1 to {error.limit} characters, and that one has {error.length}."
        case InvalidInputError():
            return _sentence(str(error))
        case _:
            plain = next((text for kind, text in _PLAIN.items() if isinstance(error, kind)), None)
            return plain or f"That did not work: {_sentence(str(error))}"


_PLAIN: Final[Mapping[type[GatewaySessionsError], str]] = MappingProxyType(
    {
        SessionBusyError: "I am in the middle of something there. /stop ends it; then try again.",
        NothingToUndoError: "There is nothing to undo.",
        SessionEndedError: "That conversation has ended meanwhile; nothing was changed.",
        StorageError: "I cannot reach my memory right now. Please try again in a moment.",
    }
)


def quoted(text: str, limit: int = MAX_SHOWN) -> str:
    """How a text begins, on one line and in quotation marks."""
    return f"“{shortened(one_line(text), limit)}”"


def _sentence(text: str) -> str:
    said = text.strip() or "nobody knows why"
    return f"{said[0].upper()}{said[1:]}{'' if said[-1] in '.!?:' else '.'}"


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
