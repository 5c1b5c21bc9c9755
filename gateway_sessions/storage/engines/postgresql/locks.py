"""Advisory locks of transactions on PostgreSQL, and the report which connections hold them.

An advisory lock can be taken for a lane that has no row yet, it writes nothing, one lock covers all rows of
a lane, and the server releases it at the end of the transaction, whatever happens to our process. Every
writing transaction has the lock of the store as well: it shares that lock if it names its other locks, and
has it alone otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import asyncpg

from gateway_sessions.storage.engines.server.blockers import Blocker, describe_blockers

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy


MIGRATING: Final = 0x67736573
"""The lock under which one process migrates; the others wait, and find that nothing is due."""
_STORE: Final = f"{MIGRATING}, 1"
"""The lock of the store. It has two numbers, so no name can have the same lock: a name has one."""
TAKE: Final = "SELECT pg_advisory_xact_lock($1)"


def lock_number(lock: str) -> int:
    """Return the number of a lock. Two names with the same number merely wait for each other."""
    return int.from_bytes(blake2b(lock.encode("utf-8", "surrogatepass"), digest_size=8).digest(), signed=True)


def take_locks_query(wanted: Sequence[str]) -> str:
    """Return the query that takes these locks in ascending order, so that no two transactions deadlock."""
    numbers = sorted({lock_number(one) for one in wanted})
    return f"SELECT {','.join(f'pg_advisory_xact_lock({one})' for one in numbers)}"


def first_lock_queries(locks: Sequence[str], epoch: int | None) -> str:
    """Return the statements that take the first locks of a writing transaction, and check its node.

    Without *locks* it runs alone. Once its node was declared dead, a division by zero ends the transaction.
    The node that declares another one dead has the lock of the store alone, so none of the dead node's
    earlier changes is still running then.
    """
    if locks:
        taken = f"SELECT pg_advisory_xact_lock_shared({_STORE});{take_locks_query(locks)};"
    else:
        taken = f"SELECT pg_advisory_xact_lock({_STORE});"
    if epoch is None:
        return taken
    return f"{taken}SELECT 1 / count(*) FROM nodes WHERE epoch = {epoch};"  # noqa: S608 -- a number


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
    """Return a sentence about the connections that hold locks, the lock of the store first."""
    rows = await connection.fetch(_WHO)
    return describe_blockers(_blockers_of_rows(rows))


def _blockers_of_rows(rows: Iterable[asyncpg.Record]) -> Iterable[Blocker]:
    for pid, program, address, seconds, idle, locks in rows:
        where = f"{program} at {address}" if program else None
        yield Blocker(connection=pid, where=where, seconds=seconds, idle=bool(idle), holds=tuple(locks))
