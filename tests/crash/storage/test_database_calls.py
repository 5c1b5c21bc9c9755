"""Calls of a database that are cancelled or whose statements fail leave everything as it was, or done.

One database serves all calls: what one of them left behind would hurt the next.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from gateway_sessions import GatewaySessionsError, Message, Scope, SessionDB, StorageError
from gateway_sessions.ports import Transaction, TransactionFactory
from gateway_sessions.storage.api.erasure import ErasureMethods
from gateway_sessions.storage.api.metadata import MetadataMethods
from gateway_sessions.storage.api.retention import RetentionMethods, TransferMethods
from gateway_sessions.storage.api.search import SearchMethods
from gateway_sessions.storage.api.sessions import (
    LineageMethods,
    ListingMethods,
    SessionRowMethods,
    TitleMethods,
)
from gateway_sessions.storage.api.transcripts import TranscriptMethods
from gateway_sessions.storage.api.usage import UsageMethods
from gateway_sessions.storage.engines.sqlite.engine import SqliteEngine
from gateway_sessions.storage.transactions.sessions import remove
from tests.crash.database_calls import (
    LINEAGE,
    LISTING,
    RETENTION,
    SEARCH,
    SUMMARY,
    TITLES,
    USAGE,
    Call,
)
from tests.crash.kills.invariants import check_database
from tests.crash.kills.store_workload import START
from tests.crash.storage.faulty_driver import FAULTS, FaultyDriver, fault
from tests.crash.storage.test_cancellation import cancel_this_task, nothing_is_held, run
from tests.crash.stores import SteppedClock
from tests.crash.suspensions import Suspensions

T = TypeVar("T")

METHODS: Final = "gateway_sessions.storage.api."
LONG_AGO: Final = START - timedelta(days=400)

ROWS: Final[dict[str, Call]] = {
    "create_session": lambda db, _: db.create_session("talk", "cli", model="m", parent_session_id="over"),
    "ensure_session": lambda db, _: db.ensure_session("new"),
    "get_session": lambda db, _: db.get_session("talk"),
    "end_session": lambda db, _: db.end_session("talk", "done"),
    "reopen_session": lambda db, _: db.reopen_session("over"),
    "update_system_prompt": lambda db, _: db.update_system_prompt("talk", "p"),
    "note_system_prompt": lambda db, _: db.note_system_prompt("talk", "p"),
    "update_session_model": lambda db, _: db.update_session_model("talk", "m", {"a": 1}),
    "set_session_pinned": lambda db, _: db.set_session_pinned("talk"),
    "message_count": lambda db, _: db.message_count("talk"),
    "session_count": lambda db, _: db.session_count(scope=Scope.operator()),
}
METADATA: Final[dict[str, Call]] = {
    "get_meta": lambda db, _: db.get_meta("k"),
    "set_meta": lambda db, _: db.set_meta("k", "v"),
}
TRANSCRIPTS: Final[dict[str, Call]] = {
    "append_message": lambda db, _: db.append_message("talk", "user", "x"),
    "append_messages": lambda db, _: db.append_messages("talk", SUMMARY),
    "get_messages": lambda db, _: db.get_messages("talk"),
    "get_messages_as_conversation": lambda db, _: db.get_messages_as_conversation(
        "talk", include_ancestors=True
    ),
    "get_messages_around": lambda db, ids: db.get_messages_around("talk", ids[1]),
    "get_anchored_view": lambda db, ids: db.get_anchored_view("talk", ids[1]),
    "has_platform_message_id": lambda db, _: db.has_platform_message_id("talk", "1"),
    "list_recent_user_messages": lambda db, _: db.list_recent_user_messages("talk"),
    "rewind_session": lambda db, _: db.rewind_session("talk"),
    "rewind_to_message": lambda db, ids: db.rewind_to_message("talk", ids[0]),
    "restore_rewound": lambda db, _: db.restore_rewound("talk"),
    "replace_messages": lambda db, _: db.replace_messages("talk", SUMMARY),
    "archive_and_compact": lambda db, _: db.archive_and_compact("talk", SUMMARY),
    "clear_messages": lambda db, _: db.clear_messages("talk"),
    "edit_message": lambda db, _: db.edit_message("talk", "1", "edited"),
    "retract_message": lambda db, _: db.retract_message("talk", "1"),
    "get_message_versions": lambda db, ids: db.get_message_versions("talk", ids[0]),
}
GROUPS: Final[dict[type, dict[str, Call]]] = {
    SessionRowMethods: ROWS,
    MetadataMethods: METADATA,
    TranscriptMethods: TRANSCRIPTS,
    LineageMethods: LINEAGE,
    TitleMethods: TITLES,
    ListingMethods: LISTING,
    UsageMethods: USAGE,
    SearchMethods: SEARCH,
    RetentionMethods: RETENTION,
}
CALLS: Final = {name: call for calls in GROUPS.values() for name, call in calls.items()}
TESTED_ELSEWHERE: Final = {ErasureMethods, TransferMethods}
"""As calls of a store, and in `test_transfer.py`."""
TABLES: Final = ("sessions", "totals", "messages", "message_versions", "usage_events")
IN_STEPS: Final = RETENTION.keys()
"""What they have done stands if a later step fails; called again, they do the rest."""
BY_ITSELF: Final = {"catch_up_search_index", "check_search_index", "rebuild_search_index", "insights"}
"""Their statements are run by a duty, or on a view of their own."""
FROM_MEMORY: Final = {"search_stems"}
"""On SQLite these ask the database nothing."""
by_group: Final = pytest.mark.parametrize("calls", GROUPS.values(), ids=[one.__name__ for one in GROUPS])


@pytest.mark.parametrize("methods", GROUPS, ids=lambda methods: methods.__name__)
def test_every_method_is_called_here(methods: type):
    public = {
        name
        for name, method in vars(methods).items()
        if inspect.iscoroutinefunction(method) and not name.startswith("_")
    }
    assert set(GROUPS[methods]) == public - FROM_MEMORY


def test_no_class_of_methods_is_left_out():
    known = GROUPS.keys() | TESTED_ELSEWHERE
    assert known == {one for one in SessionDB.__mro__ if one.__module__.startswith(METHODS)}


class ItsOwn(FaultyDriver):
    """Counts the statements of one task only: duties run statements as well."""

    task: asyncio.Task[object] | None = None

    async def write(self, transaction: TransactionFactory[T]) -> T:
        if asyncio.current_task() is self.task:
            return await super().write(transaction)
        return await SqliteEngine.write(self, transaction)

    async def read(self, transaction: TransactionFactory[T]) -> T:
        if asyncio.current_task() is self.task:
            return await super().read(transaction)
        return await SqliteEngine.read(self, transaction)


@pytest.fixture
def driver(tmp_path: Path) -> ItsOwn:
    return ItsOwn(tmp_path / "sessions.db")


@pytest.fixture
async def db(tmp_path: Path, driver: ItsOwn) -> AsyncIterator[SessionDB]:
    async with SessionDB(driver, SteppedClock(START), wait=0) as opened:
        yield opened


async def set_the_stage(db: SessionDB) -> list[int]:
    """A session with three turns, of which the last was taken back, and one that is over."""
    await db.ensure_session("over", "cli")
    await db.end_session("over", "done")
    await db.ensure_session("talk", "cli")
    await db.clear_messages("talk")
    said = [
        Message(("user", "assistant")[at % 2], str(at), platform_message_id=str(at + 1)) for at in range(6)
    ]
    ids = await db.append_messages("talk", said)
    await db.rewind_session("talk")
    await db.set_session_title("talk", "Talk")
    await db.record_usage("talk", "once", input_tokens=2)
    await db.delete_sessions(["rest", "whole", "branch", "doomed"])
    await db.create_session("whole", "cli")
    await db.append_messages("whole", SUMMARY)
    await db.create_session("doomed", "cli", started_at=LONG_AGO)
    await db.append_messages("doomed", [Message("user", str(at), sent_at=LONG_AGO) for at in range(5)])
    return ids


def stored(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a call may change."""
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        check_database(connection)
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}  # noqa: S608


