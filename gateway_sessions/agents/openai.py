"""`OpenAIAgent`: an agent that asks a model at any endpoint for chat completions, of OpenAI or others.

    async with OpenAIAgent(Endpoint(model="…", base_url="http://127.0.0.1:11434/v1")) as agent:
        async with Gateway(store, agent=agent, adapters=[…]):

All sessions share one agent, which keeps no conversations: each turn reads its own from the store.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final, Self

import anyio
import msgspec

from gateway_sessions.agents.chat_completions.failures import Refusal, pause_before_retry, retry_after_seconds
from gateway_sessions.agents.chat_completions.request import request_body
from gateway_sessions.agents.chat_completions.response import Answer, EventStream, EventTooLongError
from gateway_sessions.agents.endpoint import Endpoint
from gateway_sessions.config import Config
from gateway_sessions.core.delivery.outbound_messages import Reply, TextFormat
from gateway_sessions.errors import (
    FencedError,
    InvalidInputError,
    ModelAnswerError,
    ModelRefusedError,
    ModelUnavailableError,
)
from gateway_sessions.runtime.agents.turn_context import TurnContext, TurnStream

try:
    import httpx2
except ModuleNotFoundError as _error:
    if _error.name != "httpx2":
        raise
    missing = (
        "an agent for models needs a package that is not installed: pip install 'gateway-sessions[openai]'"
    )
    raise InvalidInputError(missing) from None

MAX_REFUSAL: Final = 64 << 10
"""The most bytes that are read of a refusal, of which one line is shown."""
MAX_WHOLE: Final = 4 << 20
"""The most bytes of an answer in one piece: the longest reply with up to four bytes for a character."""
REFUSAL_SECONDS: Final = 5.0
"""The time limit for the text of a refusal; its status says enough."""
LEFTOVERS_SECONDS: Final = 0.5
"""The wait for the end of a stream after its answer: only then can its connection be used again."""
WAITING: Final = "waiting for the model"
THINKING: Final = "thinking"


def create(config: Config | None = None) -> OpenAIAgent:
    """Return an agent for the `model` of a configuration, else of the environment (OPENAI_MODEL …)."""
    return OpenAIAgent(Endpoint.from_config((config or Config()).model, os.environ))


class OpenAIAgent:
    """An agent that answers each turn with the reply of a model. Close it when its gateway has ended."""

    def __init__(self, endpoint: Endpoint) -> None:
        try:
            httpx2.URL(endpoint.url).host.encode("idna")
        except (httpx2.InvalidURL, UnicodeError) as error:
            problem = f"base_url: no address has such a host ({error})"
            raise InvalidInputError(problem) from None
        self._endpoint = endpoint
        self._client: httpx2.AsyncClient | None = None
        self._client_lock = (
            asyncio.Lock()
        )  # turns that begin at once share one client, and so one pool of connections
        self._can_count_tokens = True
        """False once the endpoint has refused a request to count tokens."""

    def __repr__(self) -> str:
        return f"<agent of {self._endpoint.host}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def run_turn(self, turn: TurnContext) -> Reply:
        """Ask the model, show its answer while it grows, and return the reply."""
        model = self._model_of(turn)
        rows = await turn.history(self._endpoint.history_limit)
        told = [self._endpoint.instructions, turn.prompt, turn.recovered]
        ask = partial(
            request_body,
            rows,
            model=model,
            instructions="\n\n".join(filter(None, told)),
            further=self._endpoint.further,
        )
        tries = 0
        while True:
            tries += 1
            try:
                return await self._ask_model(turn, model, ask)
            except ModelUnavailableError as error:
                pause = pause_before_retry(error, tries, turn.clock.now(), turn.deadline)
                if pause is None:
                    raise
            turn.progress(WAITING)
            await turn.clock.sleep(pause)

    def _model_of(self, turn: TurnContext) -> str:
        """Return the model to ask; the key is sent only to the address that it was given with."""
        chosen = turn.model_override or {}
        if not self._endpoint.is_meant_by(chosen.get("base_url")):
            problem = "is not the address that was chosen for this session; /model default takes that back"
            raise ModelRefusedError(self._endpoint.host, problem)
        return chosen.get("model") or self._endpoint.model

    async def _ask_model(self, turn: TurnContext, model: str, ask: partial[dict[str, Any]]) -> Reply:
        async with self._open_response(ask(usage=self._can_count_tokens)) as response:
            refusal = await self._read_refusal(turn, model, response)
            if refusal is None:
                return await self._read_answer(turn, model, response)
        if (
            refusal.refuses_counting and self._can_count_tokens
        ):  # once for all sessions; older endpoints know no counting
            self._can_count_tokens = False
            return await self._ask_model(turn, model, ask)
        raise refusal.error

    @asynccontextmanager
    async def _open_response(self, body: dict[str, Any]) -> AsyncGenerator[httpx2.Response]:
        """Yield an answer whose body is not read yet, and close it at the end of the block."""
        client = await self._shared_client()
        request = client.build_request("POST", self._endpoint.url, content=msgspec.json.encode(body))
        with self._map_connection_errors():
            response = await client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def _shared_client(self) -> httpx2.AsyncClient:
        async with self._client_lock:
            if self._client is None:  # what TLS trusts is read from files
                self._client = await asyncio.to_thread(self._new_client)
            return self._client

    def _new_client(self) -> httpx2.AsyncClient:
        key, silence = self._endpoint.api_key, self._endpoint.silence_seconds
        headers = {
            "content-type": "application/json",
            "user-agent": f"gateway-sessions/{version('gateway-sessions')}",
            **({"authorization": f"Bearer {key}"} if key else {}),
        }
        return httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(silence, connect=self._endpoint.connect_seconds, pool=None),
            limits=httpx2.Limits(max_connections=None),  # the gateway decides how many turns run
        )

    async def _read_refusal(self, turn: TurnContext, model: str, response: httpx2.Response) -> Refusal | None:
        if response.status_code == HTTPStatus.OK:
            return None
        body = bytearray()
        with anyio.move_on_after(REFUSAL_SECONDS), suppress(httpx2.TransportError, httpx2.DecodingError):
            await _read_up_to(body, response, MAX_REFUSAL)
        return Refusal(
            endpoint=self._endpoint.host,
            model=model,
            key=self._endpoint.api_key,
            status=response.status_code,
            body=bytes(body),
            retry_after=retry_after_seconds(response.headers.get("retry-after", ""), turn.clock.now()),
        )

    async def _read_answer(self, turn: TurnContext, model: str, response: httpx2.Response) -> Reply:
        answer = Answer(self._endpoint.host, model, key=self._endpoint.api_key)
        reply = turn.stream(format=TextFormat.MARKDOWN)
        try:
            await self._read_to_end(turn, response, answer, reply)
        finally:  # a turn that is cut off has used the model as well
            with suppress(FencedError):  # the turn may be over already
                turn.report_usage(
                    **answer.usage_facts(provider=self._endpoint.host, base_url=self._endpoint.base_url)
                )
        return Reply(
            reply.text,
            format=TextFormat.MARKDOWN,
            finish_reason=answer.finish_reason,
            reasoning=answer.reasoning,
        )

    async def _read_to_end(
        self, turn: TurnContext, response: httpx2.Response, answer: Answer, reply: TurnStream
    ) -> None:
        try:
            with self._map_reading_errors():
                await self._read_body(turn, response, answer, reply)
        except ModelAnswerError:  # an error after a complete answer does not matter
            if not answer.is_complete:
                raise
        answer.check_complete()

    async def _read_body(
        self, turn: TurnContext, response: httpx2.Response, answer: Answer, reply: TurnStream
    ) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/json"):  # an endpoint that does not stream
            whole = bytearray()
            await _read_up_to(whole, response, MAX_WHOLE)
            await reply.write(answer.add_event(bytes(whole)))
            return
        if kind.startswith("text/html"):
            problem = "has sent a page for people and no answer of a model; is its address right?"
            raise ModelAnswerError(self._endpoint.host, problem)
        events = EventStream()
        async with aclosing(response.aiter_bytes()) as all_received:
            async for received in all_received:
                for data in events.events_in(received):
                    await _append_to_reply(turn, reply, answer.add_event(data))
                if answer.is_over:
                    break
            with anyio.move_on_after(LEFTOVERS_SECONDS):
                async for _ in all_received:
                    pass

    @contextmanager
    def _map_connection_errors(self) -> Generator[None]:
        host = self._endpoint.host
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
            problem = f"cannot be reached ({_error_text(error)})"
            raise ModelUnavailableError(host, problem, asked=False) from error
        except httpx2.TimeoutException as error:
            problem = f"has not answered for {self._endpoint.silence_seconds:g} s"
            raise ModelUnavailableError(host, problem) from error
        except httpx2.TransportError as error:
            raise ModelUnavailableError(host, f"has not answered ({_error_text(error)})") from error

    @contextmanager
    def _map_reading_errors(self) -> Generator[None]:
        try:
            yield
        except httpx2.TimeoutException as error:
            problem = f"said nothing for {self._endpoint.silence_seconds:g} s in the middle of its answer"
            raise ModelAnswerError(self._endpoint.host, problem) from error
        except (httpx2.TransportError, httpx2.DecodingError, EventTooLongError) as error:
            problem = f"was cut off in the middle of its answer ({_error_text(error)})"
            raise ModelAnswerError(self._endpoint.host, problem) from error


async def _append_to_reply(turn: TurnContext, reply: TurnStream, piece: str) -> None:
    if piece:
        await reply.write(piece)
    else:
        turn.progress(None if reply.text else THINKING)


async def _read_up_to(body: bytearray, response: httpx2.Response, most: int) -> None:
    """Append received bytes to the body until there are more than *most*."""
    async with aclosing(response.aiter_bytes()) as all_received:
        async for received in all_received:
            body += received
            if len(body) > most:
                return


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
