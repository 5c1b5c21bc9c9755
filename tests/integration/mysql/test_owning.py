"""A store on a MySQL server has one owner, and whoever is it no more changes nothing."""

import asyncio
import logging
import secrets
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from gateway_sessions import Config, Scope, SessionDB, SessionStore, connect
from gateway_sessions.config import Provider, SessionDBConfig, SnapshotMode
from gateway_sessions.core.source import SessionSource
from gateway_sessions.errors import (
    InvalidInputError,
    StorageError,
    StorageUnavailableError,
    StoreBusyError,
    UnsupportedStorageError,
)
from gateway_sessions.storage.drivers import mysql_owner
from gateway_sessions.storage.drivers.mysql_engine import MySQLEngine
from gateway_sessions.storage.drivers.mysql_link import Link, Links
from gateway_sessions.storage.drivers.mysql_owner import LOCK
from gateway_sessions.storage.engines import SERVERS, home_of_server
from gateway_sessions.storage.queries import Migration
from tests.mysql import connected


@pytest.fixture
async def admin(address: str) -> AsyncIterator[Link]:
    async with connected(address) as link:
        yield link


async def owner_of(admin: Link) -> int | None:
    """What the server calls the connection that owns the store."""
    return (await admin.fetch(f"SELECT IS_USED_LOCK({LOCK})"))[0][0]


async def test_another_machine_is_refused_and_told_who_owns_the_store(address: str, tmp_path: Path):
    async with SessionDB.open(address, home=tmp_path / "one"):
        with pytest.raises(StoreBusyError, match="process"):
            await SessionDB.open(address, home=tmp_path / "two").__aenter__()
    async with SessionDB.open(address, home=tmp_path / "two") as db:
        assert db.opening.settled


async def test_another_machine_can_wait_for_the_store(address: str, tmp_path: Path):
    first = SessionDB.open(address, home=tmp_path / "one")
    async with asyncio.TaskGroup() as tasks:
        await first.__aenter__()
        second = SessionDB.open(address, home=tmp_path / "two", wait=10)
        waiting = tasks.create_task(second.__aenter__())
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await first.__aexit__(None, None, None)
    assert second.opening.epoch == 2
    await second.__aexit__(None, None, None)


class Gate:
    """Whoever wants to go through waits until it is open."""

    def __init__(self, behind: Callable[[], Awaitable[str | None]]) -> None:
        self.behind = behind
        self.open = asyncio.Event()

    async def __call__(self) -> str | None:
        await self.open.wait()
        return await self.behind()


async def test_an_owner_that_was_replaced_changes_nothing(
    address: str, tmp_path: Path, admin: Link, monkeypatch: pytest.MonkeyPatch
):
    """Its connection is cut, and somebody else is faster: the worst that a network can do."""
    async with SessionDB.open(address, home=tmp_path / "one") as lost:
        await lost.create_session("s", "cli")
        owns = Gate(lost._engine._ownership._try_to_own)  # noqa: SLF001 -- to be slower than somebody else
        monkeypatch.setattr(lost._engine._ownership, "_try_to_own", owns)  # noqa: SLF001 -- the same
        await admin.say(f"KILL {await owner_of(admin)}")
        async with SessionDB.open(address, home=tmp_path / "two", wait=5) as owner:
            for change in (lost.append_message("s", "user", "late"), lost.end_session("s", "over")):
                with pytest.raises(StoreBusyError, match="took it over"):
                    await change
            await owner.append_message("s", "user", "in time")
            assert [one.text for one in await owner.get_messages("s")] == ["in time"]
            assert [one.text for one in await lost.get_messages("s")] == ["in time"]
        owns.open.set()
        async with SessionDB.open(address, home=tmp_path / "two", wait=5) as third:
            assert third.opening.epoch == 3
        with pytest.raises(StoreBusyError):
            await lost.append_message("s", "user", "late")


async def test_an_owner_that_loses_its_connection_takes_the_lock_again(
    address: str, tmp_path: Path, admin: Link, caplog: pytest.LogCaptureFixture
):
    async with SessionDB.open(address, home=tmp_path) as db:
        lost = await owner_of(admin)
        await admin.say(f"KILL {lost}")
        async with asyncio.timeout(5):
            while await owner_of(admin) in {None, lost}:  # noqa: ASYNC110 -- only the server knows
                await asyncio.sleep(0.05)
        await db.create_session("s", "cli")
        with pytest.raises(StoreBusyError):
            await SessionDB.open(address, home=tmp_path / "two").__aenter__()
    actions = [vars(record).get("action") for record in caplog.records if record.levelno >= logging.WARNING]
    assert actions == ["owner_lost"]


async def test_what_only_a_file_needs_is_refused_in_words(address: str, tmp_path: Path):
    async with SessionDB.open(address, home=tmp_path) as db:
        for ask in (db.vacuum, db.optimise, db.empty_log, db.back_up):
            with pytest.raises(UnsupportedStorageError, match="on the server") as refused:
                await ask()
            assert refused.value.what == "mysql://…"
        assert not db.has_upkeep