@by_group
async def test_a_statement_that_fails_is_a_typed_error_and_changes_nothing(
    db: SessionDB, driver: ItsOwn, tmp_path: Path, calls: dict[str, Call], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remove, "PIECE", 2)  # so that a session is removed in more than one step
    driver.task = asyncio.current_task()
    kinds = itertools.cycle(FAULTS)
    for name, call in calls.items():
        for nth in itertools.count(1):
            ids = await set_the_stage(db)
            before = stored(tmp_path)
            kind = next(kinds)
            driver.arm(nth, fault(kind))
            try:
                await call(db, ids)
            except StorageError as error:
                assert type(error) is FAULTS[kind][2], name  # noqa: PT017 -- without an error it is over
            else:
                assert not driver.fired, f"{name} swallowed a failure"
                driver.arm(0, fault(kind))
                stored(tmp_path)
                assert nth > 1 or name in BY_ITSELF, name
                break
            driver.arm(0, fault(kind))
            if name not in IN_STEPS:
                assert stored(tmp_path) == before, name
                continue
            await call(db, ids)
            left = stored(tmp_path)
            assert not {row[1] for row in left["messages"]} - {row[0] for row in left["sessions"]}
            assert {"talk", "whole"} <= {row[1] for row in left["messages"]}


@by_group
@pytest.mark.parametrize("later", [False, True], ids=["at_once", "a_turn_later"])
async def test_a_cancelled_call_leaves_nothing_behind(
    db: SessionDB, tmp_path: Path, later: bool, calls: dict[str, Call]
):
    for name, call in calls.items():
        for at in itertools.count(1):
            ids = await set_the_stage(db)
            suspensions = Suspensions(at, lambda: cancel_this_task(later=later))
            task = asyncio.create_task(run(suspensions.watch(call(db, ids))))
            await asyncio.wait({task})
            if not suspensions.reached:
                task.result()
                break
            with suppress(asyncio.CancelledError, GatewaySessionsError):
                task.result()
            await db.append_message("talk", "user", "next")
            stored(tmp_path)
        assert at > 1, f"{name} never waited"
    nothing_is_held(tmp_path)


async def test_what_cannot_be_removed_at_once_is_an_error_and_goes_with_the_next_call(
    db: SessionDB, driver: ItsOwn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remove, "PIECE", 2)
    driver.task = asyncio.current_task()
    await set_the_stage(db)
    plain = remove.remove_leftover_messages
    monkeypatch.setattr(remove, "remove_leftover_messages", lambda *_: _failing())
    with pytest.raises(StorageError):
        await db.delete_session("doomed")
    assert await db.get_session("doomed") is None
    assert [row for row in stored(tmp_path)["messages"] if row[1] == "doomed"]
    monkeypatch.setattr(remove, "remove_leftover_messages", plain)
    assert not await db.delete_session("doomed")
    assert not [row for row in stored(tmp_path)["messages"] if row[1] == "doomed"]


def _failing() -> Transaction[int]:
    raise fault("full")
    yield
