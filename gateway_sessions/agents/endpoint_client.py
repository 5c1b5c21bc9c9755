"""`EndpointClient`: the connections to an endpoint; it asks once, and reads the answer to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import anyio
import msgspec

from gateway_sessions.agents.chat_completions.failures import COUNTING, Refusal, retry_after_seconds
from gateway_sessions.agents.chat_completions.response import Answer, EventStream, EventTooLongError
from gateway_sessions.agents.endpoint import Endpoint
from gateway_sessions.errors import InvalidInputError, ModelAnswerError, ModelUnavailableError

try:
    import httpx2
except ModuleNotFoundError as _error:
    if _error.name != "httpx2":
        raise
    missing = (
        "an agent for models needs a package that is not installed: pip install 'gateway-sessions[openai]'"
    )
    raise InvalidInputError(missing) from None

logger: Final = logging.getLogger(__name__)

MAX_REFUSAL: Final = 64 << 10
"""The most bytes that are read of a refusal, of which one line is shown."""
MAX_WHOLE: Final = 4 << 20
"""The most bytes of an answer in one piece: the longest reply with up to four bytes for a character."""
REFUSAL_SECONDS: Final = 5.0
"""The time limit for the text of a refusal; its status says enough."""
LEFTOVERS_SECONDS: Final = 0.5
"""The wait for the end of a stream after its answer: only then can its connection be used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One request to a model, and what becomes of its answer."""

    model: str
    body: Mapping[str, Any]
    optional: frozenset[str] = frozenset({COUNTING})
    """The members of the body that are left out if the endpoint refuses them."""
    now: Callable[[], datetime]
    hear: Callable[[str], Awaitable[object]]
    """Gets each piece of the text; an empty piece is a sign of life."""
    count: Callable[[Answer], object]
    """Gets what is known of an answer at its end, even if it was cut off: the model was used."""


class EndpointClient:
    """Asks models at an endpoint. Close it in the end."""

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
        )  # questions that begin at once share one client, and so one pool of connections
        self._left_out: set[tuple[str, str]] = set()
        """The members of requests that the endpoint has refused, each with the model."""

    async def aclose(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def ask(self, question: Question) -> Answer:
        """Ask once, and return the complete answer; `ModelError` says what went wrong."""
        body = {
            name: one for name, one in question.body.items() if (question.model, name) not in self._left_out
        }
        async with self._open_response(body) as response:
            refusal = await self._read_refusal(question, response)
            if refusal is None:
                return await self._read_answer(question, response)
        for name in question.optional & body.keys():
            if refusal.refuses_member(name):
                self._leave_out(name, question.model)
                return await self.ask(question)
        raise refusal.error

    def _leave_out(self, name: str, model: str) -> None:
        """Leave a member out of all later questions to the model."""
        self._left_out.add((model, name))
        facts = {"action": "model_refuses_member", "model": model, "member": name}
        logger.warning("a model refuses a part of the questions, which is left out from now on", extra=facts)

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

    async def _read_refusal(self, question: Question, response: httpx2.Response) -> Refusal | None:
        if response.status_code == HTTPStatus.OK:
            return None
        body = bytearray()
        with anyio.move_on_after(REFUSAL_SECONDS), suppress(httpx2.TransportError, httpx2.DecodingError):
            await _read_up_to(body, response, MAX_REFUSAL)
        return Refusal(
            endpoint=self._endpoint.host,
            model=question.model,
            key=self._endpoint.api_key,
            status=response.status_code,
            body=bytes(body),
            retry_after=retry_after_seconds(response.headers.get("retry-after", ""), question.now()),
        )

    async def _read_answer(self, question: Question, response: httpx2.Response) -> Answer:
        answer = Answer(self._endpoint.host, question.model, key=self._endpoint.api_key)
        try:
            await self._read_to_end(question, response, answer)
        finally:  # a turn that is cut off has used the model as well
            question.count(answer)
        return answer

    async def _read_to_end(self, question: Question, response: httpx2.Response, answer: Answer) -> None:
        try:
            with self._map_reading_errors():
                await self._read_body(question, response, answer)
        except ModelAnswerError:  # an error after a complete answer does not matter
            if not answer.is_complete:
                raise
        answer.check_complete()

    async def _read_body(self, question: Question, response: httpx2.Response, answer: Answer) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/json"):  # an endpoint that does not stream
            whole = bytearray()
            await _read_up_to(whole, response, MAX_WHOLE)
            await question.hear(answer.add_event(bytes(whole)))
            return
        if kind.startswith("text/html"):
            problem = "has sent a page for people and no answer of a model; is its address right?"
            raise ModelAnswerError(self._endpoint.host, problem)
        events = EventStream()
        async with aclosing(response.aiter_bytes()) as all_received:
            async for received in all_received:
                for data in events.events_in(received):
                    await question.hear(answer.add_event(data))
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


async def _read_up_to(body: bytearray, response: httpx2.Response, most: int) -> None:
    """Append received bytes to the body until there are more than *most*."""
    async with aclosing(response.aiter_bytes()) as all_received:
        async for received in all_received:
            body += received
            if len(body) > most:
                return


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
