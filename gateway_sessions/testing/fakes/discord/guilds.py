"""Guilds, channels, threads, people and messages of a fake Discord, in the form that its API has."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from gateway_sessions.ports import Clock

DISCORD_EPOCH_MS: Final = 1_420_070_400_000
"""The beginning of the year 2015, from which the ids of Discord count."""
TEXT_CHANNEL: Final = 0
PRIVATE_CHANNEL: Final = 1
PUBLIC_THREAD: Final = 11
DEFAULT_MESSAGE: Final = 0
ANSWER: Final = 19
SLASH_COMMAND: Final = 20
ALL_PERMISSIONS: Final = str((1 << 50) - 1)

_MENTION: Final = re.compile(r"<@!?(\d+)>")
_ROLE_MENTION: Final = re.compile(r"<@&(\d+)>")

Dispatch = Callable[[str, dict[str, Any]], None]
"""This function brings an event to the bot."""


@dataclass(frozen=True, slots=True)
class DiscordPerson:
    """A person or a bot."""

    id: int
    name: str
    is_bot: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the person as the API has it."""
        return {
            "id": str(self.id),
            "username": self.name.lower(),
            "global_name": None if self.is_bot else self.name.title(),
            "discriminator": "0",
            "avatar": None,
            "bot": self.is_bot,
        }


