"""A database on a PostgreSQL server as the whole database of a store, which many nodes may have open."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

import asyncpg

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.postgresql import CACHED_STATEMENTS, PostgresDriver
from gateway_sessions.storage.drivers.postgresql_errors import PLACE
from gateway_sessions.storage.drivers.postgresql_line import Line, OwnWire, PooledWire
from gateway_sessions.storage.drivers.server_nodes import SharedServer

LEAST: Final = 2
"""Connections that a pool must have: the line keeps one."""


class PostgresEngine(SharedServer, PostgresDriver):
    """A database on a server, with the directory of what this machine keeps beside it."""

    place: str = PLACE

    def __init__(
        self,
        address: str,
        home: Path,
        *,
        limits: Limits = USUAL,
        allow_network: bool,
        poll_only: bool = False,
        prepared_statements: bool = True,
        pool: object | None = None,
    ) -> None:
        """A *pool* of asyncpg has all connections; it was made by somebody who also closes it."""
        given = None if pool is None else _pool(pool)
        kept = CACHED_STATEMENTS if prepared_statements else 0
        super().__init__(given or address, limits=limits, cached_statements=kept)
        self._home = home
        self._allow_network = allow_network
        wire = OwnWire(address, self._limits) if given is None else PooledWire(given, self._limits)
        self._line = Line(wire, self._limits, None if poll_only else self._called)


def _pool(given: object) -> asyncpg.Pool[asyncpg.Record]:
    if not isinstance(given, asyncpg.Pool):
        problem = f"pool must be made by asyncpg.create_pool, not a {type(given).__name__}"
        raise InvalidInputError(problem)
    pool = cast("asyncpg.Pool[asyncpg.Record]", given)
    if pool.get_max_size() < LEAST:
        problem = f"pool needs {LEAST} connections or more: one of them says that the node lives"
        raise InvalidInputError(problem)
    return pool
