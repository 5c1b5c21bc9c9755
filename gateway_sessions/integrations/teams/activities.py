"""Reading of Teams' activities: who may send one, which message it brings, and what came with it.

Nothing here waits or asks anybody. An activity that cannot be read raises `UnreadableActivityError`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from gateway_sessions.adapters.group_talk import MENTIONS, Address, GroupRules, Hearing, without_mention
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.core.queue.inbound import (
    Attachment,
    AttachmentKind,
    InboundMessage,
    MessageKind,
    ReplyTo,
)
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.teams.objects import (
    TeamsAccount,
    TeamsActivity,
    TeamsActivityHead,
    TeamsAttachment,
    TeamsChannelData,
    TeamsEntity,
    TeamsFile,
)
from gateway_sessions.integrations.teams.settings import CHANNEL, TeamsSettings
from gateway_sessions.integrations.tokens.signed_tokens import CheckedToken, TokenRefusedError

PLATFORM: Final = "teams"
SERVICE_URL: Final = "service_url"
"""The member of a message's metadata that holds the service to which an answer goes."""
THREAD: Final = ";messageid="
"""What stands between a channel and the message with which a thread began."""
PRESSED: Final = "adaptiveCard/action"
"""The invoke activity by which a card says that somebody pressed one of its buttons."""
ACTION: Final = "action"
"""The member of a button's data that holds its value."""
LABEL: Final = "label"

_FILE: Final = "application/vnd.microsoft.teams.file.download.info"
_HTML: Final = "text/html"
_CHAT_TYPES: Final = {"personal": "dm", "groupChat": "group", "channel": "channel"}
_KINDS: Final = {
    "message": MessageKind.NEW,
    "messageUpdate": MessageKind.EDIT,
    "messageDelete": MessageKind.DELETE,
}
_MEDIA: Final = {"image": AttachmentKind.PHOTO, "video": AttachmentKind.VIDEO, "audio": AttachmentKind.AUDIO}
_EXTENSIONS: Final = {
    **dict.fromkeys(("png", "jpg", "jpeg", "gif", "webp", "bmp"), AttachmentKind.PHOTO),
    **dict.fromkeys(("mp4", "mov", "webm", "mkv"), AttachmentKind.VIDEO),
    **dict.fromkeys(("mp3", "wav", "m4a", "ogg", "flac"), AttachmentKind.AUDIO),
}
# Each repetition has a bound: the search must stay quick whatever somebody has written.
_QUOTED: Final = re.compile(
    r'<blockquote[^>]{0,300}itemtype="https?://schema\.skype\.com/Reply"[^>]{0,300}itemid="([^"]{1,64})"[^>]{0,300}>'
    r"(.{0,20000}?)</blockquote>",
    re.DOTALL,
)
"""The message that a person answers, as the HTML of the answer begins."""
_AUTHOR: Final = re.compile(
    r'<strong[^>]{0,300}itemprop="mri"[^>]{0,300}itemid="([^"]{1,256})"[^>]{0,300}>(.{0,500}?)</strong>',
    re.DOTALL,
)
_PREVIEW: Final = re.compile(
    r'<p[^>]{0,300}itemprop="(?:preview|copy)"[^>]{0,300}>(.{0,20000}?)</p>', re.DOTALL
)
_PICTURE: Final = re.compile(r'<img[^>]{0,300}\ssrc="(https://[^"\s]{1,2000})"')
_TAG: Final = re.compile(r"<[^<>]*>")
MOST_HTML: Final = 128 << 10
"""The most characters of HTML in which an answered message is looked for: an activity has fewer."""


class UnreadableActivityError(InvalidInputError):
    """An activity does not have the form that the Bot Framework describes."""


class ForeignActivityError(TokenRefusedError):
    """An activity is not the one that its token was made for, or is of another channel."""


@dataclass(frozen=True, slots=True)
class TeamsReadingRules:
    """Which activities an adapter reads, and for which bot."""

    account: str = ""
    groups: GroupRules[TeamsActivity] = MENTIONS
    """Which messages of chats and channels are for the bot, if Teams sends all of them."""


def read_head(raw: bytes) -> TeamsActivityHead:
    """Return the part of an activity that its token is compared with."""
    try:
        return msgspec.json.decode(raw, type=TeamsActivityHead)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(error) from error


