"""Reading of Telegram's updates: which message one brings, for whom it is, and what came with it.

Nothing here waits or asks anybody. An update that cannot be read raises `UnreadableUpdateError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec

from gateway_sessions.adapters.group_talk import MENTIONS, Address, GroupRules, Hearing, without_mention
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.core.text_length import place_of_utf16
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.telegram.objects import (
    ApiChat,
    ApiContact,
    ApiEntity,
    ApiFile,
    ApiMessage,
    ApiPress,
    ApiUpdate,
    ApiUser,
)

PRESS: Final = "press:"
"""The beginning of the id of a message that is a pressed button."""
FILE: Final = "telegram:"
"""The beginning of an attachment's address: behind it stands the id of the file, for this bot only."""
ALLOWED_UPDATES: Final = ("message", "edited_message", "callback_query", "my_chat_member")

_CHAT_TYPES: Final = {"private": "dm", "group": "group", "supergroup": "group", "channel": "channel"}
_FILES: Final = {
    "document": AttachmentKind.DOCUMENT,
    "video": AttachmentKind.VIDEO,
    "animation": AttachmentKind.VIDEO,
    "video_note": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
    "voice": AttachmentKind.VOICE,
    "sticker": AttachmentKind.STICKER,
}

Update: TypeAlias = Mapping[str, Any]
"""An update as JSON has it."""


class UnreadableUpdateError(InvalidInputError):
    """An update does not have the form that Telegram describes."""


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """The bot, as `getMe` tells it."""

    id: int
    username: str


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Which messages an adapter reads, and for which bot."""

    bot: BotIdentity
    account: str = ""
    groups: GroupRules[Update] = MENTIONS


def read_update(update: Update, rules: ReadingRules) -> InboundMessage | None:
    """Return the message that an update brings; None if it brings none, or one for somebody else."""
    try:
        read = msgspec.convert(update, ApiUpdate)
        if read.callback_query is not None:
            return _pressed(read.callback_query, rules)
        message = read.message or read.edited_message
        if message is None:
            return None
        hearing = rules.groups.hearing(_address_of(read, message, rules.bot), update)
        return _inbound(read, message, rules, hearing) if rules.groups.keeps(hearing) else None
    except (
        msgspec.ValidationError,
        InvalidInputError,
        KeyError,
        ValueError,
        OverflowError,
        OSError,
    ) as error:
        problem = f"an update of Telegram cannot be read ({type(error).__name__}: {error})"
        raise UnreadableUpdateError(problem) from error


def _inbound(
    update: ApiUpdate, message: ApiMessage, rules: ReadingRules, hearing: Hearing
) -> InboundMessage | None:
    text, attachments = _text_of(message), tuple(_attachments_of(message))
    if not text and not attachments:
        return None  # somebody joined, a title changed …
    is_edit = update.message is None
    return InboundMessage(
        source=_source_of(message, rules.account),
        text=without_mention(text, _mentions_in(message, rules.bot)),
        message_id=str(message.message_id),
        account=rules.account,
        kind=MessageKind.EDIT if is_edit else MessageKind.NEW,
        # The date of an edit has seconds: two edits within one would share a number.
        revision=update.update_id if is_edit else 0,
        sent_at=datetime.fromtimestamp(message.date, UTC),
        attachments=attachments,
        reply_to=_reply_of(message, rules.bot),
        group_id=message.media_group_id,
        observed=hearing is Hearing.OVERHEARD,
        metadata=_payload_of(text),
    )


def _pressed(press: ApiPress, rules: ReadingRules) -> InboundMessage | None:
    """Return the message that a pressed button is; None if nobody can tell where it was pressed."""
    if press.message is None:
        return None
    source = _source_of(press.message, rules.account)
    return InboundMessage(
        source=replace(source, user_id=str(press.author.id), user_name=name_of(press.author), is_bot=False),
        text=press.label or press.data,
        message_id=f"{PRESS}{press.id}",
        account=rules.account,
        action=press.data,
        reply_to=_reference_to(press.message, rules.bot),
    )


def _payload_of(text: str) -> dict[str, str]:
    """Return what the link said by which a person came to the bot."""
    command, _, payload = text.partition(" ")
    return {"start": payload} if command == "/start" and payload else {}


# Where and who


def _source_of(message: ApiMessage, account: str) -> SessionSource:
    sender = message.sender
    return SessionSource(
        platform=Platform.TELEGRAM,
        chat_id=str(message.chat.id),
        chat_name=name_of(message.chat) or None,
        chat_type=_CHAT_TYPES[message.chat.type],
        user_id=str(sender.id) if sender is not None else None,
        user_name=name_of(sender) or None if sender is not None else None,
        # Without that flag, the number only names the message with which a thread of answers began.
        thread_id=str(message.message_thread_id) if message.is_topic_message else None,
        is_bot=isinstance(sender, ApiUser) and sender.is_bot,
        account=account,
    )


def name_of(somebody: ApiUser | ApiChat | ApiContact) -> str:
    """Return the name of a person or a chat as people see it."""
    if isinstance(somebody, ApiChat) and somebody.title:
        return somebody.title
    name = f"{somebody.first_name} {somebody.last_name}".strip()
    return name or ("" if isinstance(somebody, ApiContact) else somebody.username)


# For whom


def _address_of(update: ApiUpdate, message: ApiMessage, bot: BotIdentity) -> Address:
    answered = message.reply_to_message
    return Address(
        text=message.text or message.caption or "",
        private=message.chat.type == "private",
        own=message.sender is not None and message.sender.id == bot.id,
        changes=update.message is None,
        mentions=bool(_mentions_in(message, bot)),
        answers=answered is not None and not message.opens_topic and _wrote(answered, bot),
        names=(bot.username,),
    )


def _wrote(message: ApiMessage, bot: BotIdentity) -> bool:
    return message.author is not None and message.author.id == bot.id


def _mentions_in(message: ApiMessage, bot: BotIdentity) -> list[tuple[int, int]]:
    """Return the places of the bot's mentions in the text of a message."""
    return [place for entity, text, place in _entities_of(message) if _mentions(entity, text, bot)]


