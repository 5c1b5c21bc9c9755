"""Transactions of different lanes that wait at the same moment share a commit; each has its own outcome."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import anyio
import asyncpg
import pytest

from gateway_sessions.core.committed_changes import SessionEnd
from gateway_sessions.core.instants import EPOCH
from gateway_sessions.errors import GatewaySessionsError, InvalidInputError, StorageUnavailableError
from gateway_sessions.ports import Statement, Transaction, together
from gateway_sessions.storage.engines.postgresql.engine import PostgresDriver
from gateway_sessions.storage.engines.postgresql.locks import lock_number
from gateway_sessions.storage.engines.postgresql.transaction import PostgresConnection
from gateway_sessions.storage.engines.server import batching
from gateway_sessions.storage.engines.server.driver import ServerLimits
from gateway_sessions.storage.tables.statements import lane_lock, session_lock
from gateway_sessions.storage.transactions.sessions.session_rows import NewSessionRow
from tests.integration.servers.running_drivers import running_driver

LANES = [f"lane-{number}" for number in range(6)]


class RefusedError(GatewaySessionsError):
    """What a transaction says that does not want to."""


class Counted:
    """Counts what is sent to the server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[int] = []
        self.committed = 0
        self.asked = 0
        begin, commit, fetch = (
            PostgresConnection.begin_together,
            PostgresConnection.commit,
            PostgresConnection.fetch_each,
        )

        async def begin_together(link, held, epoch):
            self.begun.append(len(held))
            await begin(link, held, epoch)

        async def counted_commit(link):
            await commit(link)
            self.committed += 1

        async def fetch_each(link, sql, params):
            self.asked += 1
            return await fetch(link, sql, params)

        monkeypatch.setattr(PostgresConnection, "begin_together", begin_together)
        monkeypatch.setattr(PostgresConnection, "commit", counted_commit)
        monkeypatch.setattr(PostgresConnection, "fetch_each", fetch_each)


@pytest.fixture
async def driver(dsn: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PostgresDriver]:
    monkeypatch.setattr(batching, "PLACES", 1)
    limits = ServerLimits(lock_seconds=0.5, answer_seconds=5)
    async with running_driver(PostgresDriver(dsn, limits=limits, jitter=lambda: 0.0)) as driver:
        yield driver


def make(lane: str, session: str | None = None, error: Exception | None = None) -> Transaction[bool]:
    """Make a lane, and a session if one is named; whether the lane was new."""
    found = yield Statement("lane_row", (lane,), lock=lane_lock(lane))
    yield Statement("mark_moved", (lane, "elsewhere"))
    if session is not None:
        row = NewSessionRow(session, lane, "o", "cli", None, None, None, 1)
        yield Statement("add_session_row", row, lock=session_lock(session))
    if error is not None:
        raise error
    return not found


def lanes_that_are() -> Transaction[list[str]]:
    found: list[str] = []
    for lane in LANES:
        found += [lane] * len((yield Statement("get_lane", (lane,))))
    return found


