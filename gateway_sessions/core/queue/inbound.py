"""`InboundMessage`: a message as an adapter submits it, and the transcript row that a turn makes of it.

It is stored as it came before anybody works on it, and enters the transcript with the turn that answers it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType, NoneType
from typing import Any, Final

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.checks import check_each, check_types
from gateway_sessions.core.identity.source import SessionSource, check_identifier
from gateway_sessions.core.queue.edits import PlatformMessage, Rewording, joined_content, joined_text, kept
from gateway_sessions.core.text import (
    REPLACEMENT,
    attributed,
    inline_name,
    record_text,
    shortened,
    storable_text,
    visible,
)
from gateway_sessions.core.transcript.messages import NO_EXTRA, SEVERAL_IDS, STEERED, Content, Message, Role
from gateway_sessions.errors import InvalidInputError

MAX_QUOTED: Final = 500
"""Characters of an earlier message that an answer to it quotes."""
SEPARATOR: Final = "\x1f"
"""Between the parts of an idempotency key; no identifier may hold it."""
NAME: Final = "name"
"""The extra member of a row that says what somebody is called."""
DASHES: Final = MappingProxyType({"\u2014": "--", "\u2013": "-"})
"""What keyboards make of the dashes that options begin with."""

_OPTION = re.compile("(?<!\\S)[\u2013\u2014](?=\\S)")


class MessageKind(StrEnum):
    """What a platform says happened."""

    NEW = "new"
    EDIT = "edit"
    DELETE = "delete"


class AttachmentKind(StrEnum):
    """What an attachment is to people."""

    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    STICKER = "sticker"
    LOCATION = "location"


class Attachment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that came with a message; where it lies, not what it holds."""

    kind: AttachmentKind
    url: str = ""
    media_type: str | None = None
    name: str | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        check_types("an attachment", self, _OF_ATTACHMENT)
        for name in ("url", "media_type", "name"):
            value = getattr(self, name)
            if value and (text := storable_text(value)) != value:
                force_setattr(self, name, text)


