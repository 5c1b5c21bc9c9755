"""`SlackBoltAdapter`: the door for apps that are made with Bolt, by HTTP or by Socket Mode.

A message goes to the gateway unless a listener of the app takes it; everything else stays with the app. Slack
hears that a message was taken when it is stored: Bolt's own listeners are acknowledged before they run, so
the adapter answers in a middleware of its listener, which Bolt waits for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import anyio
import anyio.lowlevel

from gateway_sessions._process.background import in_background
from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import Request
from gateway_sessions.adapters.group_talk import Groups, GroupTalk, as_group_rules
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.adapters.webhooks.engine import EngineParts, WebhookEngine, not_listening
from gateway_sessions.adapters.webhooks.events import DeliveryStatus, UnreadableEvent
from gateway_sessions.adapters.webhooks.platform import Verdict
from gateway_sessions.adapters.webhooks.sender import ApiSender
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.core.queue.inbound import Attachment
from gateway_sessions.errors import AdapterUnavailableError, DeliveryRefusedError, InvalidInputError
from gateway_sessions.integrations.slack.backfill import CATCH_UP, RETRY, SlackBackfill
from gateway_sessions.integrations.slack.conversations import MOST_BYTES, SlackConversations
from gateway_sessions.integrations.slack.objects import SlackAnswer
from gateway_sessions.integrations.slack.platform import SlackPlatform
from gateway_sessions.integrations.slack.reading import (
    BUTTON,
    Payload,
    SlackIdentity,
    SlackRules,
    ThreadSessions,
)
from gateway_sessions.integrations.slack.refusals import outcome_of_error
from gateway_sessions.integrations.slack.sending import SlackCalls
from gateway_sessions.ports import Clock

try:
    import aiohttp
    from aiohttp import web
    from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
    from slack_bolt.app.async_server import AsyncSlackAppServer
    from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
    from slack_bolt.response import BoltResponse
    from slack_sdk.errors import SlackApiError
    from slack_sdk.web.async_client import AsyncWebClient
    from slack_sdk.web.async_slack_response import AsyncSlackResponse
except ModuleNotFoundError as _error:
    if _error.name not in ("slack_bolt", "slack_sdk", "aiohttp"):
        raise
    _problem = "SlackBoltAdapter needs Bolt: pip install 'gateway-sessions[slack]'"
    raise InvalidInputError(_problem) from _error

logger: Final = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
SOCKET_SECONDS: Final = 30.0
"""The limit for the first connection of Socket Mode."""
LOOK_SECONDS: Final = 5.0
"""The pause between two looks whether Socket Mode is still connected."""
ACKNOWLEDGE_SECONDS: Final = 3.0
"""Slack waits so long for an acknowledgement, and so does the end of a connection."""
SILENCE_SECONDS: Final = 60.0
"""The time after which a lost connection is given up that the library does not repair: it may try a used
address for ever."""
PROBE: Final = "gateway_sessions_connects"
"""The type of an event that the adapter dispatches itself, before Slack delivers any."""
DEFAULT_PATH: Final = "/slack/events"

_OURS: Final = re.compile(rf"^(message|app_mention|{PROBE})$")
_BUTTONS: Final = re.compile(f"^{re.escape(BUTTON)}")
_ANY: Final = re.compile("")


class SlackBoltAdapter:
    """An adapter for an app of Bolt in one workspace."""

    def __init__(  # noqa: PLR0913 -- a program names the few options that it needs
        self,
        app: AsyncApp,
        *,
        app_token: str | None = None,
        port: int | None = None,
        host: str = "127.0.0.1",
        path: str = DEFAULT_PATH,
        name: str = "",
        groups: Groups[Payload] = GroupTalk.MENTION,
        threads: ThreadSessions = ThreadSessions.CHANNELS,
        command: str = "",
        unfurl: bool = False,
        catch_up: timedelta = CATCH_UP,
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """With an *app_token* (xapp-…), Socket Mode is used; with a *port*, Bolt's server listens there.

        With neither, your own server dispatches requests to the app. *unfurl* lets Slack show what the links
        of an answer lead to. What Slack does not deliver any more is read from the channels if it is no older
        than *catch_up*. What cannot be read is kept in the folder *unreadable*, or else only logged.
        """
        self._app = _checked(app)
        self._app_token = app_token
        self._port, self._host, self._path = port, host, path
        self._unreadable = unreadable
        self._clock = clock or SystemClock()
        self.name: str = name
        rules = SlackRules(account=name, groups=as_group_rules(groups), threads=threads, command=command)
        calls = SlackCalls(app.client.base_url, unfurl=unfurl)
        receives = ReceiveClass.BACKFILLED if catch_up else ReceiveClass.ACKNOWLEDGED
        self._slack = _VerifiedByBolt(app.client.token or "", rules=rules, calls=calls, receives=receives)
        self.platform: str = self._slack.name
        self.capabilities: AdapterCapabilities = self._slack.capabilities
        self._client = BoltCalls(app.client)
        self._sender = ApiSender(self._slack, self._client, self._clock)
        self._conversations = SlackConversations(self._slack, self._sender.call, self._download, self._clock)
        self._backfill = self._make_backfill(catch_up)
        self._engine: WebhookEngine | None = None
        self._under_way: set[anyio.CancelScope] = set()
        self._listens = False
        self.address: tuple[str, int] | None = None
        """The host and port of Bolt's server, while it listens."""

    def _make_backfill(self, catch_up: timedelta) -> SlackBackfill:
        return SlackBackfill(
            self._slack,
            self._conversations,
            ask=self._sender.call,
            deliver_again=self._deliver_again,
            clock=self._clock,
            catch_up=catch_up,
        )

    @property
    def bot(self) -> SlackIdentity:
        """The app's bot, once Slack has told who it is."""
        return self._slack.bot

    def remember_in(self, memory: AdapterMemory) -> None:
        """Keep in this memory how far each channel is taken."""
        self._backfill.memory = memory

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Take within the block what the app's listeners leave; `AdapterUnavailableError` if that fails."""
        if not self._listens:  # as late as this, so that the listeners of the app come first
            self._listens = True
            self._listen()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._client.opened())
            await self._introduce()
            await stack.enter_async_context(self._backfill.remembering())
            self._engine = WebhookEngine(self._slack, self._parts(submit))
            stack.push_async_callback(self._stop_taking)
            if self._port is not None:
                await stack.enter_async_context(self._serving(self._port))
            if self._app_token is not None:
                await stack.enter_async_context(self._socket(self._app_token))
            await stack.enter_async_context(in_background(self._backfill.run))
            yield

    async def _introduce(self) -> None:
        """Learn who the bot is, and let Bolt learn it."""
        try:
            self._slack.introduce(await self._sender.call(self._slack.check_call()))
        except (OSError, DeliveryRefusedError) as error:
            raise AdapterUnavailableError(self.platform, f"cannot be reached ({error})") from error
        # Bolt asks once who it is, at its first event: if that call fails, it answers that all is well, and
        # the event is lost. So its first event comes from here.
        body = {"type": "event_callback", "team_id": self.bot.team_id, "event": {"type": PROBE}}
        request = AsyncBoltRequest(body=body, mode="socket_mode")
        await self._app.async_dispatch(request)
        if request.context.authorize_result is None:
            raise AdapterUnavailableError(self.platform, "does not tell Bolt who the app is; try again")

    def _parts(self, submit: Submit) -> EngineParts:
        return EngineParts(
            submit=partial(self._backfill.submit, submit),
            fetch=self._sender.fetch,
            set_aside=self._set_aside,
            tell_status=_ignore_status,
            clock=self._clock,
            account=self.name,
        )

    async def _stop_taking(self) -> None:
        """Take nothing more; what is not stored yet is delivered again."""
        self._engine = None
        for scope in self._under_way:
            scope.cancel()
        while self._under_way:
            await anyio.lowlevel.checkpoint()

    @asynccontextmanager
    async def _serving(self, port: int) -> AsyncGenerator[None]:
        server = AsyncSlackAppServer(port=port, path=self._path, app=self._app, host=self._host)
        runner = web.AppRunner(server.web_app, access_log=None)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self._host, port).start()
            except OSError as error:
                problem = f"cannot listen at {self._host}:{port} ({error})"
                raise AdapterUnavailableError(self.platform, problem) from error
            self.address = runner.addresses[0][:2]
            yield
        finally:
            self.address = None
            await self._stop_taking()  # first: the server waits for requests that are under way
            await runner.cleanup()

    @asynccontextmanager
    async def _socket(self, app_token: str) -> AsyncGenerator[None]:
        handler: Any = AsyncSocketModeHandler(self._app, app_token)  # it has no types
        client = handler.client
        client.message_listeners.append(self._greet)
        under_way: set[asyncio.Future[None]] = set()

        async def answer(client: object, request: object) -> None:
            task = cast("asyncio.Future[None]", asyncio.current_task())
            under_way.add(task)
            try:
                await handler.handle(client, request)
            finally:
                under_way.discard(task)

        client.socket_mode_request_listeners[:] = [answer]
        try:
            try:
                client.wss_uri = await client.issue_new_wss_url()  # `connect` alone would try for ever
                with anyio.fail_after(SOCKET_SECONDS):
                    await handler.connect_async()
            except SlackApiError as error:
                raise AdapterUnavailableError(self.platform, _why(error)) from error
            except (TimeoutError, aiohttp.ClientError) as error:
                problem = f"Socket Mode cannot be reached ({error})"
                raise AdapterUnavailableError(self.platform, problem) from error
            async with in_background(partial(self._watch, client.is_connected)):
                yield
        finally:
            with anyio.CancelScope(shield=True):
                await self._stop_taking()
                # Nothing more is begun, and Bolt acknowledges what is under way while it still can.
                client.socket_mode_request_listeners.clear()
                late = await _late_ones(under_way, ACKNOWLEDGE_SECONDS)
                await handler.close_async()
                names = ("message_processor", "current_session_monitor", "message_receiver")
                tasks = [task for one in names if (task := getattr(client, one)) is not None]
                await asyncio.wait([*tasks, *late], timeout=CONNECT_SECONDS)

    async def _greet(self, _client: object, message: dict[str, Any], _raw: object) -> None:
        """Read what was missed before a connection, of which Slack tells with a greeting."""
        if message.get("type") == "hello":
            self._backfill.catch_up()

    async def _watch(self, is_connected: Callable[[], Awaitable[bool]]) -> None:
        """Raise once a connection is lost for so long that the library will not repair it."""
        silent = 0.0
        while silent < SILENCE_SECONDS:
            await self._clock.sleep(LOOK_SECONDS)
            silent = 0.0 if await is_connected() else silent + LOOK_SECONDS
        raise AdapterUnavailableError(self.platform, "Socket Mode was lost, and did not come back")

    # In

    def _listen(self) -> None:
        """Add the listeners behind those of the app."""

        async def take(body: dict[str, Any]) -> BoltResponse:
            return await self._answer(body)

        async def hear(
            request: AsyncBoltRequest, body: dict[str, Any], next_: Callable[[], Awaitable[None]]
        ) -> BoltResponse | None:
            if await self._backfill.hear(body, retry="".join(request.headers.get(RETRY, ""))):
                return BoltResponse(status=HTTPStatus.OK)
            await next_()
            return None

        async def nothing() -> None:
            """Be the listener that Bolt wants; the middleware has answered already."""

        app = cast("Any", self._app)  # Bolt's decorators have no types
        app.middleware(hear)  # it hears also what listeners of the app take
        app.event(_OURS, middleware=[take])(nothing)
        app.action(_BUTTONS, middleware=[take])(nothing)
        app.command(_ANY, middleware=[take])(nothing)

    async def _answer(self, body: dict[str, Any]) -> BoltResponse:
        engine = self._engine
        response = not_listening()
        if body.get("event", {}).get("type") == PROBE:
            return BoltResponse(status=200)
        if engine is not None:
            scope = anyio.CancelScope()
            self._under_way.add(scope)
            try:
                with scope:
                    content = json.dumps(body).encode()
                    kind = {"content-type": "application/json"}
                    response = await engine.answer(Request("POST", self._path, kind, content))
            finally:
                self._under_way.discard(scope)
        headers: dict[str, str | Sequence[str]] = {**response.headers}
        return BoltResponse(status=int(response.status), body=response.body.decode(), headers=headers)

    async def _deliver_again(self, payload: Payload) -> bool:
        """Let the app take an event as if Slack had delivered it: its own listeners come first again."""
        request = AsyncBoltRequest(body={**payload}, mode="socket_mode")  # which nobody signs
        response = await self._app.async_dispatch(request)
        return response.status < HTTPStatus.INTERNAL_SERVER_ERROR

    async def _set_aside(self, event: UnreadableEvent) -> bool:
        """Keep an event that cannot be read; return whether it is kept durably."""
        if self._unreadable is not None:
            await put_aside(self._unreadable, event.update, InvalidInputError(event.problem), adapter=self)
            return True
        facts = {"action": "update_unreadable", "platform": self.platform, "account": self.name}
        logger.error("an event could not be read and is passed over: %s", event.problem, extra=facts)
        return False

    # Out

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message and return its id."""
        calls = self._slack.render(message, target, idempotency_key=idempotency_key)
        ids = await self._sender.send(calls, idempotency_key=idempotency_key)
        return ids[0] if ids else None

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message say something else."""
        await self._sender.call(self._slack.render_edit(message, target, message_id))

    async def typing(self, target: ReplyTarget) -> None:
        """Show the bot's status in a thread, where Slack can."""
        await self._conversations.typing(target)

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Return the id of the message that was sent with that key; None: it certainly was not sent."""
        return await self._conversations.find(target, idempotency_key)

    async def fetch(self, attachment: Attachment, *, most: int = MOST_BYTES) -> bytes:
        """Return the content of an attachment that somebody sent; `InvalidInputError` if it is too large."""
        return await self._conversations.fetch(attachment, most=most)

    async def _download(self, call: ApiCall, most: int) -> bytes:
        return await self._client.download(await self._sender.authorized(call), most)


class _VerifiedByBolt(SlackPlatform):
    """Slack's part, for requests that Bolt has verified, or that came through Socket Mode."""

    not_taken_status: ClassVar[int] = HTTPStatus.INTERNAL_SERVER_ERROR
    """The status with which Bolt itself answers when a listener fails: programs around it know it."""

    def verify(self, request: Request, now: object) -> Verdict:
        """Trust Bolt."""
        return Verdict.GENUINE


