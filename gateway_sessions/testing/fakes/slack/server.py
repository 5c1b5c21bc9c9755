"""`FakeSlack`: a Slack on loopback with one workspace, its people, and one app."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from gateway_sessions._process.clock import SystemClock
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
from gateway_sessions.testing.fakes.http_server import (
    ConnectionCutError,
    FakeRequest,
    FakeResponse,
    UpgradedConnection,
    UploadedFile,
)
from gateway_sessions.testing.fakes.platform_server import BotMessage, FakePlatformServer
from gateway_sessions.testing.fakes.slack.blocks import visible_text
from gateway_sessions.testing.fakes.slack.delivery import SlackDeliveries, SlackTiming
from gateway_sessions.testing.fakes.slack.methods import SCOPES, SlackMethods
from gateway_sessions.testing.fakes.slack.people import SlackPeople
from gateway_sessions.testing.fakes.slack.refusals import SlackRefusalError, missing_scope, ratelimited
from gateway_sessions.testing.fakes.slack.workspace import SlackWorkspace
from gateway_sessions.testing.fakes.websocket import require_wsproto

TOKEN: Final = "xoxb-1-fake-token-that-opens-nothing"  # noqa: S105 -- it opens nothing
APP_TOKEN: Final = "xapp-1-fake-token-that-opens-nothing"  # noqa: S105 -- the same
SIGNING_SECRET: Final = "8f742231b10e8888abcd99yyyzzz85a5"  # noqa: S105 -- the example of Slack's documentation
LOGIN_PAGE: Final = b"<!DOCTYPE html><html><head><title>Sign in | Slack</title></head></html>"
EVENTS: Final = ("message.im", "message.channels", "message.groups", "message.mpim", "app_mention")
TAKE_JSON: Final = frozenset(
    {
        *("chat.postMessage", "chat.postEphemeral", "chat.update", "chat.delete", "auth.test", "api.test"),
        *("conversations.open", "files.completeUploadExternal", "assistant.threads.setStatus"),
        "apps.connections.open",
    }
)
"""The methods that read a body in JSON; others, which only read, pass over it."""
PLACED: Final = frozenset({"chat.postMessage", "chat.update", "files.completeUploadExternal"})
"""The methods whose pace is counted by channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackLimits:
    """How much an app may send before it is asked to wait; `None` in place of them: as much as it likes."""

    a_second_in_a_channel: int = 1


