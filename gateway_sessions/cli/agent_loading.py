"""Who answers: what `--agent` names becomes what a gateway is given."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from inspect import Parameter, isclass, iscoroutinefunction, isroutine, signature, unwrap
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions.cli.context import Desk
from gateway_sessions.core.telling import counted
from gateway_sessions.errors import InvalidInputError

SHORT: Final[Mapping[str, str]] = MappingProxyType({"openai": "gateway_sessions.agents.openai:create"})
"""Agents that have a name of their own."""
ENTRY_AND_HISTORY: Final = 2
"""What a factory is called with."""
TAKEN: Final = "an agent takes a turn, what makes one takes nothing, or an entry and its history"


@asynccontextmanager
async def answering(text: str, desk: Desk) -> AsyncGenerator[dict[str, Any]]:
    """What a gateway is given for a name; an agent that is made for it is closed in the end."""
    found = _found(text)
    needed = _needed(text, found)
    made = needed == 0
    if made:
        found = _made(found, desk)
        needed = _needed(f"{text}()", found)
        if needed == 0:
            problem = f"--agent: {text}() takes no argument; {TAKEN}"
            raise InvalidInputError(problem)
    try:
        yield {"agent": found} if needed is None else {"agent_factory": found}
    finally:
        if made and hasattr(found, "aclose"):
            await found.aclose()


def _found(text: str) -> Any:
    module, _, attribute = SHORT.get(text, text).partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), attribute)
    except InvalidInputError:
        raise
    except (ImportError, ValueError, AttributeError) as error:
        problem = f"--agent: {text!r} cannot be used ({error}); write module:name, or openai"
        raise InvalidInputError(problem) from error


def _made(make: Any, desk: Desk) -> Any:
    if "config" not in signature(make).parameters:
        return make()
    config = desk.place()[1]
    config.require("model")
    return make(config=config)


def _needed(name: str, found: Any) -> int | None:
    """How many arguments it takes to make an agent of it, none or two; None: it is an agent itself."""
    if hasattr(found, "run_turn") and not isclass(found):
        return None
    needed = _arguments_of(name, found)
    if needed in (0, ENTRY_AND_HISTORY):
        return needed
    if needed != 1 or isclass(found):
        problem = f"--agent: {name} takes {counted(needed, 'argument')}; {TAKEN}"
        raise InvalidInputError(problem)
    if not _can_be_awaited(found):
        problem = f"--agent: {name} is not async; an agent is an async function, or has an async run_turn"
        raise InvalidInputError(problem)
    return None


def _arguments_of(name: str, found: Any) -> int:
    """How many a function does not go without; one if it takes any number."""
    try:
        parameters = signature(found).parameters.values()
    except (TypeError, ValueError):
        problem = f"--agent: {name} is neither an agent nor a function that is or makes one"
        raise InvalidInputError(problem) from None
    several = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    needed = sum(one.default is Parameter.empty and one.kind not in several for one in parameters)
    any_number = any(one.kind is Parameter.VAR_POSITIONAL for one in parameters)
    return 1 if any_number and not needed else needed


def _can_be_awaited(function: Any) -> bool:
    """Whether what it returns can be awaited, as far as that is known before it is called."""
    asked = unwrap(getattr(function, "func", function))
    promised = str(signature(function).return_annotation)
    return (
        iscoroutinefunction(asked if isroutine(asked) else type(asked).__call__)
        or "Awaitable" in promised
        or "Coroutine" in promised
    )
