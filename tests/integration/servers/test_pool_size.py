"""A process makes as many connections to a server as it was told, and works with few as well."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from gateway_sessions import InvalidInputError, SessionDB, SessionStore
from gateway_sessions.config import SessionDBConfig
from gateway_sessions.core.cluster import POOL_SIZE
from gateway_sessions.runtime.operator.store_client import connect
from tests import mysql, postgresql
from tests.integration.servers.nodes import config_on, provider_at

CALLS = 24
TRIES = 50
OF_POSTGRESQL = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
OF_MYSQL = """
    SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()
"""


@pytest.fixture(params=["postgresql", "mysql"])
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    databases = (
        postgresql.migrated_database_at if request.param == "postgresql" else mysql.migrated_database_at
    )
    async with databases() as address:
        yield address


async def connections_to(address: str) -> int:
    if address.startswith("mysql"):
        async with mysql.open_connection(address) as link:
            return int((await link.fetch(OF_MYSQL))[0][0])
    admin = await asyncpg.connect(address)
    try:
        return int(await admin.fetchval(OF_POSTGRESQL))
    finally:
        await admin.close()


async def work(db: SessionDB) -> None:
    """Much at once, of reading and of writing, and saying that it lives."""
    assert db.ownership.membership is not None
    assert await db.ownership.membership.send_heartbeat_or_rejoin(b"")
    await asyncio.gather(*(db.create_session(f"s{number}", "cli") for number in range(CALLS)))
    await asyncio.gather(*(db.get_messages(f"s{number}") for number in range(CALLS)))


async def connections_when_busy(address: str, db: SessionDB, at_most: int) -> int:
    """How many there are when there is always more to do; how much goes on at once is up to the machine."""
    for _ in range(TRIES):
        await asyncio.gather(*(db.get_messages(f"s{number}") for number in range(CALLS)))
        if (found := await connections_to(address)) >= at_most:
            break
    return found


@pytest.mark.parametrize("size", [1, 3])
async def test_no_more_connections_are_made_than_that_and_one(address: str, tmp_path: Path, size: int):
    async with SessionDB.open(address, home=tmp_path, pool_size=size) as db:
        await work(db)
        assert await connections_when_busy(address, db, size + 1) == size + 1
        async with SessionDB.open_reader(address, home=tmp_path, pool_size=size) as reader:
            assert await connections_when_busy(address, reader, 2 * size + 1) == 2 * size + 1


async def test_unless_said_otherwise_there_are_eight_and_one(address: str, tmp_path: Path):
    async with SessionDB.open(address, home=tmp_path) as db:
        await work(db)
        assert await connections_when_busy(address, db, POOL_SIZE + 1) == POOL_SIZE + 1


async def test_the_configuration_says_how_many(address: str, tmp_path: Path):
    settings = SessionDBConfig(provider=provider_at(address), url=address, pool_size=2)
    config = replace(config_on(address), sessiondb=settings)
    async with SessionStore.open(tmp_path, config) as store:
        await work(store.db)
        assert await connections_when_busy(address, store.db, 3) == 3
        async with connect(tmp_path, config) as seat:
            assert await connections_when_busy(address, seat.db, 5) == 5


@pytest.mark.parametrize("size", [0, -1])
def test_without_any_nothing_would_work(tmp_path: Path, size: int):
    for opened in (SessionDB.open, SessionDB.open_reader):
        with pytest.raises(InvalidInputError, match="pool_size"):
            opened("postgresql://somebody@host/db", home=tmp_path, pool_size=size)
    with pytest.raises(InvalidInputError, match=r"sessiondb\.pool_size"):
        SessionDBConfig(pool_size=size)
