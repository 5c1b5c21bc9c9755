"""`FakeWebhookPlatform`: what fakes of platforms share that call a webhook and have an API over HTTP.

A fake of a platform inherits from it and says two things: how it signs an event (`sign`), and what its API
does (`api`). The rest is here:

- **Deliveries.** `deliver(event)` posts an event to `webhook_url`, and again by `retry_schedule` while the
  answer is no success, late, or missing; each attempt is kept in the returned `WebhookDelivery`. The schedule
  is in the platform's seconds, of which `speed` pass in one real second. `again(delivery)` delivers what was
  taken once more, as platforms do. `await is_taken(delivery)` waits for the end of a delivery, and
  `await settle(delivery)` for its first answer.
- **The API.** `api(method, request, parameters)` answers; faults that a test plans (`faults.plan`) come
  before: a cut connection, a fault of a server in front, a refusal, a delay, or a limit, whose pause grows
  for who calls within it. `limited` and `refused` give these the platform's form. Each call is in `calls`.
- **The thread.** A fake runs in a thread of its own (`FakePlatformServer`); what tests call is safe there.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, ClassVar, Final

import anyio

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import HttpError, NotConnectedError, Response, Url, post
from gateway_sessions.ports import Clock
from gateway_sessions.testing.fakes.faults import (
    AskedPauses,
    CutConnection,
    Delay,
    Fault,
    RateLimit,
    RefusedCall,
    ServerFault,
)
from gateway_sessions.testing.fakes.http_server import ConnectionCutError, FakeRequest, FakeResponse
from gateway_sessions.testing.fakes.platform_server import LONGEST_REFUSAL, LOOK_SECONDS, FakePlatformServer

SPEED: Final = 1000.0
"""The platform's seconds in a real one: a schedule of minutes takes a fraction of a second."""


class DeliveryEnd(StrEnum):
    """How the delivery of an event ended."""

    TAKEN = "taken"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One attempt at a delivery."""

    status: int | None
    """The status of the answer; None: there was none, or it came too late."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    at: float = 0.0
    """When, in seconds of the monotonic clock."""


