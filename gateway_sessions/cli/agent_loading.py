"""Loading of the agent that `--agent` names."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, isclass, iscoroutinefunction, isroutine, signature, unwrap
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway_sessions.cli.context import CommandContext
from gateway_sessions.core.notices.human_units import counted
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.duties.titles import Titler

AGENT_NAMES: Final[Mapping[str, str]] = MappingProxyType({"openai": "gateway_sessions.agents.openai:create"})
"""Short names of agents."""
ENTRY_AND_HISTORY: Final = 2
"""The number of arguments of an agent factory."""
EXPECTED: Final = "an agent takes a turn, what makes one takes nothing, or an entry and its history"


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    """An agent, and what else it can do for a gateway and a store."""

    arguments: dict[str, Any]
    """The arguments of the gateway: the agent, and its `compress`, if it has one, as the compressor."""
    titler: Titler | None = None
    """The agent's `propose_title`, if it has one."""


@asynccontextmanager
async def open_agent(text: str, context: CommandContext) -> AsyncGenerator[LoadedAgent]:
    """Yield the agent of that name; an agent made here is closed after the block."""
    found = _import_agent(text)
    needed = _arguments_to_make(text, found)
    made = needed == 0
    if made:
        found = _call_factory(found, context)
        needed = _arguments_to_make(f"{text}()", found)
        if needed == 0:
            problem = f"--agent: {text}() takes no argument; {EXPECTED}"
            raise InvalidInputError(problem)
    try:
        yield LoadedAgent({"agent_factory": found}) if needed is not None else _abilities_of(found)
    finally:
        if made and hasattr(found, "aclose"):
            await found.aclose()


def _abilities_of(agent: Any) -> LoadedAgent:
    compress = getattr(agent, "compress", None)
    return LoadedAgent(
        {"agent": agent, **({"compressor": compress} if compress is not None else {})},
        titler=getattr(agent, "propose_title", None),
    )


def _import_agent(text: str) -> Any:
    module, _, attribute = AGENT_NAMES.get(text, text).partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(import_module(module), attribute)
    except InvalidInputError:
        raise
    except (ImportError, ValueError, AttributeError) as error:
        problem = f"--agent: {text!r} cannot be used ({error}); write module:name, or openai"
        raise InvalidInputError(problem) from error


def _call_factory(make: Any, context: CommandContext) -> Any:
    if "config" not in signature(make).parameters:
        return make()
    config = context.home_and_config()[1]
    config.require("model")
    return make(config=config)


def _arguments_to_make(name: str, found: Any) -> int | None:
    """Return how many arguments a factory takes, none or two; None if *found* is an agent itself."""
    if hasattr(found, "run_turn") and not isclass(found):
        return None
    needed = _required_arguments(name, found)
    if needed in (0, ENTRY_AND_HISTORY):
        return needed
    if needed != 1 or isclass(found):
        problem = f"--agent: {name} takes {counted(needed, 'argument')}; {EXPECTED}"
        raise InvalidInputError(problem)
    if not _can_be_awaited(found):
        problem = f"--agent: {name} is not async; an agent is an async function, or has an async run_turn"
        raise InvalidInputError(problem)
    return None


def _required_arguments(name: str, found: Any) -> int:
    """Return how many arguments a function requires; one if it takes any number."""
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
    """Return whether the result of a call can be awaited, as far as that is known before the call."""
    asked = unwrap(getattr(function, "func", function))
    promised = str(signature(function).return_annotation)
    return (
        iscoroutinefunction(asked if isroutine(asked) else type(asked).__call__)
        or "Awaitable" in promised
        or "Coroutine" in promised
    )
