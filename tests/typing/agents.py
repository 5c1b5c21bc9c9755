"""Agents as users type them: checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import Any

from gateway_sessions import (
    Agent,
    AgentFactory,
    AgentFunction,
    Message,
    Reply,
    SessionEnding,
    SessionEntry,
    TurnContext,
    current_turn,
)
from gateway_sessions.agents import Endpoint, ModelUnavailableError
from gateway_sessions.agents.openai import OpenAIAgent
from gateway_sessions.testing import ScriptedAgents


async def echo(turn: TurnContext) -> str:
    await turn.append({"role": "assistant", "content": "…"}, Message("assistant", "so"))
    await turn.say("a moment")
    turn.report_usage(model="m", input_tokens=3)
    turn.report_usage(tokens=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # no such fact
    return f"{current_turn().text}"


async def rich(turn: TurnContext) -> Reply | None:
    with turn.sub_work():
        return Reply(turn.text, finish_reason="stop") if turn.text else None


def blocking(turn: TurnContext) -> str:
    return turn.text


class Keeper:
    """An agent that keeps something between turns."""

    def __init__(self, entry: SessionEntry, history: list[dict[str, Any]]) -> None:
        self.seen = len(history)

    async def run_turn(self, turn: TurnContext) -> Reply:
        return Reply(str(self.seen))

    async def on_session_ending(self, ending: SessionEnding) -> None:
        self.seen = len(ending.history)


async def make(entry: SessionEntry, history: list[dict[str, Any]]) -> Agent:
    return Keeper(entry, history)


FUNCTIONS: list[AgentFunction] = [echo, rich]
WRONG: AgentFunction = blocking  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # not async
FACTORIES: list[AgentFactory] = [Keeper, make, ScriptedAgents("hi"), lambda entry, history: echo]


async def asking(turn: TurnContext) -> Reply | float | None:
    endpoint = Endpoint(model="m", api_key="k", further={"temperature": 0.2})
    Endpoint(base_url="http://x/v1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # of no model
    async with OpenAIAgent(endpoint) as agent:
        asked: Agent = agent
        assert asked is agent
        try:
            return await agent.run_turn(turn)
        except ModelUnavailableError as error:
            return error.retry_after
