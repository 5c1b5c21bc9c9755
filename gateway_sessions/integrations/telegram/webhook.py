"""`TelegramWebhook`: one bot to which Telegram posts its updates, instead of being polled.

Telegram hears of success when the message is stored, and posts an update again until then, for a day.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import msgspec

from gateway_sessions.adapters._http import Request, Response
from gateway_sessions.adapters.group_talk import Groups, GroupTalk
from gateway_sessions.adapters.protocol import Submit
from gateway_sessions.adapters.webhooks.api_calls import ApiCall, PlatformAnswer
from gateway_sessions.adapters.webhooks.endpoints import checked_path
from gateway_sessions.adapters.webhooks.engine import EngineParts, WebhookEngine, not_listening
from gateway_sessions.adapters.webhooks.events import (
    DeliveryStatus,
    PassedOver,
    UnreadableEvent,
    WebhookEvent,
)
from gateway_sessions.adapters.webhooks.platform import ReceivingPlatform, Verdict
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer
from gateway_sessions.adapters.webhooks.signatures import is_same_secret
from gateway_sessions.core.delivery.adapter_capabilities import AdapterCapabilities, ReceiveClass
from gateway_sessions.core.identity.source import Platform
from gateway_sessions.core.queue.inbound import InboundMessage, Receipt
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.integrations.telegram.adapter import HandleUpdate, TelegramAdapter
from gateway_sessions.integrations.telegram.bot_api import BotApi
from gateway_sessions.integrations.telegram.updates import (
    ALLOWED_UPDATES,
    ReadingRules,
    Update,
    read_update,
)
from gateway_sessions.ports import Clock

SECRET_HEADER: Final = "x-telegram-bot-api-secret-token"  # noqa: S105 -- the name of a header
SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,256}")


class TelegramUpdates(ReceivingPlatform):
    """Reads the updates that Telegram posts, as those that are polled."""

    name: ClassVar[str] = Platform.TELEGRAM
    # An update has no files, but a text with entities and the message that it answers, with theirs.
    max_body: ClassVar[int] = 1 << 20
    signed_with: ClassVar[str] = "the secret, which is one for all nodes"
    answer_seconds: ClassVar[float] = 30.0

    def __init__(self, secret: str, rules: ReadingRules) -> None:
        self._secret = secret
        self._rules = rules

    def verify(self, request: Request, now: datetime) -> Verdict:
        """Return whether the request has the secret that Telegram was given."""
        same = is_same_secret(self._secret, request.headers.get(SECRET_HEADER, ""))
        return Verdict.GENUINE if same else Verdict.FORGED

    def parse(self, request: Request) -> Sequence[WebhookEvent]:
        """Return the message of an update; `InvalidInputError` if it is none."""
        update = update_in(request)
        try:
            message = read_update(update, self._rules)
        except InvalidInputError as error:
            return [UnreadableEvent(update, str(error))]
        return [PassedOver("an update without a message for this bot") if message is None else message]


def update_in(request: Request) -> Update:
    """Return the update in a request; `InvalidInputError` if there is none."""
    try:
        return msgspec.json.decode(request.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        problem = f"this is no update of Telegram ({type(error).__name__})"
        raise InvalidInputError(problem) from error


class TelegramWebhook(TelegramAdapter):
    """An adapter for one bot on Telegram, at a path of your application or on a port of its own."""

    def __init__(
        self,
        api: BotApi,
        public_url: str,
        *,
        secret: str | None = None,
        path: str | None = None,
        port: WebhookPort | int | None = None,
        connections: int = 1,
        name: str = "",
        groups: Groups[Update] = GroupTalk.MENTION,
        handle: HandleUpdate | None = None,
        updates: Sequence[str] = ALLOWED_UPDATES,
        unreadable: str | Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        """*public_url* is the whole address at which Telegram reaches the adapter's path.

        *path* is by default that of the address. *secret* is what Telegram must show: several nodes need the
        same one; by default it is drawn anew. With more than one of *connections*, Telegram posts several
        updates at once, and two messages of one person may be stored in another order than they were written.
        The other options are those of `TelegramAdapter`.
        """
        super().__init__(
            api,
            name=name,
            groups=groups,
            handle=handle,
            updates=updates,
            unreadable=unreadable,
            clock=clock,
        )
        self.capabilities: AdapterCapabilities = replace(
            self.capabilities, receives=ReceiveClass.ACKNOWLEDGED
        )
        self.path: str = checked_path(path or urlsplit(public_url).path or "/")
        self.max_body: int = TelegramUpdates.max_body
        self.public_url = public_url
        self._secret = _checked_secret(secret)
        self._connections = connections
        self._port = WebhookPort(port) if isinstance(port, int) else port
        self._engine: WebhookEngine | None = None
        self._server: WebhookServer | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and port at which the adapter listens by itself; None if it does not."""
        return self._server.address if self._server is not None else None

    @asynccontextmanager
    async def connect(self, submit: Submit) -> AsyncGenerator[None]:
        """Take updates within the block; `AdapterUnavailableError` if Telegram does not know the bot.

        Telegram goes on to keep updates after the block, until an adapter connects again.
        """
        await self._introduce()
        async with AsyncExitStack() as stack:
            self._engine = self._new_engine(submit)
            stack.callback(self._stop_taking)
            if self._port is not None:
                self._server = WebhookServer(self, port=self._port)
                await stack.enter_async_context(self._server.listening())
            await self._set_webhook()
            yield

    async def delete_webhook(self) -> None:
        """Let Telegram post no more updates: they wait to be polled, as by a `TelegramAdapter`."""
        await self._api.call("deleteWebhook", {})

    def _new_engine(self, submit: Submit) -> WebhookEngine:
        assert self.bot is not None  # noqa: S101 -- `connect` has asked

        async def submit_and_end_press(message: InboundMessage) -> Receipt:
            receipt = await submit(message)
            await self._end_press(message)
            return receipt

        rules = ReadingRules(self.bot, self.name, self._groups)
        parts = EngineParts(
            submit=submit_and_end_press,
            fetch=_fetch_nothing,
            set_aside=self._set_event_aside,
            tell_status=_pass_over_status,
            clock=self._clock,
            account=self.name,
            handle_first=self._is_handled_first if self._handle_first is not None else None,
        )
        return WebhookEngine(TelegramUpdates(self._secret, rules), parts)

    async def _set_webhook(self) -> None:
        wanted = {
            "url": self.public_url,
            "secret_token": self._secret,
            "allowed_updates": [*self.updates],
            "max_connections": self._connections,
        }
        try:
            await self._api.call("setWebhook", wanted)
        except Exception as error:
            raise self._unavailable(error) from error

    def _stop_taking(self) -> None:
        self._engine = None

    async def answer(self, request: Request) -> Response:
        """Return the answer to a request of Telegram; 503 while no gateway is connected."""
        engine = self._engine
        return not_listening() if engine is None else await engine.answer(request)

    async def _is_handled_first(self, request: Request) -> bool:
        try:
            update = update_in(request)
        except InvalidInputError:
            return False  # the engine puts it aside
        return await self._is_handled(update)

    async def _set_event_aside(self, event: UnreadableEvent) -> bool:
        await self._set_aside(event.update, InvalidInputError(event.problem))
        return self._unreadable is not None


async def _fetch_nothing(call: ApiCall) -> PlatformAnswer:
    problem = f"{call!r}: nothing needs to be fetched for Telegram"
    raise ConnectionError(problem)


async def _pass_over_status(status: DeliveryStatus) -> None:
    """Do nothing: Telegram reports on no message."""


def _checked_secret(secret: str | None) -> str:
    """Return the secret, or a new one; `InvalidInputError` if Telegram does not take it, or it is short."""
    if secret is None:
        return secrets.token_urlsafe(SECRET_BYTES)
    if not _SECRET.fullmatch(secret):
        problem = "secret must have 16 to 256 letters of A-Z, a-z, 0-9, _ and -"
        raise InvalidInputError(problem)
    return secret
