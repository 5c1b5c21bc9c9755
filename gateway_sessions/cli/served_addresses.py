"""The addresses of a served gateway: health, the signed webhook, and the port that platforms call."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import anyio

from gateway_sessions.adapters._http import listening_socket
from gateway_sessions.adapters.protocol import Adapter
from gateway_sessions.adapters.webhooks.endpoints import WebhookEndpoint, WebhookListener
from gateway_sessions.adapters.webhooks.server import WebhookPort, WebhookServer
from gateway_sessions.cli.exit_codes import AddressTakenError
from gateway_sessions.config import ServeConfig
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.control.client import ask_to_drain
from gateway_sessions.storage.home import ASK_SECONDS

HEALTH_PORT: Final = "serve.health_port"
WEBHOOK_PORT: Final = "serve.webhook_port"
SHARED_PORT: Final = "serve.webhooks.port"
LOOK_SECONDS: Final = 0.1
"""The pause between two attempts to listen at an address."""


class ListeningAddress(NamedTuple):
    """Where a gateway is to listen."""

    host: str
    port: int


class CalledAdapter(NamedTuple):
    """An adapter whose platform calls it at a path of the shared port."""

    account: str
    path: str


class SharedWebhooks:
    """The adapters that listen at one port together, because none of them has a port of its own."""

    def __init__(self, settings: ServeConfig, adapters: Iterable[Adapter]) -> None:
        """`InvalidInputError` if two of them have the same path."""
        shared: list[WebhookEndpoint] = []
        self.called: list[CalledAdapter] = []
        """The adapters that listen here."""
        for one in adapters:
            if isinstance(one, WebhookEndpoint) and not _listens_itself(one):
                shared.append(one)
                self.called.append(CalledAdapter(account_name(one), one.path))
        port = WebhookPort(settings.webhooks.port, settings.webhooks.host)
        self._server = WebhookServer(*shared, port=port) if shared else None

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Listen within the block, if there is anything to listen for."""
        if self._server is None:
            yield
            return
        async with self._server.listening():
            yield

    def report(self) -> str | None:
        """Return which addresses platforms must call; None if there are none."""
        if self._server is None or self._server.address is None:
            return None
        base = http_url(*self._server.address)
        told = [f"{one.account} at {base}{one.path}" for one in self.called]
        return (
            f"Webhooks: {', '.join(told)}. Tell each platform that path at your public address with HTTPS,"
            " whose proxy hands requests on to this port."
        )


def addresses_to_have(settings: ServeConfig, webhooks: SharedWebhooks) -> Mapping[str, ListeningAddress]:
    """Return where a gateway listens, by the keys that say so."""
    ports = {HEALTH_PORT: settings.health_port, WEBHOOK_PORT: settings.webhook_port}
    found = {key: ListeningAddress(settings.host, port) for key, port in ports.items() if port is not None}
    if webhooks.called:
        found[SHARED_PORT] = ListeningAddress(settings.webhooks.host, settings.webhooks.port)
    return MappingProxyType(found)


async def wait_for_addresses(addresses: Mapping[str, ListeningAddress], home: Path, *, wait: float) -> None:
    """Return when the addresses of the gateway are free; the owner of the store is asked to end.

    `AddressTakenError` if an address is still taken after *wait* seconds.
    """
    until, asked = anyio.current_time() + wait, False
    for key, address in addresses.items():
        while True:
            try:
                (await asyncio.to_thread(listening_socket_for, key, address)).close()
                break
            except AddressTakenError:
                if anyio.current_time() >= until:
                    raise
            asked = asked or await ask_to_drain(home, seconds=min(wait, ASK_SECONDS))
            await anyio.sleep(LOOK_SECONDS)


def listening_socket_for(key: str, address: ListeningAddress) -> socket.socket:
    """Return a socket that listens; an address that cannot be had is told with the key that names it."""
    host, port = address
    try:
        return listening_socket(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTakenError(key, f"{host}:{port}") from error
        problem = f"{key}: cannot listen at {host}:{port} ({error.strerror or error})"
        raise InvalidInputError(problem) from error


def account_name(adapter: Adapter) -> str:
    """Return the platform of an adapter, with its account if it has a name."""
    return f"{adapter.platform} as {adapter.name!r}" if adapter.name else adapter.platform


def http_url(host: str, port: int) -> str:
    """Return the address of a port."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listens_itself(endpoint: WebhookEndpoint) -> bool:
    return isinstance(endpoint, WebhookListener) and endpoint.listens_itself
