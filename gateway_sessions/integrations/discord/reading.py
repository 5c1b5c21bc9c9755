"""Reading of Discord's messages: for whom one is, what it says, and what came with it.

Nothing here waits or asks anybody. What cannot be read raises `UnreadableDiscordObjectError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gateway_sessions.adapters.group_talk import MENTIONS, Address, GroupRules, Hearing, without_mention
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.discord.objects import (
    DiscordFile,
    DiscordMessage,
    DiscordPlace,
    DiscordUser,
    UnreadableDiscordObjectError,
    milliseconds_of,
)

WRITTEN: Final = frozenset({0, 19})
"""The types of messages that somebody wrote: plain ones and answers. Others tell who joined or pinned."""
FORWARD: Final = 1
"""The type of a reference to a message that was forwarded."""
VOICE: Final = 1 << 13
"""The flag of a voice message."""
STICKER_URL: Final = "https://media.discordapp.net/stickers/{}.png"

_MENTION: Final = re.compile(r"<@(!|&)?(\d+)>")
_KINDS: Final = {
    "image": AttachmentKind.PHOTO,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
}


@dataclass(frozen=True, slots=True)
class DiscordRules:
    """Which messages an adapter reads, and for which bot."""

    bot_id: str
    bot_name: str = ""
    """The bot's name as people see it."""
    username: str = ""
    """The bot's name as Discord knows it."""
    account: str = ""
    groups: GroupRules[DiscordMessage] = MENTIONS
    bots: bool = False
    """Whether other bots and webhooks are heard: two bots that answer each other never end."""
    own_roles: frozenset[str] = frozenset()
    """The roles that Discord made for the bot; people pick them where they mean the bot."""
    command: str = ""
    """The command of Discord's menu whose text is all that a person says."""


def read_message(
    message: DiscordMessage, place: DiscordPlace, rules: DiscordRules, *, edited: bool = False
) -> InboundMessage | None:
    """Return what a message or its edit brings; None if it brings nothing, or is for somebody else."""
    try:
        if not _is_read(message, rules) or (edited and message.edited_timestamp is None):
            return None  # an edit without a time only adds the preview of a link
        address = _address_of(message, place, rules, edited=edited)
        hearing = rules.groups.hearing(address, message)
        if not rules.groups.keeps(hearing):
            return None
        text, attachments = _text_of(message), tuple(_attachments_of(message))
        if not text and not attachments:
            return None
        return InboundMessage(
            source=source_of(place, message.author, message.author_name, rules),
            text=with_names(text, message, rules),
            message_id=message.id,
            account=rules.account,
            kind=MessageKind.EDIT if edited else MessageKind.NEW,
            revision=_revision_of(message) if edited else 0,
            sent_at=datetime.fromtimestamp(milliseconds_of(message.id) / 1000, UTC),
            attachments=attachments,
            reply_to=_reply_of(message, rules),
            observed=hearing is Hearing.OVERHEARD,
        )
    except (InvalidInputError, ValueError, OverflowError, OSError) as error:
        problem = f"a message of Discord cannot be read ({type(error).__name__}: {error})"
        raise UnreadableDiscordObjectError(problem) from error


def read_deletion(
    message_id: str, place: DiscordPlace, rules: DiscordRules, author: DiscordUser | None = None
) -> InboundMessage:
    """Return the deletion of a message; its author is not told if nobody remembers the message."""
    return InboundMessage(
        source=source_of(place, author, author.name if author else None, rules),
        message_id=message_id,
        account=rules.account,
        kind=MessageKind.DELETE,
    )


def source_of(
    place: DiscordPlace, person: DiscordUser | None, name: str | None, rules: DiscordRules
) -> SessionSource:
    """Return where a message comes from: a thread is a lane of its own in its channel."""
    return SessionSource(
        platform=Platform.DISCORD,
        chat_id=place.chat_id,
        chat_name=place.name,
        chat_type="dm" if place.guild_id is None else "group",
        user_id=person.id if person is not None else None,
        user_name=name or None,
        thread_id=place.thread_id,
        guild_id=place.guild_id,
        is_bot=person is not None and person.bot,
        account=rules.account,
    )


