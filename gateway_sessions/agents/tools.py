"""`Tool`: a plain function with types and a docstring, which a model may call.

A model makes mistakes, and tools fail. So a call never raises: what went wrong is a text for the model, which
can correct itself or tell the person.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, get_type_hints

import anyio
import anyio.to_thread
import msgspec

from gateway_sessions.core.storable_text import truncated_text
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.runtime.agents.protocol import current_turn, display_name_of
from gateway_sessions.runtime.agents.search_tool import SESSIONS, SessionSearch
from gateway_sessions.runtime.user_code import check_function, is_task_cancelled, tuple_of

logger: Final = logging.getLogger(__name__)

ToolFunction = Callable[..., Any]
"""A function that a model may call, async or not; its docstring says what it does."""

MAX_RESULT: Final = 100_000
"""The most characters of a result that a model gets."""
MAX_PROBLEM: Final = 500
MAX_THREADS: Final = 16
"""The most plain functions that run at once; each has a thread, and a thread cannot be stopped."""
NO_TOOLS: Final = "give a list of functions with types and docstrings"
CUT: Final = "\n[The rest of this result is left out: it is too long.]"

_NO_NAMED_VALUE: Final = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with the definition that models get of it."""

    definition: Mapping[str, Any]
    """The name, the description and the JSON schema of the parameters."""
    arguments: type[msgspec.Struct]
    """The arguments of a call, as they are decoded and checked."""
    function: ToolFunction

    @classmethod
    def of(cls, function: ToolFunction) -> Tool:
        """Return a function as a tool; `InvalidInputError` says what the function lacks."""
        check_function("one of tools", function, NO_TOOLS)
        name = display_name_of(function).rpartition(".")[2]
        description = inspect.getdoc(function)
        if not description:
            raise _tool_error(name, "has no docstring, which tells the model what it does")
        arguments = _arguments_of(name, function)
        try:
            schema = _schema_of(arguments)
        except TypeError as error:
            raise _tool_error(name, f"has a parameter that JSON does not know ({error})") from error
        definition = {"name": name, "description": description, "parameters": schema}
        return cls(definition, arguments, function)

    async def call(self, arguments: str, threads: anyio.CapacityLimiter) -> str:
        """Call the function with these arguments as JSON; return its result, or what went wrong, as text."""
        name = self.definition["name"]
        try:
            given = msgspec.json.decode(arguments.strip() or "{}", type=self.arguments, strict=False)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return truncated_text(f"These arguments cannot be used: {error}", MAX_PROBLEM)
        try:
            found = await _run(partial(self.function, **msgspec.structs.asdict(given)), threads)
            return _as_text(found)
        except asyncio.CancelledError:
            if is_task_cancelled():
                raise
            return "The tool has cancelled itself."
        except Exception as error:  # foreign code: the model is told, and it is logged
            logger.warning("a tool failed", exc_info=error, extra={"action": "tool_failed", "tool": name})
            return truncated_text(f"The tool failed: {type(error).__name__}: {error}", MAX_PROBLEM)


def tools_by_name(functions: Iterable[ToolFunction]) -> dict[str, Tool]:
    """Return these functions as tools; two of the same name raise `InvalidInputError`."""
    tools: dict[str, Tool] = {}
    for function in tuple_of("tools", functions, object, NO_TOOLS):
        tool = Tool.of(function)
        name = tool.definition["name"]
        if name in tools:
            raise _tool_error(name, "is there twice")
        tools[name] = tool
    return tools


async def session_search(
    query: str = "", limit: int = SESSIONS, sort: Literal["best", "newest", "oldest"] = "best"
) -> dict[str, Any]:
    """Search the earlier conversations that may be shown where the turn takes place."""
    search = await current_turn().session_search()
    return await search(query, limit=limit, sort=sort)


def search_tool() -> Tool:
    """Return the search of earlier conversations as a tool."""
    arguments = _arguments_of("session_search", session_search)
    return Tool(dict(SessionSearch.definition), arguments, session_search)


def _arguments_of(name: str, function: ToolFunction) -> type[msgspec.Struct]:
    """Return a class for the arguments of a function, whose members have the types of its parameters."""
    asked: Any = getattr(function, "func", function)  # of a partial function
    try:
        types = get_type_hints(
            asked if inspect.isroutine(asked) else type(asked).__call__, include_extras=True
        )
    except (NameError, TypeError) as error:
        raise _tool_error(name, f"has a type that cannot be found ({error})") from error
    fields: list[Any] = []
    for one in inspect.signature(function).parameters.values():
        if one.kind in _NO_NAMED_VALUE:
            raise _tool_error(name, f"takes {one}; each parameter of a tool has a name")
        if one.name not in types:
            raise _tool_error(name, f"has no type for {one.name}")
        default = () if one.default is inspect.Parameter.empty else (_default_field(one.default),)
        fields.append((one.name, types[one.name], *default))
    return msgspec.defstruct(f"{name}_arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _default_field(value: Any) -> Any:
    """Return a member with that default; a list is handed over as it is, as Python does it."""
    is_mutable = isinstance(value, list | dict | set)
    return msgspec.field(default_factory=partial(_given, value)) if is_mutable else value


def _given(value: Any) -> Any:
    return value


def _schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of the arguments, as an object with all that it refers to."""
    (told,), parts = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema = dict(parts.pop(told["$ref"].rpartition("/")[2]))
    schema.pop("title", None)
    return {**schema, "$defs": parts} if parts else schema


async def _run(call: Callable[[], Any], threads: anyio.CapacityLimiter) -> object:
    """Call a function, a plain one in a thread: there it stops nobody, and nobody waits for it in vain."""
    if _is_async(call):
        return await call()
    found = await anyio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=threads)
    return await found if inspect.isawaitable(found) else found


def _is_async(call: Any) -> bool:
    asked = inspect.unwrap(call.func)
    while isinstance(asked, partial):
        asked = inspect.unwrap(asked.func)
    return inspect.iscoroutinefunction(asked) or inspect.iscoroutinefunction(
        getattr(asked, "__call__", None)  # noqa: B004 -- an object whose call is async
    )


def _as_text(found: object) -> str:
    text = found if isinstance(found, str) else msgspec.json.encode(found, enc_hook=str).decode()
    cut = CUT if len(text) > MAX_RESULT else ""
    return truncated_text(text, MAX_RESULT) + cut


def _tool_error(name: str, problem: str) -> InvalidInputError:
    return InvalidInputError(f"the tool {name} {problem}")
