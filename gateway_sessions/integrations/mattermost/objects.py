"""The objects of Mattermost's API, as far as they are read; the rest is passed over."""

from __future__ import annotations

from typing import Any

import msgspec


class MattermostUser(msgspec.Struct, frozen=True):
    """A person or a bot."""

    id: str
    username: str
    first_name: str = ""
    last_name: str = ""
    nickname: str = ""
    is_bot: bool = False

    @property
    def name(self) -> str:
        """How people see the user."""
        return self.nickname or f"{self.first_name} {self.last_name}".strip() or self.username


class MattermostChannel(msgspec.Struct, frozen=True):
    """A channel, or a conversation of two or several people. Times are in milliseconds."""

    id: str
    type: str
    """D: two people, G: several people, O: a public channel, P: a private one."""
    create_at: int
    last_post_at: int = 0
    display_name: str = ""
    team_id: str = ""
    delete_at: int = 0


class MattermostFile(msgspec.Struct, frozen=True):
    """A file of a post."""

    id: str
    name: str = ""
    size: int | None = None
    mime_type: str | None = None


class PostMetadata(msgspec.Struct, frozen=True):
    """What a server adds to a post."""

    files: list[MattermostFile] | None = None


class MattermostPost(msgspec.Struct, frozen=True):
    """A message. Times are in milliseconds; 0: that never happened."""

    id: str
    user_id: str
    channel_id: str
    create_at: int
    update_at: int
    message: str = ""
    edit_at: int = 0
    delete_at: int = 0
    root_id: str = ""
    """The post with which the thread began; empty: this one is in no thread, or began one."""
    type: str = ""
    """Empty for what people write; names of the server's own messages begin with "system_"."""
    props: dict[str, Any] | None = None
    metadata: PostMetadata | None = None

    @property
    def is_by_bot(self) -> bool:
        """Whether a bot or a webhook wrote the post."""
        props = self.props or {}
        return any(props.get(name) in ("true", True) for name in ("from_bot", "from_webhook"))


class PostList(msgspec.Struct, frozen=True):
    """Posts by their ids, and the order in which they are shown; each is read for itself."""

    order: list[str]
    posts: dict[str, Any]
