"""A database on a MySQL server that another process may own: read, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.mysql import MySQLDriver
from gateway_sessions.storage.drivers.mysql_errors import PLACE, WHAT
from gateway_sessions.storage.drivers.mysql_link import Links
from gateway_sessions.storage.drivers.mysql_schema import inspect
from gateway_sessions.storage.drivers.server_reader import ReadServer
from gateway_sessions.storage.engine import FILE_ON_SERVERS
from gateway_sessions.storage.migrations import require_ready
from gateway_sessions.storage.queries import Migration


class MySQLReadingEngine(ReadServer, MySQLDriver):
    """Reads a database that another process may own."""

    place: str = PLACE

    def __init__(self, address: str, home: Path, *, limits: Limits = USUAL) -> None:
        super().__init__(address, limits=limits)
        self.path = home / FILE_ON_SERVERS

    async def _prepare(self, links: Links, migrations: Sequence[Migration]) -> None:
        async with links.lent() as link:
            require_ready(WHAT, (await inspect(link)).version, migrations)
