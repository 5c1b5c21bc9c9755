"""Editors show what each field of a public record holds, unless its name is a plain word of the glossary."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator

import msgspec
import pytest

import gateway_sessions
from tests.architecture.sources import PUBLIC_MODULES

PLAIN_NAMES = frozenset(
    [
        "account",
        "actual_cost_usd",
        "admitted_at",
        "aliases",
        "api_call_count",
        "api_calls",
        "archived",
        "attachments",
        "attempt",
        "attempts",
        "author_id",
        "author_name",
        "base_url",
        "billing_base_url",
        "billing_mode",
        "billing_provider",
        "bytes",
        "bytes_after",
        "bytes_before",
        "cache_read_tokens",
        "cache_write_tokens",
        "chat_id",
        "chat_name",
        "chat_topic",
        "chat_type",
        "clock",
        "command",
        "content",
        "cost_source",
        "cost_status",
        "created_at",
        "current_session_id",
        "database",
        "display_name",
        "disposition",
        "dry_run",
        "due_at",
        "edited_at",
        "end_reason",
        "ended_at",
        "estimated_cost_usd",
        "event_id",
        "findings",
        "finish_reason",
        "format",
        "gateway",
        "given_up_at",
        "guild_id",
        "handler",
        "idempotency_key",
        "input_tokens",
        "isolation",
        "item_id",
        "last_active",
        "last_prompt_tokens",
        "media_type",
        "message",
        "message_count",
        "message_id",
        "messages",
        "model",
        "model_config",
        "name",
        "opened_at",
        "output_tokens",
        "owner",
        "owners",
        "parent_chat_id",
        "parent_session_id",
        "pid",
        "pinned",
        "platform",
        "platform_message_id",
        "previous_session_id",
        "pricing_version",
        "profile",
        "provider",
        "reason",
        "reasoning",
        "reasoning_tokens",
        "replaced_at",
        "reply_id",
        "reply_to",
        "rewind_count",
        "role",
        "roles",
        "schema",
        "scope",
        "seconds",
        "sent_at",
        "session_id",
        "session_key",
        "sessions",
        "started_at",
        "state",
        "system_prompt",
        "text",
        "thread_id",
        "timeout",
        "timestamp",
        "title",
        "token_count",
        "tool_call_count",
        "tool_call_id",
        "tool_calls",
        "tool_name",
        "total_rows",
        "total_tokens",
        "updated_at",
        "uptime_seconds",
        "url",
        "user_id",
        "user_name",
        "version",
        "zone",
    ]
)
"""Fields that say by their names what they hold."""


def is_record(kind: object) -> bool:
    if not isinstance(kind, type):
        return False
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return named or dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)


def public_records() -> list[type]:
    modules = (gateway_sessions, *PUBLIC_MODULES)
    values = [getattr(module, name) for module in modules for name in module.__all__]
    return sorted({one for one in values if is_record(one)}, key=lambda one: one.__qualname__)


def undocumented_fields(kind: type) -> Iterator[str]:
    """Yield the public fields of a record that have neither a text behind them nor a plain name."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    for field, following in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or "ClassVar" in ast.unparse(field.annotation):
            continue
        name = ast.unparse(field.target)
        told = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if not (told or name in PLAIN_NAMES or name.startswith("_")):
            yield name


@pytest.mark.parametrize("kind", public_records(), ids=lambda one: one.__name__)
def test_each_field_of_a_public_record_is_explained_where_an_editor_shows_it(kind: type):
    assert list(undocumented_fields(kind)) == []
