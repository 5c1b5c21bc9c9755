"""Imports and exports that are cut off, or whose statements fail: whole sessions and whole files, or none."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway_sessions import GatewaySessionsError, Scope, SessionDB, StorageError
from gateway_sessions.ports import Transaction, TransactionFactory
from gateway_sessions.storage.tables.sql_files import ROOT
from tests.crash.kills.store_workload import START
from tests.crash.storage.faulty_driver import FAULTS, FaultyDriver, fault
from tests.crash.storage.test_cancellation import cancel_this_task, nothing_is_held, run
from tests.crash.stores import SteppedClock
from tests.crash.suspensions import Suspensions

T = TypeVar("T")

OPERATOR = Scope.operator()
OURS = frozenset(
    line.split()[2]
    for line in (ROOT / "store" / "transfer.sql").read_text("utf-8").splitlines()
    if line.startswith("-- name:")
) | {"add_usage", "titles_of_owner", "parent_of_session", "session_record", "messages_after"}


class OnlyTransfers(FaultyDriver):
    """Lets the n-th statement of an import or export fail, and none of what goes on beside it."""

    def _armed(self, transaction: TransactionFactory[T]) -> TransactionFactory[T]:
        # An import has tasks of its own; what goes on beside it is told by the names of the statements.
        return lambda: self._faulty(transaction())

    def _faulty(self, transaction: Transaction[T]) -> Transaction[T]:
        try:
            statement = next(transaction)
            while True:
                self.left -= statement.name in OURS
                if self.left == 0 and self.error is not None and statement.name in OURS:
                    raise self.error
                statement = transaction.send((yield statement))
        except StopIteration as stop:
            return stop.value
        finally:
            transaction.close()


@pytest.fixture
def driver(tmp_path: Path) -> OnlyTransfers:
    return OnlyTransfers(tmp_path / "sessions.db")


@pytest.fixture
async def db(tmp_path: Path, driver: OnlyTransfers) -> AsyncIterator[SessionDB]:
    async with SessionDB(driver, SteppedClock(START), wait=0) as opened:
        yield opened


def sessions(number: int) -> list[dict[str, Any]]:
    """A child before its parent, with everything that has rows of its own."""
    message = {
        "role": "user",
        "content": "hello",
        "timestamp": 1.5,
        "versions": [{"content": "helo", "replaced_at": 2.5}],
    }
    usage = {"event_id": f"e{number}", "at": 1.5, "input_tokens": 3}
    parent = {"id": f"parent-{number}", "source": "cli", "started_at": 1.0, "title": f"Trip {number}"}
    child = {"id": f"child-{number}", "source": "cli", "started_at": 2.0, "parent_session_id": parent["id"]}
    return [
        child | {"title": f"Trip {number}", "messages": [message, message]},
        parent | {"messages": [message], "usage_events": [usage]},
    ]


async def ends_well(db: SessionDB, given: list[dict[str, Any]]) -> None:
    """What is there is whole, and the import begun again brings the rest."""
    report = await db.import_sessions(given)
    assert (report.imported + report.skipped, report.clashes, report.errors) == (2, (), ())
    child, parent = [await db.export_session(one["id"], scope=OPERATOR) for one in given]
    assert (len(child["messages"]), len(child["messages"][0]["versions"])) == (2, 1)
    assert (child["parent_session_id"], parent["input_tokens"]) == (parent["id"], 3)
    assert (await db.import_sessions(given)).skipped == 2


async def test_an_import_whose_statements_fail_is_a_typed_error_and_can_be_begun_again(
    db: SessionDB, driver: OnlyTransfers
):
    for nth, kind in enumerate(itertools.cycle(FAULTS), 1):
        given = sessions(nth)
        driver.arm(nth, fault(kind))
        try:
            await db.import_sessions(given)
        except StorageError as error:
            assert type(error) is FAULTS[kind][2]  # noqa: PT017 -- without an error it is over
        else:
            assert not driver.fired, "a failure was swallowed"
            assert nth > 10
            break
        driver.arm(0, fault(kind))
        await ends_well(db, given)


@pytest.mark.parametrize("later", [False, True], ids=["at_once", "a_turn_later"])
async def test_a_cancelled_import_leaves_whole_sessions(db: SessionDB, tmp_path: Path, later: bool):
    path = tmp_path / "given.jsonl"
    for at in itertools.count(1):
        given = sessions(at)
        path.write_text("".join(f"{json.dumps(one)}\n" for one in given))
        suspensions = Suspensions(at, lambda: cancel_this_task(later=later))
        task = asyncio.create_task(run(suspensions.watch(db.import_sessions(path))))
        await asyncio.wait({task})
        if not suspensions.reached:
            task.result()
            break
        with suppress(asyncio.CancelledError, GatewaySessionsError):
            task.result()
        await ends_well(db, given)
    assert at > 5
    nothing_is_held(tmp_path)


async def test_an_export_whose_statements_fail_leaves_the_old_file(
    db: SessionDB, driver: OnlyTransfers, tmp_path: Path
):
    await db.import_sessions(sessions(1))
    path = tmp_path / "out" / "all.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"old")
    for nth, kind in enumerate(itertools.cycle(FAULTS), 1):
        driver.arm(nth, fault(kind))
        try:
            exported = [one["id"] async for one in db.export_all(scope=OPERATOR)]
        except StorageError as error:
            assert type(error) is FAULTS[kind][2]  # noqa: PT017 -- without an error it is over
        else:
            assert not driver.fired, "a failure was swallowed"
            assert exported == ["parent-1", "child-1"]
            break


@pytest.mark.parametrize("later", [False, True], ids=["at_once", "a_turn_later"])
async def test_a_cancelled_export_leaves_the_old_file_or_the_new_one(
    db: SessionDB, tmp_path: Path, later: bool
):
    await db.import_sessions(sessions(1))
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "all.jsonl"
    await db.write_export(path, scope=OPERATOR)
    whole = path.read_bytes()
    for at in itertools.count(1):
        path.write_bytes(b"old")
        suspensions = Suspensions(at, lambda: cancel_this_task(later=later))
        task = asyncio.create_task(run(suspensions.watch(db.write_export(path, scope=OPERATOR))))
        await asyncio.wait({task})
        if not suspensions.reached:
            task.result()
            break
        with suppress(asyncio.CancelledError, GatewaySessionsError):
            task.result()
        assert path.read_bytes() in (b"old", whole)
        assert [one.name for one in folder.iterdir()] == ["all.jsonl"]
    assert at > 5
    nothing_is_held(tmp_path)
