"""`Endpoint`: the address of a model, with its name and its key.

The class is apart from the agent, so that it can be used where the extra `openai` is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from gateway_sessions.agents.chat_completions.request import RESERVED_MEMBERS
from gateway_sessions.config import ModelConfig
from gateway_sessions.core.storable_text import MAX_WORD
from gateway_sessions.errors import InvalidInputError

URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
MODEL_VARIABLE: Final = "OPENAI_MODEL"
INSTRUCTIONS_VARIABLE: Final = "OPENAI_INSTRUCTIONS"
OPENAI: Final = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint for chat completions; wrong members raise `InvalidInputError`."""

    model: str
    """The model of sessions for which nobody has chosen another one."""
    base_url: str = OPENAI
    """The address in front of `/chat/completions`."""
    api_key: str | None = field(default=None, repr=False)
    """The key, which is sent to that address only. Models on one's own machine often need none."""
    instructions: str = ""
    """The instructions in every conversation, before the description of where it takes place."""
    history_limit: int | None = None
    """The number of last messages that the model gets; None: all."""
    connect_seconds: float = 10.0
    """The time limit for connecting."""
    silence_seconds: float = 120.0
    """The longest silence of the endpoint, before its answer or in the middle of it."""
    further: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of each request, such as `temperature`."""

    def __post_init__(self) -> None:
        if not self.model or len(self.model) > MAX_WORD or not self.model.isprintable():
            problem = "is the name of no model" if self.model else "is missing"
            raise _endpoint_error("model", MODEL_VARIABLE, problem)
        if not _is_plain_url(self.base_url):
            expected = "must be http://host/path or https://host/path, without a name, a key or a query in it"
            raise _endpoint_error("base_url", URL_VARIABLE, expected)
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise _endpoint_error("api_key", KEY_VARIABLE, "has characters that no key has")
        if self.base_url.rstrip("/") == OPENAI and not self.api_key:
            raise _endpoint_error("api_key", KEY_VARIABLE, f"is missing, and {self.host} wants one")
        if ours := RESERVED_MEMBERS & self.further.keys():
            problem = f"further: {', '.join(sorted(ours))} cannot be set here"
            raise InvalidInputError(problem)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str], **given: Any) -> Endpoint:
        """Return the endpoint that the usual variables describe; *given* members override them."""
        named = {
            "model": MODEL_VARIABLE,
            "base_url": URL_VARIABLE,
            "api_key": KEY_VARIABLE,
            "instructions": INSTRUCTIONS_VARIABLE,
        }
        said = {name: environ.get(variable, "").strip() for name, variable in named.items()}
        members: dict[str, Any] = {
            "model": "",
            **{name: text for name, text in said.items() if text},
            **given,
        }
        return cls(**members)

    @classmethod
    def from_config(cls, config: ModelConfig, environ: Mapping[str, str]) -> Endpoint:
        """Return the endpoint of a configuration; the usual variables fill in what it does not set."""
        named = {
            "model": config.name,
            "base_url": config.base_url,
            "api_key": config.api_key,
            "instructions": config.instructions,
        }
        return cls.from_environment(
            environ,
            **{name: text for name, text in named.items() if text is not None},
            history_limit=config.history_limit,
            connect_seconds=config.connect.total_seconds(),
            silence_seconds=config.silence.total_seconds(),
        )

    @property
    def url(self) -> str:
        """The address to which questions are posted."""
        return f"{self.base_url.rstrip('/')}/chat/completions"

    @property
    def host(self) -> str:
        """The host, by which people and reports of use know the endpoint."""
        return urlsplit(self.base_url).netloc

    def is_meant_by(self, address: str | None) -> bool:
        """Return whether a session that has chosen this address, or none, uses this endpoint."""
        return not address or address.rstrip("/") == self.base_url.rstrip("/")


def _is_plain_url(url: str) -> bool:
    """Return whether an address has only a host and a path, because a key in it would get into logs."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    extra = parts.username is not None or parts.query or parts.fragment
    return (
        parts.scheme in {"http", "https"} and has_host and not extra and url.isprintable() and " " not in url
    )


def _endpoint_error(name: str, variable: str, problem: str) -> InvalidInputError:
    """Return an error that never quotes the value, which may be a key in the wrong variable."""
    where = f"{variable} in the environment, model.{'name' if name == 'model' else name} in a configuration"
    return InvalidInputError(f"{name} {problem}; it is {where}")
