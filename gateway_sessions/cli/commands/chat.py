"""`chat`: talk to an agent here, and go on with any conversation."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import typer

import gateway_sessions as gs
from gateway_sessions.cli.desk import Desk, run

DEMO: Final = "gateway_sessions.cli.demo_agent:answer"
"""Answers without any model: it shows what a session remembers."""
SHORT: Final[Mapping[str, str]] = MappingProxyType({"openai": "gateway_sessions.agents.openai:create"})
"""Agents that have a name of their own."""
WHO: Final = "Who answers: a function of a turn, a factory, or `openai`: the model that is configured."


def chat(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="With -c: the title of the conversation.", metavar="TITLE")
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
        str, typer.Option(help="What is shown of a resumed one: full, minimal or off.")
    ] = "full",
    move: Annotated[bool, typer.Option("--move", help="Take the session from the lane it is on.")] = False,
    fork: Annotated[bool, typer.Option("--fork", help="Go on in a copy of it.")] = False,
) -> None:
    """Talk to an agent at this terminal. Lines in, answers out; Ctrl-D ends it."""

    async def work(desk: Desk) -> None:
        from gateway_sessions.cli.talking import Talk, Wanted  # noqa: PLC0415 -- --help must not wait for it
        from gateway_sessions.core.recap import RecapForm  # noqa: PLC0415 -- as above

        _refuse(desk, name if not go_on else None, recap)
        wanted = Wanted(go_on=go_on or resume is not None, text=resume or name, move=move, fork=fork)
        async with answering(agent, desk) as given, desk.store(may_be_new=True) as store:
            await Talk(desk, store, RecapForm(recap)).hold(wanted, **given)

    run(context, work)


def _refuse(desk: Desk, name: str | None, recap: str) -> None:
    from gateway_sessions.core.recap import RecapForm  # noqa: PLC0415 -- --help must not wait for it

    if desk.as_json:
        problem = "a conversation is not JSON; leave --json out"
        raise gs.InvalidInputError(problem)
    if recap not in list(RecapForm):
        problem = f"--recap: {recap!r} is none of {', '.join(RecapForm)}"
        raise gs.InvalidInputError(problem)
    if name is not None:
        problem = f"to go on with {name!r}, say: -c {name!r}"
        raise gs.InvalidInputError(problem)


@asynccontextmanager
async def answering(text: str, desk: Desk) -> AsyncGenerator[dict[str, Any]]:
    """What a gateway is given for a name; an agent that is made for it is closed in the end."""
    found = _found(text)
    made = not hasattr(found, "run_turn") and not _needed(found)
    agent = _made(found, desk) if made else found
    one_turn = hasattr(agent, "run_turn") or _needed(agent) == 1
    try:
        yield {"agent": agent} if one_turn else {"agent_factory": agent}
    finally:
        if made and hasattr(agent, "aclose"):
            await agent.aclose()


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


def _needed(function: Any) -> int:
    """How many arguments it does not go without."""
    from inspect import Parameter, signature  # noqa: PLC0415 -- as above

    several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    parameters = signature(function).parameters.values()
    return sum(one.default is Parameter.empty and one.kind not in several for one in parameters)
