"""`WebhookAdapter`: the adapter for one account of a platform that calls us.

It listens at a path of your ASGI application (`WebhookApp`), of a `WebhookServer`, or on a port of its own.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, cast
from urllib.parse import quote

import anyio
import msgspec

from gateway_sessions._process.clock import SystemClock
from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.protocol import AdapterMemory, Submit
from gateway_sessions.adapters.set_aside import put_aside
from gateway_sessions.adapters.webhooks.api_calls import ApiCall
from gateway_sessions.adapters.webhooks.endpoints import checked_path
from gateway_sessions.adapters.webhooks.engine import EngineParts, WebhookEngine, not_listening
from gateway_sessions.adapters.webhooks.events import DeliveryState, DeliveryStatus, UnreadableEvent
from gateway_sessions.adapters.webhooks.http_client import ApiClient
from gateway_sessions.adapters.webhooks.platform import WebhookPlatform
from gateway_sessions.adapters.webhooks.sender import ApiSender
from gateway_sessions.adapters.webhooks.sent_evidence import REPORT_WAIT, SentEvidence
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities
from gateway_sessions.core.delivery.outbound_messages import OutboundMessage, ReplyTarget
from gateway_sessions.errors import (
    AdapterUnavailableError,
    DeliveryRefusedError,
    InvalidInputError,
)
from gateway_sessions.ports import Clock

logger: Final = logging.getLogger(__name__)


class WebhookAdapter:
    """An adapter whose platform is a `WebhookPlatform`."""

    def __init__(
        self,
        rules: WebhookPlatform,
        *,
        name: str = "",
        path: str | None = None,
        port: WebhookPort | int | None = None,
        unreadable: str | Path | None = None,
        on_status: Callable[[DeliveryStatus], Awaitable[None]] | None = None,
        report_wait: timedelta = REPORT_WAIT,
        clock: Clock | None = None,
    ) -> None:
        """*path* is by default `/<platform>`, and `/<platform>/<name>` for an account with a name.

        With *port*, the adapter listens by itself; else give it to a `WebhookApp` or a `WebhookServer`. What
        cannot be read is kept in the folder *unreadable*, or else only logged. *on_status* is told what
        became of messages that were sent. A send without an answer is repeated when the platform has not
        reported on it for *report_wait*, if it reports at all.
        """
        self.name = name
        self.platform: str = rules.name
        self.capabilities: AdapterCapabilities = rules.capabilities
        self.path: str = checked_path(path or f"/{rules.name}/{quote(name)}")
        self.max_body: int = rules.max_body
        self._rules = rules
        self._port = WebhookPort(port) if isinstance(port, int) else port
        self._unreadable = unreadable
        self._on_status = on_status
        self._clock = clock or SystemClock()
        self._client = ApiClient(rules.name)
        self._client_users = 0
        self._sender = ApiSender(rules, self._client, self._clock)
        self._evidence = SentEvidence(rules.name, self._clock, wait=report_wait)
        self._engine: WebhookEngine | None = None
        self._server: WebhookServer | None = None

    @property
    def listens_itself(self) -> bool:
        """Return whether the adapter has a port of its own; if not, an application of yours serves it."""
        return self._port is not None

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port at which the adapter listens by itself; None if it does not."""
        return self._server.address if self._server is not None else None

    @property
    def url(self) -> str:
        """The address of the webhook on its own port; `AdapterUnavailableError` if there is none."""
        if self.address is None:
            raise AdapterUnavailableError(self.platform, "does not listen on a port of its own")
        host, port = self.address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{self.path}"

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Take requests within the block; `AdapterUnavailableError` if the account does not work."""
        parts = EngineParts(
            submit=submit,
            fetch=self._sender.fetch,
            set_aside=self._set_aside,
            tell_status=self._take_status,
            clock=self._clock,
            account=self.name,
            handle_first=self._hear,
        )
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._open_client())
            await self._check_account()
            self._engine = WebhookEngine(self._rules, parts)
            self._evidence.listening_since = self._clock.now()
            stack.callback(self._stop_taking)
            if self._port is not None:
                self._server = WebhookServer(self, port=self._port)
                await stack.enter_async_context(self._server.listening())
            async with self._introduced():
                yield

    @asynccontextmanager
    async def _introduced(self) -> AsyncGenerator[None]:
        """Tell the platform where to call, where it wants to be told that."""
        yield

    async def _check_account(self) -> None:
        call = self._rules.check_call()
        if call is None:
            return
        try:
            await self._sender.call(call)
        except (OSError, DeliveryRefusedError) as error:
            problem = f"does not accept the account ({error})"
            raise AdapterUnavailableError(self.platform, problem) from error

    def _stop_taking(self) -> None:
        self._engine = None
        self._evidence.listening_since = None

    # In

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request of the platform; 503 while no gateway is connected."""
        engine = self._engine
        return not_listening() if engine is None else await engine.answer(request)

    async def _hear(self, request: Request) -> bool:
        """Hear of a genuine request before it is read; return whether it needs no more than an answer."""
        return False

    async def _set_aside(self, event: UnreadableEvent) -> bool:
        """Keep an event that cannot be read; return whether it is kept durably."""
        error = InvalidInputError(event.problem)
        if self._unreadable is not None:
            update = msgspec.to_builtins(event.update, enc_hook=_as_plain)
            await put_aside(self._unreadable, update, error, adapter=self)
            return True
        facts = {"action": "update_unreadable", "platform": self.platform, "account": self.name}
        logger.error("an event could not be read and is passed over: %s", event.problem, extra=facts)
        return False

    async def _take_status(self, status: DeliveryStatus) -> None:
        """Log the failure of a message, and tell the program what became of it."""
        facts = {"action": "delivery_status", "platform": self.platform, "account": self.name}
        if status.state is DeliveryState.FAILED:
            problem = status.problem or "the platform does not say why"
            logger.error("a message that was sent will not be shown: %s", problem, extra=facts)
        if self.capabilities.finds and status.idempotency_key is not None:
            await self._evidence.note_report(status.idempotency_key, status.message_id)
        if self._on_status is None:
            return
        try:
            await self._on_status(status)
        except Exception:  # a broken listener must not make the platform deliver again
            logger.exception("a listener for delivery statuses failed", extra=facts)

    # Out

    async def send(
        self, target: ReplyTarget, message: OutboundMessage, *, idempotency_key: str
    ) -> str | None:
        """Send a message and return its id: the first one, if it takes several."""
        calls = self._rules.render(message, target, idempotency_key=idempotency_key)
        key = self._rules.reported_key(idempotency_key)
        if self.capabilities.finds:
            await self._evidence.note_attempt(key)
        async with self._open_client():
            ids = await self._sender.send(calls, idempotency_key=idempotency_key)
        if not ids:
            return None
        self._evidence.note_answer(key, ids[0])
        return ids[0]

    async def find(self, target: ReplyTarget, *, idempotency_key: str) -> str | None:
        """Return the id of a sent message by what the platform has reported; None: it was never attempted.

        `DeliveryRefusedError` if nobody will ever know.
        """
        return await self._evidence.find(self._rules.reported_key(idempotency_key))

    def remember_in(self, memory: AdapterMemory) -> None:
        """Use the gateway's durable memory for what must be known after a restart."""
        self._evidence.memory = memory

    async def edit(self, target: ReplyTarget, message_id: str, message: OutboundMessage) -> None:
        """Let a message say something else, if the platform can."""
        async with self._open_client():
            await self._sender.call(self._rules.render_edit(message, target, message_id))

    async def typing(self, target: ReplyTarget) -> None:
        """Show that an answer is being made, if the platform can."""
        call = self._rules.render_typing(target)
        if call is not None:
            async with self._open_client():
                await self._sender.call(call)

    async def make(self, call: ApiCall) -> object:
        """Make a call of the platform's API with the account's token, and return the JSON of its answer."""
        async with self._open_client():
            return (await self._sender.call(call)).json

    async def download(self, call: ApiCall, *, most: int) -> bytes:
        """Return a file of up to *most* bytes, fetched with the account's token where the call needs it.

        `InvalidInputError` if it is larger or not there.
        """
        async with self._open_client():
            return await self._client.download(await self._sender.authorized(call), most=most)

    @asynccontextmanager
    async def _open_client(self) -> AsyncGenerator[None]:
        """Keep connections open within the block; they are closed when nobody needs them any more.

        A gateway sends what it owes also before the adapter is connected, and after that.
        """
        self._client_users += 1
        try:
            yield
        finally:
            self._client_users -= 1
            if not self._client_users:
                with anyio.CancelScope(shield=True):  # a send may be cancelled, its connection is closed
                    await self._client.aclose()


def _as_plain(value: object) -> object:
    """Return a value that no encoder knows in a form for a file."""
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else repr(value)
