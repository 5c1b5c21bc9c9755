"""Agents answer turns; the one here asks a model, and its errors say what can go wrong with that.

- `openai`: the agent, for any endpoint for chat completions; it needs the extra `openai`.
- `endpoint`: the address of a model, its name and its key.
- `chat_completions`: the protocol between the two, without a network.
"""

from gateway_sessions.agents.endpoint import Endpoint
from gateway_sessions.errors import (
    ContextTooLongError,
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
)

__all__ = [
    "ContextTooLongError",
    "Endpoint",
    "ModelAnswerError",
    "ModelError",
    "ModelRefusedError",
    "ModelUnavailableError",
]