class Occupied:
    """Somebody else has the lock of a lane."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def __aenter__(self) -> "Occupied":
        self._other = await asyncpg.connect(self._dsn)
        return self

    async def hold(self, lane: str) -> None:
        await self._other.execute(f"BEGIN; SELECT pg_advisory_xact_lock({lock_number(lane_lock(lane))})")

    async def let_go(self) -> None:
        await self._other.execute("ROLLBACK")

    async def until_somebody_waits(self) -> None:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not await self._other.fetchval(waiting):  # noqa: ASYNC110 -- only the server knows
            await asyncio.sleep(0.01)

    async def __aexit__(self, *_: object) -> None:
        await self._other.close()


async def all_at_once(
    driver: PostgresDriver, transactions: list[Callable[[], Transaction[bool]]]
) -> list[bool | BaseException]:
    return await asyncio.gather(*(driver.write(one) for one in transactions), return_exceptions=True)


def those_with(error: type[BaseException], outcomes: list[bool | BaseException]) -> list[str]:
    """The lanes whose transactions ended with it."""
    return [lane for lane, one in zip(LANES, outcomes, strict=True) if isinstance(one, error)]


async def test_what_waits_for_a_place_goes_together(driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch):
    counted = Counted(monkeypatch)
    assert await all_at_once(driver, [partial(make, lane) for lane in LANES]) == [True] * 6
    assert counted.begun == [1, 5]
    assert counted.committed == 2
    assert counted.asked == 2  # both steps of all five
    assert await driver.read(lanes_that_are) == LANES


async def test_each_sees_what_it_has_changed_itself(driver: PostgresDriver):
    for expected in (True, False):
        assert await all_at_once(driver, [partial(make, lane) for lane in LANES]) == [expected] * 6


async def test_who_fails_before_it_changes_anything_fails_alone(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    def refuse(lane: str) -> Transaction[bool]:
        yield Statement("lane_row", (lane,), lock=lane_lock(lane))
        raise RefusedError

    counted = Counted(monkeypatch)
    transactions = [partial(make, lane) for lane in LANES]
    transactions[3] = partial(refuse, LANES[3])
    outcomes = await all_at_once(driver, transactions)
    assert those_with(RefusedError, outcomes) == [LANES[3]]
    assert counted.begun == [1, 5]
    assert await driver.read(lanes_that_are) == [*LANES[:3], *LANES[4:]]


async def test_who_fails_when_it_has_changed_something_takes_nobody_along(driver: PostgresDriver):
    transactions = [partial(make, lane) for lane in LANES]
    transactions[3] = partial(make, LANES[3], error=RefusedError())
    outcomes = await all_at_once(driver, transactions)
    assert those_with(RefusedError, outcomes) == [LANES[3]]
    assert await driver.read(lanes_that_are) == [*LANES[:3], *LANES[4:]]


async def test_what_the_server_refuses_for_one_of_them_is_refused_for_that_one(driver: PostgresDriver):
    transactions = [partial(make, lane, f"s-{lane}") for lane in LANES]
    transactions[2] = partial(make, LANES[2], "\ud800")
    outcomes = await all_at_once(driver, transactions)
    assert those_with(InvalidInputError, outcomes) == [LANES[2]]
    assert await driver.read(lanes_that_are) == [*LANES[:2], *LANES[3:]]


async def test_who_is_cancelled_before_the_commit_leaves_nothing_and_the_others_all(
    dsn: str, driver: PostgresDriver
):
    async with Occupied(dsn) as other, asyncio.TaskGroup() as tasks:
        await other.hold(LANES[2])
        writing = [tasks.create_task(driver.write(partial(make, lane))) for lane in LANES]
        await other.until_somebody_waits()
        writing[3].cancel()
        await asyncio.wait({writing[3]})
        await other.let_go()
    assert [one.cancelled() for one in writing] == [False, False, False, True, False, False]
    assert await driver.read(lanes_that_are) == [*LANES[:3], *LANES[4:]]


async def test_the_others_go_on_if_the_one_that_leads_is_cancelled(dsn: str, driver: PostgresDriver):
    async with Occupied(dsn) as other, asyncio.TaskGroup() as tasks:
        await other.hold(LANES[2])
        writing = [tasks.create_task(driver.write(partial(make, lane))) for lane in LANES]
        await other.until_somebody_waits()
        writing[1].cancel()  # the first has gone alone, so this one leads
        await asyncio.wait({writing[1]})
        await other.let_go()
    assert [one.cancelled() for one in writing] == [False, True, False, False, False, False]
    assert await driver.read(lanes_that_are) == [LANES[0], *LANES[2:]]


async def test_a_lane_that_somebody_else_has_for_long_keeps_only_its_own_transaction_waiting(
    dsn: str, driver: PostgresDriver
):
    async with Occupied(dsn) as other:
        await other.hold(LANES[2])
        outcomes = await all_at_once(driver, [partial(make, lane) for lane in LANES])
        assert those_with(StorageUnavailableError, outcomes) == [LANES[2]]


async def test_a_commit_that_nobody_hears_of_is_told_to_all_of_them(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    commit = PostgresConnection.commit
    commits = 0

    async def lose(link: PostgresConnection) -> None:
        nonlocal commits
        commits += 1
        await commit(link)
        if commits == 2:
            raise ConnectionResetError

    monkeypatch.setattr(PostgresConnection, "commit", lose)
    outcomes = await all_at_once(driver, [partial(make, lane) for lane in LANES])
    assert outcomes[0] is True
    assert all("may stand or not" in str(one) for one in outcomes[1:])
    assert len({id(one) for one in outcomes[1:]}) == 5
    monkeypatch.undo()
    assert await driver.read(lanes_that_are) == LANES
    assert commits == 2  # nothing is said twice


async def test_all_of_them_go_alone_when_their_connection_is_lost(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    lost = 0

    async def lose(link: PostgresConnection, sql: str, params: object) -> None:
        nonlocal lost
        lost += 1
        raise ConnectionResetError

    monkeypatch.setattr(PostgresConnection, "fetch_each", lose)
    assert await all_at_once(driver, [partial(make, lane) for lane in LANES]) == [True] * len(LANES)
    assert await driver.read(lanes_that_are) == LANES
    assert lost


async def test_a_server_that_says_nothing_is_given_up_by_all_of_them(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    async def say_nothing(link: PostgresConnection, sql: str, params: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(PostgresConnection, "fetch_each", say_nothing)
    outcomes = await all_at_once(driver, [partial(make, lane) for lane in LANES])
    assert outcomes[0] is True
    assert all(isinstance(one, StorageUnavailableError) for one in outcomes[1:])
    monkeypatch.undo()
    assert await driver.read(lanes_that_are) == LANES[:1]


async def test_who_is_cancelled_during_the_commit_is_told_when_it_stands(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    commit, committing, go_on = PostgresConnection.commit, asyncio.Event(), asyncio.Event()
    commits = 0

    async def slowly(link: PostgresConnection) -> None:
        nonlocal commits
        commits += 1
        if commits == 2:
            committing.set()
            await go_on.wait()
        await commit(link)

    monkeypatch.setattr(PostgresConnection, "commit", slowly)
    writing = [asyncio.create_task(driver.write(partial(make, lane))) for lane in LANES]
    await committing.wait()
    for one in (writing[1], writing[4]):  # the one that leads, and one that follows
        one.cancel()
    await asyncio.sleep(0.05)
    assert not any(one.done() for one in writing[1:])
    go_on.set()
    outcomes = await asyncio.gather(*writing, return_exceptions=True)
    assert those_with(asyncio.CancelledError, outcomes) == [LANES[1], LANES[4]]
    assert await driver.read(lanes_that_are) == LANES


async def test_nothing_is_done_twice_if_the_one_that_leads_is_cancelled_as_a_commit_is_broken_off(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    commit, cut_off = PostgresDriver._commit_to_the_end, 0  # noqa: SLF001 -- where nobody could tell how it ends

    async def commit_and_break_off(
        driver: PostgresDriver, link: PostgresConnection
    ) -> asyncio.CancelledError | None:
        nonlocal cut_off
        cancelled = await commit(driver, link)
        cut_off += 1
        if cut_off == 2:
            raise asyncio.CancelledError
        return cancelled

    monkeypatch.setattr(PostgresDriver, "_commit_to_the_end", commit_and_break_off)
    outcomes = await all_at_once(driver, [partial(make, lane) for lane in LANES])
    assert outcomes[0] is True
    assert those_with(asyncio.CancelledError, outcomes) == [LANES[1]]
    assert all("may stand or not" in str(one) for one in outcomes[2:])
    assert await driver.read(lanes_that_are) == LANES
    assert cut_off == 2


async def test_nothing_is_done_twice_if_the_one_that_leads_is_cancelled_as_it_gives_the_connection_back(
    driver: PostgresDriver, monkeypatch: pytest.MonkeyPatch
):
    commit, leading = PostgresConnection.commit, anyio.CancelScope()
    commits = 0

    async def commit_and_cancel(link: PostgresConnection) -> None:
        nonlocal commits
        commits += 1
        if commits == 2:
            leading.cancel()
        await commit(link)

    async def led() -> str:
        with leading:
            await driver.write(partial(make, LANES[1]))
        return "cancelled"

    monkeypatch.setattr(PostgresConnection, "commit", commit_and_cancel)
    first, *others = (driver.write(partial(make, lane)) for lane in LANES if lane != LANES[1])
    outcomes = await asyncio.gather(first, led(), *others)
    assert outcomes == [True, "cancelled", True, True, True, True]
    assert commits == 2
    assert await driver.read(lanes_that_are) == LANES


async def test_what_came_of_each_is_told_and_counted_once(driver: PostgresDriver):
    told: list[object] = []
    driver.on_news = told.extend
    changes: list[None] = []
    driver.on_change = lambda: changes.append(None)

    def touch(lane: str) -> Transaction[bool]:
        news = SessionEnd(at=EPOCH, session_key=lane, session_id="s", reason="r")
        yield Statement("mark_moved", (lane, "elsewhere"), lock=lane_lock(lane), news=news)
        yield together(
            Statement("put_clocks", (LANES.index(lane), 1, 1, None)), Statement("get_lane", (lane,))
        )
        return True

    await all_at_once(driver, [partial(touch, lane) for lane in LANES])
    assert [one.session_key for one in told] == LANES
    assert (driver.changes, len(changes)) == (2, 2)


async def test_many_rows_of_each_are_written_at_once(driver: PostgresDriver):
    def add(lane: str) -> Transaction[bool]:
        rows = [(f"{lane}-{number}", 1) for number in range(3)]
        yield Statement("lane_row", (lane,), lock=lane_lock(lane))
        added = yield Statement("add_totals", many=rows)
        return bool(added[0][0] == 3)

    assert await all_at_once(driver, [partial(add, lane) for lane in LANES]) == [True] * 6
    rows = await driver.read(totals)
    assert rows == 18


def totals() -> Transaction[int]:
    count = 0
    for lane in LANES:
        for number in range(3):
            count += len((yield Statement("transcript_version", (f"{lane}-{number}",))))
    return count
