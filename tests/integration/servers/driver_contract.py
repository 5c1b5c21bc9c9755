"""What the drivers of all servers promise: transactions stand whole or not at all, and errors are ours."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Protocol

import anyio
import pytest

from gateway_sessions.core.committed_changes import CommittedChange, SessionEnd
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    SchemaTooNewError,
    StorageUnavailableError,
    StoreStoppedError,
)
from gateway_sessions.ports import Statement, Transaction
from gateway_sessions.storage.engines.server.driver import USUAL, ServerLimits
from gateway_sessions.storage.tables import meta
from gateway_sessions.storage.transactions.sessions.session_rows import NewSessionRow

SECRET = bytes(range(32))


class OtherProgram(Protocol):
    """Somebody else who works on the same database."""

    async def insert(self, session_id: str) -> None:
        """Begin a transaction, and make a session that nobody else can see yet."""

    async def commit(self) -> None:
        """End the transaction."""

    async def roll_back(self) -> None:
        """Leave nothing of it."""

    async def blocks_somebody(self) -> bool:
        """Whether anybody waits for what this one holds."""

    async def end_the_blocked(self) -> None:
        """Cut the connection of whoever waits."""


class DriverContract:
    """A test class of an engine inherits this, and says how to make what it needs."""

    newest_schema: int
    unreachable: str
    not_an_address: str

    def make_driver(self, address: Any, limits: ServerLimits) -> Any:
        raise NotImplementedError

    def rival(self, address: str) -> AbstractAsyncContextManager[OtherProgram]:
        raise NotImplementedError

    @asynccontextmanager
    async def running(self, address: Any, limits: ServerLimits = USUAL) -> AsyncIterator[Any]:
        async with anyio.create_task_group() as tasks, AsyncExitStack() as cleanup:
            driver = self.make_driver(address, limits)
            await driver.start(tasks, cleanup)
            yield driver

    async def test_a_store_is_the_same_when_it_is_opened_again(self, address: str):
        for epoch, secret in ((1, SECRET), (2, b"another one")):
            async with self.running(address) as driver:
                opening = await driver.write(partial(meta.open_store, secret))
                assert (opening.epoch, opening.install_secret) == (epoch, SECRET)
                assert await driver.read(lambda: meta.get_number("schema_version")) == self.newest_schema

    async def test_many_may_open_a_new_database_at_once(self, address: str):
        async with anyio.create_task_group() as tasks, AsyncExitStack() as cleanup:
            drivers = [self.make_driver(address, USUAL) for _ in range(3)]
            await asyncio.gather(*(one.start(tasks, cleanup) for one in drivers))
            assert [await one.read(session_exists) for one in drivers] == [False] * 3

    async def test_a_transaction_stands_whole_or_not_at_all(self, address: str):
        async with self.running(address) as driver:
            with pytest.raises(InvalidInputError):
                await driver.write(lambda: make_two_sessions("\ud800"))
            assert not await driver.read(lambda: session_exists("first"))
            await driver.write(lambda: make_two_sessions("second"))
            assert await driver.read(lambda: session_exists("first"))

    async def test_a_value_that_cannot_be_stored_is_refused_and_not_quoted(self, address: str):
        async with self.running(address) as driver:
            with pytest.raises(InvalidInputError) as refused:
                await driver.write(lambda: make_session("\ud800 private"))
            assert "private" not in str(refused.value)
            with pytest.raises(InvalidInputError):
                await driver.change(Statement("add_totals", ("s", 1 << 64)))

    async def test_changes_are_counted_and_told_when_they_stand(self, address: str):
        async with self.running(address) as driver:
            told: list[Sequence[CommittedChange]] = []
            driver.on_news = told.append
            news = SessionEnd(at=EPOCH, session_key="k", session_id="s", reason="r")
            end = Statement("end_session", (2, "r", "{}", "s"), news=news)
            assert await driver.change(end) == 0
            assert told == []
            await driver.write(make_session)
            assert await driver.change(end) == 1
            assert told == [(news,)]
            rows = [("a", 1), ("b", 2)]
            assert await driver.change(Statement("add_totals", many=rows)) == 2

    async def test_a_row_that_is_found_counts_as_changed(self, address: str):
        async with self.running(address) as driver:
            for _ in range(2):
                assert await driver.change(Statement("put_clocks", (1, 1, 1, None))) == 1
                assert await driver.change(Statement("touch_entry", (1, 1, 1))) == 1

    async def test_what_sessions_json_shows_is_counted(self, address: str):
        async with self.running(address) as driver:
            calls: list[None] = []
            driver.on_change = lambda: calls.append(None)
            await driver.write(make_session)
            await driver.change(Statement("put_record", ("{}", 1)))
            assert (driver.changes, calls) == (0, [])
            await driver.change(Statement("put_clocks", (1, 1, 1, None)))
            assert (driver.changes, calls) == (1, [None])

    async def test_an_entry_never_takes_the_place_of_another_one(self, address: str):
        async with self.running(address) as driver:
            await driver.change(entry(1, "lane", "session"))
            for other in (entry(2, "lane", "another"), entry(2, "another", "session")):
                with pytest.raises(GatewaySessionsError):
                    await driver.change(other)
            await driver.change(entry(1, "lane", "another"))
            assert await driver.read(lambda: session_on("lane")) == "another"

    async def test_keys_are_equal_byte_by_byte_only(self, address: str):
        keys = ["Lane", "lane", "lane ", "läne", "la\u0308ne", "lane\u200b", "\U0001f600", "lane%"]
        async with self.running(address) as driver:
            for number, key in enumerate(keys):
                await driver.change(entry(number, key, f"s{number}"))
            assert [await driver.read(partial(session_on, key)) for key in keys] == [
                f"s{number}" for number in range(len(keys))
            ]
            assert await driver.read(all_keys) == sorted(keys, key=str.encode)

    async def test_a_view_shows_one_moment(self, address: str):
        async with self.running(address) as driver:
            async with driver.view() as view:
                await driver.write(make_session)
                assert not any(await asyncio.gather(view.read(session_exists), view.read(session_exists)))
            assert await driver.read(session_exists)

    async def test_nothing_is_changed_by_reading(self, address: str):
        async with self.running(address) as driver:
            with pytest.raises(GatewaySessionsError):
                await driver.read(make_session)
            assert not await driver.read(session_exists)

    async def test_a_transaction_that_is_overtaken_is_run_afresh(self, address: str):
        async with self.running(address) as driver, self.rival(address) as rival:
            async with asyncio.TaskGroup() as tasks:
                await rival.insert("s")
                made = tasks.create_task(driver.write(make_session))
                await wait_until_blocked(rival)
                await rival.commit()
            assert made.result() is False

    async def test_nobody_waits_for_a_lock_for_ever(self, address: str):
        impatient = ServerLimits(lock_seconds=0.05, attempts=1)
        async with self.running(address, impatient) as driver, self.rival(address) as rival:
            await rival.insert("s")
            with pytest.raises(StorageUnavailableError):
                await driver.write(make_session)
            await rival.roll_back()
            assert await driver.write(make_session)

    async def test_a_transaction_that_is_cancelled_leaves_nothing_behind(self, address: str):
        async with (
            self.running(address, ServerLimits(connections=1)) as driver,
            self.rival(address) as rival,
        ):
            await rival.insert("b")
            writing = asyncio.create_task(driver.write(lambda: make_two_sessions("b")))
            await wait_until_blocked(rival)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            assert not await driver.read(lambda: session_exists("first"))
            await rival.roll_back()
            assert not await driver.read(lambda: session_exists("first"))

    async def test_a_newer_schema_is_left_alone(self, address: str):
        async with self.running(address) as driver:
            await driver.write(lambda: meta.set_fact("readable_from", self.newest_schema + 1))
        with pytest.raises(SchemaTooNewError):
            await self.start(address)

    async def test_an_error_never_quotes_the_password(self, address: str):
        wrong = [(self.unreachable, StorageUnavailableError), (self.not_an_address, InvalidInputError)]
        for other, error in [*wrong, ("sqlite://me:hunter2@127.0.0.1/x", InvalidInputError)]:
            with pytest.raises(error) as refused:
                await self.start(other)
            assert "hunter2" not in "".join(traceback.format_exception(refused.value))

    async def test_a_driver_that_is_closed_says_so(self, address: str):
        async with self.running(address) as driver:
            pass
        with pytest.raises(StoreStoppedError):
            await driver.read(session_exists)

    async def test_a_connection_that_is_lost_is_replaced(self, address: str):
        async with self.running(address) as driver, self.rival(address) as rival:
            await rival.insert("s")
            writing = asyncio.create_task(driver.write(make_session))
            await wait_until_blocked(rival)
            await rival.end_the_blocked()
            await asyncio.sleep(0.2)
            assert not writing.done()  # it asks again, on another connection
            await rival.roll_back()
            assert await writing

    async def start(self, address: Any) -> None:
        """What is wrong with an address or a database comes to light when the driver is started."""
        async with AsyncExitStack() as cleanup:
            await self.make_driver(address, USUAL).start(anyio.create_task_group(), cleanup)


def make_session(session_id: str = "s") -> Transaction[bool]:
    """Whether it was this transaction that made it."""
    if (yield Statement("session_exists", (session_id,))):
        return False
    yield Statement("add_session_row", NewSessionRow(session_id, None, "o", "cli", None, None, None, 1))
    return True


def session_exists(session_id: str = "s") -> Transaction[bool]:
    return bool((yield Statement("session_exists", (session_id,))))


def make_two_sessions(second: str) -> Transaction[None]:
    yield from make_session("first")
    yield from make_session(second)


def entry(entry_id: int, session_key: str, session_id: str) -> Statement:
    row = (entry_id, session_key, session_id, "o", None, "active", None, None, "", "{}")
    return Statement("put_entry", row)


def session_on(session_key: str) -> Transaction[str]:
    rows = yield Statement("lanes_of_owner", ("o",))
    return next(row[1] for row in rows if row[0] == session_key)


def all_keys() -> Transaction[list[str]]:
    """In the order of the database."""
    return [row[0] for row in (yield Statement("lanes_of_owner", ("o",)))]


async def wait_until_blocked(rival: OtherProgram) -> None:
    """Until somebody waits for what the rival holds."""
    while not await rival.blocks_somebody():  # noqa: ASYNC110 -- only the server knows
        await asyncio.sleep(0.02)