@dataclass(slots=True)
class WebhookDelivery:
    """An event on its way to the webhook."""

    number: int
    body: bytes
    path: str = ""
    """What stands behind the webhook's address, if the event is for another path."""
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers beside those of the signature."""
    attempts: list[DeliveryAttempt] = field(default_factory=list[DeliveryAttempt])
    end: DeliveryEnd | None = None


class FakeWebhookPlatform(FakePlatformServer, ABC):
    """A fake of a platform that calls a webhook."""

    retry_schedule: ClassVar[Sequence[float]] = (1, 5, 30, 120, 600)
    """The pauses before a delivery is repeated, in the platform's seconds; behind the last it is given up."""
    answer_seconds: ClassVar[float] = 15.0
    """The real seconds for which the platform waits for an answer."""
    one_at_a_time: ClassVar[bool] = False
    """Whether an event waits until the one before it was taken."""

    def __init__(self, *, speed: float = SPEED, clock: Clock | None = None) -> None:
        super().__init__()
        self.webhook_url: str = ""
        """The address of the webhook; events wait while there is none."""
        self.deliveries: list[WebhookDelivery] = []
        self.clock: Clock = clock or SystemClock()
        """The time that is signed."""
        self._speed = speed
        self._waiting: deque[WebhookDelivery] = deque()
        self._pauses = AskedPauses()

    # Deliveries

    def deliver(
        self,
        event: object,
        *,
        path: str = "",
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> WebhookDelivery:
        """Let the platform deliver an event: bytes as they are, anything else as JSON."""
        body = event if isinstance(event, bytes) else json.dumps(event, ensure_ascii=False).encode()
        delivery = WebhookDelivery(len(self.deliveries), body, path, method, headers or {})
        self.deliveries.append(delivery)
        self._waiting.append(delivery)
        return delivery

    def again(self, delivery: WebhookDelivery) -> WebhookDelivery:
        """Let the platform deliver an event once more, whether it was taken or not."""
        return self.deliver(
            delivery.body, path=delivery.path, method=delivery.method, headers=delivery.headers
        )

    @property
    def pending(self) -> int:
        """The number of events that were neither taken nor given up."""
        return sum(one.end is None for one in list(self.deliveries))

    async def settle(self, delivery: WebhookDelivery, *, seconds: float = 30) -> DeliveryAttempt:
        """Wait for the first attempt of a delivery, and return it."""
        await self.wait_until(lambda: delivery.attempts, seconds=seconds)
        return delivery.attempts[0]

    async def is_taken(self, delivery: WebhookDelivery, *, seconds: float = 30) -> bool:
        """Wait until a delivery was taken or given up, and return whether it was taken."""
        await self.wait_until(lambda: delivery.end, seconds=seconds)
        return delivery.end is DeliveryEnd.TAKEN

    @abstractmethod
    def sign(self, delivery: WebhookDelivery, url: str) -> Mapping[str, str]:
        """Return the headers of one attempt: its signature, its number, the type of its body."""

    def is_success(self, response: Response) -> bool:
        """Return whether the platform takes an answer for success."""
        return HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES

    def answered(self, delivery: WebhookDelivery, response: Response) -> None:
        """Take in the answer to a delivery: some platforms show what stands in it."""

    def _duties(self) -> list[Callable[[], Awaitable[object]]]:
        return [self._deliver_waiting]

    async def _deliver_waiting(self) -> None:
        async with anyio.create_task_group() as tasks:
            while True:
                if not self._waiting or not self.webhook_url:
                    await anyio.sleep(LOOK_SECONDS)
                elif self.one_at_a_time:
                    await self._deliver(self._waiting.popleft())
                else:
                    tasks.start_soon(self._deliver, self._waiting.popleft())

    async def _deliver(self, delivery: WebhookDelivery) -> None:
        for pause in (*self.retry_schedule, None):
            response = await self._attempt(delivery, await self._address())
            if response is not None and self.is_success(response):
                self.answered(delivery, response)
                delivery.end = DeliveryEnd.TAKEN
                return
            if pause is not None:
                await anyio.sleep(pause / self._speed)
        delivery.end = DeliveryEnd.GIVEN_UP

    async def _address(self) -> str:
        """Return the address of the webhook; wait while a test has taken it away."""
        while not (address := self.webhook_url):
            await anyio.sleep(LOOK_SECONDS)
        return address

    async def _attempt(self, delivery: WebhookDelivery, address: str) -> Response | None:
        url, response = f"{address}{delivery.path}", None
        headers = {
            "content-type": "application/json",
            **self.sign(delivery, url),
            **delivery.headers,
        }
        with anyio.move_on_after(self.answer_seconds):
            try:
                response = await post(
                    Url.parse(url), headers, delivery.body, tls=None, method=delivery.method
                )
            except (NotConnectedError, HttpError, OSError, EOFError):
                response = None
        at = time.monotonic()
        if response is None:
            delivery.attempts.append(DeliveryAttempt(None, at=at))
            self.failed_deliveries.append(f"{url} did not answer")
        else:
            told = DeliveryAttempt(response.status, response.headers, response.body, at)
            delivery.attempts.append(told)
            if not self.is_success(response):
                body = response.body.decode("utf-8", "replace")[:LONGEST_REFUSAL]
                self.failed_deliveries.append(f"{url} answered {response.status}: {body}".rstrip(": "))
        return response

    # The API

    @abstractmethod
    async def api(self, method: str, request: FakeRequest, parameters: Mapping[str, Any]) -> FakeResponse:
        """Answer a call of the API; this runs in the fake's thread."""

    def method_of(self, request: FakeRequest) -> str:
        """Return the name of a call, by which tests plan faults."""
        return request.path.strip("/")

    def parameters_of(self, request: FakeRequest) -> Mapping[str, Any]:
        """Return the parameters of a call."""
        return request.parameters()

    def place_of(self, request: FakeRequest, parameters: Mapping[str, Any]) -> str:
        """Return what a pause is for: an address of the API, and in it the chat that is written to."""
        named = (parameters.get(name) for name in ("to", "To", "chat"))
        return " ".join([request.path, *(str(one) for one in named if one)])

    def limited(self, retry_after: float) -> FakeResponse:
        """Return the answer that asks for a pause."""
        return FakeResponse.of_json({}, status=429, headers={"retry-after": f"{retry_after:g}"})

    def refused(self, refusal: RefusedCall) -> FakeResponse:
        """Return the answer that refuses, in the platform's form."""
        return FakeResponse.of_json({"error": refusal.problem}, status=refusal.status)

    async def _answer(self, request: FakeRequest) -> FakeResponse:
        method, parameters = self.method_of(request), self.parameters_of(request)
        fault = self.faults.next_for(method, parameters)
        if fault is None:
            longer = self._pauses.broken(self.place_of(request, parameters))
            fault = None if longer is None else RateLimit(longer)
        response = await self._response(method, request, parameters, fault)
        self._log_call(method, parameters, response)
        return response

    async def _response(
        self, method: str, request: FakeRequest, parameters: Mapping[str, Any], fault: Fault | None
    ) -> FakeResponse:
        match fault:
            case CutConnection():
                if fault is CutConnection.AFTER:
                    await self.api(method, request, parameters)
                raise ConnectionCutError
            case ServerFault():
                if fault.done:
                    await self.api(method, request, parameters)
                return FakeResponse(fault.status, fault.body.encode(), {"content-type": "text/html"})
            case RefusedCall():
                return self.refused(fault)
            case RateLimit():
                place = self.place_of(request, parameters)
                return self.limited(self._pauses.ask(place, fault.retry_after))
            case Delay() | None:
                await anyio.sleep(fault.seconds if fault else 0)
                return await self.api(method, request, parameters)
