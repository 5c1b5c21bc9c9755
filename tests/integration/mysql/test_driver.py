"""Transactions on a MySQL or MariaDB server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.errors import InvalidInputError, StorageUnavailableError
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.engines.mysql.asyncmy_types import MySQLError
from gateway_sessions.storage.engines.mysql.connection import ConnectionLender, MySQLConnection
from gateway_sessions.storage.engines.mysql.engine import MySQLDriver, close_pool, open_pool
from gateway_sessions.storage.engines.mysql.errors import FOREIGN
from gateway_sessions.storage.engines.server.driver import USUAL, ServerLimits
from tests.integration.servers.driver_contract import (
    DriverContract,
    make_session,
    session_exists,
    wait_until_blocked,
)
from tests.mysql import BLOCKED, MIGRATIONS, lend_pool, open_connection

INSERT = "INSERT INTO sessions (session_id, owner, source, started_at) VALUES (?, 'o', 'cli', 1)"


class MySQLRival:
    def __init__(self, link: MySQLConnection) -> None:
        self._link = link

    async def insert(self, session_id: str) -> None:
        await self._link.run_texts("START TRANSACTION")
        await self._link.change(INSERT, [(session_id,)])

    async def commit(self) -> None:
        await self._link.run_texts("COMMIT")

    async def roll_back(self) -> None:
        await self._link.run_texts("ROLLBACK")

    async def blocks_somebody(self) -> bool:
        await asyncio.sleep(0.15)  # the server shows an old state to whoever asks more often
        return bool(await self._link.fetch(BLOCKED))

    async def end_the_blocked(self) -> None:
        for (blocked,) in await self._link.fetch(BLOCKED):
            await self._link.run_texts(f"KILL {blocked}")


class TestMySQL(DriverContract):
    newest_schema = MIGRATIONS[-1].version
    unreachable = "mysql://me:hunter2@127.0.0.1:1/x"
    not_an_address = "mysql://me:hunter2@127.0.0.1:port/x"

    def make_driver(self, address: Any, limits: ServerLimits) -> MySQLDriver:
        if isinstance(address, MySQLDriver):
            return address
        return MySQLDriver(address, limits=limits, jitter=lambda: 0.0)

    @asynccontextmanager
    async def rival(self, address: str) -> AsyncIterator[MySQLRival]:
        async with open_connection(address) as link:
            yield MySQLRival(link)

    async def test_a_pool_of_the_program_is_used_and_left_open(self, address: str):
        async with lend_pool(address) as pool:
            async with self.running(pool) as driver:
                assert await driver.write(make_session)
                assert await driver.change(Statement("add_totals", many=[("s", 1)])) == 1
            connection = await pool.acquire()
            assert connection.connected
            pool.release(connection)

    async def test_a_key_that_is_too_long_is_refused_and_not_cut(self, address: str):
        async with self.running(address) as driver:
            with pytest.raises(InvalidInputError):
                await driver.change(Statement("set_attempts", ("k" * 3000, 1)))
            assert await driver.change(Statement("set_attempts", ("k" * 2560, 1))) == 1

    async def test_a_value_that_is_larger_than_the_server_takes_is_refused(self, address: str):
        async with open_connection(address) as link:
            most = int((await link.fetch("SELECT @@max_allowed_packet"))[0][0])
        async with self.running(address, ServerLimits(connections=1)) as driver:
            with pytest.raises(InvalidInputError, match="max_allowed_packet"):
                await driver.change(Statement("set_meta", ("large", "x" * most)))
            assert await driver.change(Statement("set_meta", ("small", "x" * (1 << 20)))) == 1
            assert len(await driver.read(lambda: value_of("small"))) == 1 << 20

    async def test_a_statement_that_takes_too_long_is_broken_off(self, address: str):
        slow = ServerLimits(statement_seconds=0.2, connections=1)
        async with self.running(address, slow) as driver, open_connection(address) as rival:
            await rival.run_texts("LOCK TABLES sessions WRITE")
            with pytest.raises(StorageUnavailableError):
                await driver.write(make_session)
            await rival.run_texts("UNLOCK TABLES")
            assert await driver.write(make_session)

    async def test_many_rows_are_one_message_where_the_server_takes_that(self, address: str):
        async with open_connection(address) as link:
            await link.run_texts(
                "CREATE TABLE many (id BIGINT PRIMARY KEY, text LONGTEXT, nothing LONGTEXT, kind LONGTEXT)"
            )
            version = str((await link.fetch("SELECT version()"))[0][0])
            before = await asked_of(link)
            rows = [(number, f"{number} {'é' * 300_000}", None, None) for number in range(12)]
            assert await link.change(PUT, rows) == 12
            assert await link.change(PUT, [(12, None, None, "x"), (13, "y", None, 7)]) == 2
            assert await link.change(PUT, [(number, "new", None, None) for number in range(3)]) == 3
            assert await link.change(MOVE, [(1, 101), (2, 102)]) == 2
            assert (await asked_of(link) - before < 12) == ("MariaDB" in version)
            found = await link.fetch("SELECT id, text, nothing, kind FROM many ORDER BY id")
        assert found == [
            (0, "new", None, None),
            *rows[3:],
            (12, None, None, "x"),
            (13, "y", None, "7"),
            *((number, "new", None, None) for number in (101, 102)),
        ]

    async def test_statements_that_are_seldom_used_are_forgotten(self, address: str):
        async with self.running(MySQLDriver(address, cached_statements=0)) as driver:
            for _ in range(2):
                await driver.write(make_session)
                assert await driver.read(session_exists)

    @pytest.mark.parametrize(("arrives", "silent"), [(True, False), (False, False), (False, True)])
    async def test_a_commit_that_is_cut_off_is_of_unknown_outcome(
        self, address: str, arrives: bool, silent: bool
    ):
        async with (
            cutting_proxy(address, b"\x03COMMIT", arrives=arrives, silent=silent) as (proxied, cut),
            self.running(proxied, ServerLimits(connections=1, answer_seconds=1)) as driver,
        ):
            cut.set()
            with pytest.raises(StorageUnavailableError, match="may stand or not"):
                await driver.write(make_session)
            cut.clear()
            assert await driver.write(make_session) is not arrives

    async def test_a_transaction_sees_what_others_have_committed_meanwhile(self, address: str):
        async with self.running(address) as driver, open_connection(address) as rival:
            seen: list[bool] = []

            await driver.change(Statement("set_attempts", ("lane", 1)))
            await rival.run_texts("START TRANSACTION")
            await rival.change(INSERT, [("s",)])
            await rival.run_texts("UPDATE lanes SET attempts = 2")
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(driver.write(lambda: look_around(seen)))
                await wait_until_blocked(MySQLRival(rival))
                await rival.run_texts("COMMIT")
            assert seen == [False, True]

    async def test_who_waits_for_each_other_comes_to_an_end(self, address: str):
        async with self.running(address) as driver, open_connection(address) as rival:
            await driver.change(Statement("set_attempts", many=[("a", 1), ("b", 1)]))
            await rival.run_texts("START TRANSACTION; UPDATE lanes SET attempts = 2 WHERE session_key = 'a'")
            writing = asyncio.create_task(driver.write(clear_both))
            await wait_until_blocked(MySQLRival(rival))
            with suppress(MySQLError):  # whom the server chooses
                await rival.run_texts("UPDATE lanes SET attempts = 2 WHERE session_key = 'b'")
            await rival.run_texts("COMMIT")
            assert await writing == 1

    async def test_a_view_that_nobody_reads_is_ended_by_the_server(self, address: str):
        async with self.running(address, ServerLimits(view_idle_seconds=1, idle_seconds=1)) as driver:
            async with driver.view() as view:
                assert not await view.read(session_exists)
                await asyncio.sleep(2)
                with pytest.raises(StorageUnavailableError):
                    await view.read(session_exists)
            assert not await driver.read(session_exists)

    async def test_a_transaction_that_does_nothing_is_ended_by_the_server_and_no_connection_at_rest(
        self, address: str
    ):
        brief = ServerLimits(idle_seconds=1, view_idle_seconds=1)
        async with lend_pool(address) as pool, ConnectionLender(pool, brief, 10).lend() as link:
            for ended in (link.commit, partial(link.roll_back_after, RuntimeError())):
                await link.begin_without_locks()
                await ended()
                await asyncio.sleep(2)
                assert await link.fetch("SELECT 1") == [(1,)]
            await link.begin_without_locks()
            await asyncio.sleep(2)
            with pytest.raises(FOREIGN):
                await link.fetch("SELECT 1")
            link.close()

    async def test_a_connection_that_was_made_anew_is_set_up_anew(self, address: str):
        async with lend_pool(address) as pool, self.running(pool) as driver:
            for _ in range(2):
                assert await driver.read(session_exists) is False
                connection = await pool.acquire()
                connection.close()
                await connection.connect()
                pool.release(connection)
            with pytest.raises(InvalidInputError):
                await driver.change(Statement("set_attempts", ("k" * 3000, 1)))

    async def test_who_is_cancelled_during_a_commit_finds_it_done(self, address: str):
        async with self.running(address) as driver:
            writing = asyncio.create_task(driver.write(make_session))
            arm_failpoints(lambda point: writing.cancel() and None if point == "before_commit" else None)
            try:
                with pytest.raises(asyncio.CancelledError):
                    await writing
            finally:
                arm_failpoints(None)
            assert await driver.read(session_exists)


@asynccontextmanager
async def cutting_proxy(
    address: str, word: bytes, *, arrives: bool, silent: bool
) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """The same server behind a wire that breaks, if the event is set, when *word* passes or has passed it.

    One that is *silent* says nothing any more, not even that it is broken.
    """
    cut, parts = asyncio.Event(), urlsplit(address)

    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, breaks: bytes | None) -> None:
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                broken = breaks is not None and cut.is_set() and breaks in data
                if arrives or not broken:
                    sink.write(data)
                    await sink.drain()
                if broken and silent:
                    await source.read()
                if broken:
                    break
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection(parts.hostname, parts.port)
        async with asyncio.TaskGroup() as both:
            answers = both.create_task(pass_on(behind, writer, None))
            await pass_on(reader, before, word)
            writer.close()
            answers.cancel()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        legible = parts._replace(netloc=f"root@127.0.0.1:{port}", query="ssl-mode=DISABLED")
        yield legible.geturl(), cut


PUT = """
    INSERT INTO many (id, text, nothing, kind) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE text = VALUES(text)
