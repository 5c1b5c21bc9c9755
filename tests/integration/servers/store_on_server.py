"""A store on a server: what only a file needs is refused in words, and nobody is told the address."""

from __future__ import annotations

import logging
import subprocess
import sys
import traceback
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from gateway_sessions import Config, Scope, SessionDB, SessionStore
from gateway_sessions.config import Provider, SessionDBConfig, SnapshotMode
from gateway_sessions.core.identity.source import SessionSource
from gateway_sessions.errors import (
    InvalidInputError,
    StorageError,
    StorageUnavailableError,
    UnsupportedStorageError,
)
from gateway_sessions.operator import check_store, connect
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.engines.registry import SERVERS, home_of_server
from gateway_sessions.storage.tables import meta
from gateway_sessions.testing import FakeClock

ALICE = SessionSource(platform="telegram", chat_id="1", user_id="alice")
DRIVERS = "gateway_sessions.storage.engines."


def _spoil(entry_id: int) -> Transaction[None]:
    yield Statement("put_record", ("{", entry_id))
    yield from meta.set_fact("epoch", "many")


class StoreOnServer:
    """A test class of an engine inherits this; its `address` is that of an empty database."""

    provider: ClassVar[Provider]
    package: ClassVar[str]
    """The driver beneath ours."""
    extra: ClassVar[str]
    """Brings it along."""
    wrong: ClassVar[tuple[str, ...]]
    """Addresses at which nothing can be opened, with the password `hunter2`."""
    two_of_the_same: ClassVar[tuple[str, str]]
    """Places that are one database, whoever asks for it."""
    others: ClassVar[tuple[str, ...]]
    """Places that are databases of their own."""

    def with_password(self, address: str) -> AbstractAsyncContextManager[str]:
        """The same for somebody whose password is `hunter2`."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        return f"{self.provider}://…"

    def config(self, address: str) -> Config:
        settings = SessionDBConfig(provider=self.provider, url=address)
        assert repr(settings).count("127.0.0.1") == 0
        return Config(timezone="UTC", sessiondb=settings)

    async def test_the_last_rewind_is_brought_back_though_time_was_set_back_since(
        self, address: str, tmp_path: Path
    ):
        async with SessionDB.open(address, clock=FakeClock(), home=tmp_path) as db:
            await db.create_session("s", "cli")
            said = [{"role": role, "content": "hello"} for role in ("user", "user", "assistant")]
            await db.append_messages("s", said)
            await db.rewind_session("s")
        async with SessionDB.open(address, clock=FakeClock(), home=tmp_path) as db:
            await db.rewind_session("s")
            assert await db.restore_rewound("s") == 1

    async def test_what_only_a_file_needs_is_refused_in_words(self, address: str, tmp_path: Path):
        async with SessionDB.open(address, home=tmp_path) as db:
            for ask in (db.vacuum, db.optimise, db.empty_log, db.back_up):
                with pytest.raises(UnsupportedStorageError, match="on the server") as refused:
                    await ask()
                assert refused.value.what == self.place
            assert not db.has_upkeep

    async def test_nobody_is_told_the_address(
        self, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ):
        caplog.set_level(logging.DEBUG, "gateway_sessions")
        async with self.with_password(address) as secret:
            async with SessionDB.open(secret, home=tmp_path) as db:
                assert "127.0.0.1" not in f"{db.place} {db.path} {vars(db)!r}"
            for wrong in (f"{secret}_missing", *self.wrong):
                with pytest.raises((StorageUnavailableError, InvalidInputError)) as refused:
                    await SessionDB.open(wrong, home=tmp_path).__aenter__()
                assert "hunter2" not in "".join(traceback.format_exception(refused.value))
        assert "hunter2" not in caplog.text

    def test_without_its_driver_a_server_is_refused_in_words(self, monkeypatch: pytest.MonkeyPatch):
        for name in [one for one in sys.modules if one.startswith(f"{DRIVERS}{self.provider}")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, self.package, None)
        with pytest.raises(UnsupportedStorageError) as refused:
            SessionDB.open(f"{self.provider}://me:hunter2@host/x")
        assert str(refused.value) == (
            f"{self.place}: needs a package that is not installed: "
            f"pip install 'gateway-sessions[{self.extra}]'"
        )

    def test_nobody_else_loads_the_driver_of_a_server(self):
        opened = "gateway_sessions.SessionDB.open('x')"
        code = f"import gateway_sessions, sys; {opened}; sys.exit({self.package!r} in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

    def test_each_database_has_a_directory_of_its_own_that_tells_no_password(self):
        server = next(one for one in SERVERS if one.name == self.provider)
        homes = [
            home_of_server(server, f"{self.provider}://{where}")
            for where in (*self.two_of_the_same, *self.others)
        ]
        assert homes[0] == homes[1]
        assert len(set(homes)) == len(homes) - 1

    async def test_a_store_lives_on_a_server(self, address: str, tmp_path: Path):
        config = self.config(address)
        assert config.snapshot_mode is SnapshotMode.OFF
        async with SessionStore.open(tmp_path, config) as store:
            entry = await store.get_or_create_session(ALICE)
            assert (await store.control.status()).database == self.place
        async with SessionStore.open(tmp_path, config) as store:
            assert await store.get_or_create_session(ALICE, touch=False) == entry
            assert [one.session_id for one in await store.list_sessions(scope=Scope.operator())] == [
                entry.session_id
            ]
        assert not (tmp_path / "sessions.json").exists()
        assert not (tmp_path / "sessions.db").exists()

    async def test_an_erasure_tells_what_only_the_server_can_forget(self, address: str, tmp_path: Path):
        async with SessionDB.open(address, home=tmp_path) as db:
            await db.create_session("s", "cli", user_id="alice")
            await db.append_message("s", "user", "walrus")
            await db.catch_up_search_index()
            record = await db.get_session("s")
            assert record is not None
            receipt = await db.erase(record.owner)
            assert receipt.rows["messages"] == 1
            assert receipt.rewritten == ()
            assert [one.what for one in receipt.kept if "server" in one.what]
            found = await db.search_messages("walrus", scope=Scope.operator())
            assert found.hits == ()

    async def test_two_truths_in_a_directory_are_refused(self, address: str, tmp_path: Path):
        """Its sessions.json would lead people to sessions whose transcripts the server does not have."""
        async with SessionStore.open(tmp_path):
            pass
        with pytest.raises(UnsupportedStorageError, match=r"sessions\.db"):
            await SessionStore.open(tmp_path, self.config(address)).__aenter__()

    async def test_a_look_tells_what_cannot_be_read(self, address: str, tmp_path: Path):
        async with SessionStore.open(tmp_path, self.config(address)) as store:
            entry = await store.get_or_create_session(ALICE)
            await store.db.create_session("s", "cli", extra={"a": 1})
            assert (await check_store(tmp_path, server=address)).healthy
            await store.db.write(partial(_spoil, entry.entry_id))
            assert (await check_store(tmp_path, server=address)).found == (
                "the fact 'epoch' about the store cannot be read",
                f"1 row of entries of which record cannot be read: {entry.session_key}",
            )
            await store.db.write(partial(meta.set_fact, "epoch", 1))

    async def test_others_may_read(self, address: str, tmp_path: Path):
        with pytest.raises(StorageUnavailableError, match="no store here"):
            await SessionDB.open_reader(address, home=tmp_path).__aenter__()
        async with SessionDB.open(address, home=tmp_path) as db:
            await db.create_session("s", "cli")
            await db.append_message("s", "user", "walrus")
            await db.catch_up_search_index()
            async with SessionDB.open_reader(address, home=tmp_path) as reader:
                assert [one.text for one in await reader.get_messages("s")] == ["walrus"]
                found = await reader.search_messages("walrus", scope=Scope.operator())
                assert (len(found.hits), found.degraded) == (1, False)
                with pytest.raises(StorageError, match="for reading"):
                    await reader.append_message("s", "user", "no")
        async with SessionDB.open_reader(address, home=tmp_path / "elsewhere") as reader:
            found = await reader.search_messages("walrus", scope=Scope.operator())
            assert (len(found.hits), found.degraded) == (1, False)

    async def test_a_client_of_a_store_on_a_server(self, address: str, tmp_path: Path):
        config = self.config(address)
        async with SessionStore.open(tmp_path, config) as store, connect(tmp_path, config) as seat:
            entry = await store.get_or_create_session(ALICE)
            assert await seat.get_session(entry.session_key) == entry
            owner = await seat.owner()
            assert owner is not None
            assert owner.database == self.place

    async def test_an_address_alone_opens_a_store(
        self, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
            monkeypatch.setenv(name, str(tmp_path))
        async with SessionStore.open(address) as store:
            assert store.home.is_relative_to(tmp_path)
            assert store.config.sessiondb.provider == self.provider
        with pytest.raises(InvalidInputError, match="different"):
            SessionStore.open(address, Config(sessiondb=SessionDBConfig(url="elsewhere.db")))