async def test_nobody_is_told_the_address(
    address: str, tmp_path: Path, admin: Link, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "gateway_sessions")
    user = f"gateway_{secrets.token_hex(4)}"
    await admin.say(f"CREATE USER {user} IDENTIFIED BY 'hunter2'; GRANT ALL ON *.* TO {user}")
    secret = address.replace("root@", f"{user}:hunter2@")
    try:
        async with SessionDB.open(secret, home=tmp_path) as db:
            assert "127.0.0.1" not in f"{db.place} {db.path} {vars(db)!r}"
        for wrong in (
            f"{secret}_missing",
            "mysql://me:hunter2@127.0.0.1:1/x",
            "mariadb://me:hunter2@[/x",
            f"{secret}?ssl-mode=hunter2",
        ):
            with pytest.raises((StorageUnavailableError, InvalidInputError)) as refused:
                await SessionDB.open(wrong, home=tmp_path).__aenter__()
            assert "hunter2" not in "".join(traceback.format_exception(refused.value))
    finally:
        await admin.say(f"DROP USER {user}")
    assert "hunter2" not in caplog.text


def test_without_its_driver_a_server_is_refused_in_words(monkeypatch: pytest.MonkeyPatch):
    for name in [one for one in sys.modules if one.startswith("gateway_sessions.storage.drivers.mysql")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncmy", None)
    with pytest.raises(UnsupportedStorageError) as refused:
        SessionDB.open("mysql://me:hunter2@host/x")
    assert str(refused.value) == (
        "mysql://…: needs a package that is not installed: pip install 'gateway-sessions[mysql]'"
    )


def test_nobody_else_loads_the_driver_of_a_server():
    opened = "gateway_sessions.SessionDB.open('x')"
    code = f"import gateway_sessions, sys; {opened}; sys.exit('asyncmy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_each_database_has_a_directory_of_its_own_that_tells_no_password():
    homes = [
        home_of_server(SERVERS[1], f"mysql://{where}")
        for where in (
            "a:x@h/db",
            "b:y@h/db?ssl-mode=REQUIRED",
            "h/other",
            "h2/db",
            "/db?unix-socket=/a",
            "/db?unix-socket=/b",
        )
    ]
    assert homes[0] == homes[1]
    assert len(set(homes)) == len(homes) - 1


async def test_the_lock_is_kept_while_the_store_is_still_being_opened(
    address: str, tmp_path: Path, admin: Link, monkeypatch: pytest.MonkeyPatch
):
    """To bring a large database up to date takes longer than the server lets a connection be silent."""
    monkeypatch.setattr(mysql_owner, "GONE_SECONDS", 1)
    monkeypatch.setattr(mysql_owner, "CHECK_SECONDS", 0.2)
    owners: list[int | None] = []
    prepare = MySQLEngine._prepare  # noqa: SLF001 -- the part that may take long

    async def slowly(engine: MySQLEngine, links: Links, migrations: Sequence[Migration]) -> None:
        owners.append(await owner_of(admin))
        await asyncio.sleep(3)
        owners.append(await owner_of(admin))
        await prepare(engine, links, migrations)

    monkeypatch.setattr(MySQLEngine, "_prepare", slowly)
    async with SessionDB.open(address, home=tmp_path):
        assert owners[0] is not None
        assert owners[0] == owners[1] == await owner_of(admin)


async def test_a_store_lives_on_a_server(address: str, tmp_path: Path):
    settings = SessionDBConfig(provider=Provider.MYSQL, url=address)
    alice = SessionSource(platform="telegram", chat_id="1", user_id="alice")
    config = Config(timezone="UTC", sessiondb=settings)
    assert config.snapshot_mode is SnapshotMode.OFF
    assert repr(settings).count("127.0.0.1") == 0
    async with SessionStore.open(tmp_path, config) as store:
        entry = await store.get_or_create_session(alice)
        assert (await store.control.status()).database == "mysql://…"
    async with SessionStore.open(tmp_path, config) as store:
        assert await store.get_or_create_session(alice, touch=False) == entry
        assert [one.session_id for one in await store.list_sessions(scope=Scope.operator())] == [
            entry.session_id
        ]
    assert not (tmp_path / "sessions.json").exists()
    assert not (tmp_path / "sessions.db").exists()


async def test_an_erasure_tells_what_only_the_server_can_forget(address: str, tmp_path: Path):
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


async def test_two_truths_in_a_directory_are_refused(address: str, tmp_path: Path):
    """Its sessions.json would lead people to sessions whose transcripts the server does not have."""
    async with SessionStore.open(tmp_path):
        pass
    config = Config(sessiondb=SessionDBConfig(provider=Provider.MYSQL, url=address))
    with pytest.raises(UnsupportedStorageError, match=r"sessions\.db"):
        await SessionStore.open(tmp_path, config).__aenter__()


async def test_others_may_read(address: str, tmp_path: Path):
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


async def test_a_seat_at_a_store_on_a_server(address: str, tmp_path: Path):
    config = Config(sessiondb=SessionDBConfig(provider=Provider.MYSQL, url=address))
    alice = SessionSource(platform="telegram", chat_id="1", user_id="alice")
    async with SessionStore.open(tmp_path, config) as store, connect(tmp_path, config) as seat:
        entry = await store.get_or_create_session(alice)
        assert await seat.get_session(entry.session_key) == entry
        owner = await seat.owner()
        assert owner is not None
        assert owner.database == "mysql://…"


async def test_an_address_alone_opens_a_store(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    async with SessionStore.open(address) as store:
        assert store.home.is_relative_to(tmp_path)
        assert store.config.sessiondb.provider is Provider.MYSQL
    with pytest.raises(InvalidInputError, match="different"):
        SessionStore.open(address, Config(sessiondb=SessionDBConfig(url="elsewhere.db")))
