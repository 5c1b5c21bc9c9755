"""A PostgreSQL server that stops to be the one to write to, and what a node makes of it."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from gateway_sessions import SessionDB
from gateway_sessions.errors import StorageUnavailableError
from tests.integration.servers.nodes import BRISK, wait_until

ALL_OTHERS = """
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
HANG_UP = f"SELECT pg_terminate_backend(pid) FROM ({ALL_OTHERS}) AS others"  # noqa: S608 -- ours


async def only_read(admin: asyncpg.Connection, *, read_only: bool) -> None:
    """Whoever connects from now on may only read, as on a server that was the one to write to once."""
    name = await admin.fetchval("SELECT current_database()")
    await admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {read_only}')


async def others(admin: asyncpg.Connection) -> set[int]:
    """The connections of everybody else."""
    return {row[0] for row in await admin.fetch(ALL_OTHERS)}


async def test_a_server_that_became_read_only_is_told_and_left(dsn: str, tmp_path: Path):
    admin = await asyncpg.connect(dsn)
    async with SessionDB.open(dsn, home=tmp_path, cluster=BRISK) as db:
        node = db.ownership.membership
        assert node is not None
        await db.create_session("s", "cli")
        await only_read(admin, read_only=True)
        await admin.execute(HANG_UP)
        assert await db.get_messages("s") == []  # a connection to read from is made, and kept
        before = await others(admin)
        with pytest.raises(StorageUnavailableError, match="25006"):
            await db.append_message("s", "user", "no")
        async with asyncio.timeout(15):
            while before <= await others(admin):  # noqa: ASYNC110 -- the server hears of it when it does
                await asyncio.sleep(0.05)
        assert await db.get_messages("s") == []
        await wait_until(lambda: not node.trusted)
        await only_read(admin, read_only=False)
        await wait_until(lambda: node.trusted, seconds=8)
        await db.append_message("s", "user", "yes")
        assert [row.text for row in await db.get_messages("s")] == ["yes"]
    await admin.close()


async def test_no_server_to_write_to_is_one_that_cannot_be_reached(dsn: str, tmp_path: Path):
    wanted = urlsplit(dsn)._replace(query="target_session_attrs=standby").geturl()
    with pytest.raises(StorageUnavailableError, match="cannot be reached"):
        await SessionDB.open(wanted, home=tmp_path).__aenter__()
