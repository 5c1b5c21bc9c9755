"""Delivery of events to an app, by HTTP or through Socket Mode, until they are taken or given up."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import anyio
from anyio.abc import TaskGroup

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import HttpError, NotConnectedError, Response, Url, post
from gateway_sessions.testing.fakes.http_server import FakeRequest, FakeResponse, UpgradedConnection
from gateway_sessions.testing.fakes.platform_server import LOOK_SECONDS
from gateway_sessions.testing.fakes.slack.workspace import APP
from gateway_sessions.testing.fakes.websocket import FakeWebSocket, WebSocketClosedError, web_socket

HOUR: Final = 3600.0
DAY_OF_HOURS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackTiming:
    """The times of Slack for an app; the pauses before retries can be sped up."""

    answer_seconds: float = 3.0
    """The time in which an app must answer."""
    retries: tuple[float, ...] = (0.0, 60.0, 300.0)
    """The pauses in front of the retries: at once, after a minute, after five minutes."""
    delayed_events: bool = False
    """Whether the app's setting "Delayed Events" is on: after the retries, one each hour for a day."""
    speed: float = 60.0
    """How many times shorter the pauses are."""

    @property
    def pauses(self) -> tuple[float, ...]:
        """The real pauses in front of the retries."""
        later = (HOUR,) * DAY_OF_HOURS if self.delayed_events else ()
        return tuple(pause / self.speed for pause in (*self.retries, *later))


@dataclass(slots=True)
class SlackDelivery:
    """An event on its way to the app."""

    kind: str
    """`events_api`, `interactive` or `slash_commands`."""
    payload: dict[str, Any]
    ts: str
    """The timestamp of the message that it is about, or an id of its own."""
    tries: int = 0
    outcomes: list[str] = field(default_factory=list[str])
    """What came of each try: `taken`, or why it failed."""
    statuses: list[int] = field(default_factory=list[int])
    """The status of each answer by HTTP."""
    due: float = 0.0
    under_way: bool = False
    given_up: bool = False
    answer: Any = None
    """What the app answered: a text or JSON, shown to the person who used a command."""

    @property
    def taken(self) -> bool:
        """Whether the app has acknowledged it."""
        return "taken" in self.outcomes

    @property
    def pending(self) -> bool:
        """Whether it will be tried (again)."""
        return not self.taken and not self.given_up


