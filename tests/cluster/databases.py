"""What the cluster run knows of a kind of database: how to ask it, and how a commit looks on its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from gateway_sessions.config import Provider
from gateway_sessions.storage.engines.mysql.connection import ConnectionLender
from gateway_sessions.storage.engines.mysql.engine import close_pool, open_pool
from gateway_sessions.storage.engines.registry import server_at
from gateway_sessions.storage.engines.server.driver import USUAL


@dataclass(frozen=True, kw_only=True)
class Database:
    """One kind."""

    provider: Provider
    port: int
    """Where such a server is, unless its address says otherwise."""
    legible: str
    """The option of an address without which nobody on the way could tell what is sent."""
    commit: bytes
    """What a client sends; it comes in one piece."""
    fetch: Callable[[str, str], Awaitable[Sequence[Sequence[Any]]]]
    """The rows that a query finds in the database of an address."""


async def _from_postgresql(address: str, sql: str) -> Sequence[Sequence[Any]]:
    connection = await asyncpg.connect(address, timeout=5)
    try:
        return await connection.fetch(sql)
    finally:
        await connection.close()


async def _from_mysql(address: str, sql: str) -> Sequence[Sequence[Any]]:
    pool = await open_pool(address, USUAL, 1)
    try:
        async with ConnectionLender(pool, USUAL, 1).lend() as link:
            return await link.fetch(sql)
    finally:
        await close_pool(pool)


DATABASES = (
    Database(
        provider=Provider.POSTGRESQL,
        port=5432,
        legible="sslmode=disable",
        commit=b"COMMIT\x00",
        fetch=_from_postgresql,
    ),
    Database(
        provider=Provider.MYSQL,
        port=3306,
        legible="ssl-mode=DISABLED",
        commit=b"\x00\x00\x00\x03COMMIT",  # a short packet, the first one of a command, which is a query
        fetch=_from_mysql,
    ),
)


def database_at(address: str) -> Database:
    """The kind of database that an address names."""
    server = server_at(address)
    assert server is not None
    return next(one for one in DATABASES if one.provider == server.name)


def address_through_port(address: str, port: int) -> str:
    """The same address by way of a port of this machine, where somebody listens."""
    parts = urlsplit(address)
    user, at, _ = parts.netloc.rpartition("@")
    legible = database_at(address).legible
    return parts._replace(netloc=f"{user}{at}127.0.0.1:{port}", query=legible).geturl()
