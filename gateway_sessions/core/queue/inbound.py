"""`InboundMessage`: a message as an adapter submits it, its receipt, and the transcript row made of it.

The message is stored unchanged before a turn works on it, and enters the transcript with that turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType, NoneType
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from gateway_sessions.core.checks import check_items, field_types
from gateway_sessions.core.display_text import inline_name, prefix_with_name, shorten_text, visible_text
from gateway_sessions.core.identity.keys import NO_ALIASES, Isolation, canonical_participant
from gateway_sessions.core.identity.pseudonyms import Pseudonyms, can_hide_ids
from gateway_sessions.core.identity.source import SessionSource, check_identifier
from gateway_sessions.core.queue.edits import (
    PlatformMessage,
    Rewording,
    joined_content,
    joined_text,
    messages_to_keep,
)
from gateway_sessions.core.storable_text import REPLACEMENT, record_as_json, storable_text
from gateway_sessions.core.transcript.messages import NO_EXTRA, SEVERAL_IDS, STEERED, Content, Message, Role
from gateway_sessions.errors import InvalidInputError

MAX_QUOTED: Final = 500
"""The number of characters that an answer quotes of the earlier message: enough to recognise it in a prompt.
"""
SEPARATOR: Final = "\x1f"
"""The character between the parts of an idempotency key; no identifier may hold it."""
OWN_IDS: Final = "gateway:"
"""The beginning of ids of messages that the gateway makes itself: no platform knows them."""
NAME: Final = "name"
"""The extra member of a transcript row that holds the speaker's name."""
ACTION: Final = "action"
"""The extra member of a transcript row that holds the value of the pressed button."""
DASHES: Final = MappingProxyType({"\u2014": "--", "\u2013": "-"})
"""The dashes that keyboards put in place of the hyphens before an option."""

_OPTION = re.compile("(?<!\\S)[\u2013\u2014](?=\\S)")


class MessageKind(StrEnum):
    """The event on the platform that the message reports."""

    NEW = "new"
    EDIT = "edit"
    DELETE = "delete"


class AttachmentKind(StrEnum):
    """The kind of an attachment, as people see it."""

    PHOTO = "photo"
    VIDEO = "video"
    AUDIO = "audio"
    VOICE = "voice"
    DOCUMENT = "document"
    STICKER = "sticker"
    LOCATION = "location"


