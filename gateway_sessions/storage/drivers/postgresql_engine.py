"""A database on a PostgreSQL server as the whole database of a store, which many nodes may have open."""

from __future__ import annotations

from pathlib import Path

import asyncpg

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.drivers.postgresql import NO_ADDRESS, PostgresDriver
from gateway_sessions.storage.drivers.postgresql_errors import PLACE
from gateway_sessions.storage.drivers.postgresql_line import Line
from gateway_sessions.storage.drivers.server_nodes import SharedServer


class PostgresEngine(SharedServer, PostgresDriver):
    """A database on a server, with the directory of what this machine keeps beside it."""

    place: str = PLACE

    def __init__(self, address: str, home: Path, *, allow_network: bool, poll_only: bool = False) -> None:
        super().__init__(address)
        self._address = address
        self._home = home
        self._allow_network = allow_network
        self._line = Line(self._connect_alone, self._limits, None if poll_only else self._called)

    async def _connect_alone(self) -> asyncpg.Connection:
        limits = self._limits
        try:
            return await asyncpg.connect(
                self._address,
                timeout=limits.acquire_seconds,
                command_timeout=limits.answer_seconds,
                statement_cache_size=0,
            )
        except (ValueError, asyncpg.ClientConfigurationError):
            raise InvalidInputError(NO_ADDRESS) from None
