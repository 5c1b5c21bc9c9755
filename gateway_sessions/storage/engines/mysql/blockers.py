"""The report which MySQL or MariaDB connections hold locks in a transaction."""

from __future__ import annotations

from typing import Final

from gateway_sessions.storage.engines.mysql.asyncmy import MySQLError
from gateway_sessions.storage.engines.mysql.connection import MySQLConnection
from gateway_sessions.storage.engines.mysql.errors import is_missing_right
from gateway_sessions.storage.engines.server.blockers import Blocker, describe_blockers

_WHO: Final = """
    SELECT processes.id, processes.user, processes.host,
        timestampdiff(SECOND, transactions.trx_started, now()), processes.command = 'Sleep'
    FROM information_schema.innodb_trx AS transactions
    JOIN information_schema.processlist AS processes ON processes.id = transactions.trx_mysql_thread_id
    WHERE processes.db = database() AND processes.id <> connection_id()
    ORDER BY transactions.trx_started LIMIT 3
"""
_UNKNOWN: Final = "grant PROCESS to this login to be told which connection holds it"


async def who_holds_locks(link: MySQLConnection) -> str:
    """Return a sentence about the connections that are in a transaction of the database."""
    try:
        rows = await link.fetch(_WHO)
    except MySQLError as error:
        if not is_missing_right(error):
            raise
        return _UNKNOWN
    return describe_blockers(
        Blocker(connection=number, where=f"{user} at {host}", seconds=float(seconds), idle=bool(idle))
        for number, user, host, seconds, idle in rows
    )
