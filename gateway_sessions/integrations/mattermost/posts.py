"""Reading of Mattermost's posts: which message one brings, for whom it is, and what came with it.

Nothing here waits or asks anybody. A post that cannot be read raises `UnreadablePostError`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from gateway_sessions.adapters.group_talk import MENTIONS, Address, GroupRules, Hearing, without_mention
from gateway_sessions.core.identity.source import Platform, SessionSource
from gateway_sessions.core.queue.inbound import Attachment, AttachmentKind, InboundMessage, MessageKind
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.mattermost.objects import MattermostChannel, MattermostFile, MattermostPost

FILE: Final = "mattermost:"
"""The beginning of an attachment's address: behind it stands the id of the file, for this server only."""
DIRECT: Final = "D"
_JOINED: Final = frozenset(
    {"system_join_channel", "system_add_to_channel", "system_join_team", "system_add_to_team"}
)
"""Who comes into a team comes into its first channels."""
_SAID: Final = frozenset({"", "me", "slack_attachment"})
_KINDS: Final = {
    "image": AttachmentKind.PHOTO,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
}

RawPost: TypeAlias = Mapping[str, Any]
"""A post as JSON has it."""


class UnreadablePostError(InvalidInputError):
    """A post does not have the form that Mattermost describes."""


class PostChange(StrEnum):
    """What happened to a post since a time."""

    CREATED = "created"
    EDITED = "edited"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class MattermostIdentity:
    """The account of the bot."""

    user_id: str
    username: str


@dataclass(frozen=True, slots=True)
class PostRules:
    """Which posts an adapter reads, and for which account."""

    bot: MattermostIdentity
    account: str = ""
    groups: GroupRules[RawPost] = MENTIONS
    threads: bool = True
    """Whether a post in a channel begins a thread that is a conversation of its own."""


@dataclass(frozen=True, slots=True)
class PostPlace:
    """Where a post stands, as far as the post does not tell."""

    channel: MattermostChannel
    author: str | None = None
    """The name of the author, if it is known."""
    takes_part: bool = False
    """Whether the bot has written in the thread of the post."""


def post_of(raw: RawPost) -> MattermostPost:
    """Return a post, or raise `UnreadablePostError`."""
    try:
        return msgspec.convert(raw, MattermostPost)
    except msgspec.ValidationError as error:
        problem = f"a post of Mattermost cannot be read ({error})"
        raise UnreadablePostError(problem) from error


def changes_since(post: MattermostPost, since: int) -> list[tuple[int, PostChange]]:
    """Return what happened to a post since a time, with the times, in order."""
    if post.delete_at > since:
        return [(post.delete_at, PostChange.DELETED)]
    happened = ((post.create_at, PostChange.CREATED), (post.edit_at, PostChange.EDITED))
    return [(at, change) for at, change in happened if at > since]


def joins(post: MattermostPost, user_id: str) -> bool:
    """Return whether a post tells that somebody came into the channel."""
    if post.type not in _JOINED:
        return False
    added = (post.props or {}).get("addedUserId")
    return added == user_id if added is not None else post.user_id == user_id


def may_be_message(post: MattermostPost, rules: PostRules) -> bool:
    """Return whether a post may be a message for the bot, before anything else is asked."""
    return post.type in _SAID and post.user_id != rules.bot.user_id


def read_post(raw: RawPost, change: PostChange, place: PostPlace, rules: PostRules) -> InboundMessage | None:
    """Return the message that a change of a post brings; None if it brings none, or one for somebody else."""
    try:
        post = post_of(raw)
        if not may_be_message(post, rules):
            return None
        if change is PostChange.DELETED:
            return _message(post, change, place, rules, text="")
        text, attachments = _text_of(post, place, rules.bot), tuple(map(_attachment, _files_of(post)))
        if not (text or attachments):
            return None
        hearing = rules.groups.hearing(_address_of(post, change, place, rules), raw)
        if not rules.groups.keeps(hearing):
            return None
        observed = hearing is Hearing.OVERHEARD
        return _message(post, change, place, rules, text=text, attachments=attachments, observed=observed)
    except (msgspec.ValidationError, InvalidInputError, ValueError, OverflowError, OSError) as error:
        problem = f"a post of Mattermost cannot be read ({type(error).__name__}: {error})"
        raise UnreadablePostError(problem) from error


def _message(
    post: MattermostPost,
    change: PostChange,
    place: PostPlace,
    rules: PostRules,
    *,
    text: str,
    attachments: tuple[Attachment, ...] = (),
    observed: bool = False,
) -> InboundMessage:
    kinds = {
        PostChange.CREATED: MessageKind.NEW,
        PostChange.EDITED: MessageKind.EDIT,
        PostChange.DELETED: MessageKind.DELETE,
    }
    channel = place.channel
    is_direct = channel.type == DIRECT
    source = SessionSource(
        platform=Platform.MATTERMOST,
        chat_id=channel.id,
        chat_name=None if is_direct else channel.display_name or None,
        chat_type="dm" if is_direct else "group",
        user_id=post.user_id,
        user_name=place.author,
        thread_id=thread_of(post, channel, rules),
        guild_id=channel.team_id or None,
        is_bot=post.is_by_bot,
        account=rules.account,
    )
    return InboundMessage(
        source=source,
        text=text,
        message_id=post.id,
        account=rules.account,
        kind=kinds[change],
        revision=post.edit_at if change is PostChange.EDITED else 0,
        sent_at=datetime.fromtimestamp(post.create_at / 1000, UTC),
        attachments=attachments,
        observed=observed,
    )


def thread_of(post: MattermostPost, channel: MattermostChannel, rules: PostRules) -> str | None:
    """Return the thread that a post belongs to, as a conversation; None: to the channel itself."""
    if post.root_id:
        return post.root_id
    return post.id if rules.threads and channel.type != DIRECT else None


# For whom


def _address_of(post: MattermostPost, change: PostChange, place: PostPlace, rules: PostRules) -> Address:
    return Address(
        text=post.message,
        private=place.channel.type == DIRECT,
        by_bot=post.is_by_bot,
        changes=change is not PostChange.CREATED,
        mentions=_mention(rules.bot).search(post.message) is not None,
        takes_part=place.takes_part,
        names=(rules.bot.username,),
    )


def _mention(bot: MattermostIdentity) -> re.Pattern[str]:
    # A name may hold dots and hyphens; a dot behind it may also end the sentence.
    return re.compile(rf"(?<![\w@])@{re.escape(bot.username)}(?![\w-]|\.\w)", re.IGNORECASE)


# What


def _text_of(post: MattermostPost, place: PostPlace, bot: MattermostIdentity) -> str:
    """Return the text without a mention of the bot at its ends: that tells only for whom it is."""
    # A blank in front keeps clients from taking a slash for a command of theirs.
    written = post.message.strip()
    text = without_mention(written, (one.span() for one in _mention(bot).finditer(written)))
    return f"* {place.author or post.user_id} {text.strip('*')}" if post.type == "me" else text


def _files_of(post: MattermostPost) -> list[MattermostFile]:
    return (post.metadata.files if post.metadata is not None else None) or []


def _attachment(file: MattermostFile) -> Attachment:
    kind = _KINDS.get((file.mime_type or "").partition("/")[0], AttachmentKind.DOCUMENT)
    return Attachment(
        kind=kind,
        url=f"{FILE}{file.id}",
        media_type=file.mime_type or None,
        name=file.name or None,
        size=file.size,
    )
