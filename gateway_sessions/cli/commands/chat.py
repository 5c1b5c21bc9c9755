"""`chat`: talk to an agent here, and go on with any conversation."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import gateway_sessions as gs
from gateway_sessions.cli.desk import Desk, run
from gateway_sessions.core.telling import counted

if TYPE_CHECKING:
    from gateway_sessions.core.recap import RecapForm

DEMO: Final = "gateway_sessions.cli.demo_agent:answer"
"""Answers without any model: it shows what a session remembers."""
SHORT: Final[Mapping[str, str]] = MappingProxyType({"openai": "gateway_sessions.agents.openai:create"})
"""Agents that have a name of their own."""
ENTRY_AND_HISTORY: Final = 2
"""What a factory is called with."""
TAKEN: Final = "an agent takes a turn, what makes one takes nothing, or an entry and its history"
WHO: Final = "Who answers: a function of a turn, a factory, or `openai`: the model that is configured."


def chat(
    context: typer.Context,
    title: Annotated[
        list[str] | None,
        typer.Argument(
            help="With -c: the title of the conversation; several words are joined.", metavar="TITLE…"
        ),
    ] = None,
    *,
    go_on: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the last conversation.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", help="Go on with this session.", metavar="SESSION")
    ] = None,
    agent: Annotated[str, typer.Option(help=WHO, metavar="MODULE:NAME")] = DEMO,
    recap: Annotated[
        str | None,
        typer.Option(
            help="What is shown of a resumed one: full, minimal or off. Else as display.resume_display says."
        ),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="Take the session from the lane it is on.")] = False,
    fork: Annotated[bool, typer.Option("--fork", help="Go on in a copy of it.")] = False,
) -> None:
    """Talk to an agent at this terminal. Lines in, answers out; Ctrl-D ends it."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.talking import Talk, Wanted  # noqa: PLC0415 -- --help must not wait for it

        name = " ".join(title or ()) or None
        _refuse(desk, name if not go_on else None, recap)
        wanted = Wanted(go_on=go_on or resume is not None, text=resume or name, move=move, fork=fork)
        # Where there is no store, nothing can be resumed in it, and none is made for that.
        new = wanted.text is None
        async with answering(agent, desk) as given, desk.store(may_be_new=new) as store:
            form = recap_form(recap, store.config)
            await Talk(desk, store, form).hold(wanted, **given)

    run(context, work)


def recap_form(said: str | None, config: gs.Config) -> RecapForm:
    """How much of a conversation is shown: what somebody says, else what the configuration says."""
    from gateway_sessions.core.recap import RecapForm  # noqa: PLC0415 -- --help must not wait for it

    return config.display.resume_display if said is None else RecapForm(said)


def _refuse(desk: Desk, name: str | None, recap: str | None) -> None:
    from gateway_sessions.core.recap import RecapForm  # noqa: PLC0415 -- --help must not wait for it

    if desk.as_json:
        problem = "a conversation is not JSON; leave --json out"
        raise gs.InvalidInputError(problem)
    if recap is not None and recap not in list(RecapForm):
        problem = f"--recap: {recap!r} is none of {', '.join(RecapForm)}"
        raise gs.InvalidInputError(problem)
    if name is not None:
        problem = f"to go on with {name!r}, say: -c {name!r}"
        raise gs.InvalidInputError(problem)


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
            raise gs.InvalidInputError(problem)
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
    except gs.InvalidInputError:
        raise
    except (ImportError, ValueError, AttributeError) as error:
        problem = f"--agent: {text!r} cannot be used ({error}); write module:name, or openai"
        raise gs.InvalidInputError(problem) from error


def _made(make: Any, desk: Desk) -> Any:
    from inspect import signature  # noqa: PLC0415 -- --help must not wait for it

    return make(config=desk.place()[1]) if "config" in signature(make).parameters else make()


def _needed(name: str, found: Any) -> int | None:
    """How many arguments it takes to make an agent of it, none or two; None: it is an agent itself."""
    from inspect import isclass  # noqa: PLC0415 -- --help must not wait for it

    if hasattr(found, "run_turn") and not isclass(found):
        return None
    needed = _arguments_of(name, found)
    if needed in (0, ENTRY_AND_HISTORY):
        return needed
    if needed != 1 or isclass(found):
        problem = f"--agent: {name} takes {counted(needed, 'argument')}; {TAKEN}"
        raise gs.InvalidInputError(problem)
    if not _can_be_awaited(found):
        problem = f"--agent: {name} is not async; an agent is an async function, or has an async run_turn"
        raise gs.InvalidInputError(problem)
    return None


def _arguments_of(name: str, found: Any) -> int:
    """How many a function does not go without; one if it takes any number."""
    from inspect import Parameter, signature  # noqa: PLC0415 -- as above

    try:
        parameters = signature(found).parameters.values()
    except (TypeError, ValueError):
        problem = f"--agent: {name} is neither an agent nor a function that is or makes one"
        raise gs.InvalidInputError(problem) from None
    several = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    needed = sum(one.default is Parameter.empty and one.kind not in several for one in parameters)
    any_number = any(one.kind is Parameter.VAR_POSITIONAL for one in parameters)
    return 1 if any_number and not needed else needed


def _can_be_awaited(function: Any) -> bool:
    """Whether what it returns can be awaited, as far as that is known before it is called."""
    from inspect import iscoroutinefunction, isroutine, signature, unwrap  # noqa: PLC0415 -- as above

    asked = unwrap(getattr(function, "func", function))
    promised = str(signature(function).return_annotation)
    return (
        iscoroutinefunction(asked if isroutine(asked) else type(asked).__call__)
        or "Awaitable" in promised
        or "Coroutine" in promised
    )
