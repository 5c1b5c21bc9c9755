"""`Agent` and its optional abilities, plain functions as agents, and the call that runs a turn.

The class is for those that keep something between turns; what else it may offer (`steer`, `aclose`,
`on_session_ending`) is used if it is there.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol, TypeAlias, Unpack, cast, runtime_checkable

from gateway_sessions.core.delivery.outbound_messages import Reply
from gateway_sessions.core.queue.inbound import InboundMessage
from gateway_sessions.core.sessions.entry import SessionEntry
from gateway_sessions.core.sessions.reasons import EndReason
from gateway_sessions.core.transcript.model_history import Chat, model_rows
from gateway_sessions.core.usage.usage_events import UsageFacts
from gateway_sessions.errors import InvalidInputError, NoTurnError
from gateway_sessions.runtime.agents.turn_context import TurnContext, control_of
from gateway_sessions.runtime.user_code import (
    GRACE,
    await_user_code,
    check_function,
    kind_in_words,
    raise_invalid_input,
    run_in_fresh_context,
)

Answer: TypeAlias = Reply | str | None
"""None: what was shown is the reply, or else what was said on the way, or else silence."""

_NO_AGENT: Final = "an agent is an async function of one turn, or an object with an async run_turn"
_NO_FACTORY: Final = "give a function of a session's entry and its conversation that returns an agent"
_current: ContextVar[TurnContext] = ContextVar("gateway_sessions_turn")


@runtime_checkable
class Agent(Protocol):
    """Answers the turns of one session. It may also be `Steerable`, `Closable` and `Farewelling`."""

    async def run_turn(self, turn: TurnContext) -> Answer:
        """Answer what was said."""
        ...


@runtime_checkable
class Steerable(Protocol):
    """An agent that takes messages while its turn runs."""

    async def steer(self, message: InboundMessage) -> bool:
        """Take the message into the running turn; False: it must have a turn of its own."""
        ...


@runtime_checkable
class Closable(Protocol):
    """An agent that holds something that must be let go."""

    async def aclose(self) -> None:
        """Let go of it. Called exactly once, after the last turn, and not in anybody's way."""
        ...


@runtime_checkable
class Farewelling(Protocol):
    """An agent that wants to save something before its session ends by itself."""

    async def on_session_ending(self, ending: SessionEnding) -> None:
        """Save what must be kept; nobody waits for it, and it is cut off at the deadline."""
        ...


def _nothing_to_wait_for() -> bool:
    """Nobody keeps the agent from beginning."""
    return True


def _ignore_usage(facts: UsageFacts) -> None:
    """Drop use that nobody adds up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnding:
    """A session has ended by itself: nothing more will be said in it, unless somebody brings it back."""

    entry: SessionEntry
    """The entry of the session that ended."""
    reason: EndReason
    history: list[Chat]
    """The whole conversation."""
    deadline: datetime
    """The instant at which the call is cut off."""
    idempotency_key: str
    """For effects outside: a name that no other end of a session has, nor another end of this one."""
    note_usage: Callable[[UsageFacts], object] = field(default=_ignore_usage, repr=False)
    """Notes one use of a model: call `report_usage`."""

    def report_usage(self, **facts: Unpack[UsageFacts]) -> None:
        """Note one use of a model: it belongs to the session, and to its budgets."""
        self.note_usage(facts)


AgentFunction: TypeAlias = Callable[[TurnContext], Awaitable[Answer]]
AgentFactory: TypeAlias = Callable[
    [SessionEntry, list[Chat]], Agent | AgentFunction | Awaitable[Agent | AgentFunction]
]
"""Makes the agent of a session out of its entry and its conversation; async or not."""


class FunctionAgent:
    """A plain async function as an agent."""

    __slots__ = ("_function",)

    def __init__(self, function: AgentFunction) -> None:
        self._function = function

    async def run_turn(self, turn: TurnContext) -> Answer:
        """Call the function."""
        return await await_user_code(f"the agent {self.name}", self._function(turn))

    @property
    def name(self) -> str:
        """The name of the function."""
        return display_name_of(self._function)


def current_turn() -> TurnContext:
    """The turn that the caller works for, however deep in its tools; `NoTurnError` outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise NoTurnError from None