def check_sender(token: CheckedToken, activity: TeamsActivityHead, settings: TeamsSettings) -> None:
    """Refuse an activity that its valid token was not made for.

    The token names the service that has sent the activity: without this check, a token of one service would
    let its sender direct our answers, and our access token, to an address of its choice.
    """
    if activity.channel_id != CHANNEL:
        problem = "the activity is of another channel than Teams"
        raise ForeignActivityError(problem)
    if CHANNEL not in token.key.endorsements:
        problem = "the token is signed with a key that may not sign for Teams"
        raise ForeignActivityError(problem)
    claimed = token.claims.get("serviceurl") or token.claims.get("serviceUrl")
    if not isinstance(claimed, str) or claimed.rstrip("/") != activity.service_url.rstrip("/"):
        problem = "the activity names another service than its token"
        raise ForeignActivityError(problem)
    if not settings.may_call(activity.service_url):
        problem = "the activity names a service that is none of Teams' (TeamsCloud.service_origins)"
        raise ForeignActivityError(problem)


def read_activity(raw: bytes, rules: TeamsReadingRules) -> InboundMessage | None:
    """Return the message that an activity brings; None if it brings none, or one for somebody else."""
    head = read_head(raw)
    if head.type not in _KINDS and head.type != "invoke":
        return None  # somebody was added, reacted, is typing …
    try:
        activity = msgspec.json.decode(raw, type=TeamsActivity)
        if activity.type == "invoke" and activity.name != PRESSED:
            return None
        hearing = rules.groups.hearing(_address_of(activity), activity)
        return _inbound(activity, rules, hearing) if rules.groups.keeps(hearing) else None
    except (msgspec.MsgspecError, InvalidInputError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _unreadable(error) from error


def is_press(raw: bytes) -> bool | None:
    """Return whether an invoke activity is the press of a button; None: the activity is no invoke."""
    head = read_head(raw)
    if head.type != "invoke":
        return None
    try:
        return msgspec.json.decode(raw, type=TeamsActivity).name == PRESSED
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def _unreadable(error: Exception) -> UnreadableActivityError:
    return UnreadableActivityError(f"an activity of Teams cannot be read ({type(error).__name__}: {error})")


def _inbound(activity: TeamsActivity, rules: TeamsReadingRules, hearing: Hearing) -> InboundMessage | None:
    kind = _KINDS.get(activity.type, MessageKind.NEW)
    action, text = _pressed(activity) if kind is MessageKind.NEW else (None, None)
    attachments = tuple(_attachments_of(activity))
    if text is None:
        text = _text_of(activity)
    if kind is not MessageKind.DELETE and not text and not attachments and action is None:
        return None  # a card without words, a reaction …
    return InboundMessage(
        source=_source_of(activity, rules.account),
        text=text,
        message_id=activity.id,
        account=rules.account,
        kind=kind,
        # An edit has the id of its message, and a time of its own.
        revision=_milliseconds(activity.timestamp) if kind is MessageKind.EDIT else 0,
        sent_at=_aware(activity.timestamp),
        attachments=attachments,
        reply_to=_reply_of(activity),
        action=action,
        observed=hearing is Hearing.OVERHEARD,
        metadata={SERVICE_URL: activity.service_url},
    )


# Where and who


def _source_of(activity: TeamsActivity, account: str) -> SessionSource:
    conversation, sender = activity.conversation, activity.sender
    chat, _, thread = conversation.id.partition(THREAD)
    data = activity.channel_data or TeamsChannelData()
    return SessionSource(
        platform=PLATFORM,
        chat_id=chat,
        chat_name=conversation.name or (data.channel.name if data.channel else None),
        chat_type=chat_type_of(activity),
        user_id=sender.id,
        user_id_alt=sender.aad_object_id,
        user_name=sender.name,
        thread_id=thread or None,
        guild_id=data.team.id if data.team else None,
        is_bot=_is_bot(sender),
        account=account,
    )


def chat_type_of(activity: TeamsActivity) -> str:
    """Return the kind of chat; an unknown kind counts as a group, in which a bot must be addressed."""
    told = activity.conversation.conversation_type
    if told is None:
        return "group" if activity.conversation.is_group else "dm"
    return _CHAT_TYPES.get(told, "group")


def _is_bot(sender: TeamsAccount) -> bool:
    return sender.role == "bot" or sender.id.startswith("28:")


def _address_of(activity: TeamsActivity) -> Address:
    answered = _reply_of(activity)
    return Address(
        text=_text_of(activity),
        private=chat_type_of(activity) == "dm",
        own=activity.sender.id == activity.recipient.id,
        changes=_KINDS.get(activity.type, MessageKind.NEW) is not MessageKind.NEW,
        mentions=any(_mentions(one, activity.recipient) for one in activity.entities or ()),
        answers=activity.type == "invoke"
        or activity.value is not None
        or (answered is not None and answered.own),
    )


def _mentions(entity: TeamsEntity, bot: TeamsAccount) -> bool:
    return entity.type == "mention" and entity.mentioned is not None and entity.mentioned.id == bot.id


def _aware(instant: datetime | None) -> datetime | None:
    return instant.replace(tzinfo=UTC) if instant is not None and instant.tzinfo is None else instant


def _milliseconds(instant: datetime | None) -> int:
    told = _aware(instant)
    return max(int(told.timestamp() * 1000), 0) if told is not None else 0


# What


def _text_of(activity: TeamsActivity) -> str:
    """Return the text without a mention of the bot, and with other mentions as people read them."""
    text, places = activity.text or "", list[tuple[int, int]]()
    for entity in activity.entities or ():
        if entity.type == "mention" and entity.text and _mentions(entity, activity.recipient):
            places += [one.span() for one in re.finditer(re.escape(entity.text), text)]
    text = without_mention(text, places)
    for entity in activity.entities or ():
        if entity.type == "mention" and entity.text:
            name = (entity.mentioned and entity.mentioned.name) or plain_of(entity.text)
            text = text.replace(entity.text, f"@{name}")
    return plain_of(text) if activity.text_format == "xml" else text


def plain_of(markup: str) -> str:
    """Return the words of a piece of HTML."""
    return html.unescape(_TAG.sub("", markup))


def _pressed(activity: TeamsActivity) -> tuple[str | None, str | None]:
    """Return the value and the label of the button that somebody pressed; None if none was."""
    given: object = activity.value
    if activity.type == "invoke":
        given = _member(given, "action")
        data, word = _member(given, "data"), _member(given, "verb")
    else:
        data, word = given, None
    if data is None and word is None:
        return None, None
    value = _member(data, ACTION)
    if not isinstance(value, str) or not value:
        value = word if isinstance(word, str) and word else _as_json(data)
    label = activity.text or _member(data, LABEL)
    return value, label if isinstance(label, str) and label else value


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]  # JSON


