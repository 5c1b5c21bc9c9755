"""A database on a MySQL server as the whole database of a store, which many nodes may have open."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.mysql import MySQLDriver, connect
from gateway_sessions.storage.drivers.mysql_errors import PLACE
from gateway_sessions.storage.drivers.mysql_line import Line
from gateway_sessions.storage.drivers.server_nodes import SharedServer


class MySQLEngine(SharedServer, MySQLDriver):
    """A database on a server, with the directory of what this machine keeps beside it."""

    place: str = PLACE

    def __init__(self, address: str, home: Path, *, limits: Limits = USUAL, allow_network: bool) -> None:
        super().__init__(address, limits=limits)
        self._home = home
        self._allow_network = allow_network
        self._line = Line(partial(connect, address, self._limits, 1), self._limits)
