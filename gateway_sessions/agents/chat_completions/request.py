"""The agent asks an endpoint for chat completions with the body that is built here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway_sessions.core.transcript.model_history import Chat, model_rows

RESERVED_MEMBERS: Final = frozenset({"messages", "model", "stream", "stream_options"})
"""Members that nobody else may set: the agent relies on them when it reads the answer."""


def request_body(
    history: Iterable[Chat],
    *,
    model: str,
    instructions: str,
    further: Mapping[str, Any],
    usage: bool = True,
) -> dict[str, Any]:
    """Return the body of a request; with *usage* it asks for counted tokens, which some endpoints refuse."""
    system = [{"role": "system", "content": instructions}] if instructions else []
    counted = {"stream_options": {"include_usage": True}} if usage else {}
    return {**further, "model": model, "messages": [*system, *model_rows(history)], "stream": True, **counted}
