"""People, channels, posts and files of a fake Mattermost."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import Any, Final

from gateway_sessions.ports import Clock

LONGEST_TEXT: Final = 16_383
PENDING_SECONDS: Final = 30.0
"""For so long a server knows the pending id of a post."""


class MattermostRefusalError(Exception):
    """The server does not do what it was asked."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status = status
        self.code = code
        self.message = message
        super().__init__(message)

    def as_json(self) -> dict[str, Any]:
        """Return the answer that tells it."""
        return {"id": self.code, "message": self.message, "status_code": self.status, "request_id": "r"}


def no_permission() -> MattermostRefusalError:
    """Return the refusal of what this account may not do."""
    problem = "You do not have the appropriate permissions."
    return MattermostRefusalError(403, "api.context.permissions.app_error", problem)


@dataclass(frozen=True, slots=True)
class WorkspaceUser:
    """A person, or the bot."""

    id: str
    username: str
    is_bot: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the user as the API shows one."""
        names = {"username": self.username, "first_name": self.username.capitalize(), "last_name": ""}
        return {"id": self.id, **names, "nickname": "", "is_bot": self.is_bot, "delete_at": 0}


@dataclass(slots=True)
class WorkspaceChannel:
    """A channel, with its posts in the order in which they were made."""

    id: str
    type: str
    display_name: str
    create_at: int
    members: set[str]
    posts: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    is_read_only: bool = False
    typing: list[str] = field(default_factory=list[str])
    """The threads in which the bot has shown that it types; "" is the channel itself."""

    def as_json(self) -> dict[str, Any]:
        """Return the channel as the API shows it."""
        last = max((post["create_at"] for post in self.posts.values()), default=0)
        facts = {"id": self.id, "type": self.type, "display_name": self.display_name, "name": self.id}
        team = "" if self.type in "DG" else "team1"
        return {**facts, "team_id": team, "create_at": self.create_at, "delete_at": 0, "last_post_at": last}


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file on the server."""

    id: str
    name: str
    content: bytes
    mime_type: str

    def as_json(self) -> dict[str, Any]:
        """Return what the API tells of the file."""
        return {"id": self.id, "name": self.name, "size": len(self.content), "mime_type": self.mime_type}


class Workspace:
    """All channels of a server; tests and the server's thread may change them at a time."""

    def __init__(self, clock: Clock) -> None:
        self.users: dict[str, WorkspaceUser] = {}
        self.channels: dict[str, WorkspaceChannel] = {}
        self.files: dict[str, WorkspaceFile] = {}
        self._clock = clock
        self._lock = threading.RLock()
        self._ids = itertools.count(1)
        self._last = 0

    def new_id(self, kind: str) -> str:
        """Return an id of 26 characters that nothing else has."""
        return f"{kind}{next(self._ids)}".ljust(26, "x")

    def now(self) -> int:
        """Return the time in milliseconds; no two are equal, as on a server where people type."""
        with self._lock:
            self._last = max(self._last + 1, int(self._clock.now().timestamp() * 1000))
            return self._last

    def user(self, username: str, *, is_bot: bool = False) -> WorkspaceUser:
        """Return the user of that name, who appears when they are first named."""
        if username not in self.users:
            self.users[username] = WorkspaceUser(self.new_id("user"), username, is_bot)
        return self.users[username]

    def create(self, kind: str, title: str, *members: str) -> WorkspaceChannel:
        """Return a new channel."""
        channel = WorkspaceChannel(self.new_id("channel"), kind, title, self.now(), set(members))
        self.channels[channel.id] = channel
        return channel

    def channel_for(self, user_id: str, channel_id: str, *, writes: bool = False) -> WorkspaceChannel:
        """Return the channel of a member, or refuse as a server does."""
        channel = self.channels.get(channel_id)
        if channel is None or user_id not in channel.members or (writes and channel.is_read_only):
            raise no_permission()
        return channel

    def post_for(self, user_id: str, post_id: str) -> dict[str, Any]:
        """Return a post that a user may see, or refuse as a server does."""
        for channel in self.channels.values():
            if post_id in channel.posts and user_id in channel.members:
                post = channel.posts[post_id]
                if not post["delete_at"]:
                    return post
        raise MattermostRefusalError(404, "app.post.get.app_error", "Unable to get the post.")

    def add(self, channel: WorkspaceChannel, user_id: str, content: dict[str, Any]) -> dict[str, Any]:
        """Let somebody make a post; refuse one that breaks the rules."""
        text, root_id = content.get("message", ""), content.get("root_id", "")
        if len(text) > LONGEST_TEXT:
            problem = "Invalid message."
            raise MattermostRefusalError(400, "model.post.is_valid.message_length.app_error", problem)
        if root_id and (root_id not in channel.posts or channel.posts[root_id]["delete_at"]):
            problem = "Invalid RootId parameter."
            raise MattermostRefusalError(400, "api.post.create_post.root_id.app_error", problem)
        if not text and not content.get("file_ids"):
            raise MattermostRefusalError(400, "model.post.is_valid.msg.app_error", "Invalid message.")
        with self._lock:
            at = self.now()
            post: dict[str, Any] = {
                "id": self.new_id("post"),
                "user_id": user_id,
                "channel_id": channel.id,
                "create_at": at,
                "update_at": at,
                "edit_at": 0,
                "delete_at": 0,
                "root_id": root_id,
                "message": text,
                "type": content.get("type", ""),
                "props": content.get("props") or {},
                "metadata": {},
            }
            if file_ids := content.get("file_ids"):
                post["metadata"] = {"files": [self.files[one].as_json() for one in file_ids]}
            if root_id:
                channel.posts[root_id]["update_at"] = at
            channel.posts[post["id"]] = post
        return post

    def edit(self, post: dict[str, Any], text: str) -> None:
        """Change what a post says."""
        with self._lock:
            if post["message"] != text:
                at = self.now()
                post.update(message=text, edit_at=at, update_at=at)

    def delete(self, post: dict[str, Any]) -> None:
        """Take a post back."""
        with self._lock:
            at = self.now()
            post.update(delete_at=at, update_at=at)
