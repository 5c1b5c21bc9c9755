"""The body of a request for chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway_sessions.core.transcript.model_history import Chat, model_rows

RESERVED_MEMBERS: Final = frozenset({"messages", "model", "stream", "stream_options"})
"""Members that callers must not set, because the agent relies on them when it reads the answer."""


def request_body(
    history: Iterable[Chat], *, model: str, instructions: str, further: Mapping[str, Any], usage: bool = True
) -> dict[str, Any]:
    """Return the body of a request; *usage* asks for counted tokens, which some endpoints refuse."""
    system = [{"role": "system", "content": instructions}] if instructions else []
    counted = {"stream_options": {"include_usage": True}} if usage else {}
    return {**further, "model": model, "messages": [*system, *model_rows(history)], "stream": True, **counted}