@dataclass(slots=True)
class DiscordChannel:
    """A channel of a guild, a thread, or a private channel with one person."""

    id: int
    name: str
    kind: int
    guild_id: int | None = None
    parent_id: int | None = None
    recipient: DiscordPerson | None = None
    messages: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    """The messages that are there, by id, the oldest first."""
    may_read: bool = True
    """Whether the bot sees the channel."""
    may_write: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the channel as the API has it."""
        channel: dict[str, Any] = {
            "id": str(self.id),
            "type": self.kind,
            "last_message_id": str(max(self.messages)) if self.messages else None,
        }
        if self.recipient is not None:
            return {**channel, "recipients": [self.recipient.as_json()]}
        channel |= {"name": self.name, "guild_id": str(self.guild_id), "position": 0}
        channel |= {"permission_overwrites": [], "topic": None, "nsfw": False, "rate_limit_per_user": 0}
        if self.kind == PUBLIC_THREAD:
            metadata = {
                "archived": False,
                "auto_archive_duration": 1440,
                "archive_timestamp": _timestamp(self.id),
            }
            channel |= {"owner_id": str(self.id), "message_count": len(self.messages), "member_count": 2}
            channel |= {"thread_metadata": metadata}
        return {**channel, "parent_id": str(self.parent_id) if self.parent_id else None}


class DiscordGuilds:
    """All that a bot can see: one guild, its channels and threads, and private channels."""

    def __init__(self, bot_name: str, guild_name: str, clock: Clock) -> None:
        self._clock = clock
        self._last_id = 0
        # People write in the thread of a test, the bot in that of the fake.
        self._lock = threading.Lock()
        self.bot: DiscordPerson = DiscordPerson(self.new_id(), bot_name, is_bot=True)
        self.guild_id: int = self.new_id()
        self.guild_name: str = guild_name
        self.bot_role: int = self.new_id()
        """The role that Discord makes for the bot; people pick it where they mean the bot."""
        self.people: dict[str, DiscordPerson] = {bot_name: self.bot}
        self.channels: dict[int, DiscordChannel] = {}
        self.dispatch: Dispatch = lambda _event, _data: None

    def new_id(self) -> int:
        """Return an id that is larger than all before it, and tells the time."""
        now = (int(self._clock.now().timestamp() * 1000) - DISCORD_EPOCH_MS) << 22
        with self._lock:
            self._last_id = max(now, self._last_id + 1)
            return self._last_id

    def person(self, name: str) -> DiscordPerson:
        """Return a person, who joins with the first mention of the name."""
        if name not in self.people:
            self.people[name] = DiscordPerson(self.new_id(), name)
        return self.people[name]

    def private_channel(self, person: DiscordPerson) -> DiscordChannel:
        """Return the channel of a person with the bot."""
        for channel in self.channels.values():
            if channel.recipient == person:
                return channel
        return self._add(DiscordChannel(self.new_id(), person.name, PRIVATE_CHANNEL, recipient=person))

    def channel(self, name: str) -> DiscordChannel:
        """Return a channel of the guild, which is created with the first mention of its name."""
        for channel in self.channels.values():
            if (channel.name, channel.kind) == (name, TEXT_CHANNEL):
                return channel
        channel = DiscordChannel(self.new_id(), name, TEXT_CHANNEL, guild_id=self.guild_id)
        self.dispatch("CHANNEL_CREATE", self._add(channel).as_json())
        return channel

    def thread(self, parent: DiscordChannel, name: str, *, thread_id: int | None = None) -> DiscordChannel:
        """Return a thread of a channel, which is created with the first mention of its name."""
        for channel in self.channels.values():
            if (channel.name, channel.parent_id) == (name, parent.id):
                return channel
        # A thread that begins at a message has that message's id.
        number = thread_id or self.new_id()
        thread = DiscordChannel(number, name, PUBLIC_THREAD, guild_id=self.guild_id, parent_id=parent.id)
        self._add(thread)
        self.dispatch("THREAD_CREATE", {**thread.as_json(), "newly_created": True})
        return thread

    def _add(self, channel: DiscordChannel) -> DiscordChannel:
        self.channels[channel.id] = channel
        return channel

    def channel_of(self, message_id: int) -> DiscordChannel:
        """Return the channel that holds a message."""
        for channel in self.channels.values():
            if message_id in channel.messages:
                return channel
        problem = f"there is no message {message_id}"
        raise AssertionError(problem)

    # Messages

    def add_message(
        self, channel: DiscordChannel, author: DiscordPerson, content: str, **more: Any
    ) -> dict[str, Any]:
        """Add a message, bring it to the bot, and return it."""
        message = self.make_message(channel, author, content, **more)
        kept = {name: value for name, value in message.items() if name != "nonce"}
        channel.messages[int(message["id"])] = kept
        self.dispatch("MESSAGE_CREATE", self.as_event(channel, message))
        return message

    def make_message(
        self, channel: DiscordChannel, author: DiscordPerson, content: str, **more: Any
    ) -> dict[str, Any]:
        """Return a message that is not there yet."""
        message_id = self.new_id()
        return {
            "id": str(message_id),
            "channel_id": str(channel.id),
            "type": DEFAULT_MESSAGE,
            "content": content,
            "author": author.as_json(),
            "timestamp": _timestamp(message_id),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [one.as_json() for one in self._mentioned(content)],
            "mention_roles": _ROLE_MENTION.findall(content),
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "flags": 0,
            "components": [],
            **more,
        }

    def edit_message(self, channel: DiscordChannel, message_id: int, **change: Any) -> dict[str, Any]:
        """Change a message, tell the bot, and return it."""
        message = channel.messages[message_id]
        content = str(change.get("content", message["content"]))
        now = self._clock.now().astimezone(UTC).isoformat(timespec="microseconds")
        mentions = [one.as_json() for one in self._mentioned(content)]
        message.update({"edited_timestamp": now, "mentions": mentions, **change})
        self.dispatch("MESSAGE_UPDATE", self.as_event(channel, message))
        return message

    def unfurl(self, message_id: int) -> None:
        """Add a preview to a message, as Discord does it some time after somebody wrote a link."""
        channel = self.channel_of(message_id)
        message = channel.messages[message_id]
        message["embeds"] = [{"type": "link", "url": "https://example.org", "title": "Example"}]
        self.dispatch("MESSAGE_UPDATE", self.as_event(channel, message))

    def delete_message(self, channel: DiscordChannel, message_id: int) -> None:
        """Remove a message, and tell the bot."""
        del channel.messages[message_id]
        self.dispatch("MESSAGE_DELETE", self._in_place(channel, {"id": str(message_id)}))

    def as_event(self, channel: DiscordChannel, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a message as the gateway brings it: with its guild, and its author as a member there."""
        event = self._in_place(channel, {**message})
        if channel.guild_id is not None:
            event["member"] = self.member()
        return event

    def _in_place(self, channel: DiscordChannel, data: dict[str, Any]) -> dict[str, Any]:
        place = {"channel_id": str(channel.id)}
        if channel.guild_id is not None:
            place["guild_id"] = str(channel.guild_id)
        return {**data, **place}

    def _mentioned(self, content: str) -> Iterable[DiscordPerson]:
        ids = {int(one) for one in _MENTION.findall(content)}
        return [person for person in self.people.values() if person.id in ids]

    # What the gateway tells at its beginning

    def member(self) -> dict[str, Any]:
        """Return what a guild knows of a person besides the person."""
        return {"roles": [], "joined_at": _timestamp(self.guild_id), "deaf": False, "mute": False, "flags": 0}

    def guild_as_json(self) -> dict[str, Any]:
        """Return the guild with its channels and threads."""
        visible = [one for one in self.channels.values() if one.guild_id is not None and one.may_read]
        own_role = {"name": self.bot.name, "tags": {"bot_id": str(self.bot.id)}, "managed": True}
        return {
            "id": str(self.guild_id),
            "name": self.guild_name,
            "owner_id": str(self.guild_id),
            "member_count": len(self.people),
            "roles": [self._role(self.guild_id, name="@everyone"), self._role(self.bot_role, **own_role)],
            "channels": [one.as_json() for one in visible if one.kind == TEXT_CHANNEL],
            "threads": [one.as_json() for one in visible if one.kind == PUBLIC_THREAD],
            "members": [
                {**self.member(), "user": self.bot.as_json(), "roles": [str(self.bot_role)]},
            ],
            "unavailable": False,
        }

    def _role(self, role_id: int, **more: Any) -> dict[str, Any]:
        plain = {"id": str(role_id), "permissions": ALL_PERMISSIONS, "position": 0, "color": 0, "flags": 0}
        return {**plain, "hoist": False, "managed": False, "mentionable": False, "colors": _NO_COLORS, **more}


_NO_COLORS: Final = {"primary_color": 0, "secondary_color": None, "tertiary_color": None}


def _timestamp(snowflake: int) -> str:
    seconds = ((snowflake >> 22) + DISCORD_EPOCH_MS) / 1000
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
