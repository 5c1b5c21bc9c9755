"""The members that each exported session, message and use has, and their order.

The members of the established export come first, then our own.

Times are seconds since 1970, as floats. Beyond the year 2242 a float no longer tells every microsecond; the
exact number then stands beside it as `<name>_micros`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from gateway_sessions.core.instants import LARGEST_SECONDS, to_micros
from gateway_sessions.core.sessions.record import SessionRecord
from gateway_sessions.core.transcript.messages import Content, Message
from gateway_sessions.core.usage.usage_events import Usage

FORMAT: Final = "gateway-sessions/1"
"""The mark of an export that is exact; other exports are read more leniently."""
MICROS: Final = "_micros"
"""The suffix of the exact companion of a time that a float does not tell exactly."""
MILLION: Final = 1_000_000

ESTABLISHED: Final = (
    "source", "user_id", "model", "model_config", "system_prompt", "parent_session_id", "started_at",
    "ended_at", "end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens",
    "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "billing_provider", "billing_base_url",
    "billing_mode", "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source",
    "pricing_version", "title", "api_call_count",
)  # fmt: skip
"""The members of every export, in this order, after `id`."""
OWN: Final = (
    "session_key", "owner", "relation", "title_by", "pinned", "archived", "rewind_count", "last_active",
    "last_seq", "preview", "extra", "title_owner",
)  # fmt: skip
"""The members that are written only if they have a value."""
ALWAYS_SAID: Final = frozenset({"seq", "role", "content"})
UNSAID: Final = frozenset({"observed", "platform_messages", "extra"})
"""The members of a message that are written only if they have a value."""
IN_MESSAGE: Final = (
    "seq", "role", "content", "sent_at", "tool_call_id", "tool_calls", "tool_name", "effect_disposition",
    "token_count", "finish_reason", "reasoning", "reasoning_content", "reasoning_details",
    "codex_reasoning_items", "codex_message_items", "api_content", "platform_message_id", "observed",
    "hidden_because", "edited_at", "platform_messages", "extra", "author", "from_lane", "people",
)  # fmt: skip
OTHER_NAMES: Final[Mapping[str, str]] = {"sent_at": "timestamp"}
"""The fields whose members have another name in the established export."""

Version = tuple[Content, datetime]
"""A content that was replaced, and the instant of that."""


def session_members(record: SessionRecord, *, ends: int, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the members of a session without its messages and its use.

    *entry* is the stored entry of an ended session's lane.
    """
    members: dict[str, Any] = {"id": record.session_id, "format": FORMAT}
    for name in ESTABLISHED:
        value = getattr(record, name)
        members |= as_member(name, (dict(value) or None) if name == "model_config" else value)
    for name in OWN:
        value = getattr(record, name)
        if value and (name != "title_owner" or value != record.owner):
            members |= as_member(name, dict(value) if name == "extra" else value)
    if ends:
        members["ends"] = ends
    if entry is not None:
        members["entry"] = entry
    return members


def message_members(message: Message, hidden_by: int | None, versions: Iterable[Version]) -> dict[str, Any]:
    """Return the members of a message.

    *hidden_by* is the number of the act that hid it, *versions* are its replaced contents.
    """
    members: dict[str, Any] = {}
    for name in IN_MESSAGE:
        value = getattr(message, name)
        if (value is not None and (value or name not in UNSAID)) or name in ALWAYS_SAID:
            plain: Any = dict(message.extra) if name == "extra" else value
            members |= as_member(OTHER_NAMES.get(name, name), plain)
    if message.hidden_because is not None:
        members |= {"active": False} | ({"hidden_by": hidden_by} if hidden_by is not None else {})
    if earlier := [{"content": content, **as_member("replaced_at", at)} for content, at in versions]:
        members["versions"] = earlier
    return members


def usage_members(usage: Usage) -> dict[str, Any]:
    """Return the members of one use of a model."""
    members: dict[str, Any] = {}
    for name in usage.__struct_fields__:
        value = getattr(usage, name)
        if value is not None:
            members |= as_member(name, value)
    return members


def as_member(name: str, value: object) -> dict[str, Any]:
    """Return a member, with its exact companion where a float is not exact."""
    if isinstance(value, datetime):
        micros = to_micros(value)
        seconds = micros / MILLION
        exact = round(seconds * MILLION) == micros and abs(seconds) <= LARGEST_SECONDS
        return {name: seconds} if exact else {name: seconds, name + MICROS: micros}
    return {name: str(value) if isinstance(value, str) else value}
