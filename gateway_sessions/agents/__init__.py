"""Agents answer turns; the one here asks a model, and its errors say what can go wrong with that.

- ``chat_completions``: Chat completions are the protocol that endpoints for models share; its rules here
  need no network.
- ``endpoint``: An endpoint is the address at which a model is asked, with its name and its key.
- ``openai``: The agent here asks a model at any endpoint for chat completions, as OpenAI and many others
  have it.
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
