"""What was said in a session: one message as a value, and what may be stored of it.

A message comes from a person, a model, a tool or the runtime. Its content is text or, where a platform or a
model speaks in parts, JSON; both come back exactly as they were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

Content: TypeAlias = str | list[Any] | dict[str, Any] | None

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Role(StrEnum):
    """The roles this package knows the meaning of; others are stored and never sent to a model."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"
    SESSION_META = "session_meta"  # what a session began with, for people who look; never sent to a model


class Hidden(StrEnum):
    """Why a message is no longer part of the conversation."""

    REWOUND = "rewound"  # a person took it back; can be undone
    COMPACTED = "compacted"  # a summary stands for it; still found by a search
    RETRACTED = "retracted"  # deleted on its platform


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """One message of a session, as stored."""

    message_id: int = 0
    """Rises over the whole store in the order of commits; 0: not stored yet."""
    session_id: str = ""
    seq: int = 0
    """Its place in the session, counted from 1 without gaps; 0: not stored yet."""
    role: str
    content: Content = None
    tool_call_id: str | None = None
    tool_calls: list[Any] | None = None
    tool_name: str | None = None
    effect_disposition: str | None = None
    sent_at: datetime | None = None
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None
    codex_reasoning_items: Any = None
    codex_message_items: Any = None
    api_content: Content = None
    """What was sent to the model in place of `content`, where that differs."""
    platform_message_id: str | None = None
    observed: bool = False
    """Seen in a room, not addressed to the agent."""
    hidden_because: Hidden | None = None
    edited_at: datetime | None = None
    extra: Mapping[str, Any] = msgspec.field(default_factory=lambda: _NOTHING)
    """Members that this version does not know; given back as they were."""

    @property
    def active(self) -> bool:
        """Whether it is part of the conversation."""
        return self.hidden_because is None