class ReplyTo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The earlier message that a person answered to."""

    message_id: str
    text: str | None = None
    author_id: str | None = None
    author_name: str | None = None
    own: bool = False
    """Whether the agent had said it."""

    def __post_init__(self) -> None:
        check_types("reply_to", self, _OF_REPLY_TO)


class InboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message as an adapter hands it over."""

    source: SessionSource
    text: str = ""
    message_id: str | None = None
    """Its id on the platform; without one, a message delivered twice is two messages."""
    account: str = ""
    """The adapter that brought it, where one platform has several; its source says the same."""
    kind: MessageKind = MessageKind.NEW
    revision: int = 0
    """The n-th edit of it, or any number that rises with them; 0: the platform does not count them."""
    sent_at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    reply_to: ReplyTo | None = None
    internal: bool = False
    """Said by the program and not by a person: it keeps no session alive."""
    metadata: Mapping[str, Any] = NO_EXTRA
    """What the adapter wants back with the turn."""
    speaker: str | None = None
    """Who a model is told has said it, if not the name on its platform; the store fills it in."""

    def __post_init__(self) -> None:
        if isinstance(self.attachments, list):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            msgspec.structs.force_setattr(self, "attachments", tuple(self.attachments))
        check_identifier("message_id", self.message_id)
        check_identifier("account", self.account)
        check_types("a message", self, _OF_MESSAGE)
        check_each("attachments", self.attachments, Attachment)
        if self.account != self.source.account:
            self._agree_on_account()
        if self.kind is not MessageKind.NEW and not self.message_id:
            problem = f"a message of kind {str(self.kind)!r} must name the message_id it changes"
            raise InvalidInputError(problem)
        if self.sent_at is not None and self.sent_at.tzinfo is None:
            problem = f"sent_at = {self.sent_at!r} does not say its time zone"
            raise InvalidInputError(problem)

    def _agree_on_account(self) -> None:
        """Let message and source say the same; adapters mostly name themselves in one of them only."""
        here, there = self.account, self.source.account
        if here and there:
            problem = f"a message of account {here!r} has a source that names account {there!r}: name one"
            raise InvalidInputError(problem)
        force_setattr(self, "account", here or there)
        if here:
            force_setattr(self, "source", replace(self.source, account=here))

    @property
    def sender(self) -> str:
        """Who said it, among those who write on one lane; empty: a room did not tell, it may be anybody."""
        alone = self.source.chat_id if self.source.chat_type == "dm" else ""
        return self.source.participant_id or alone

    @property
    def said_by(self) -> str | None:
        """What a model is told of who said it."""
        return self.speaker or self.source.user_name

    @property
    def idempotency_key(self) -> str | None:
        """The same for every delivery of one event of a platform; None if it cannot be told again."""
        if not self.message_id:
            return None
        what = str(self.kind) if self.kind is not MessageKind.EDIT else f"edit {self.revision}"
        source = self.source
        # Where there are no chats, each person or thread counts messages for itself.
        place = (source.chat_id,) if source.chat_id else ("", source.participant_id, source.thread_id)
        parts = (source.platform, self.account, self.message_id, what, *place)
        return SEPARATOR.join(part or "" for part in parts)

    @property
    def is_uncounted(self) -> bool:
        """Whether it is an edit to which the platform gave no number: two of these cannot be told apart."""
        return self.kind is MessageKind.EDIT and not self.revision

    @property
    def original_key(self) -> str:
        """The key of the message that an edit or a deletion changes."""
        original = msgspec.structs.replace(self, kind=MessageKind.NEW, revision=0)
        return original.idempotency_key or ""

    @property
    def command(self) -> str | None:
        """The name behind a leading slash, in lower case; None for a path, or without a slash."""
        if self.kind is not MessageKind.NEW or not self.text.startswith("/"):
            return None
        word = self.text.split(maxsplit=1)[0].removeprefix("/")
        name = word.partition("@")[0].lower()
        return name if name and "/" not in word else None

    @property
    def addressee(self) -> str | None:
        """The account that a command is for, if it names one: of `/stop@the_bot`, `the_bot`."""
        if self.command is None:
            return None
        return self.text.split(maxsplit=1)[0].partition("@")[2] or None

    @property
    def arguments(self) -> str:
        """What stands behind the name of a command, with the dashes of its options as they were meant."""
        if self.command is None:
            return ""
        _, *rest = self.text.split(maxsplit=1)
        return _OPTION.sub(lambda dash: DASHES[dash[0]], rest[0].strip()) if rest else ""

    def with_text(
        self, text: str, attachments: tuple[Attachment, ...], revision: int | None = None
    ) -> InboundMessage:
        """The same message with another content, that of the edit with that number."""
        number = self.revision if revision is None else revision
        return msgspec.structs.replace(self, text=text, attachments=attachments, revision=number)

    @property
    def has_media(self) -> bool:
        """Whether anything came with it."""
        return bool(self.attachments)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all: characters that nobody sees say nothing."""
        said = self.text.strip()
        # Most begin with what is seen; then nobody looks through all of a long one.
        return not self.attachments and not (said and (visible(said[0]) or visible(said)))


def turn_text(messages: Sequence[InboundMessage]) -> str:
    """What the messages of one turn say together. A caption that only repeats one of them is left out."""
    if len(messages) == 1:
        return messages[0].text.strip()
    return joined_text((message.text, message.has_media) for message in messages)


def turn_content(messages: Sequence[InboundMessage]) -> Content:
    """The content of the user's row for these messages: text, or parts where something came with it."""
    text = turn_text(messages)
    attached = [one for message in messages if message.attachments for one in _attached(message)]
    return joined_content(text, attached) if attached else text


def rewording_of(message: InboundMessage) -> Rewording:
    """What an edit or a deletion does to the message that it names."""
    deletes = message.kind is MessageKind.DELETE
    content = None if deletes else turn_content([message])
    name, revision = message.message_id or "", message.revision
    return Rewording(message_id=name, content=content, deletes=deletes, revision=revision)


