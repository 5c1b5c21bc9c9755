"""Agents answer turns; the agent here asks a model, and has errors for what can go wrong.

- ``chat_completions``: The protocol of chat completions, which most endpoints for models share, without the
  network.
- ``endpoint``: `Endpoint`: the address of a model, with its name and its key.
- ``openai``: `OpenAIAgent`: an agent that asks a model at any endpoint for chat completions, of OpenAI or
  others.
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