class Attachment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that came with a message: its address, not its content."""

    kind: AttachmentKind
    """The kind of the attachment, such as a photo or a voice message."""
    url: str = ""
    media_type: str | None = None
    name: str | None = None
    size: int | None = None
    """The size in bytes, if the platform tells it."""

    def __post_init__(self) -> None:
        _OF_ATTACHMENT.check("an attachment", self)
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
    """Whether the agent wrote that message."""

    def __post_init__(self) -> None:
        _OF_REPLY_TO.check("reply_to", self)


class InboundMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message as an adapter submits it."""

    source: SessionSource
    """The origin: platform, chat, person and thread."""
    text: str = ""
    message_id: str | None = None
    """The message's id on the platform; a message without an id cannot be recognised when it is delivered
    twice."""
    account: str = ""
    """The account whose adapter brought the message; the message's source names the same account."""
    kind: MessageKind = MessageKind.NEW
    """Whether the message is new, edits another one or deletes another one."""
    revision: int = 0
    """The number of the edit, or any number that rises with each edit; 0: the platform does not count edits.
    """
    sent_at: datetime | None = None
    attachments: tuple[Attachment, ...] = ()
    group_id: str | None = None
    """The name that all messages of one album share, whose parts come one by one: they are one turn."""
    action: str | None = None
    """The value of the button that the person pressed; the text is what the button says."""
    reply_to: ReplyTo | None = None
    internal: bool = False
    """Whether the program, and no person, says this: the message keeps no session alive."""
    observed: bool = False
    """Whether the message is said to others in a room: it is kept for the next turn, and begins none."""
    metadata: Mapping[str, Any] = NO_EXTRA
    """Facts of the adapter that the turn gives back to the adapter unchanged."""
    speaker: str | None = None
    """The name of the speaker as a model is told it, if not the platform's name; the store fills this in."""

    def __post_init__(self) -> None:
        if isinstance(self.attachments, list):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers exist
            msgspec.structs.force_setattr(self, "attachments", tuple(self.attachments))
        check_identifier("message_id", self.message_id)
        check_identifier("account", self.account)
        _OF_MESSAGE.check("a message", self)
        check_items("attachments", self.attachments, Attachment)
        if self.account != self.source.account:
            self._agree_on_account()
        if self.kind is not MessageKind.NEW and not self.message_id:
            problem = f"a message of kind {str(self.kind)!r} must name the message_id it changes"
            raise InvalidInputError(problem)
        if self.sent_at is not None and self.sent_at.tzinfo is None:
            problem = f"sent_at = {self.sent_at!r} does not say its time zone"
            raise InvalidInputError(problem)

    def _agree_on_account(self) -> None:
        """Copy the account to the message or to its source: most adapters name the account in one of them."""
        here, there = self.account, self.source.account
        if here and there:
            problem = f"a message of account {here!r} has a source that names account {there!r}: name one"
            raise InvalidInputError(problem)
        force_setattr(self, "account", here or there)
        if here:
            force_setattr(self, "source", replace(self.source, account=here))

    @property
    def sender(self) -> str:
        """Return the author's id among those who write on the lane; empty: the platform does not tell."""
        alone = self.source.chat_id if self.source.chat_type == "dm" else ""
        return self.source.participant_id or alone

    @property
    def said_by(self) -> str | None:
        """The name of the speaker as a model is told it."""
        return self.speaker or self.source.user_name

    @property
    def idempotency_key(self) -> str | None:
        """Return the key of a platform event, equal for every delivery; None for a message without an id."""
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
        """Whether the message is an edit without a number: two such edits cannot be told apart."""
        return self.kind is MessageKind.EDIT and not self.revision

    @property
    def original_key(self) -> str:
        """The key of the message that an edit or a deletion changes."""
        original = msgspec.structs.replace(self, kind=MessageKind.NEW, revision=0)
        return original.idempotency_key or ""

    @property
    def command(self) -> str | None:
        """The name behind a leading slash, in lower case; None for a path, or without a slash."""
        return command_of(self.text) if self.kind is MessageKind.NEW else None

    @property
    def addressee(self) -> str | None:
        """The account that a command is for, if it names one: of `/stop@the_bot`, `the_bot`."""
        return addressee_of(self.text) if self.kind is MessageKind.NEW else None

    @property
    def arguments(self) -> str:
        """Return the text behind the name of a command, with the dashes of options as hyphens again."""
        if self.command is None:
            return ""
        _, *rest = self.text.split(maxsplit=1)
        return _OPTION.sub(lambda dash: DASHES[dash[0]], rest[0].strip()) if rest else ""

    def with_text(
        self, text: str, attachments: tuple[Attachment, ...], revision: int | None = None
    ) -> InboundMessage:
        """Return the message with the content of an edit, and with the number of that edit."""
        number = self.revision if revision is None else revision
        return msgspec.structs.replace(self, text=text, attachments=attachments, revision=number)

    @property
    def has_media(self) -> bool:
        """Whether the message has attachments."""
        return bool(self.attachments)

    @property
    def is_empty(self) -> bool:
        """Whether the message has neither attachments nor a visible character."""
        text = self.text.strip()
        # Most texts begin with a visible character; testing it first spares the search through a long text.
        return not self.attachments and not (text and (visible_text(text[0]) or visible_text(text)))


def command_of(text: str) -> str | None:
    """Return the name behind a leading slash, in lower case; None for a path, or without a slash."""
    if not text.startswith("/"):
        return None
    word = text.split(maxsplit=1)[0].removeprefix("/")
    name = word.partition("@")[0].lower()
    return name if name and "/" not in word else None


def addressee_of(text: str) -> str | None:
    """Return the account that a command names: of `/stop@the_bot`, `the_bot`; None if it names none."""
    if command_of(text) is None:
        return None
    return text.split(maxsplit=1)[0].partition("@")[2] or None


def turn_text(messages: Sequence[InboundMessage]) -> str:
    """Return the joined text of the messages of one turn, without captions that repeat one of the texts."""
    if len(messages) == 1:
        return messages[0].text.strip()
    return joined_text((message.text, message.has_media) for message in messages)


