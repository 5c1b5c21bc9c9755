"""Who holds the locks of a PostgreSQL database, in words for an operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import asyncpg

from gateway_sessions.storage.drivers.blockers import Blocker, described
from gateway_sessions.storage.drivers.postgresql_locks import MIGRATING

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

_WHO: Final = f"""
    SELECT holding.pid, coalesce(nullif(activity.application_name, ''), activity.usename::text),
        coalesce(host(activity.client_addr), 'this machine'),
        extract(epoch FROM clock_timestamp() - activity.xact_start)::float8,
        activity.state LIKE 'idle%', holding.locks
    FROM (
        SELECT pid, min(granted_at) AS since, array_agg(DISTINCT name) AS locks
        FROM (
            SELECT locks.pid, other.xact_start AS granted_at, CASE
                WHEN locks.locktype = 'relation' THEN 'table ' || classes.relname
                WHEN locks.classid = {MIGRATING} AND locks.objid = 1 AND locks.objsubid = 2
                    THEN 'the lock of the store'
                WHEN locks.classid = 0 AND locks.objid = {MIGRATING} THEN 'the lock of an upgrade'
                ELSE 'a lock of a lane or session' END AS name
            FROM pg_locks AS locks
            LEFT JOIN pg_stat_activity AS other ON other.pid = locks.pid
            LEFT JOIN pg_class AS classes ON locks.locktype = 'relation' AND classes.oid = locks.relation
            WHERE locks.granted AND locks.pid <> pg_backend_pid()
                AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (locks.locktype = 'advisory' OR (
                    classes.relkind IN ('r', 'p') AND classes.relnamespace = current_schema()::regnamespace
                    AND locks.mode <> 'AccessShareLock'))
        ) AS named GROUP BY pid
    ) AS holding LEFT JOIN pg_stat_activity AS activity ON activity.pid = holding.pid
    ORDER BY 'the lock of the store' = ANY (holding.locks) DESC, holding.since LIMIT 3
"""  # noqa: S608 -- a number


async def who_holds_locks(connection: asyncpg.Connection | PoolConnectionProxy) -> str:
    """Return which connections hold locks, for how long, and what they are doing; the worst first."""
    rows = await connection.fetch(_WHO)
    return described(_blockers(rows))


def _blockers(rows: Iterable[asyncpg.Record]) -> Iterable[Blocker]:
    for pid, program, address, seconds, idle, locks in rows:
        where = f"{program} at {address}" if program else None
        yield Blocker(connection=pid, where=where, seconds=seconds, idle=bool(idle), holds=tuple(locks))
