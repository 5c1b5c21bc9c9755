"""Agents that are there already, and what can go wrong with a model."""

from gateway_sessions.agents.endpoint import Endpoint
from gateway_sessions.model_errors import (
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