async def run_turn(
    agent: Agent,
    turn: TurnContext,
    *,
    begins: Callable[[], bool] = _nothing_to_wait_for,
    grace: timedelta = GRACE,
) -> Reply:
    """Return the answer of the agent, which runs in a fresh context with this turn as `current_turn()`.

    Cancel this to stop the agent: it may clean up for as long as *grace*. It does nothing at all unless it
    *begins*, which is asked in its own task, right before its first step.
    """
    try:
        work = partial(_run_agent, agent, turn, begins)
        answer = await run_in_fresh_context("the agent's turn", work, turn.clock, grace=grace)
    finally:
        control_of(turn).end()
    return _check_reply(agent, turn, answer)


class AgentSource:
    """The source of agents: one that all sessions share, or a factory that makes one for each session."""

    def __init__(
        self, *, agent: Agent | AgentFunction | None = None, agent_factory: AgentFactory | None = None
    ) -> None:
        if (agent is None) == (agent_factory is None):
            problem = (
                "give either agent, which all sessions share, or agent_factory, which makes each its own"
            )
            raise InvalidInputError(problem)
        if agent_factory is not None:
            check_function("agent_factory", agent_factory, _NO_FACTORY, or_class=True)
        self.shared: Agent | None = None if agent is None else _as_agent("agent is", agent)
        """It is never cached and never closed here: whoever made it does that."""
        self._factory = agent_factory
        self._made_farewelling: bool | None = None

    @property
    def farewells(self) -> bool | None:
        """Whether the agents want to hear that their session ended; None: a factory must make one to tell."""
        if self.shared is not None:
            return isinstance(self.shared, Farewelling)
        if inspect.isclass(self._factory):
            return hasattr(self._factory, "on_session_ending")
        return self._made_farewelling

    async def make_agent(self, entry: SessionEntry, history: list[Chat]) -> Agent:
        """The agent for a session; `InvalidInputError` names what the factory returned instead of one.

        The factory is given the conversation as endpoints for models accept it.
        """
        if self._factory is None:
            return cast("Agent", self.shared)
        made = self._factory(entry, model_rows(history))
        if inspect.isawaitable(made):
            made = await made
        agent = _as_agent(f"{display_name_of(self._factory)} returned", made)
        self._made_farewelling = self._made_farewelling or isinstance(agent, Farewelling)
        return agent


def display_name_of(given: object) -> str:
    """Return the name of a function, a class or an object for people and logs, without its content."""
    named = given.func if isinstance(given, partial) else given
    return str(getattr(named, "__qualname__", type(named).__qualname__))


async def _run_agent(agent: Agent, turn: TurnContext, begins: Callable[[], bool]) -> Answer:
    if not begins():
        raise asyncio.CancelledError
    _current.set(turn)
    return await await_user_code(f"the agent {_agent_name(agent)}", agent.run_turn(turn))


def _check_reply(agent: Agent, turn: TurnContext, answer: object) -> Reply:
    match answer:
        case Reply():
            return answer
        case str():
            return Reply(answer)
        case None:
            control = control_of(turn)
            if control.shown:
                return Reply(control.shown, format=control.shown_format)
            return Reply("\n\n".join(control.said), silent=True)
        case _:
            name = _agent_name(agent)
            problem = (
                f"the agent {name} answered {kind_in_words(answer)}; an answer is a str, a Reply or None"
            )
            raise InvalidInputError(problem)


def _as_agent(what: str, given: object) -> Agent:
    """The given as an agent, or `InvalidInputError`: *what* is it."""
    if inspect.isclass(given) or not (isinstance(given, Agent) or callable(given)):
        raise_invalid_input(what, given, _NO_AGENT)
    return given if isinstance(given, Agent) else FunctionAgent(cast("AgentFunction", given))


def _agent_name(agent: Agent) -> str:
    return agent.name if isinstance(agent, FunctionAgent) else display_name_of(agent)
