"""The objects of Discord's API, as far as they are read; what else Discord sends is passed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from gateway_sessions.errors import InvalidInputError

DISCORD_EPOCH_MS: Final = 1_420_070_400_000
"""The beginning of the year 2015, from which the ids of Discord count milliseconds."""
_COUNTER_BITS: Final = 22
"""The lower bits of an id, which tell ids of one millisecond apart."""

T = TypeVar("T")


class UnreadableDiscordObjectError(InvalidInputError):
    """An object does not have the form that Discord describes."""


class DiscordUser(msgspec.Struct, frozen=True):
    """A person, a bot or a webhook."""

    id: str
    username: str = ""
    global_name: str | None = None
    bot: bool = False

    @property
    def name(self) -> str:
        """The name as people see it."""
        return self.global_name or self.username


class DiscordMember(msgspec.Struct, frozen=True):
    """What a guild knows of a person."""

    nick: str | None = None
    user: DiscordUser | None = None


class DiscordFile(msgspec.Struct, frozen=True):
    """A file that came with a message."""

    url: str = ""
    filename: str = ""
    content_type: str | None = None
    size: int | None = None


class DiscordSticker(msgspec.Struct, frozen=True):
    """A sticker."""

    id: str
    name: str = ""


class DiscordPollText(msgspec.Struct, frozen=True):
    """The words of a question or of an answer."""

    text: str = ""


class DiscordPollAnswer(msgspec.Struct, frozen=True):
    """One answer of a poll."""

    poll_media: DiscordPollText = DiscordPollText()


class DiscordPoll(msgspec.Struct, frozen=True):
    """A poll."""

    question: DiscordPollText
    answers: list[DiscordPollAnswer] = []


class DiscordReference(msgspec.Struct, frozen=True):
    """The message that another one answers or forwards."""

    message_id: str | None = None
    type: int = 0


class DiscordForwarded(msgspec.Struct, frozen=True):
    """The content of a message that was forwarded."""

    content: str = ""
    attachments: list[DiscordFile] = []


class DiscordSnapshot(msgspec.Struct, frozen=True):
    """A forwarded message as it was."""

    message: DiscordForwarded = DiscordForwarded()


class DiscordComponent(msgspec.Struct, frozen=True):
    """A row of buttons, or a button."""

    type: int = 0
    label: str | None = None
    custom_id: str | None = None
    components: list[DiscordComponent] = []


class DiscordMessage(msgspec.Struct, frozen=True):
    """A message."""

    id: str
    author: DiscordUser
    content: str = ""
    edited_timestamp: str | None = None
    type: int = 0
    flags: int = 0
    member: DiscordMember | None = None
    webhook_id: str | None = None
    mentions: list[DiscordUser] = []
    mention_roles: list[str] = []
    attachments: list[DiscordFile] = []
    sticker_items: list[DiscordSticker] = []
    poll: DiscordPoll | None = None
    message_reference: DiscordReference | None = None
    referenced_message: DiscordMessage | None = None
    message_snapshots: list[DiscordSnapshot] = []
    components: list[DiscordComponent] = []

    @property
    def author_name(self) -> str:
        """The name of the author as the place's people see it."""
        return (self.member.nick if self.member else None) or self.author.name


class DiscordPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel in which messages stand: a private one, one of a guild, or a thread."""

    channel_id: str
    guild_id: str | None = None
    """The guild; None: the channel is private."""
    name: str | None = None
    """The name of the channel, or of the channel of the thread."""
    parent_id: str | None = None
    """The channel of a thread; None: this is no thread."""
    known: bool = True
    """Whether Discord was asked what kind of channel this is, if it did not tell that by itself."""

    @property
    def chat_id(self) -> str:
        """The channel, also for messages of its threads."""
        return self.parent_id or self.channel_id

    @property
    def thread_id(self) -> str | None:
        """The thread, if this is one."""
        return self.channel_id if self.parent_id is not None else None


class DiscordOption(msgspec.Struct, frozen=True):
    """What somebody gave to a command."""

    name: str
    value: str | int | float | bool | None = None
    options: list[DiscordOption] = []


class DiscordResolved(msgspec.Struct, frozen=True):
    """What the ids stand for that somebody gave to a command."""

    attachments: dict[str, DiscordFile] = {}


class DiscordInteractionData(msgspec.Struct, frozen=True):
    """What somebody pressed or called."""

    name: str = ""
    custom_id: str = ""
    options: list[DiscordOption] = []
    resolved: DiscordResolved = DiscordResolved()


class InteractionChannel(msgspec.Struct, frozen=True):
    """A channel as an interaction tells it."""

    id: str
    type: int = 0
    name: str | None = None
    parent_id: str | None = None


class DiscordInteraction(msgspec.Struct, frozen=True):
    """A press on a button, or a command from Discord's menu."""

    id: str
    type: int
    token: str = ""
    application_id: str = ""
    data: DiscordInteractionData = DiscordInteractionData()
    guild_id: str | None = None
    channel_id: str | None = None
    channel: InteractionChannel | None = None
    member: DiscordMember | None = None
    user: DiscordUser | None = None
    message: DiscordMessage | None = None


def read_as(kind: type[T], value: Mapping[str, Any]) -> T:
    """Return an object of Discord from JSON; `UnreadableDiscordObjectError` if it is none."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        problem = f"{kind.__name__} cannot be read ({error})"
        raise UnreadableDiscordObjectError(problem) from error


def milliseconds_of(snowflake: str) -> int:
    """Return the milliseconds since 1970 at which an id was made."""
    return (int(snowflake) >> _COUNTER_BITS) + DISCORD_EPOCH_MS


def snowflake_at(milliseconds: int) -> int:
    """Return the least id of a millisecond."""
    return max(0, milliseconds - DISCORD_EPOCH_MS) << _COUNTER_BITS
