"""`OpenAIAgent`: an agent that asks a model at any endpoint for chat completions, of OpenAI or others.

    async with OpenAIAgent(Endpoint(model="…", base_url="http://127.0.0.1:11434/v1"), tools=[…]) as agent:
        async with Gateway(store, agent=agent, adapters=[…], compressor=agent.compress):

All sessions share one agent, which keeps no conversations: each turn reads its own from the store. So does
each round of a turn in which the model uses tools: what is on record is what the model gets.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Final, Self
from uuid import uuid4

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.agents.chat_completions.failures import COUNTING, TOOLS, pause_before_retry
from gateway_sessions.agents.chat_completions.request import request_body
from gateway_sessions.agents.chat_completions.response import Answer
from gateway_sessions.agents.chat_completions.tool_calls import ToolCall
from gateway_sessions.agents.endpoint import Endpoint
from gateway_sessions.agents.endpoint_client import EndpointClient, Question
from gateway_sessions.agents.side_questions import ask_for_summary, ask_for_title
from gateway_sessions.agents.tools import MAX_THREADS, ToolFunction, search_tool, tools_by_name
from gateway_sessions.config import Config
from gateway_sessions.core.delivery.outbound_messages import Reply, TextFormat
from gateway_sessions.core.transcript.messages import Message, Role
from gateway_sessions.core.transcript.model_history import Chat
from gateway_sessions.errors import (
    FencedError,
    ModelAnswerError,
    ModelError,
    ModelRefusedError,
    ModelUnavailableError,
)
from gateway_sessions.runtime.agents.turn_context import TurnContext, TurnStream
from gateway_sessions.runtime.duties.titles import FirstExchange, plain_titler

logger: Final = logging.getLogger(__name__)

MOST_ROUNDS: Final = 16
"""The most rounds of tools in a turn, unless a program allows more."""
WAITING: Final = "waiting for the model"
THINKING: Final = "thinking"


def create(config: Config | None = None) -> OpenAIAgent:
    """Return an agent for the `model` of a configuration, else of the environment (OPENAI_MODEL …)."""
    return OpenAIAgent(Endpoint.from_config((config or Config()).model, os.environ))


class OpenAIAgent:
    """An agent that answers each turn with the reply of a model. Close it when its gateway has ended.

    *tools* are functions, async or not, with types and docstrings, which the model may call; without
    *session_search* it cannot search earlier conversations. After *most_rounds* rounds of calls a turn fails.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        tools: Iterable[ToolFunction] = (),
        session_search: bool = True,
        most_rounds: int = MOST_ROUNDS,
    ) -> None:
        self._endpoint = endpoint
        self._client = EndpointClient(endpoint)
        own = tools_by_name(tools)
        # A model that takes no tools answers without the search, but not without tools that a program gave.
        self._optional = frozenset({COUNTING} if own else {COUNTING, TOOLS})
        search = search_tool()
        self._tools = {search.definition["name"]: search, **own} if session_search else own
        self._most_rounds = most_rounds
        self._threads = anyio.CapacityLimiter(MAX_THREADS)

    def __repr__(self) -> str:
        return f"<agent of {self._endpoint.host}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    # Turns

    async def run_turn(self, turn: TurnContext) -> Reply:
        """Ask the model, run the tools that it calls, show its answer as it grows, and return the reply."""
        model, added = self._model_of(turn), 0
        for rounds in count():
            reply = turn.stream(format=TextFormat.MARKDOWN)
            answer = await self._ask_again(turn, await self._question(turn, model, reply, added))
            if not answer.tool_calls:
                return Reply(
                    reply.text,
                    format=TextFormat.MARKDOWN,
                    finish_reason=answer.finish_reason,
                    reasoning=answer.reasoning,
                )
            if rounds >= self._most_rounds:
                break
            # The first row of a turn also puts its messages on record, which were beside the limit before.
            added = (added or len(turn.messages)) + await self._use_tools(turn, answer, reply.text)
        problem = f"still calls tools after {self._most_rounds} rounds of calls, and does not answer"
        raise ModelAnswerError(self._endpoint.host, problem)

    def _model_of(self, turn: TurnContext) -> str:
        """Return the model to ask; the key is sent only to the address that it was given with."""
        chosen = turn.model_override or {}
        if not self._endpoint.is_meant_by(chosen.get("base_url")):
            problem = "is not the address that was chosen for this session; /model default takes that back"
            raise ModelRefusedError(self._endpoint.host, problem)
        return chosen.get("model") or self._endpoint.model

    async def _question(self, turn: TurnContext, model: str, reply: TurnStream, added: int) -> Question:
        """Return the next question; *added* rows are of this turn, and no limit of messages cuts them off."""
        limit = self._endpoint.history_limit
        told = [self._endpoint.instructions, turn.prompt, turn.recovered]
        body = request_body(
            await turn.history(None if limit is None else limit + added),
            model=model,
            instructions="\n\n".join(filter(None, told)),
            further=self._endpoint.further,
            tools=[one.definition for one in self._tools.values()],
        )
        return Question(
            model=model,
            body=body,
            optional=self._optional,
            now=turn.clock.now,
            hear=partial(_append_to_reply, turn, reply),
            count=partial(self._report_usage, turn),
        )

    async def _ask_again(self, turn: TurnContext, question: Question) -> Answer:
        """Ask, and ask again if no answer can have begun."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._client.ask(question)
            except ModelUnavailableError as error:
                pause = pause_before_retry(error, tries, turn.clock.now(), turn.deadline)
                if pause is None:
                    raise
            turn.progress(WAITING)
            await turn.clock.sleep(pause)

    def _report_usage(self, turn: TurnContext, answer: Answer) -> None:
        with suppress(FencedError):  # the turn may be over already
            turn.report_usage(
                **answer.usage_facts(provider=self._endpoint.host, base_url=self._endpoint.base_url)
            )

    # Tools

    async def _use_tools(self, turn: TurnContext, answer: Answer, text: str) -> int:
        """Put calls on record, then run them all at once, and put each result on record as it comes.

        Returns the number of rows that were added.
        """
        calls = _with_ids(answer.tool_calls)
        await turn.append(
            Message(
                str(Role.ASSISTANT),
                text or None,
                tool_calls=[one.row_member for one in calls],
                finish_reason=answer.finish_reason,
                reasoning=answer.reasoning,
            )
        )
        turn.progress(f"using {', '.join(dict.fromkeys(one.name for one in calls))}")
        send, receive = anyio.create_memory_object_stream[Message](len(calls))

        async def run_all() -> None:
            async with send, anyio.create_task_group() as tasks:
                for call in calls:
                    tasks.start_soon(self._run_call, call, send)

        with receive:
            async with in_background(run_all):
                async for result in receive:
                    await turn.append(result)
        return 1 + len(calls)

    async def _run_call(self, call: ToolCall, results: MemoryObjectSendStream[Message]) -> None:
        tool = self._tools.get(call.name)
        if tool is None:
            text = f"There is no tool of this name. There are: {', '.join(self._tools) or 'none'}."
        else:
            text = await tool.call(call.arguments, self._threads)
        result = Message(str(Role.TOOL), text, tool_call_id=call.id, tool_name=call.name or None)
        await results.send(result)

    # Beside the turns

    async def propose_title(self, exchange: FirstExchange) -> str | None:
        """Return a title for a new session, for `SessionStore.open(titler=…)`; its first words at worst."""
        try:
            return await ask_for_title(self._ask_aside, exchange)
        except ModelError as error:
            facts = {"action": "title_failed", "session_id": exchange.session_id, "problem": str(error)}
            logger.warning("a model has proposed no title", extra=facts)
            return await plain_titler(exchange)

    async def compress(self, conversation: list[Chat]) -> list[Message]:
        """Return a summary with which a conversation goes on, for `Gateway(compressor=…)`."""
        return [Message(str(Role.ASSISTANT), await ask_for_summary(self._ask_aside, conversation))]

    async def _ask_aside(self, task: str, text: str) -> str:
        """Ask the endpoint's own model something that belongs to no turn."""
        model, pieces = self._endpoint.model, list[str]()

        async def hear(piece: str) -> None:
            pieces.append(piece)

        body = request_body(
            [{"role": "user", "content": text}],
            model=model,
            instructions=task,
            further=self._endpoint.further,
        )
        await self._client.ask(
            Question(model=model, body=body, now=SystemClock().now, hear=hear, count=_count_nowhere)
        )
        return "".join(pieces)


async def _append_to_reply(turn: TurnContext, reply: TurnStream, piece: str) -> None:
    if piece:
        await reply.write(piece)
    else:
        turn.progress(None if reply.text else THINKING)


def _count_nowhere(_: Answer) -> None:
    """Count nothing: the question belongs to no turn."""


def _with_ids(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls, each with an id of its own: some endpoints give none, or one twice."""
    taken: set[str] = set()
    named: list[ToolCall] = []
    for call in calls:
        call_id = call.id if call.id and call.id not in taken else f"call_{uuid4().hex}"
        taken.add(call_id)
        named.append(replace(call, id=call_id))
    return named
