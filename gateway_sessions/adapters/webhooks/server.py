"""`WebhookServer`: a port of our own, at which one webhook or several listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gateway_sessions._process.background import in_background
from gateway_sessions.adapters._http import HttpServer, listening_socket
from gateway_sessions.adapters.webhooks.endpoints import EndpointTable, WebhookEndpoint
from gateway_sessions.errors import AdapterUnavailableError

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class WebhookPort:
    """Where a webhook listens by itself; a proxy with TLS stands in front of it."""

    port: int = 8080
    """0 is any free port."""
    host: str = LOOPBACK


class WebhookServer:
    """Listens for webhooks within `async with server.listening()`."""

    def __init__(self, *endpoints: WebhookEndpoint, port: WebhookPort | None = None) -> None:
        self._endpoints = EndpointTable(endpoints)
        self._port = port or WebhookPort()
        self.address: tuple[str, int] | None = None
        """The host and port, while it listens."""

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[WebhookServer]:
        """Listen within the block; `AdapterUnavailableError` if the address cannot be had."""
        host, port = self._port.host, self._port.port
        try:
            listener = await asyncio.to_thread(listening_socket, host, port)
        except OSError as error:
            problem = f"cannot listen at {host}:{port} ({error})"
            raise AdapterUnavailableError("webhook", problem) from error
        with listener:
            server = HttpServer(listener, self._endpoints.answer, max_body=self._endpoints.max_body)
            async with in_background(server.serve):
                self.address = listener.getsockname()[:2]
                try:
                    yield self
                finally:
                    self.address = None