def turn_content(messages: Sequence[InboundMessage]) -> Content:
    """Return the content of the user's row for these messages: text, or parts if there are attachments."""
    text = turn_text(messages)
    attached = [one for message in messages if message.attachments for one in _attachment_parts(message)]
    return joined_content(text, attached) if attached else text


def rewording_from(message: InboundMessage) -> Rewording:
    """Return the change that an edit or a deletion makes to the message that it names."""
    deletes = message.kind is MessageKind.DELETE
    content = None if deletes else turn_content([message])
    name, revision = message.message_id or "", message.revision
    return Rewording(message_id=name, content=content, deletes=deletes, revision=revision)


def make_user_row(
    messages: Sequence[InboundMessage], *, steered: bool = False, shared: bool = False
) -> Message:
    """Return the one transcript row that the messages of a turn become.

    The content for a model also quotes the message that is answered and, on a shared lane, names the speaker.
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
    if first.action is not None:
        extra[ACTION] = first.action
    return Message(
        str(Role.USER),
        content,
        sent_at=first.sent_at,
        platform_message_id=ids[0] if ids else None,
        observed=first.observed,
        api_content=_content_for_model(messages, content, shared=shared),
        platform_messages=messages_to_keep(list(map(_platform_message, messages)))
        if len(messages) > 1 or first.revision
        else None,
        extra=extra or NO_EXTRA,
    )


def _platform_message(message: InboundMessage) -> PlatformMessage:
    """Return the facts of one message that its row keeps."""
    answered = message.reply_to
    return PlatformMessage(
        id=message.message_id,
        sender=message.sender,
        text=message.text,
        attachments=_attachment_parts(message),
        quoted=_quotation_of(answered) if answered is not None and answered.text else None,
        revision=message.revision,
    )


def _attachment_parts(message: InboundMessage) -> list[Any]:
    """Return the attachments of a message as parts of a content."""
    return [{"type": "attachment", **msgspec.to_builtins(one)} for one in message.attachments]


def _content_for_model(messages: Sequence[InboundMessage], content: Content, *, shared: bool) -> Content:
    """Return the content as a model gets it; None if a model gets the content itself."""
    answered = next((one.reply_to for one in messages if one.reply_to and one.reply_to.text), None)
    if answered is None and not shared:
        return None
    own_text = turn_text(messages)
    text = prefix_with_name(messages[0].said_by, own_text) if shared else own_text
    if answered is not None:
        text = f"{_quotation_of(answered)}\n\n{text}".rstrip()
    if not isinstance(content, list):
        return text
    parts: list[Any] = content[1:] if own_text else content
    return [{"type": "text", "text": text}, *parts]


def message_id_in(idempotency_key: str | None) -> str | None:
    """Return the platform's id of the message with this idempotency key; None without a key."""
    return None if idempotency_key is None else idempotency_key.split(SEPARATOR)[2]


def _quotation_of(answered: ReplyTo) -> str:
    """Return the quotation of the answered message.

    Each of its lines is marked, so that a model cannot take the quotation for the message itself.
    """
    who = "you said" if answered.own else f"{inline_name(answered.author_name)} said"
    lines = shorten_text(answered.text or "", MAX_QUOTED).splitlines()
    return "\n".join([f"[In reply to what {who}:]", *(f"> {line}" for line in lines)])


def encode_message(message: InboundMessage) -> str:
    """Return the message as text that every database can hold, or raise `InvalidInputError`."""
    return record_as_json("message", message, message.metadata)


def as_decoded(message: InboundMessage, stored: str) -> InboundMessage:
    """Return the message as reading its stored form would give it."""
    free_form = message.metadata or message.source.extra
    return _READ.decode(stored) if free_form or REPLACEMENT in stored else message


def is_same_content(said: InboundMessage, stored: InboundMessage) -> bool:
    """Return whether the stored message equals the submitted one; if not, the message was edited since."""
    kept = as_decoded(said, encode_message(said))
    return (kept.text, kept.attachments) == (stored.text, stored.attachments)


_READ: Final = msgspec.json.Decoder(InboundMessage)

_OF_ATTACHMENT: Final = field_types(Attachment)
_OF_REPLY_TO: Final = field_types(ReplyTo)
_OF_MESSAGE: Final = field_types(InboundMessage, account=(str, NoneType))
"""The types of a message's fields; None is the account of some adapters that have none."""


