"""The body of a request for chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from gateway_sessions.core.transcript.model_history import Chat, model_rows

RESERVED_MEMBERS: Final = frozenset({"messages", "model", "stream", "stream_options", "tools"})
"""Members that callers must not set, because the agent relies on them when it reads the answer."""


def request_body(
    history: Iterable[Chat],
    *,
    model: str,
    instructions: str,
    further: Mapping[str, Any],
    tools: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the body of a request; *tools* are the definitions of the tools that the model may call."""
    system = [{"role": "system", "content": instructions}] if instructions else []
    offered = {"tools": [{"type": "function", "function": one} for one in tools]} if tools else {}
    return {
        **further,
        "model": model,
        "messages": [*system, *model_rows(history)],
        "stream": True,
        "stream_options": {"include_usage": True},
        **offered,
    }
