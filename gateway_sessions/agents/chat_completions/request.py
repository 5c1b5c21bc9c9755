"""What an endpoint for chat completions is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from gateway_sessions.core.completions.rows import model_rows
from gateway_sessions.core.replay import Chat

OURS: Final = frozenset({"messages", "model", "stream", "stream_options"})
"""What is asked for is not left to whoever sets further members."""


def question(
    history: Iterable[Chat],
    *,
    model: str,
    instructions: str,
    further: Mapping[str, Any],
    usage: bool = True,
) -> dict[str, Any]:
    """The body of a request; *usage*: ask for the tokens to be counted, which some endpoints refuse."""
    system = [{"role": "system", "content": instructions}] if instructions else []
    counted = {"stream_options": {"include_usage": True}} if usage else {}
    return {**further, "model": model, "messages": [*system, *model_rows(history)], "stream": True, **counted}
