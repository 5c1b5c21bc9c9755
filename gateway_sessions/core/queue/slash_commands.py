"""Arguments of slash commands, and the messages of a turn that `/retry` asks again.

A message that is asked again keeps its id and its author, so that later edits and deletions find it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

import msgspec

from gateway_sessions.core.display_text import shorten_text
from gateway_sessions.core.identity.keys import is_room_owner, participant_id_of
from gateway_sessions.core.queue.edits import PlatformMessage, messages_of
from gateway_sessions.core.queue.inbound import NAME, Attachment, InboundMessage
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.titles import normalize_title
from gateway_sessions.core.transcript.messages import Content, Message, Role
from gateway_sessions.errors import InvalidInputError

MOST_TURNS: Final = 100
"""The number of turns that one `/undo` may take back: a larger number is more likely a typing error."""
DEFAULT_MODEL: Final = "default"
"""The name by which people ask for the model of the configuration."""
MAX_MODEL: Final = 200
"""The longest name of a model, in characters."""
MAX_SHOWN: Final = 80
"""The number of characters that a reply quotes of a person's text: about one line on a phone."""

_NAME = re.compile(r"[^\W_][\w-]{0,31}")
_WRAPPED: Final = (("<", ">"), ("[", "]"), ('"', '"'), ("'", "'"))
_CANCEL = re.compile(r"cancel\s+#?(\d{1,15})", re.IGNORECASE)
_MOVE = re.compile(r"move\s+#?(\d{1,15})\s+(?:to\s+)?#?(\d{1,9})", re.IGNORECASE)


def check_command_name(name: str) -> str:
    """Return the name of a command, or raise `InvalidInputError` for a name that nobody could type."""
    if _NAME.fullmatch(name) and name == name.lower():
        return name
    problem = f"a command cannot be called {name!r}: up to 32 lower-case letters, digits, - and _"
    raise InvalidInputError(problem)


def spelled_with_underscores(text: str, names: Iterable[str]) -> str:
    """Return a text in which the named commands are spelled with underscores, so that people can tap them.

    Many platforms end a command at a hyphen, so that `/undo-reset` would be tapped as `/undo`.
    """
    for name in names:
        if "-" in name:
            text = re.sub(rf"(?<![\w/-])/{re.escape(name)}(?![\w-])", f"/{name.replace('-', '_')}", text)
    return text


# /queue


class QueueAction(Enum):
    """The action on the queue that a person asks for with `/queue`."""

    ADD = auto()
    LIST = auto()
    CANCEL = auto()
    MOVE = auto()
    CLEAR = auto()


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """The action that `/queue` asks for, and its numbers."""

    wish: QueueAction
    seq: int = 0
    """The place of the message to cancel or to move."""
    place: int = 0
    """The new position in the queue, from 1."""


def parse_queue_request(arguments: str) -> QueueRequest:
    """Return the action that the arguments of `/queue` ask for; any other text is to be queued."""
    stripped = arguments.strip()
    if stripped.lower() in ("", "list"):
        return QueueRequest(QueueAction.LIST)
    if stripped.lower() == "clear":
        return QueueRequest(QueueAction.CLEAR)
    if cancel := _CANCEL.fullmatch(stripped):
        return QueueRequest(QueueAction.CANCEL, int(cancel[1]))
    if move := _MOVE.fullmatch(stripped):
        return QueueRequest(QueueAction.MOVE, int(move[1]), int(move[2]))
    return QueueRequest(QueueAction.ADD)


def message_to_queue(message: InboundMessage) -> InboundMessage | None:
    """Return the message that `/queue` adds; None if the command adds none."""
    adds = parse_queue_request(message.arguments).wish is QueueAction.ADD
    if not adds and not message.attachments:
        return None
    _, *rest = message.text.split(maxsplit=1)
    return message.with_text(rest[0].strip() if rest else "", message.attachments)


# Other arguments


def strip_brackets(text: str) -> str:
    """Return the text without brackets or quotation marks around it: people copy them from help texts."""
    stripped = text.strip()
    for opening, closing in _WRAPPED:
        if len(stripped) > 1 and stripped.startswith(opening) and stripped.endswith(closing):
            return stripped[1:-1].strip()
    return stripped


def parse_turn_count(arguments: str) -> int | None:
    """Return the number of turns to take back: 1 without an argument; None for what is no such number."""
    number = strip_brackets(arguments)
    if not number:
        return 1
    if number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= MOST_TURNS:
        return int(number)
    return None


def parse_model_name(arguments: str) -> str | None:
    """Return the model that a person asks for, `DEFAULT_MODEL` among them; None for what names no model."""
    name = strip_brackets(arguments)
    if name.lower() in (DEFAULT_MODEL, "none", "auto"):
        return DEFAULT_MODEL
    is_name = bool(name) and name == normalize_title(name) and " " not in name and len(name) <= MAX_MODEL
    return name if is_name else None


def texts_and_attachments_in(rows: Iterable[Message]) -> tuple[str, tuple[Attachment, ...]]:
    """Return the joined text and the attachments of a person's messages in a turn."""
    texts: list[str] = []
    attachments: list[Attachment] = []
    for row in rows:
        if row.role == Role.USER and not row.observed:
            texts.append(row.text.strip())
            attachments += attachments_in(row.content)
    return "\n".join(filter(None, texts)), tuple(attachments)


def attachments_in(content: Content) -> tuple[Attachment, ...]:
    """Return the attachments among the parts of a content."""
    parts = content if isinstance(content, list) else []
    found: list[Attachment] = []
    for part in parts:
        match part:
            case {"type": "attachment", **members}:
                found.append(msgspec.convert(members, Attachment))
            case _:
                pass
    return tuple(found)


# What is shown of a person's text


def shown_part(text: str, limit: int = MAX_SHOWN) -> str:
    """Return the beginning of a text on one line."""
    return shorten_text(normalize_title(text), limit)


def shown_in_quotes(text: str, limit: int = MAX_SHOWN) -> str:
    """Return the beginning of a text on one line, in quotation marks."""
    return f"“{shown_part(text, limit)}”"


def retried_messages(
    rows: Iterable[Message], asked: InboundMessage, entry: SessionEntry
) -> list[InboundMessage]:
    """Return the messages of people in these rows, as messages that *asked* submits once more."""
    found = [
        _retried_message(message, row, asked, entry)
        for row in rows
        if row.role == Role.USER and not row.observed
        for message in _messages_in(row)
    ]
    return [one for one in found if not one.is_empty]


def _messages_in(row: Message) -> list[PlatformMessage]:
    """Return the messages of a row; one message without an id if they cannot be told apart."""
    known = [one for one in messages_of(row) or () if not one.deleted]
    if known:
        return known
    parts = row.content if isinstance(row.content, list) else []
    return [PlatformMessage(text=row.text.strip(), attachments=parts)]


def _retried_message(
    message: PlatformMessage, row: Message, asked: InboundMessage, entry: SessionEntry
) -> InboundMessage:
    # Ids of another chat are dropped: two chats may have messages of the same id.
    is_from_here = row.from_lane in (None, entry.session_key)
    source = asked.source
    if is_room_owner(entry.owner):
        source = replace(
            source,
            user_id=participant_id_of(row.author) if row.author is not None else None,
            user_id_alt=None,
            user_name=row.extra.get(NAME),
        )
    return InboundMessage(
        source=source,
        account=asked.account,
        text=message.text,
        attachments=attachments_in(message.attachments),
        message_id=message.id if is_from_here else None,
        revision=message.revision,
        metadata=asked.metadata,
        speaker=row.extra.get(NAME),
    )
