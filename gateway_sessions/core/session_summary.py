"""What a list of sessions shows of each, and which of them a list is asked for."""

from __future__ import annotations

from datetime import datetime

import msgspec

from gateway_sessions.core.session_record import Relation


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