def _revision_of(message: DiscordMessage) -> int:
    """Return the microseconds since 1970 of the last edit."""
    at = datetime.fromisoformat(message.edited_timestamp or "")
    return int(at.timestamp() * 1_000_000)


# For whom


def _is_read(message: DiscordMessage, rules: DiscordRules) -> bool:
    """Return whether somebody wrote a message who is heard."""
    is_by_bot = message.author.bot or message.webhook_id is not None
    return message.type in WRITTEN and (rules.bots or not is_by_bot)


def _address_of(
    message: DiscordMessage, place: DiscordPlace, rules: DiscordRules, *, edited: bool
) -> Address:
    answered = message.referenced_message
    return Address(
        text=_without_address(message.content, rules),
        private=place.guild_id is None,
        own=message.author.id == rules.bot_id,
        changes=edited,
        mentions=_mentions(message, rules),
        answers=answered is not None and answered.author.id == rules.bot_id,
        names={rules.bot_name, rules.username} - {""},
    )


def _mentions(message: DiscordMessage, rules: DiscordRules) -> bool:
    """Return whether a message mentions the bot or its role."""
    return not rules.own_roles.isdisjoint(message.mention_roles) or any(
        one.id == rules.bot_id for one in message.mentions
    )


# What


def _text_of(message: DiscordMessage) -> str:
    """Return the text, or the words for what has no file."""
    texts = [message.content]
    if message.poll is not None:
        answers = ", ".join(one.poll_media.text for one in message.poll.answers)
        texts.append(f"[poll: {message.poll.question.text} ({answers})]")
    texts += [f"[forwarded:]\n{one.message.content}" for one in message.message_snapshots]
    return "\n".join(filter(None, texts))


def with_names(text: str, message: DiscordMessage, rules: DiscordRules) -> str:
    """Return a text with names in place of ids, and without a mention of the bot at its ends.

    Such a mention tells only for whom the message is.
    """
    text = _without_address(text, rules)
    names = {one.id: one.name for one in message.mentions}

    def name_of(found: re.Match[str]) -> str:
        kind, number = found.groups()
        if _is_own(found, rules):
            return f"@{rules.bot_name}"
        name = names.get(number) if kind != "&" else None
        return f"@{name}" if name else found[0]

    return _MENTION.sub(name_of, text)


def _without_address(text: str, rules: DiscordRules) -> str:
    return without_mention(text, (one.span() for one in _MENTION.finditer(text) if _is_own(one, rules)))


def _is_own(found: re.Match[str], rules: DiscordRules) -> bool:
    kind, number = found.groups()
    return number in rules.own_roles if kind == "&" else number == rules.bot_id


def _attachments_of(message: DiscordMessage) -> Iterator[Attachment]:
    for file in message.attachments:
        yield attachment_of(file, is_voice=bool(message.flags & VOICE))
    for snapshot in message.message_snapshots:
        for file in snapshot.message.attachments:
            yield attachment_of(file)
    for sticker in message.sticker_items:
        url = STICKER_URL.format(sticker.id)
        yield Attachment(kind=AttachmentKind.STICKER, url=url, name=sticker.name)


def attachment_of(file: DiscordFile, *, is_voice: bool = False) -> Attachment:
    """Return a file of Discord as an attachment."""
    kind = _KINDS.get((file.content_type or "").partition("/")[0], AttachmentKind.DOCUMENT)
    if is_voice and kind is AttachmentKind.AUDIO:
        kind = AttachmentKind.VOICE
    media_type = (file.content_type or "").partition(";")[0] or None
    return Attachment(kind=kind, url=file.url, media_type=media_type, name=file.filename, size=file.size)


def _reply_of(message: DiscordMessage, rules: DiscordRules) -> ReplyTo | None:
    reference, answered = message.message_reference, message.referenced_message
    if reference is None or reference.message_id is None or reference.type == FORWARD:
        return None
    if answered is None:  # it was deleted, or is too old
        return ReplyTo(message_id=reference.message_id)
    return ReplyTo(
        message_id=answered.id,
        text=with_names(_text_of(answered), answered, rules) or None,
        author_id=answered.author.id,
        author_name=answered.author_name or None,
        own=answered.author.id == rules.bot_id,
    )