class FakeSlack(FakePlatformServer):
    """A Slack with one app, to be used as `async with FakeSlack() as slack`.

    Point a client library at `slack.api_url`. Events are delivered to `slack.listen_at(url)`, or through
    Socket Mode once the app opens a connection; each is delivered again until it is taken or given up.
    """

    def __init__(
        self,
        *,
        bot_name: str = "helper",
        token: str = TOKEN,
        scopes: Iterable[str] = tuple(SCOPES.values()),
        events: Iterable[str] = EVENTS,
        limits: SlackLimits | None = None,
        timing: SlackTiming | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__()
        require_wsproto()
        self.token: str = token
        self.app_token: str = APP_TOKEN
        self.scopes: set[str] = set(scopes)
        self.workspace: SlackWorkspace = SlackWorkspace(bot_name, clock or SystemClock())
        self.deliveries: SlackDeliveries = SlackDeliveries(SIGNING_SECRET, timing or SlackTiming())
        self.people: SlackPeople = SlackPeople(self.workspace, self.deliveries, events, lambda: self.url)
        self.methods: SlackMethods = SlackMethods(self.workspace, lambda: self.url, self.people.tell)
        self.failed_deliveries: list[str] = self.deliveries.failed
        self._limits = limits
        self._sent_at: dict[str, float] = {}
        self._pauses = AskedPauses()
        self._sockets_opened = 0

    def _duties(self) -> list[Callable[[], Awaitable[object]]]:
        return [self.deliveries.run]

    @property
    def api_url(self) -> str:
        """The address of the Web API, with a slash at its end."""
        return f"{self.url}/api/"

    @property
    def signing_secret(self) -> str:
        """The secret with which requests are signed."""
        return self.deliveries.signing_secret

    def listen_at(self, url: str) -> None:
        """Deliver events, buttons and commands to an address; "": there is none any more."""
        self.deliveries.request_url = url

    # What people see

    def texts(self, person: str = "", *, channel: str | None = None, thread: str | None = None) -> list[str]:
        """Return what the bot has said to a person, in a channel or in a thread, as people read it."""
        place = self.people.place(person, channel)
        return self.workspace.texts(place, thread=thread)

    def shown(self, person: str = "", *, channel: str | None = None) -> list[dict[str, Any]]:
        """Return the bot's messages as Slack keeps them."""
        return list(self.workspace.own_messages(self.people.place(person, channel)))

    def seen(self, message: dict[str, Any]) -> str:
        """Return a message as people read it."""
        return visible_text(message)

    def bot_messages(self) -> Iterator[BotMessage]:
        """Yield all messages of the bot that people see, wherever they stand; also those for one person."""
        for channel in list(self.workspace.channels.values()):
            place = channel.name if channel.kind == "im" else f"#{channel.name}"
            for message in self.workspace.own_messages(channel):
                yield BotMessage(place, f"{channel.id} {message['ts']}", visible_text(message))
        for number, one in enumerate(list(self.methods.ephemerals)):
            user = self.workspace.user(str(one.get("user")))
            yield BotMessage(user.name if user else "one person", f"ephemeral {number}", visible_text(one))
        for used in self.deliveries.answered_commands():
            answer = {"text": used.answer} if isinstance(used.answer, str) else used.answer
            yield BotMessage(used.payload["user_name"], f"answer {used.ts}", visible_text(answer))

    def adapter_settings(self, folder: Path) -> dict[str, str]:
        """Return the keys of a configuration: for Socket Mode, unless events go to an address."""
        way = {"app_token": self.app_token}
        if self.deliveries.request_url:
            way = {"signing_secret": self.signing_secret}
        return {"token": self.token, **way, "api_url": self.api_url}

    def conversation(
        self, person: str = "", *, channel: str | None = None, thread: str | None = None
    ) -> list[str]:
        """Return what was said in a place, by everybody, as people read it: `ann: hello`."""
        place = self.people.place(person, channel)
        messages = place.thread(thread) if thread is not None else list(place.messages.values())
        users = {one.id: one.name for one in self.workspace.people.values()}
        lines = [f"{users.get(one['user'], one['user'])}: {visible_text(one)}" for one in messages]
        return [re.sub(r"@(U\d+)", lambda found: f"@{users.get(found[1], found[1])}", line) for line in lines]

    async def is_taken(self, ts: str, *, seconds: float = 15) -> bool:
        """Wait for the first try to deliver what is about a message; return whether all was taken."""
        about = [one for one in self.deliveries.all if one.ts == ts]
        await self.wait_until(lambda: all(one.outcomes for one in about), seconds=seconds)
        return all(one.outcomes[0] == "taken" for one in about)

    @property
    def pending(self) -> int:
        """The number of events that the app has not acknowledged, and that will be tried again."""
        return self.deliveries.pending

    async def cut_sockets(self) -> None:
        """End all connections of Socket Mode without a word."""

        async def cut() -> None:
            for one in self.deliveries.sockets:
                one.cut()

        await self._in_thread(cut)

    # The server

    async def _answer(self, request: FakeRequest) -> FakeResponse | UpgradedConnection:
        _, place, *rest = [*request.path.split("/"), "", ""]
        match place:
            case "api":
                return await self._api(rest[0], request)
            case "upload":
                return self._take_upload(rest[1], request)
            case "files-pri":
                return self._file(rest[0], request)
            case "socket":
                return self.deliveries.open_socket(request)
            case "response":
                self.methods.ephemerals.append(request.parameters())
                return FakeResponse(200, b"ok")
            case _:
                return FakeResponse(404, LOGIN_PAGE, {"content-type": "text/html"})

    async def _api(self, method: str, request: FakeRequest) -> FakeResponse:
        parameters = request.parameters()
        if method not in TAKE_JSON and "json" in request.headers.get("content-type", ""):
            parameters = dict(request.query)
        fault = self.faults.next_for(method, parameters)
        token = request.headers.get("authorization", "").removeprefix("Bearer ") or str(
            parameters.pop("token", "")
        )
        response = await self._response(method, parameters, token, fault)
        self._log_call(method, parameters, response)
        return response

    async def _response(
        self, method: str, parameters: Mapping[str, Any], token: str, fault: Fault | None
    ) -> FakeResponse:
        match fault:
            case CutConnection():
                if fault is CutConnection.AFTER:
                    self._outcome(method, parameters, token)
                raise ConnectionCutError
            case ServerFault():
                if fault.done:
                    self._outcome(method, parameters, token)
                return FakeResponse(fault.status, fault.body.encode(), {"content-type": "text/html"})
            case RefusedCall():
                return self._refused(SlackRefusalError(fault.problem, status=fault.status))
            case RateLimit():
                return self._refused(self._asked_to_wait(_place(method, parameters), fault.retry_after))
            case Delay() | None:
                await anyio.sleep(fault.seconds if fault else 0)
                return self._outcome(method, parameters, token)

    def _outcome(self, method: str, parameters: Mapping[str, Any], token: str) -> FakeResponse:
        try:
            self._check_rights(method, token)
            self._check_pace(method, parameters)
            if method == "apps.connections.open":
                self._sockets_opened += 1
                address = f"{self.url.replace('http', 'ws')}/socket/?ticket={self._sockets_opened}"
                return self._answered({"ok": True, "url": address})
            if method not in self.methods.table:
                return self._refused(SlackRefusalError("unknown_method"))
            return self._answered({"ok": True, **self.methods.table[method](parameters)})
        except SlackRefusalError as refusal:
            return self._refused(refusal)

    def _answered(self, value: dict[str, Any]) -> FakeResponse:
        return FakeResponse.of_json(value, headers={"x-oauth-scopes": ",".join(sorted(self.scopes))})

    def _refused(self, refusal: SlackRefusalError) -> FakeResponse:
        wait = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
        return FakeResponse.of_json(refusal.as_json(), status=refusal.status, headers=wait)

    def _check_rights(self, method: str, token: str) -> None:
        if not token:
            raise SlackRefusalError("not_authed")
        wanted = self.app_token if method == "apps.connections.open" else self.token
        if token != wanted:
            known = token in (self.app_token, self.token)
            raise SlackRefusalError("not_allowed_token_type" if known else "invalid_auth")
        needed = SCOPES.get(method)
        if needed is not None and needed not in self.scopes:
            raise missing_scope(needed, ",".join(sorted(self.scopes)))

    # Files

    def _take_upload(self, number: str, request: FakeRequest) -> FakeResponse:
        upload = self.methods.uploads.get(number)
        content = request.body
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            parts = request.parameters().values()
            content = next((one.content for one in parts if isinstance(one, UploadedFile)), b"")
        if upload is None or len(content) != upload["length"]:
            return FakeResponse(400, b"Bad request", {"content-type": "text/plain"})
        upload["content"] = content
        return FakeResponse(200, f"OK - {len(content)}".encode(), {"content-type": "text/plain"})

    def _file(self, name: str, request: FakeRequest) -> FakeResponse:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            # Slack asks for a password, with a page that says that all is well.
            return FakeResponse(200, LOGIN_PAGE, {"content-type": "text/html; charset=utf-8"})
        number = name.partition("-")[2]
        content = self.workspace.contents.get(number)
        if content is None:
            return FakeResponse(404, b"", {"content-type": "text/html"})
        return FakeResponse(200, content, {"content-type": self.workspace.files[number]["mimetype"]})

    # Pace

    def _asked_to_wait(self, place: str, seconds: float) -> SlackRefusalError:
        return ratelimited(math.ceil(self._pauses.ask(place, seconds)))

    def _check_pace(self, method: str, parameters: Mapping[str, Any]) -> None:
        """Refuse a call that does not wait as it was asked, for twice as long; and one that is too soon."""
        place, now = _place(method, parameters), time.monotonic()
        if (longer := self._pauses.broken(place)) is not None:
            raise ratelimited(math.ceil(longer))
        if self._limits is not None and method in PLACED:
            if now < self._sent_at.get(place, 0) + 1 / self._limits.a_second_in_a_channel:
                raise self._asked_to_wait(place, 1)
            self._sent_at[place] = now


def _place(method: str, parameters: Mapping[str, Any]) -> str:
    """Return what a pause is for: a method, and where it is counted so, a channel."""
    channel = parameters.get("channel") or parameters.get("channel_id") or ""
    return f"{method} {channel}" if method in PLACED else method