def _mentions(entity: ApiEntity, text: str, bot: BotIdentity) -> bool:
    if entity.type == "mention":
        return text.lower() == f"@{bot.username.lower()}"
    return entity.type == "text_mention" and entity.user is not None and entity.user.id == bot.id


# What


def _text_of(message: ApiMessage) -> str:
    """Return the text, the caption, or the words for what has no file."""
    match message:
        case ApiMessage(text=str(text)) | ApiMessage(caption=str(text)):
            return text
        case ApiMessage(contact=ApiContact() as contact):
            return f"[contact: {name_of(contact)} {contact.phone_number}]"
        case _ if message.poll is not None:
            options = ", ".join(option.text for option in message.poll.options)
            return f"[poll: {message.poll.question} ({options})]"
        case _ if message.dice is not None:
            return f"{message.dice.emoji} {message.dice.value}"
        case _:
            return ""


def _entities_of(message: ApiMessage) -> Iterator[tuple[ApiEntity, str, tuple[int, int]]]:
    """Yield each entity, the text that it marks, and where that text stands."""
    text = message.text or message.caption or ""
    for entity in message.entities or message.caption_entities:
        place = place_of_utf16(text, entity.offset, entity.length)
        yield entity, text[slice(*place)], place


def _attachments_of(message: ApiMessage) -> Iterator[Attachment]:
    if message.photo:
        yield _file(AttachmentKind.PHOTO, max(message.photo, key=lambda photo: photo.width * photo.height))
    for name, kind in _FILES.items():
        # An animation also comes as a document, for programs that do not know animations.
        if (file := getattr(message, name)) is not None and not (name == "document" and message.animation):
            yield _file(kind, file)
    if (place := message.location) is not None:
        yield Attachment(kind=AttachmentKind.LOCATION, url=f"geo:{place.latitude},{place.longitude}")


def _file(kind: AttachmentKind, file: ApiFile) -> Attachment:
    return Attachment(
        kind=kind,
        url=f"{FILE}{file.file_id}",
        media_type=file.mime_type,
        name=file.file_name or file.emoji,
        size=file.file_size,
    )


def _reply_of(message: ApiMessage, bot: BotIdentity) -> ReplyTo | None:
    answered = message.reply_to_message
    if answered is None or message.opens_topic:
        return None
    reference = _reference_to(answered, bot)
    return reference if message.quote is None else msgspec.structs.replace(reference, text=message.quote.text)


def _reference_to(answered: ApiMessage, bot: BotIdentity) -> ReplyTo:
    author = answered.sender
    return ReplyTo(
        message_id=str(answered.message_id),
        text=_text_of(answered) or None,
        author_id=str(author.id) if author is not None else None,
        author_name=name_of(author) or None if author is not None else None,
        own=_wrote(answered, bot),
    )
