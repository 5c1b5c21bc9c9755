"""Sending one request, and knowing afterwards whether it can have arrived."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import anyio

from gateway_sessions.adapters.http import (
    MAX_HEAD,
    HttpError,
    Request,
    Response,
    receive_body,
    receive_status,
)
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.streams import closing

CONNECT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 30.0
BODY_SECONDS: Final = 5.0
MAX_ANSWER: Final = 64 << 10

_PORTS: Final = {"http": 80, "https": 443}


class NotConnectedError(Exception):
    """There was no connection, so nothing can have arrived."""


@dataclass(frozen=True, slots=True)
class Url:
    """Where requests go."""

    scheme: str
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """Read an address that begins with `http://` or `https://`."""
        try:
            parts = urlsplit(text)
            port = parts.port or _PORTS[parts.scheme]
        except (KeyError, ValueError):
            raise _no_url(text) from None
        target = f"{parts.path or '/'}?{parts.query}".removesuffix("?")
        plain = (parts.hostname or "").isprintable() and target.isascii() and target.isprintable()
        if not parts.hostname or not plain or " " in text or parts.username is not None:
            raise _no_url(text)
        return cls(parts.scheme, parts.hostname, port, target)

    @property
    def authority(self) -> str:
        """What a server knows itself by."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


async def post(url: Url, headers: Mapping[str, str], body: bytes, *, tls: ssl.SSLContext | None) -> Response:
    """Send a body and return the answer.

    `NotConnectedError`: nothing was sent. Any other error: nobody knows whether it has arrived.
    """
    request = Request("POST", url.target, {"host": url.authority, **headers}, body)
    async with _connected(url, tls) as (reader, writer):
        with anyio.fail_after(ANSWER_SECONDS):
            writer.write(request.encode())
            await writer.drain()
            status, told = await receive_status(reader)
        answer = b""
        # The status tells what became of the request; a body that never comes changes nothing about that.
        with anyio.move_on_after(BODY_SECONDS), contextlib.suppress(*_BROKEN):
            answer = await receive_body(reader, told, max_body=MAX_ANSWER)
        return Response(status, answer, told)


_BROKEN: Final = (OSError, EOFError, asyncio.LimitOverrunError, HttpError)


@asynccontextmanager
async def _connected(
    url: Url, tls: ssl.SSLContext | None
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    context = tls if url.scheme == "https" else None
    try:
        with anyio.fail_after(CONNECT_SECONDS):
            opened = await asyncio.open_connection(url.host, url.port, ssl=context, limit=MAX_HEAD)
    except (
        OSError,
        UnicodeError,
    ) as error:  # a time-out, a name that is none or unknown, a wrong certificate
        raise NotConnectedError(str(error) or type(error).__name__) from error
    reader, writer = opened
    async with closing(writer):
        yield reader, writer


def _no_url(text: str) -> InvalidInputError:
    problem = f"{text!r} is no address of the form http://host/path or https://host/path"
    return InvalidInputError(problem)
