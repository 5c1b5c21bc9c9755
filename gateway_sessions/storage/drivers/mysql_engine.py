"""A database on a MySQL server as the whole database of a store, which many nodes may have open."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import asyncmy

from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.drivers.limits import USUAL, Limits
from gateway_sessions.storage.drivers.mysql import MySQLDriver, connect
from gateway_sessions.storage.drivers.mysql_asyncmy import Pool
from gateway_sessions.storage.drivers.mysql_errors import PLACE
from gateway_sessions.storage.drivers.mysql_line import Line, OneOfPool
from gateway_sessions.storage.drivers.server_nodes import SharedServer

LEAST: Final = 2
"""Connections that a pool must have: the line keeps one."""


class MySQLEngine(SharedServer, MySQLDriver):
    """A database on a server, with the directory of what this machine keeps beside it."""

    place: str = PLACE

    def __init__(
        self,
        address: str,
        home: Path,
        *,
        limits: Limits = USUAL,
        allow_network: bool,
        pool: object | None = None,
    ) -> None:
        """A *pool* of asyncmy has all connections; it was made by somebody who also closes it."""
        given = None if pool is None else _pool(pool)
        super().__init__(given or address, limits=limits)
        self._home = home
        self._allow_network = allow_network
        make = partial(connect, address, self._limits, 1) if given is None else partial(_one_of, given)
        self._line = Line(make, self._limits)


async def _one_of(pool: Pool) -> OneOfPool:
    return OneOfPool(pool)


def _pool(given: object) -> Pool:
    if not isinstance(given, asyncmy.Pool):
        problem = f"pool must be made by asyncmy.create_pool, not a {type(given).__name__}"
        raise InvalidInputError(problem)
    if cast("Any", given).maxsize < LEAST:  # it has no types of its own
        problem = f"pool needs {LEAST} connections or more: one of them says that the node lives"
        raise InvalidInputError(problem)
    return cast("Pool", given)
