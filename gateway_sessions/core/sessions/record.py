"""A session as the database stores it (`SessionRecord`) and as a list shows it (`SessionSummary`).

A session as the database knows it, for ever: where it came from, what it is called, what it adds up to.

What a list of sessions shows of each, and which of them a list is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import msgspec

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Relation(StrEnum):
    """How a session came from its parent."""

    SUCCESSION = "succession"  # a reset or a move took the parent's place
    CONTINUATION = "continuation"  # the parent was compressed, and goes on here
    BRANCH = "branch"  # a copy of the parent up to some message
    DELEGATE = "delegate"  # the work of a sub-agent


class SessionRecord(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One session, whether it goes on or has ended, and what its messages and its use add up to."""

    session_id: str
    source: str
    owner: str
    """The person for a private session, the room for a shared one."""
    started_at: datetime
    last_active: datetime
    """When something was said last; never goes back."""
    session_key: str | None = None
    """Its lane; None for a session without one, such as in a terminal."""
    user_id: str | None = None
    parent_session_id: str | None = None
    relation: Relation | None = None
    ended_at: datetime | None = None
    end_reason: str | None = None
    title: str | None = None
    title_by: str | None = None
    model: str | None = None
    model_config: Mapping[str, Any] = NOTHING
    system_prompt: str | None = None
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    pinned: bool = False
    archived: bool = False
    extra: Mapping[str, Any] = NOTHING
    """Facts that this version does not know; given back as they were."""
    last_seq: int = 0
    """How many messages are stored, hidden ones too: the last of them has this number."""
    message_count: int = 0
    """How many messages are part of the conversation."""
    tool_call_count: int = 0
    text_bytes: int = 0
    """What all stored messages take."""
    rewind_count: int = 0
    preview: str | None = None
    """How the first text of a person begins."""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    api_call_count: int = 0
    estimated_cost_usd: float | None = None
    actual_cost_usd: float | None = None
    cost_status: str | None = None
    cost_source: str | None = None
    pricing_version: str | None = None
    title_owner: str | None = None
    """Whose session it was when it got its title."""


class SessionSummary(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A conversation in a list: the session that goes on today, in the place of the one it began with."""

    session_id: str
    source: str
    title: str | None
    preview: str
    """How the first text of a person begins; empty if nobody said anything."""
    last_active: datetime
    started_at: datetime
    """When the conversation began."""
    lineage_root: str
    """The session that it began with; the session itself if it was never compressed."""
    owner: str = ""
    session_key: str | None = None
    user_id: str | None = None
    parent_session_id: str | None = None
    relation: Relation | None = None
    ended_at: datetime | None = None
    end_reason: str | None = None
    model: str | None = None
    pinned: bool = False
    archived: bool = False
    message_count: int = 0
    tool_call_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_cost_usd: float | None = None
