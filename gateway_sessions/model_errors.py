"""What can go wrong with a model at an endpoint. Each is a `GatewaySessionsError`, too.

    ModelError                      a model has not answered
    ├── ModelUnavailableError       it cannot be reached, or is too busy: later it may answer
    ├── ModelRefusedError           it will not answer as it was asked: correct something first
    │   └── ContextTooLongError     the conversation does not fit into it any more
    └── ModelAnswerError            what came is no answer, or broke off

None of them holds a key: what an endpoint says is quoted without it.
"""

from __future__ import annotations

from gateway_sessions.errors import GatewaySessionsError


class ModelError(GatewaySessionsError):
    """A model has not answered; `endpoint` is the host that was asked."""

    def __init__(self, endpoint: str, problem: str) -> None:
        self.endpoint = endpoint
        self.problem = problem
        super().__init__(f"{endpoint} {problem}")


class ModelUnavailableError(ModelError):
    """The model cannot be reached or is too busy now; later it may answer.

    `asked` tells whether it can have got the question, and `retry_after` for how many seconds it wants to be
    left alone, if it has said so.
    """

    def __init__(
        self, endpoint: str, problem: str, *, asked: bool = True, retry_after: float | None = None
    ) -> None:
        self.asked = asked
        self.retry_after = retry_after
        super().__init__(endpoint, problem)


class ModelRefusedError(ModelError):
    """The model will not answer as it was asked: a key, an address or a name has to be corrected first."""


class ContextTooLongError(ModelRefusedError):
    """The conversation is longer than the model can read."""


class ModelAnswerError(ModelError):
    """What came is no answer, or broke off; the model may have worked on it all the same."""
