"""A database on a MySQL server as the whole database of a store, owned by one process at a time."""

from __future__ import annotations

from pathlib import Path

from gateway_sessions.storage.drivers.mysql import MySQLDriver, connect
from gateway_sessions.storage.drivers.mysql_asyncmy import OwnPool
from gateway_sessions.storage.drivers.mysql_errors import PLACE
from gateway_sessions.storage.drivers.mysql_owner import Ownership
from gateway_sessions.storage.drivers.server_engine import OwnedServer


class MySQLEngine(OwnedServer, MySQLDriver):
    """A database on a server, with the directory of what this machine keeps beside it."""

    place: str = PLACE

    def __init__(self, address: str, home: Path, *, allow_network: bool) -> None:
        super().__init__(address)
        self._address = address
        self._home = home
        self._allow_network = allow_network
        self._ownership = Ownership(self._connect_alone, self._limits)

    async def _connect_alone(self) -> OwnPool:
        return await connect(self._address, self._limits, 1)