def user_row(messages: Sequence[InboundMessage], *, steered: bool = False, shared: bool = False) -> Message:
    """The row of the transcript that the messages of one turn become: one, however many they are.

    A model is told besides what a message answers to and, on a lane that people share, who said it.
    """
    first = messages[0]
    content = turn_content(messages)
    ids = [one.message_id for one in messages if one.message_id]
    extra: dict[str, Any] = {}
    if len(ids) > 1:
        extra[SEVERAL_IDS] = ids
    if first.said_by:
        extra[NAME] = first.said_by
    if steered:
        extra[STEERED] = True
    return Message(
        str(Role.USER),
        content,
        sent_at=first.sent_at,
        platform_message_id=ids[0] if ids else None,
        api_content=_for_a_model(messages, content, shared=shared),
        platform_messages=kept(list(map(_platform_message, messages)))
        if len(messages) > 1 or first.revision
        else None,
        extra=extra or NO_EXTRA,
    )


def _platform_message(message: InboundMessage) -> PlatformMessage:
    """What the row of a message keeps of it."""
    answered = message.reply_to
    return PlatformMessage(
        id=message.message_id,
        sender=message.sender,
        text=message.text,
        attachments=_attached(message),
        quoted=_quoted(answered) if answered is not None and answered.text else None,
        revision=message.revision,
    )


def _attached(message: InboundMessage) -> list[Any]:
    """What came with a message, as a content has it."""
    return [{"type": "attachment", **msgspec.to_builtins(one)} for one in message.attachments]


def _for_a_model(messages: Sequence[InboundMessage], content: Content, *, shared: bool) -> Content:
    """The content as a model gets it; None if that is the content itself."""
    answered = next((one.reply_to for one in messages if one.reply_to and one.reply_to.text), None)
    if answered is None and not shared:
        return None
    said = turn_text(messages)
    text = attributed(messages[0].said_by, said) if shared else said
    if answered is not None:
        text = f"{_quoted(answered)}\n\n{text}".rstrip()
    if not isinstance(content, list):
        return text
    parts: list[Any] = content[1:] if said else content
    return [{"type": "text", "text": text}, *parts]


def message_id_in(idempotency_key: str | None) -> str | None:
    """The id on its platform of the message that has this key; None without one."""
    return None if idempotency_key is None else idempotency_key.split(SEPARATOR)[2]


def _quoted(answered: ReplyTo) -> str:
    """What a message answers to, each line marked, so that it cannot be taken for the message."""
    who = "you said" if answered.own else f"{inline_name(answered.author_name)} said"
    lines = shortened(answered.text or "", MAX_QUOTED).splitlines()
    return "\n".join([f"[In reply to what {who}:]", *(f"> {line}" for line in lines)])


def stored_form(message: InboundMessage) -> str:
    """The message as text that every database can hold; `InvalidInputError` for what none can."""
    return record_text("message", message, message.metadata)


def as_stored(message: InboundMessage, stored: str) -> InboundMessage:
    """The message as it is read again from what was stored of it."""
    free_form = message.metadata or message.source.extra
    return _READ.decode(stored) if free_form or REPLACEMENT in stored else message


def says_the_same(said: InboundMessage, stored: InboundMessage) -> bool:
    """Whether what is stored of a message is what somebody said: else it was edited."""
    kept = as_stored(said, stored_form(said))
    return (kept.text, kept.attachments) == (stored.text, stored.attachments)


_READ: Final = msgspec.json.Decoder(InboundMessage)

_TEXT: Final = (str,)
_PERHAPS_TEXT: Final = (str, NoneType)
_OF_ATTACHMENT: Final = MappingProxyType(
    {
        "kind": (AttachmentKind,),
        "url": _TEXT,
        "media_type": _PERHAPS_TEXT,
        "name": _PERHAPS_TEXT,
        "size": (int, NoneType),
    }
)
_OF_REPLY_TO: Final = MappingProxyType(
    {
        "message_id": _TEXT,
        "text": _PERHAPS_TEXT,
        "author_id": _PERHAPS_TEXT,
        "author_name": _PERHAPS_TEXT,
        "own": (bool,),
    }
)
_OF_MESSAGE: Final = MappingProxyType(
    {
        "source": (SessionSource,),
        "text": _TEXT,
        "message_id": _PERHAPS_TEXT,
        "account": _PERHAPS_TEXT,
        "kind": (MessageKind,),
        "revision": (int,),
        "sent_at": (datetime, NoneType),
        "attachments": (tuple,),
        "reply_to": (ReplyTo, NoneType),
        "internal": (bool,),
        "metadata": (Mapping,),
        "speaker": _PERHAPS_TEXT,
    }
)