class SlackDeliveries:
    """Everything that an app is owed."""

    def __init__(self, signing_secret: str, timing: SlackTiming) -> None:
        self.signing_secret: str = signing_secret
        self.timing: SlackTiming = timing
        self.all: list[SlackDelivery] = []
        self.request_url: str = ""
        """Where the app listens for HTTP; empty: it uses Socket Mode, or does not listen."""
        self.sockets: list[SlackSocket] = []
        """The open connections of Socket Mode."""
        self.failed: list[str] = []
        """What went wrong with each try that failed."""
        self.has_connected: bool = False
        """Whether there was such a connection."""

    def add(self, kind: str, payload: dict[str, Any], ts: str) -> SlackDelivery:
        """Owe the app an event."""
        delivery = SlackDelivery(kind, payload, ts)
        self.all.append(delivery)
        return delivery

    def again(self, ts: str) -> None:
        """Deliver what is about a message once more, as after a timeout that crossed the answer."""
        for one in [one for one in self.all if one.ts == ts]:
            repeated = self.add(one.kind, one.payload, ts)
            repeated.tries = 1
            repeated.outcomes.append("http_timeout")

    @property
    def pending(self) -> int:
        """The number of events that the app has not acknowledged, and that will be tried again."""
        return sum(one.pending for one in self.all)

    def answered_commands(self) -> list[SlackDelivery]:
        """Return the commands that the app answered at once, with something that people see."""
        return [one for one in list(self.all) if one.kind == "slash_commands" and one.answer]

    async def run(self) -> None:
        """Deliver whatever is due, side by side, as Slack does: it promises no order."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._start_due(tasks)
                await anyio.sleep(LOOK_SECONDS)

    def _start_due(self, tasks: TaskGroup) -> None:
        if not self.request_url and not self.has_connected:
            return  # the app has never listened
        for one in self.all:
            if one.pending and not one.under_way and one.due <= time.monotonic():
                one.under_way = True
                tasks.start_soon(self._try, one)

    async def _try(self, one: SlackDelivery) -> None:
        one.tries += 1
        if self.request_url:
            outcome = await self._post(one)
        elif sockets := [one for one in self.sockets if not one.asked_to_go] or self.sockets:
            outcome = await sockets[one.tries % len(sockets)].deliver(one, self.timing)
        else:
            outcome = "connection_failed"
        pauses = self.timing.pauses
        if outcome != "taken":
            self.failed.append(f"an event ({one.kind}) was not taken: {outcome}")
            # People see at once that a command or a button failed; it is not tried again.
            one.given_up = one.given_up or one.kind != "events_api" or one.tries > len(pauses)
            one.due = time.monotonic() + (0 if one.given_up else pauses[one.tries - 1])
        one.outcomes.append(outcome)
        one.under_way = False

    async def _post(self, one: SlackDelivery) -> str:
        body, media_type = _body_of(one)
        headers = {"content-type": media_type, **self.signed(body)}
        if one.tries > 1:
            headers |= {"x-slack-retry-num": str(one.tries - 1), "x-slack-retry-reason": one.outcomes[-1]}
        try:
            with anyio.fail_after(self.timing.answer_seconds):
                answer = await post(Url.parse(self.request_url), headers, body, tls=None)
        except TimeoutError:
            return "http_timeout"
        except (NotConnectedError, OSError, EOFError, HttpError):
            return "connection_failed"
        one.statuses.append(answer.status)
        one.given_up = "x-slack-no-retry" in answer.headers
        one.answer = _answer_of(answer)
        return "taken" if 200 <= answer.status < 300 else "http_error"

    def signed(self, body: bytes, *, at: float | None = None) -> dict[str, str]:
        """Return the headers that prove that Slack sends a body."""
        timestamp = str(int(SystemClock().now().timestamp() if at is None else at))
        signature = hmac.new(
            self.signing_secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256
        )
        return {
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": f"v0={signature.hexdigest()}",
            "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        }

    async def challenge(self, url: str) -> bool:
        """Ask an address whether an app of ours listens there; return whether it proved it."""
        body = json.dumps({"token": "old", "challenge": "3eZbrw1a", "type": "url_verification"}).encode()
        headers = {"content-type": "application/json", **self.signed(body)}
        answer = await post(Url.parse(url), headers, body, tls=None)
        told = answer.body.decode()
        return answer.status == 200 and ("3eZbrw1a" in (told, json.loads(told).get("challenge")))

    # Socket Mode

    def open_socket(self, request: FakeRequest) -> FakeResponse | UpgradedConnection:
        """Open a connection of Socket Mode."""
        return web_socket(request, self._talk)

    async def _talk(self, socket: FakeWebSocket) -> None:
        opened = SlackSocket(socket)
        hello = {
            "type": "hello",
            "num_connections": len(self.sockets) + 1,
            "connection_info": {"app_id": APP},
        }
        await socket.send_json(
            {**hello, "debug_info": {"host": "fake", "approximate_connection_time": 18060}}
        )
        self.sockets.append(opened)
        self.has_connected = True
        try:
            await opened.read()
        finally:
            self.sockets.remove(opened)

    def refresh_sockets(self) -> None:
        """Ask the app to open new connections, as Slack does every few hours."""
        for one in self.sockets:
            one.asked_to_go = True


class SlackSocket:
    """One connection of Socket Mode."""

    def __init__(self, socket: FakeWebSocket) -> None:
        self._socket = socket
        self._answers: dict[str, dict[str, Any]] = {}
        self._gone = False
        self.asked_to_go: bool = False
        """Whether the app is to open another connection in place of this one."""

    async def read(self) -> None:
        """Take acknowledgements until the connection ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._say_goodbye)
            try:
                while True:
                    answer = await self._socket.receive_json()
                    self._answers[str(answer.get("envelope_id"))] = answer
            except WebSocketClosedError:
                self._gone = True
            tasks.cancel_scope.cancel()

    async def _say_goodbye(self) -> None:
        while not self.asked_to_go:  # a test sets it in a thread of its own
            await anyio.sleep(LOOK_SECONDS)
        await self._socket.send_json({"type": "disconnect", "reason": "refresh_requested", "debug_info": {}})

    async def deliver(self, one: SlackDelivery, timing: SlackTiming) -> str:
        """Send an event, and wait for its acknowledgement."""
        number = str(uuid.uuid4())
        envelope: dict[str, Any] = {"envelope_id": number, "type": one.kind, "payload": one.payload}
        envelope["accepts_response_payload"] = one.kind != "events_api"
        if one.kind == "events_api":
            reason = one.outcomes[-1] if one.tries > 1 else ""
            envelope |= {"retry_attempt": one.tries - 1, "retry_reason": reason}
        try:
            await self._socket.send_json(envelope)
        except WebSocketClosedError:
            return "connection_failed"
        with anyio.move_on_after(timing.answer_seconds):
            while number not in self._answers:
                if self._gone:
                    return "connection_failed"
                await anyio.sleep(LOOK_SECONDS)
            one.answer = self._answers[number].get("payload")
            return "taken"
        return "timeout"

    def cut(self) -> None:
        """End the connection without a word."""
        self._socket.cut()


def _body_of(one: SlackDelivery) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    match one.kind:
        case "events_api":
            return json.dumps(one.payload).encode(), "application/json"
        case "interactive":
            return urlencode({"payload": json.dumps(one.payload)}).encode(), form
        case _:
            return urlencode(one.payload).encode(), form


def _answer_of(answer: Response) -> Any:
    headers: Mapping[str, str] = answer.headers
    text = answer.body.decode("utf-8", "replace")
    if "json" not in headers.get("content-type", ""):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