class Disposition(StrEnum):
    """The next step of an accepted message."""

    STARTS = "starts"  # its turn begins as soon as there is room
    QUEUED = "queued"  # it waits for the turns before it
    MERGED = "merged"  # it is part of a waiting turn
    STEERS = "steers"  # it was given to the running turn
    INTERRUPTS = "interrupts"  # the running turn ends for it
    ROLLS_BACK = "rolls_back"  # the running turn is taken back for it
    OBSERVED = "observed"  # it was kept for the next turn, and begins none
    APPLIED = "applied"  # an edit or a deletion was carried out
    COMMAND = "command"  # it was a command


class RejectReason(StrEnum):
    """The reason why a message was refused; nothing of the message is kept."""

    BUSY = "busy"  # the lane takes nothing while a turn runs
    QUEUE_FULL = "queue_full"  # too many messages wait on the lane
    OVERLOADED = "overloaded"  # too many messages wait, or commands are under way, in all or of one owner
    TOO_LARGE = "too_large"  # the message is larger than one may be
    DRAINING = "draining"  # the gateway is about to end
    ERASED = "erased"  # it was sent before its sender was erased
    NOT_ALLOWED = "not_allowed"  # an observer vetoed it
    NOT_ADDRESSED = "not_addressed"  # a command for another account
    EMPTY = "empty"  # it says nothing
    UNKNOWN = "unknown"  # an edit or a deletion of something never seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The receipt of a message that is stored durably and will be answered, or kept as a dead letter.

    A message that was only observed is stored in the transcript, and not answered.
    """

    seq: int
    """The place of the message among all that its lane ever accepted, without gaps."""
    session_key: str
    session_id: str | None
    disposition: Disposition
    depth: int = 0
    """The number of turns that wait on the lane, this one included."""
    merged_into: int | None = None
    """The place of the message that leads the turn; None: this message leads its own turn."""
    dropped: tuple[int, ...] = ()
    """The places of the waiting messages that were dropped to make room."""
    demoted: str | None = None
    """Why the message only waits although the lane's busy mode asks for more; see `Demotion`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The receipt of a message that the platform delivered before."""

    seq: int
    """The place that the message got on the lane when it was accepted."""
    session_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The receipt of a message that was refused; `text` tells its sender so."""

    reason: RejectReason
    text: str
    retry_after: float | None = None
    """Seconds after which another try makes sense; None: never."""
    session_key: str | None = None


Receipt: TypeAlias = Accepted | Duplicate | Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Speakers:
    """Gives names to the people who write, by the rules of a store."""

    pseudonyms: Pseudonyms
    flags: Isolation
    redact: bool = False
    """Whether names are hidden wherever a platform does not need true ids."""

    def with_speaker_names(
        self, message: InboundMessage, session_key: str, aliases: Mapping[str, str] = NO_ALIASES
    ) -> InboundMessage:
        """Return the message with pseudonyms for its speaker and the person it answers, where needed."""
        source = message.source
        hidden = self.redact and can_hide_ids(source.platform)
        if not hidden and self.flags.separates_people(source):
            return message
        person = (
            source.participant_id or source.user_name if hidden else canonical_participant(source, aliases)
        )
        if person and (hidden or not visible_text(source.user_name or "")):
            message = msgspec.structs.replace(
                message, speaker=self._pseudonym(message, session_key, person, hidden=hidden)
            )
        if message.reply_to is not None:
            answered = self._with_author_name(message.reply_to, message, session_key, hidden=hidden)
            message = msgspec.structs.replace(message, reply_to=answered)
        return message

    def _with_author_name(
        self, reply_to: ReplyTo, message: InboundMessage, session_key: str, *, hidden: bool
    ) -> ReplyTo:
        author = reply_to.author_id or reply_to.author_name
        if reply_to.own or not author or not (hidden or not visible_text(reply_to.author_name or "")):
            return reply_to
        name = self._pseudonym(message, session_key, author, hidden=hidden)
        return msgspec.structs.replace(reply_to, author_name=name)

    def _pseudonym(self, message: InboundMessage, session_key: str, person: str, *, hidden: bool) -> str:
        if hidden:  # the pseudonym that prompts show as well
            return self.pseudonyms.user(message.source.platform, person)
        return self.pseudonyms.speaker(session_key, person)
