"""A store is opened on a server that cannot be used just now, or beside a node that stands still."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.core.cluster import ClusterRules
from gateway_sessions.errors import StorageLockedError, StorageUnavailableError
from gateway_sessions.runtime.store.open_store import parts_of
from gateway_sessions.storage.engines import opening_retry
from tests.cluster.proxy import Proxy
from tests.integration.servers.nodes import config_on

IMPATIENT = ClusterRules(heartbeat=timedelta(seconds=0.3), ttl=timedelta(seconds=1))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class OpeningOnServer:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    pytestmark = pytest.mark.timeout(90)

    def holding_store(self, address: str) -> AbstractAsyncContextManager[int]:
        """Hold what a node holds while it writes; the server's number of the connection."""
        raise NotImplementedError

    def upgrading(self, address: str) -> AbstractAsyncContextManager[int]:
        """Hold what a node holds while it brings the tables up to date."""
        raise NotImplementedError

    async def cut_others(self, address: str) -> None:
        """End all connections to the database but the one that says so."""
        raise NotImplementedError

    async def hold(self, address: str, seconds: float, held: asyncio.Event) -> None:
        async with self.holding_store(address):
            held.set()
            await asyncio.sleep(seconds)

    async def made(self, address: str, home: Path) -> None:
        async with SessionDB.open(address, home=home):
            pass

    @pytest.mark.parametrize("wait", [0.0, 20.0])
    async def test_a_store_opens_as_soon_as_a_node_that_stood_still_lets_go(
        self, address: str, tmp_path: Path, wait: float
    ):
        await self.made(address, tmp_path)
        held = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.hold(address, 3.5, held))
            await held.wait()
            async with SessionStore.open(tmp_path / "new", config_on(address), wait=wait) as store:
                assert parts_of(store).cluster is not None
                assert parts_of(store).cluster.is_trusted

    async def test_a_node_with_a_short_life_opens_beside_one_that_stands_still(
        self, address: str, tmp_path: Path
    ):
        await self.made(address, tmp_path)
        held = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.hold(address, 1.6, held))
            await held.wait()
            async with SessionStore.open(tmp_path / "new", config_on(address, IMPATIENT), wait=20) as store:
                await store.db.create_session("s", "cli")

    async def test_who_holds_the_store_is_told_when_the_wait_is_over(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(opening_retry, "LEAST_SECONDS", 0.0)
        await self.made(address, tmp_path)
        async with self.holding_store(address) as number:
            began = time.monotonic()
            with pytest.raises(StorageLockedError) as refused:
                async with SessionStore.open(tmp_path / "new", config_on(address), wait=3):
                    pass
            assert time.monotonic() - began >= 3
            assert f"connection {number} " in str(refused.value)
            assert "does nothing now" in str(refused.value)

    async def test_a_node_that_hangs_while_it_upgrades_keeps_nobody_waiting_who_has_nothing_to_upgrade(
        self, address: str, tmp_path: Path
    ):
        await self.made(address, tmp_path)
        async with self.upgrading(address):
            began = time.monotonic()
            async with SessionDB.open(address, home=tmp_path):
                assert time.monotonic() - began < 5

    async def test_who_upgrades_is_told_to_those_who_have_to(
        self, address: str, tmp_path: Path, impatient: None, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(opening_retry, "LEAST_SECONDS", 0.0)
        async with self.upgrading(address) as number:
            with pytest.raises(StorageLockedError, match=f"connection {number}"):
                await self.made(address, tmp_path)
        await self.made(address, tmp_path)

    async def test_a_store_opens_although_connections_are_cut_all_the_time(
        self, address: str, tmp_path: Path
    ):
        await self.made(address, tmp_path)

        async def cut() -> None:
            while True:
                await self.cut_others(address)
                await asyncio.sleep(0.2)

        async with asyncio.TaskGroup() as tasks:
            cutting = tasks.create_task(cut())
            for number in range(3):
                async with SessionStore.open(tmp_path / f"new{number}", config_on(address), wait=40):
                    pass
            cutting.cancel()

    async def test_a_server_that_starts_late_is_waited_for(self, address: str, tmp_path: Path):
        where, port = urlsplit(address), free_port()
        assert where.hostname is not None
        assert where.port is not None
        way = Proxy(where.hostname, where.port, b"no commit is cut", own_port=port)
        there = where._replace(netloc=f"{where.username}@127.0.0.1:{port}").geturl()
        with pytest.raises(StorageUnavailableError, match="cannot be reached"):
            await self.made(there, tmp_path)

        async def start(opened: asyncio.Event) -> None:
            await asyncio.sleep(1)
            async with way.running():
                await opened.wait()

        opened = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(start(opened))
            async with SessionStore.open(tmp_path / "new", config_on(there), wait=20) as store:
                await store.db.create_session("s", "cli")
            opened.set()
