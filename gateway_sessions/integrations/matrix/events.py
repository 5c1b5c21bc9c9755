"""Reading of Matrix events: which message one brings, for whom it is, and what came with it.

Nothing here waits or asks anybody. An event that cannot be read raises `UnreadableEventError`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

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
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.matrix.client_api import MXC
from gateway_sessions.integrations.matrix.encryption import UnreadableEventError, address_with_key
from gateway_sessions.integrations.matrix.objects import MessageContent, RoomEvent
from gateway_sessions.integrations.matrix.rooms import KnownRoom, SeenMessage

RawEvent: TypeAlias = Mapping[str, Any]
"""An event as JSON has it."""

MESSAGE: Final = "m.room.message"
REDACTION: Final = "m.room.redaction"
STICKER: Final = "m.sticker"
ENCRYPTED: Final = "m.room.encrypted"
_POLLS: Final = ("m.poll.start", "org.matrix.msc3381.poll.start")

_FILES: Final = {
    "m.image": AttachmentKind.PHOTO,
    "m.video": AttachmentKind.VIDEO,
    "m.audio": AttachmentKind.AUDIO,
    "m.file": AttachmentKind.DOCUMENT,
}
_VOICE: Final = ("m.voice", "org.matrix.msc3245.voice", "org.matrix.msc3245.voice.v2")
_NOT_FOR_BOTS: Final = frozenset({"m.notice", "m.server_notice", "m.key.verification.request"})
"""Bots must not answer notices: two of them would never end."""
_REPLY_FALLBACK: Final = re.compile(r"> (?:\* )?<@[^\n]*\n(?:>[^\n]*\n)*\n?")
"""The quotation in front of an answer, which older clients write into the text."""
_LINK: Final = re.compile(r"https?://matrix\.to/#/([^\"'?\s<>]+)")


@dataclass(frozen=True, slots=True)
class MatrixIdentity:
    """The account of the bot."""

    user_id: str
    display_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What people call the bot by in a text, the longest name first."""
        local = self.user_id.removeprefix("@").partition(":")[0]
        known = {self.user_id, f"@{local}", local, self.display_name, f"@{self.display_name}"} - {"", "@"}
        return tuple(sorted(known, key=len, reverse=True))


@dataclass(frozen=True, slots=True)
class RoomRules:
    """Which messages an adapter reads, and for which account."""

    bot: MatrixIdentity
    account: str = ""
    groups: GroupRules[RawEvent] = MENTIONS
    taken: Callable[[RawEvent], bool] | None = None
    """Whether the program's own callbacks answer an event, so that the gateway does not; None: never."""


def related_id(event: RoomEvent) -> str | None:
    """Return the id of the event that must be known to read one: what it changes, takes back or answers."""
    relation = _relation(event.content)
    if event.type == REDACTION:
        return _redacted_id(event)
    if relation.get("rel_type") == "m.replace":
        return _text(relation.get("event_id"))
    return _answered_id(relation)


def read_event(
    raw: RawEvent, room: KnownRoom, rules: RoomRules, *, chat_id: str = "", related: SeenMessage | None = None
) -> InboundMessage | None:
    """Return the message that an event brings; None if it brings none, or one for somebody else.

    *related* is the message that the event changes, takes back or answers, and *chat_id* the name of the
    room's conversation, if it is not the room's own id.
    """
    try:
        event = msgspec.convert(raw, RoomEvent)
        if event.sender == rules.bot.user_id or event.state_key is not None:
            return None
        if rules.taken is not None and _asked(rules.taken, raw):
            return None
        place = _EventPlace(room, chat_id or room.id, rules)
        match event.type:
            case "m.room.message" | "m.sticker":
                return _said(raw, event, place, related)
            case "m.room.redaction":
                return _taken_back(event, place, related)
            case kind if kind in _POLLS:
                return _if_kept(raw, event, place, related, _poll_text(event.content), ())
            case _:
                return None
    except (msgspec.ValidationError, InvalidInputError, ValueError, OverflowError, OSError) as error:
        problem = f"an event of Matrix cannot be read ({type(error).__name__}: {error})"
        raise UnreadableEventError(problem) from error


def seen_message(event: RoomEvent) -> SeenMessage | None:
    """Return what must be remembered of an event for those that answer it or change it; None: nothing."""
    if event.type not in (MESSAGE, STICKER) or _relation(event.content).get("rel_type") == "m.replace":
        return None
    body = event.content.get("body")
    return SeenMessage(
        event.sender, _thread_id(_relation(event.content)), body if isinstance(body, str) else ""
    )


@dataclass(frozen=True, slots=True)
class _EventPlace:
    """Where an event happened, and by whose rules it is read."""

    room: KnownRoom
    chat_id: str
    rules: RoomRules


# What happened


