"""`ServedGateway`: the gateway of `serve`, with its adapters, its health endpoint and its log."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, Final

import anyio
import msgspec

import gateway_sessions as gs
from gateway_sessions._process.background import in_background
from gateway_sessions.adapters._http import HttpServer, Request, Response
from gateway_sessions.adapters.console import Console
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.adapters.webhook import Webhook, WebhookSettings
from gateway_sessions.cli.context import CommandContext
from gateway_sessions.cli.served_addresses import (
    HEALTH_PORT,
    ListeningAddress,
    SharedWebhooks,
    account_name,
    addresses_to_have,
    http_url,
    listening_socket_for,
)
from gateway_sessions.config import ServeConfig
from gateway_sessions.errors import ConfigError, ConfigProblem
from gateway_sessions.integrations.registry import ConfiguredAdapter
from gateway_sessions.log_lines import LogLines
from gateway_sessions.runtime.gateway.gateway import ending_signals
from gateway_sessions.storage.transactions.upkeep import status

ALIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
DATABASE_SECONDS: Final = 2.0
"""The time limit for an answer of the database; after that, the gateway is not ready."""

_JSON: Final = {"content-type": "application/json", "cache-control": "no-store"}


class ServedGateway:
    """A gateway with its adapters, and a health endpoint."""

    def __init__(
        self,
        context: CommandContext,
        settings: ServeConfig,
        adapters: Sequence[ConfiguredAdapter] = (),
    ) -> None:
        self._context = context
        self._settings = settings
        self._webhook = _configured_webhook(settings)
        self._configured: Sequence[ConfiguredAdapter] = adapters
        self._adapters: list[Adapter] = [Console()] if settings.console else []
        self._adapters += [one.adapter for one in adapters]
        self._webhooks = SharedWebhooks(settings, self._adapters)
        if self._webhook is not None:
            self._adapters.append(self._webhook)
        self._gateway: gs.Gateway | None = None
        if not self._adapters:
            problem = ConfigProblem(
                "serve", "connects to nothing: set serve.adapters, serve.webhook_port or serve.console"
            )
            raise ConfigError(str(context.own_config_path or "configuration"), [problem])

    @property
    def addresses(self) -> Mapping[str, ListeningAddress]:
        """Where the gateway is to listen, by the keys of the configuration that say so."""
        return addresses_to_have(self._settings, self._webhooks)

    async def run(self, store: AbstractAsyncContextManager[gs.SessionStore], **agent: Any) -> None:
        """Serve until a signal comes or another process asks for the store; running turns get time to end."""
        with anyio.CancelScope() as beginning:
            # Once the gateway runs, it handles signals itself.
            for one in set(ending_signals()) - {signal.SIGINT}:  # which Python turns into an exception
                asyncio.get_running_loop().add_signal_handler(one, beginning.cancel)
            in_time = await self._serve_until_ended(store, agent)
            ended = (
                "all turns have ended" if in_time else "turns were cut off, and go on after the next start"
            )
            self._context.note(f"Ended: {ended}.")
        if beginning.cancelled_caught:
            self._context.note("Ended before it was ready.")

    async def _serve_until_ended(
        self, opened: AbstractAsyncContextManager[gs.SessionStore], agent: Mapping[str, Any]
    ) -> bool:
        """Serve until asked to end, and return whether all turns have ended in time."""
        async with (
            self._closing_adapters(),
            self._health_endpoint() as health,
            opened as store,
            self._webhooks.listening(),  # around the gateway: who calls too early is told to call again
            gs.Gateway(store, adapters=self._adapters, **agent) as gateway,
        ):
            self._gateway = gateway
            self._report_addresses(health)
            return await gateway.run()

    @asynccontextmanager
    async def _closing_adapters(self) -> AsyncGenerator[None]:
        """Close in the end what was made for the adapters."""
        async with AsyncExitStack() as closing:
            for one in self._configured:
                closing.push_async_callback(one.settings.aclose)
            yield

    def _report_addresses(self, health: str | None) -> None:
        where = ["the console"] if self._settings.console else []
        where += [account_name(one.adapter) for one in self._configured]
        if self._webhook is not None:
            address = self._webhook.address
            path = self._settings.webhook_path
            where.append(
                f"{http_url(*address)}{path}" if address else "the webhook, which is not connected yet"
            )
        told = f"; {health}{READY_PATH} says how it is" if health else ""
        self._context.note(f"Serving {' and '.join(where)}{told}.")
        if (webhooks := self._webhooks.report()) is not None:
            self._context.note(webhooks)

    # Health

    @asynccontextmanager
    async def _health_endpoint(self) -> AsyncGenerator[str | None]:
        """Answer health requests in the block, and yield the address; None if no port is configured."""
        host, port = self._settings.host, self._settings.health_port
        if port is None:
            yield None
            return
        listener = await asyncio.to_thread(listening_socket_for, HEALTH_PORT, ListeningAddress(host, port))
        with listener:
            async with in_background(HttpServer(listener, self._answer_health_request, max_body=0).serve):
                yield http_url(*listener.getsockname()[:2])

    async def _answer_health_request(self, request: Request) -> Response:
        if request.path not in (ALIVE_PATH, READY_PATH):
            return Response(HTTPStatus.NOT_FOUND)
        if request.method != "GET":
            return Response(HTTPStatus.METHOD_NOT_ALLOWED, headers={"allow": "GET"})
        if request.path == ALIVE_PATH:
            return _json_response(HTTPStatus.OK, status="alive")
        problem = await self._readiness_problem()
        if problem is None:
            return _json_response(HTTPStatus.OK, status="ready")
        return _json_response(HTTPStatus.SERVICE_UNAVAILABLE, status="not ready", problem=problem)

    async def _readiness_problem(self) -> str | None:
        """Return why the gateway is not ready for messages; None if it is ready."""
        if self._gateway is None:
            return "it is starting"
        if self._gateway.draining:
            return "it is ending"
        if self._webhook is not None and self._webhook.address is None:
            return "the webhook is not connected"
        away = [one.adapter for one in self._configured if not self._gateway.is_connected(one.adapter)]
        if away:
            return f"{', '.join(map(account_name, away))} cannot be reached"
        try:
            with anyio.fail_after(DATABASE_SECONDS):
                await self._gateway.store.db.read(status.schema_version)
        except (gs.GatewaySessionsError, TimeoutError):
            return "the database does not answer"
        return None


def _configured_webhook(settings: ServeConfig) -> Webhook | None:
    if settings.webhook_port is None or settings.webhook_callback_url is None:
        return None
    return Webhook(
        WebhookSettings(
            secrets=settings.webhook_secrets,
            callback_url=settings.webhook_callback_url,
            host=settings.host,
            port=settings.webhook_port,
            path=settings.webhook_path,
        )
    )


def _json_response(code: HTTPStatus, **told: str) -> Response:
    return Response(code, msgspec.json.encode(told), _JSON)


# The log


@contextmanager
def logging_to_stderr() -> Generator[None]:
    """Log to the standard error output in the block, where service managers collect the log."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines())
    root, requests = logging.getLogger(), logging.getLogger("httpx2")
    levels = {one: one.level for one in (root, requests)}
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    requests.setLevel(logging.WARNING)  # at INFO, each poll and each message is a line that helps nobody
    try:
        yield
    finally:
        root.removeHandler(handler)
        for one, level in levels.items():
            one.setLevel(level)