class BoltCalls:
    """Makes calls as the client of an app would, with its proxy and its certificates, and each only once.

    Slack's own client repeats a call whose connection broke, and so shows a message twice.
    """

    def __init__(self, client: AsyncWebClient) -> None:
        self._slack_client = client
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Keep connections open within the block."""
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS)
        trust = self._slack_client.trust_env_in_session
        async with aiohttp.ClientSession(timeout=timeout, trust_env=trust) as session:
            self._session = session
            try:
                yield
            finally:
                self._session = None

    async def answer_to(self, call: ApiCall) -> PlatformAnswer:
        """Make a call; `AdapterUnavailableError`: nothing was sent, `ConnectionError`: nobody knows."""
        return await self._exchange(call, None)

    async def download(self, call: ApiCall, most: int) -> bytes:
        """Return a file of up to *most* bytes; `InvalidInputError` if it is larger or not there."""
        answer = await self._exchange(call, most)
        if not answer.is_success:
            problem = f"the file cannot be fetched: slack answered with status {answer.status}"
            raise InvalidInputError(problem)
        if len(answer.body) > most:
            problem = f"the file cannot be fetched: it has more than {most} bytes"
            raise InvalidInputError(problem)
        return answer.body

    async def _exchange(self, call: ApiCall, most: int | None) -> PlatformAnswer:
        if self._session is None:
            raise AdapterUnavailableError(SlackPlatform.name, "is not connected")
        client = self._slack_client
        headers = {**cast("dict[str, str]", cast("Any", client).headers), **call.headers}
        secured = client.ssl if client.ssl is not None else True
        try:
            async with self._session.request(
                call.method, call.url, data=call.body, headers=headers, proxy=client.proxy, ssl=secured
            ) as response:
                body = await _read(response, most)
                names = {name.lower(): value for name, value in response.headers.items()}
                return PlatformAnswer(response.status, names, body)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise AdapterUnavailableError(SlackPlatform.name, f"cannot be reached ({error})") from error
        except (aiohttp.ClientError, TimeoutError) as error:
            problem = f"slack gave no whole answer ({str(error) or type(error).__name__})"
            raise ConnectionError(problem) from error


async def _late_ones(tasks: Collection[asyncio.Future[None]], seconds: float) -> set[asyncio.Future[None]]:
    """Wait for tasks; cancel and return those that take longer."""
    if not tasks:
        return set()
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    return late


async def _read(response: aiohttp.ClientResponse, most: int | None) -> bytes:
    """Return a body; of one that is too long, a little more than *most* bytes."""
    if most is None:
        return await response.read()
    content = bytearray()
    async for some in response.content.iter_any():
        content += some
        if len(content) > most:
            break
    return bytes(content)


async def _ignore_status(_: DeliveryStatus) -> None:
    """Pass over a report on a message: Slack makes none."""


def app_with(token: str, api_url: str) -> AsyncApp:
    """Return an app of Bolt without listeners of its own, for Socket Mode."""
    # Nothing is signed there. Without an empty secret, Bolt would look for one in the environment.
    client = AsyncWebClient(token, base_url=api_url)
    return AsyncApp(name="gateway_sessions", client=client, signing_secret="")


def _checked(app: object) -> AsyncApp:
    if not isinstance(app, AsyncApp):
        problem = "SlackBoltAdapter needs an AsyncApp: from slack_bolt.async_app import AsyncApp"
        raise InvalidInputError(problem)
    if not app.client.token:
        problem = "SlackBoltAdapter serves one workspace: make AsyncApp with its token (xoxb-…)"
        raise InvalidInputError(problem)
    return app


def _why(error: SlackApiError) -> str:
    """Return what the refusal of a connection means."""
    response = cast("AsyncSlackResponse | aiohttp.ClientResponse", error.response)
    if isinstance(response, aiohttp.ClientResponse):
        return f"Socket Mode: Slack answered with status {response.status}"
    told = response.get("error")
    if told is None:  # a machine in front of Slack has answered
        return f"Socket Mode: Slack answered with status {cast('Any', response).status_code}"
    outcome = outcome_of_error(SlackAnswer(ok=False, error=str(told)))
    return f"Socket Mode: {getattr(outcome, 'problem', error)}"