def _said(
    raw: RawEvent, event: RoomEvent, place: _EventPlace, related: SeenMessage | None
) -> InboundMessage | None:
    relation = _relation(event.content)
    if relation.get("rel_type") == "m.replace":
        return _edited(event, place, related)
    content = msgspec.convert(event.content, MessageContent)
    if content.msgtype in _NOT_FOR_BOTS:
        return None
    text, attachments = _what_is_said(event, event.content, place)
    return _if_kept(raw, event, place, related, text, attachments)


def _if_kept(
    raw: RawEvent,
    event: RoomEvent,
    place: _EventPlace,
    related: SeenMessage | None,
    text: str,
    attachments: tuple[Attachment, ...],
) -> InboundMessage | None:
    if not (text or attachments):
        return None
    address = _address_of(event.content, text, place, related)
    hearing = place.rules.groups.hearing(address, raw)
    if not place.rules.groups.keeps(hearing):
        return None
    relation = _relation(event.content)
    return InboundMessage(
        source=_source_of(event, place, _thread_id(relation)),
        text=_without_mention(text, event.content, place.rules.bot),
        message_id=event.event_id,
        account=place.rules.account,
        sent_at=_time_of(event),
        attachments=attachments,
        reply_to=_reply_of(relation, place, related),
        observed=hearing is Hearing.OVERHEARD,
    )


def _edited(event: RoomEvent, place: _EventPlace, original: SeenMessage | None) -> InboundMessage | None:
    """Return an edit; None if somebody else wrote the original, or nobody knows who did."""
    new = event.content.get("m.new_content")
    message_id = _text(_relation(event.content).get("event_id"))
    if original is None or original.sender != event.sender or not isinstance(new, dict) or not message_id:
        return None
    content = cast("dict[str, Any]", new)
    text, attachments = _what_is_said(event, content, place)
    return InboundMessage(
        source=_source_of(event, place, original.thread_id),
        text=_without_mention(text, content, place.rules.bot),
        message_id=message_id,
        account=place.rules.account,
        kind=MessageKind.EDIT,
        revision=_revision_of(event),
        sent_at=_time_of(event),
        attachments=attachments,
    )


def _taken_back(event: RoomEvent, place: _EventPlace, original: SeenMessage | None) -> InboundMessage | None:
    if (message_id := _redacted_id(event)) is None:
        return None
    return InboundMessage(
        source=_source_of(event, place, original.thread_id if original else None),
        message_id=message_id,
        account=place.rules.account,
        kind=MessageKind.DELETE,
        sent_at=_time_of(event),
    )


def _revision_of(event: RoomEvent) -> int:
    """Return a number that rises with each edit: the time in milliseconds, and digits that tell two apart."""
    return event.origin_server_ts * 1000 + zlib.crc32(event.event_id.encode()) % 1000


def _time_of(event: RoomEvent) -> datetime:
    return datetime.fromtimestamp(event.origin_server_ts / 1000, UTC)


# Where and who


def _source_of(event: RoomEvent, place: _EventPlace, thread_id: str | None) -> SessionSource:
    room = place.room
    return SessionSource(
        platform=Platform.MATRIX,
        chat_id=place.chat_id,
        chat_name=room.name or room.alias,
        chat_type="dm" if room.is_private else "group",
        user_id=event.sender,
        user_name=room.name_of(event.sender),
        thread_id=thread_id,
        account=place.rules.account,
    )


# For whom


def _address_of(
    content: Mapping[str, Any], text: str, place: _EventPlace, related: SeenMessage | None
) -> Address:
    bot = place.rules.bot
    return Address(
        text=text,
        private=place.room.is_private,
        mentions=_mentions(content, text, bot),
        answers=related is not None and related.sender == bot.user_id,
        names=bot.names,
    )


def _asked(decide: Callable[[RawEvent], bool], raw: RawEvent) -> bool:
    try:
        return decide(raw)
    except Exception as error:
        problem = f"a function of the program failed with it ({type(error).__name__}: {error})"
        raise UnreadableEventError(problem) from error


def _mentions(content: Mapping[str, Any], text: str, bot: MatrixIdentity) -> bool:
    if "m.mentions" in content:  # today's clients say whom they mean, and that alone counts
        return _is_named(content, bot)
    return _is_named(content, bot) or any(_called(name).search(text) for name in bot.names)


def _is_named(content: Mapping[str, Any], bot: MatrixIdentity) -> bool:
    """Return whether the client of a person names the bot, and not only the text does."""
    mentions = content.get("m.mentions")
    if isinstance(mentions, dict):
        named = cast("dict[str, Any]", mentions).get("user_ids")
        return isinstance(named, list) and bot.user_id in named
    formatted = content.get("formatted_body")
    return isinstance(formatted, str) and any(unquote(one) == bot.user_id for one in _LINK.findall(formatted))


def _called(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@]){re.escape(name)}(?![\w:]\w|\w)", re.IGNORECASE)


