"""Agents answer turns; the agent here asks a model, and has errors for what can go wrong.

- ``chat_completions``: The protocol of chat completions, which most endpoints for models share, without the
  network.
- ``endpoint``: `Endpoint`: the address of a model, with its name and its key.
- ``endpoint_client``: `EndpointClient`: the connections to an endpoint; it asks once, and reads the answer
  to its end.
- ``openai``: `OpenAIAgent`: an agent that asks a model at any endpoint for chat completions, of OpenAI or
  others.
- ``side_questions``: The questions about a conversation that are no turns of it: its title, and a summary of
  it.
- ``tools``: `Tool`: a plain function with types and a docstring, which a model may call.
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
