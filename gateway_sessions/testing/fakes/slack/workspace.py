"""People, channels, messages and files of a fake Slack."""

from __future__ import annotations

import html
import itertools
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.slack.blocks import visible_text
from gateway_sessions.testing.fakes.slack.refusals import SlackRefusalError

TEAM: Final = "T0000001"
APP: Final = "A0000001"
BOT_USER: Final = "U0000000"
BOT: Final = "B0000001"

_KINDS: Final = {"im": "D", "mpim": "G", "group": "C", "channel": "C"}
_URL: Final = re.compile(r"(?<!\S)https?://[^\s<>]+")
_NAME: Final = re.compile(r"(?<!\w)@([a-z][\w.-]*)")

Message = dict[str, Any]


@dataclass(slots=True)
class SlackUser:
    """A person, or a bot."""

    id: str
    name: str
    bot_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the user as `users.info` shows one."""
        real_name = self.name.capitalize()
        profile = {"display_name": self.name, "real_name": real_name}
        facts = {"id": self.id, "team_id": TEAM, "name": self.name, "deleted": False, "profile": profile}
        return {**facts, "real_name": real_name, "is_bot": self.bot_id is not None}


@dataclass(slots=True)
class SlackChannel:
    """A conversation of any kind."""

    id: str
    name: str
    kind: str
    """`channel`, `group` (a private channel), `im` (a direct message) or `mpim` (one of several people)."""
    members: set[str] = field(default_factory=set[str])
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    """The messages by their timestamps, which are their ids."""
    is_archived: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the channel as `conversations.info` shows one."""
        kinds = {f"is_{kind}": kind == self.kind for kind in _KINDS}
        facts = {
            "id": self.id,
            **kinds,
            "is_archived": self.is_archived,
            "is_private": self.kind != "channel",
        }
        return facts if self.kind == "im" else {**facts, "name": self.name}

    def thread(self, ts: str) -> list[Message]:
        """Return a message and the answers in its thread, the oldest first."""
        return [one for own, one in list(self.messages.items()) if ts in (own, one.get("thread_ts"))]


class SlackWorkspace:
    """All that is in one workspace with one app; tests and the server's thread may change it at a time."""

    def __init__(self, bot_name: str, clock: Clock) -> None:
        self.bot: SlackUser = SlackUser(BOT_USER, bot_name, bot_id=BOT)
        self.people: dict[str, SlackUser] = {bot_name: self.bot}
        self.channels: dict[str, SlackChannel] = {}
        self.files: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        """The content of the files by their ids."""
        self._clock = clock
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._last_ts = 0

    # Who and where

    def person(self, name: str) -> SlackUser:
        """Return the person of that name, who appears when they are first named."""
        with self._lock:
            return self.people.setdefault(name, SlackUser(f"U{1000 + len(self.people):07}", name))

    def user(self, user_id: str) -> SlackUser | None:
        """Return the user of that id."""
        return next((one for one in self.people.values() if one.id == user_id), None)

    def direct(self, name: str) -> SlackChannel:
        """Return the direct messages of a person and the bot."""
        return self._place(name, "im", {self.person(name).id, self.bot.id})

    def channel(self, name: str, *, kind: str = "channel") -> SlackChannel:
        """Return the channel of that name; the bot is a member unless it is taken out."""
        found = next((one for one in self.channels.values() if one.name == name and one.kind != "im"), None)
        return found or self._place(name, kind, {self.bot.id})

    def _place(self, name: str, kind: str, members: set[str]) -> SlackChannel:
        with self._lock:
            for channel in self.channels.values():
                if (channel.name, channel.kind) == (name, kind):
                    return channel
            channel = SlackChannel(f"{_KINDS[kind]}{len(self.channels) + 1:07}", name, kind, members)
            self.channels[channel.id] = channel
            return channel

    def open_channel(self, named: object, *, to_write: bool = True) -> SlackChannel:
        """Return the channel that a call names, or refuse as Slack does."""
        channel = self.channels.get(str(named))
        if channel is None and (user := self.user(str(named))) is not None:
            channel = self.direct(user.name)
        if channel is None:
            channel = next((one for one in self.channels.values() if f"#{one.name}" == named), None)
        if channel is None or (channel.kind != "channel" and self.bot.id not in channel.members):
            raise SlackRefusalError("channel_not_found")
        if self.bot.id not in channel.members:
            raise SlackRefusalError("not_in_channel")
        if to_write and channel.is_archived:
            raise SlackRefusalError("is_archived")
        return channel

    # What is said

    def add_message(self, channel: SlackChannel, content: Message) -> Message:
        """Add a message to a channel, with a timestamp that no other one has."""
        with self._lock:
            message: Message = {"type": "message", **content, "ts": self.new_ts()}
            channel.messages[message["ts"]] = message
            root = channel.messages.get(message.get("thread_ts", ""))
            if root is not None:
                root.setdefault("thread_ts", root["ts"])
                root["reply_count"] = root.get("reply_count", 0) + 1
        return message

    def new_ts(self) -> str:
        """Return the time as Slack writes it: seconds and millionths, never the same twice."""
        with self._lock:
            now = int(self._clock.now().timestamp() * 1_000_000)
            self._last_ts = max(now, self._last_ts + 1)
            return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06}"

    def new_id(self, letter: str) -> str:
        """Return an id that nothing else has."""
        return f"{letter}{next(self._ids):08}"

    def typed_text(self, text: str) -> str:
        """Return a text that a person has typed as Slack hands it on: escaped, with names and addresses."""
        escaped = html.escape(text, quote=False)
        named = _NAME.sub(self._mention, escaped)
        return _URL.sub(lambda found: f"<{found[0]}>", named)

    def _mention(self, found: re.Match[str]) -> str:
        user = self.people.get(found[1])
        return f"<@{user.id}>" if user is not None else found[0]

    def texts(self, channel: SlackChannel, *, thread: str | None = None) -> list[str]:
        """Return what the bot has said in a channel or in one of its threads, as people read it."""
        return [visible_text(one) for one in self.own_messages(channel, thread=thread)]

    def own_messages(self, channel: SlackChannel, *, thread: str | None = None) -> Iterator[Message]:
        """Yield the messages of the bot."""
        messages: Iterable[Message] = channel.messages.copy().values()
        if thread is not None:
            messages = channel.thread(thread)
        return (one for one in messages if one.get("user") == self.bot.id)

    # Files

    def add_file(self, name: str, content: bytes, media_type: str, base_url: str) -> dict[str, Any]:
        """Add a file, and return it as Slack describes it."""
        number = self.new_id("F")
        address = f"{base_url}/files-pri/{TEAM}-{number}"
        self.contents[number] = content
        self.files[number] = {
            "id": number,
            "name": name,
            "title": name,
            "mimetype": media_type,
            "filetype": name.rpartition(".")[2],
            "mode": "hosted",
            "size": len(content),
            "url_private": f"{address}/{name}",
            "url_private_download": f"{address}/download/{name}",
        }
        return self.files[number]
