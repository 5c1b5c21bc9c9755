"""A database on a PostgreSQL server that another process may own: read, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.postgresql import CACHED_STATEMENTS, PostgresDriver
from gateway_sessions.storage.drivers.postgresql_errors import PLACE, WHAT
from gateway_sessions.storage.drivers.postgresql_schema import inspect
from gateway_sessions.storage.drivers.server_reader import ReadServer
from gateway_sessions.storage.engine import FILE_ON_SERVERS
from gateway_sessions.storage.migrations import require_ready

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncpg.pool import PoolConnectionProxy

    from gateway_sessions.storage.queries import Migration


class PostgresReadingEngine(ReadServer, PostgresDriver):
    """Reads a database that another process may own."""

    place: str = PLACE

    def __init__(
        self, address: str, home: Path, *, limits: Limits = USUAL, prepared_statements: bool = True
    ) -> None:
        kept = CACHED_STATEMENTS if prepared_statements else 0
        super().__init__(address, limits=limits, cached_statements=kept)
        self.path = home / FILE_ON_SERVERS

    async def _prepare(self, connection: PoolConnectionProxy, migrations: Sequence[Migration]) -> None:
        require_ready(WHAT, await inspect(connection), migrations)