def mentions_in(text: str, bot: MatrixIdentity, *, is_named: bool = False) -> list[tuple[int, int]]:
    """Return the places in a text that name the bot and may be left out.

    A name without @ may be a word like any other, unless the person's client says that the bot *is named*.
    """
    clear = [one for one in bot.names if is_named or one.startswith("@")]
    unclear = [one for one in bot.names if one not in clear]
    places = list[tuple[int, int]]()
    if clear:
        places += [one.span() for one in _spelled(clear, r"(?<!\S)", r"(?=[,:]|\s|$)").finditer(text)]
    if unclear:
        places += [one.span() for one in _spelled(unclear, r"\A", "(?=[,:])").finditer(text)]
    return places


def _spelled(names: Sequence[str], before: str, behind: str) -> re.Pattern[str]:
    words = "|".join(map(re.escape, names))
    return re.compile(rf"{before}(?:\[(?:{words})\]\({_LINK.pattern}\)|(?:{words})){behind}", re.IGNORECASE)


# What


def _without_mention(text: str, content: Mapping[str, Any], bot: MatrixIdentity) -> str:
    return without_mention(text, mentions_in(text, bot, is_named=_is_named(content, bot)))


def _what_is_said(
    event: RoomEvent, content: Mapping[str, Any], place: _EventPlace
) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the attachments of a message, or of what replaces it."""
    said = msgspec.convert(content, MessageContent)
    if event.type == STICKER:
        return "", _file(AttachmentKind.STICKER, content)
    if said.msgtype == "m.location":
        url = _text(content.get("geo_uri")) or ""
        return "", (Attachment(kind=AttachmentKind.LOCATION, url=url, name=said.body or None),)
    if (kind := _FILES.get(said.msgtype)) is not None:
        is_voice = kind is AttachmentKind.AUDIO and any(name in content for name in _VOICE)
        # A body beside the name of the file is what the person says of it.
        caption = said.body if _text(content.get("filename")) not in (None, said.body) else ""
        return caption, _file(AttachmentKind.VOICE if is_voice else kind, content)
    text = said.body
    if _answered_id(_relation(content)) is not None:
        text = _REPLY_FALLBACK.sub("", text, count=1)
    if said.msgtype == "m.emote":
        text = f"* {place.room.name_of(event.sender) or event.sender} {text}"
    return text, ()


def _file(kind: AttachmentKind, content: Mapping[str, Any]) -> tuple[Attachment, ...]:
    told = content.get("info")
    info: Mapping[str, Any] = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    url, size = _text(content.get("url")) or address_with_key(content.get("file")), info.get("size")
    if not url.startswith(MXC):
        problem = "the file has no address"
        raise UnreadableEventError(problem)
    return (
        Attachment(
            kind=kind,
            url=url,
            media_type=_text(info.get("mimetype")),
            name=_text(content.get("filename")) or _text(content.get("body")),
            size=size if isinstance(size, int) and not isinstance(size, bool) else None,
        ),
    )


def _poll_text(content: Mapping[str, Any]) -> str:
    """Return the words for a poll, in the form of the specification or the one before it."""
    poll = content.get("m.poll") or content.get("org.matrix.msc3381.poll.start")
    if not isinstance(poll, dict):
        return ""
    asked = cast("dict[str, Any]", poll)
    answers = asked.get("answers")
    options = list(map(_words, _items(answers)))
    return f"[poll: {_words(asked.get('question'))} ({', '.join(options)})]"


def _words(content: object) -> str:
    """Return the text of a part of a poll."""
    if not isinstance(content, dict):
        return ""
    part = cast("dict[str, Any]", content)
    told = part.get("m.text") or part.get("org.matrix.msc1767.text") or part.get("body")
    if isinstance(told, str):
        return told
    return next((_words(one) for one in _items(told)), "")


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


# How events belong together


def _relation(content: Mapping[str, Any]) -> Mapping[str, Any]:
    relation = content.get("m.relates_to")
    return cast("dict[str, Any]", relation) if isinstance(relation, dict) else {}


def _thread_id(relation: Mapping[str, Any]) -> str | None:
    return _text(relation.get("event_id")) if relation.get("rel_type") == "m.thread" else None


def _answered_id(relation: Mapping[str, Any]) -> str | None:
    """Return the event that is answered; in a thread, the last message is named without being answered."""
    answered = relation.get("m.in_reply_to")
    if not isinstance(answered, dict) or (
        relation.get("rel_type") == "m.thread" and relation.get("is_falling_back") is True
    ):
        return None
    return _text(cast("dict[str, Any]", answered).get("event_id"))


def _redacted_id(event: RoomEvent) -> str | None:
    return _text(event.content.get("redacts")) or event.redacts


def _reply_of(
    relation: Mapping[str, Any], place: _EventPlace, answered: SeenMessage | None
) -> ReplyTo | None:
    message_id = _answered_id(relation)
    if message_id is None:
        return None
    if answered is None:
        return ReplyTo(message_id=message_id)
    return ReplyTo(
        message_id=message_id,
        text=_REPLY_FALLBACK.sub("", answered.text, count=1) or None,
        author_id=answered.sender,
        author_name=place.room.name_of(answered.sender),
        own=answered.sender == place.rules.bot.user_id,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
