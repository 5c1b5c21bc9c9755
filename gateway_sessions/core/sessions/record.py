"""A session as the database stores it (`SessionRecord`) and as a list shows it (`SessionSummary`).

A `SessionRecord` stays for ever: origin, title, and the sums of its messages and its use.
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
    """The way in which a session came from its parent."""

    SUCCESSION = "succession"  # a reset or a move took the parent's place
    CONTINUATION = "continuation"  # the parent was compressed, and goes on here
    BRANCH = "branch"  # a copy of the parent up to some message
    DELEGATE = "delegate"  # the work of a sub-agent


class SessionRecord(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One session, open or ended, with the sums of its messages and its use."""

    session_id: str
    source: str
    """The platform on which the session began."""
    owner: str
    """The owner: the person for a private session, the room for a shared one."""
    started_at: datetime
    last_active: datetime
    """The instant of the last message; it never goes back."""
    session_key: str | None = None
    """The key of the session's lane; None for a session without one, such as in a terminal."""
    user_id: str | None = None
    parent_session_id: str | None = None
    relation: Relation | None = None
    """The relation to the parent session; None without a parent."""
    ended_at: datetime | None = None
    end_reason: str | None = None
    title: str | None = None
    title_by: str | None = None
    """The author of the title."""
    model: str | None = None
    model_config: Mapping[str, Any] = NOTHING
    system_prompt: str | None = None
    billing_provider: str | None = None
    billing_base_url: str | None = None
    billing_mode: str | None = None
    pinned: bool = False
    archived: bool = False
    extra: Mapping[str, Any] = NOTHING
    """The facts that this version does not know; they are given back unchanged."""
    last_seq: int = 0
    """The number of stored messages, hidden ones included; equal to the place of the last one."""
    message_count: int = 0
    """The number of messages that are part of the conversation."""
    tool_call_count: int = 0
    text_bytes: int = 0
    """The bytes that the text of all stored messages takes."""
    rewind_count: int = 0
    preview: str | None = None
    """The beginning of the first text of a person."""
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
    """The owner of the session at the time when it got its title."""


class SessionSummary(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A conversation in a list: its tip, shown with the beginning of its first session."""

    session_id: str
    source: str
    """The platform on which the session began."""
    title: str | None
    preview: str
    """The beginning of the first text of a person; empty if no person wrote."""
    last_active: datetime
    started_at: datetime
    """The instant at which the conversation began."""
    lineage_root: str
    """The id of the conversation's first session; the session's own id if it was never compressed."""
    owner: str = ""
    session_key: str | None = None
    user_id: str | None = None
    parent_session_id: str | None = None
    relation: Relation | None = None
    """The relation to the parent session; None without a parent."""
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