def _as_json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _attachments_of(activity: TeamsActivity) -> Iterator[Attachment]:
    markup = ""
    found = False
    for one in activity.attachments or ():
        kind = one.content_type.partition("/")[0].lower()
        if one.content_type == _FILE:
            found = True
            yield _file(one)
        elif one.content_type == _HTML:
            markup = one.content if isinstance(one.content, str) else ""
        elif kind in _MEDIA and one.content_url:
            found = True
            yield _media(_MEDIA[kind], one)
    if not found and not (activity.text or "").strip():
        # A sticker or a moving picture comes as HTML alone.
        for address in _PICTURE.findall(markup[:MOST_HTML]):
            yield Attachment(kind=AttachmentKind.STICKER, url=html.unescape(address))


def _file(attachment: TeamsAttachment) -> Attachment:
    file = msgspec.convert(attachment.content, TeamsFile)
    ending = (file.file_type or (attachment.name or "").rpartition(".")[2]).lower()
    kind = _EXTENSIONS.get(ending, AttachmentKind.DOCUMENT)
    return Attachment(kind=kind, url=file.download_url, name=attachment.name)


def _media(kind: AttachmentKind, attachment: TeamsAttachment) -> Attachment:
    # Teams says `image/*` of a picture that somebody has pasted.
    media_type = attachment.content_type if not attachment.content_type.endswith("/*") else None
    return Attachment(
        kind=kind, url=attachment.content_url or "", media_type=media_type, name=attachment.name
    )


def _reply_of(activity: TeamsActivity) -> ReplyTo | None:
    for one in activity.attachments or ():
        markup = one.content if one.content_type == _HTML and isinstance(one.content, str) else ""
        if (quoted := _QUOTED.search(markup[:MOST_HTML])) is not None:
            return _quoted_message(quoted[1], quoted[2], activity.recipient)
    root = activity.conversation.id.partition(THREAD)[2]
    if activity.reply_to_id and activity.reply_to_id != root:
        # Only cards of the bot itself say so: a button was pressed.
        return ReplyTo(message_id=activity.reply_to_id, own=activity.value is not None)
    return None


def _quoted_message(message_id: str, markup: str, bot: TeamsAccount) -> ReplyTo:
    author, preview = _AUTHOR.search(markup), _PREVIEW.search(markup)
    author_id = html.unescape(author[1]) if author else None
    return ReplyTo(
        message_id=html.unescape(message_id),
        text=plain_of(preview[1]) or None if preview else None,
        author_id=author_id,
        author_name=plain_of(author[2]) or None if author else None,
        own=author_id == bot.id,
    )