"""
MOVE = "UPDATE many JOIN (SELECT ? AS was, ? AS will_be) AS chosen ON id = was SET id = will_be"
"""Some kinds of statements are refused for more than one row."""


async def asked_of(link: MySQLConnection) -> int:
    """How many statements the server has run on that connection."""
    return int((await link.fetch("SHOW SESSION STATUS LIKE 'Com_stmt_execute'"))[0][1])


def look_around(seen: list[bool]) -> Transaction[None]:
    """Look, wait for whoever has the row of a lane, and look again."""
    seen.append((yield from session_exists()))
    yield Statement("clear_attempts", ("lane",))
    seen.append((yield from session_exists()))


def clear_both() -> Transaction[int]:
    yield Statement("clear_attempts", ("b",))
    return int((yield Statement("clear_attempts", ("a",)))[0][0])


def value_of(name: str) -> Transaction[str]:
    return str((yield Statement("get_meta", (name,)))[0][0])


async def test_a_pool_that_counts_only_rows_that_differ_is_refused(address: str):
    async with lend_pool(address, client_flag=0) as pool:
        with pytest.raises(InvalidInputError, match="FOUND_ROWS"):
            await TestMySQL().start(pool)


async def test_limits_and_rules_are_set_on_every_connection(address: str):
    async with (
        lend_pool(address) as pool,
        ConnectionLender(pool, ServerLimits(lock_seconds=1.5), 10).lend() as link,
    ):
        asked = "SELECT @@sql_mode, @@collation_connection, @@innodb_lock_wait_timeout, @@lock_wait_timeout"
        mode, *others = (await link.fetch(asked))[0]
        assert {"STRICT_ALL_TABLES", "ONLY_FULL_GROUP_BY"} <= set(mode.split(","))
        assert others == ["utf8mb4_bin", 2, 2]


async def test_a_connection_is_protected_if_the_server_can(address: str):
    protected = {mode: await is_protected(address, mode) for mode in ("", "REQUIRED", "DISABLED")}
    assert protected[""] is (protected["REQUIRED"] is True)
    assert protected["DISABLED"] is False


async def test_whoever_hangs_up_waits_for_no_answer(address: str):
    server, silent, ended = urlsplit(address), asyncio.Event(), asyncio.Event()

    async def pass_back(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            if not silent.is_set():
                sink.write(data)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection(server.hostname, server.port)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pass_back(behind, writer))
            while data := await reader.read(1 << 16):
                before.write(data)
            ended.set()
            before.close()
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as way:
        login, port = server.netloc.rpartition("@")[0], way.sockets[0].getsockname()[1]
        pool = await open_pool(server._replace(netloc=f"{login}@127.0.0.1:{port}").geturl(), USUAL, 1)
        async with ConnectionLender(pool, USUAL, 10).lend() as link:
            await link.begin_without_locks()
            ended.clear()
            silent.set()
            link.close()
        async with asyncio.timeout(15):
            await ended.wait()


async def is_protected(address: str, mode: str) -> bool | None:
    """None: the server refuses."""
    pool = None
    try:
        pool = await open_pool(f"{address}?ssl-mode={mode}" if mode else address, USUAL, 1)
        async with ConnectionLender(pool, USUAL, 10).lend() as link:
            return bool((await link.fetch("SHOW SESSION STATUS LIKE 'Ssl_cipher'"))[0][1])
    except MySQLError:
        return None
    finally:
        if pool is not None:
            await close_pool(pool)


async def test_a_login_that_needs_protection_or_a_package_says_so():
    with pytest.raises(StorageUnavailableError, match="ssl-mode"):
        await TestMySQL().start(MySQLDriver(LoginNeedsPackage()))


class LoginNeedsPackage:
    """A pool that fails as that of asyncmy does."""

    async def acquire(self) -> object:
        problem = "'cryptography' package is required for sha256_password or caching_sha2_password"
        raise RuntimeError(problem)

    def release(self, conn: object) -> None:
        raise AssertionError(conn)


async def test_nothing_is_said_to_whoever_opens_a_new_database(
    address: str, caplog: pytest.LogCaptureFixture
):
    driver = MySQLDriver(address)
    async with TestMySQL().running(driver):
        assert await driver.read(session_exists) is False
    assert [record.message for record in caplog.records] == []


async def test_nobody_waits_for_a_server_that_says_nothing():
    callers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, caller: callers.append(caller), "127.0.0.1", 0)
    async with silent:
        port = silent.sockets[0].getsockname()[1]
        driver = MySQLDriver(f"mysql://me@127.0.0.1:{port}/x", limits=ServerLimits(acquire_seconds=0.2))
        with pytest.raises(StorageUnavailableError):
            await TestMySQL().start(driver)
        for caller in callers:
            caller.close()


async def test_a_pool_of_another_charset_is_refused(address: str):
    async with lend_pool(address, charset="latin1") as pool:
        with pytest.raises(InvalidInputError, match="utf8mb4"):
            await TestMySQL().start(pool)


async def test_a_pool_that_is_closed_is_unavailable(address: str):
    async with lend_pool(address) as pool:
        pool.close()
        with pytest.raises(StorageUnavailableError):
            await TestMySQL().start(pool)


async def test_a_login_that_is_refused_and_a_database_that_is_not_there_are_told(address: str):
    for other, told in (
        (address.replace("root@", "nobody:hunter2@"), "refuses the login"),
        (f"{address}_not", "no database of that name"),
    ):
        with pytest.raises(StorageUnavailableError, match=told):
            await TestMySQL().start(other)


async def test_whoever_waits_for_a_lock_is_not_in_the_way_for_long_when_cancelled(address: str):
    contract = TestMySQL()
    async with contract.running(address) as driver, contract.rival(address) as rival:
        await rival.insert("s")
        writing = asyncio.create_task(driver.write(make_session))
        await wait_until_blocked(rival)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await rival.roll_back()
        assert await driver.write(make_session)
