"""What was sent before an erasure does not come back, by whichever way messages get into a store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway_sessions import Scope, SessionDB, SessionSource
from gateway_sessions.errors import SentBeforeErasureError
from gateway_sessions.ports import TransactionFactory
from gateway_sessions.testing import FakeClock
from tests.integration.transfer.hermes import hermes_home
from tests.unit.runtime.store_fixtures import open_store

PERSON = "main:cli:user:alice"
EVERYTHING = Scope.operator()


@pytest.fixture
async def db(tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[SessionDB]:
    path = tmp_path / "sessions.db"
    async with SessionDB.open(path, clock=fake_clock, survives_power_cut=False) as opened:
        yield opened


def late(sent: datetime) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "late", "timestamp": sent.timestamp()}]


WAYS: dict[str, Callable[[SessionDB, datetime], Awaitable[object]]] = {
    "append_message": lambda db, sent: db.append_message("new", "user", "late", timestamp=sent),
    "append_messages": lambda db, sent: db.append_messages("new", late(sent)),
    "replace_messages": lambda db, sent: db.replace_messages("new", late(sent)),
    "archive_and_compact": lambda db, sent: db.archive_and_compact("new", late(sent)),
    "split_session": lambda db, sent: db.split_session("new", "newer", late(sent)),
    "create_session": lambda db, sent: db.create_session("x", "cli", user_id="alice", started_at=sent),
}


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_that_was_sent_before_an_erasure_comes_in(
    db: SessionDB, fake_clock: FakeClock, way: str
):
    sent = fake_clock.now()
    fake_clock.step(seconds=1)
    await db.erase(PERSON)
    fake_clock.step(seconds=1)
    await db.create_session("new", "cli", user_id="alice")
    await db.append_message("new", "user", "back")
    before = await db.export_session("new", scope=EVERYTHING)
    with pytest.raises(SentBeforeErasureError):
        await WAYS[way](db, sent)
    assert await db.export_session("new", scope=EVERYTHING) == before
    assert await db.session_count(scope=EVERYTHING) == 1
    assert await db.append_messages("new", late(fake_clock.now()))


async def test_a_file_cannot_bring_early_messages_in_a_late_session(db: SessionDB, fake_clock: FakeClock):
    sent = fake_clock.now()
    fake_clock.step(seconds=1)
    await db.create_session("old", "cli", user_id="alice")
    await db.append_messages("old", late(sent))
    exported = await db.export_session("old", scope=EVERYTHING)
    await db.erase(PERSON)
    later = (fake_clock.now() + timedelta(seconds=1)).isoformat()
    exported |= {"started_at": later, "last_active": later}
    report = await db.import_sessions([exported])
    assert (report.imported, len(report.clashes)) == (0, 1)


async def test_a_clock_that_is_set_back_does_not_shut_a_person_out(db: SessionDB, fake_clock: FakeClock):
    await db.erase(PERSON)
    fake_clock.step(seconds=-3600)
    await db.create_session("new", "cli", user_id="alice")
    await db.append_message("new", "user", "hello")
    assert await db.split_session("new", "newer", [{"role": "user", "content": "a summary"}]) == "newer"
    assert await db.branch_session("newer", "aside") == "aside"


DESCENTS: dict[str, Callable[[SessionDB], Awaitable[object]]] = {
    "split_session": lambda db: db.split_session("old", "new", [{"role": "user", "content": "a summary"}]),
    "branch_session": lambda db: db.branch_session("old", "new"),
}


@pytest.mark.parametrize("way", DESCENTS)
async def test_nothing_descends_from_a_session_that_is_being_erased(
    db: SessionDB, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch, way: str
):
    await db.create_session("old", "cli", user_id="alice")
    await db.append_message("old", "user", "my secret")
    plain, caller, refused = SessionDB.write, asyncio.current_task(), list[Exception]()

    async def interrupted(db: SessionDB, transaction: TransactionFactory[Any]) -> Any:
        outcome = await plain(db, transaction)
        if asyncio.current_task() is caller and not refused:
            refused.append(ValueError())
            fake_clock.step(seconds=1)
            with pytest.raises(SentBeforeErasureError) as raised:
                await DESCENTS[way](db)
            refused.append(raised.value)
        return outcome

    monkeypatch.setattr(SessionDB, "write", interrupted)
    await db.erase(PERSON)
    assert len(refused) == 2
    assert await db.session_count(scope=EVERYTHING) == 0


async def test_an_import_brings_no_lane_back_of_who_was_erased_since(tmp_path: Path):
    hermes = await asyncio.to_thread(hermes_home, tmp_path / "hermes")
    alice = SessionSource(platform="telegram", chat_id="4711", user_id="4711")
    async with open_store(
        tmp_path / "store", clock=FakeClock(start=datetime(2026, 6, 1, tzinfo=UTC))
    ) as store:
        everybody = await store.import_hermes(hermes, dry_run=True)
        receipt = await store.erase(alice)
        report = await store.import_hermes(hermes)
        assert (report.lanes, everybody.lanes) == (1, 3), "hers are a chat, and a place in a group"
        lanes = await store.list_sessions(scope=EVERYTHING)
        assert lanes
        assert receipt.owner not in {one.owner for one in lanes}
        assert await store.db.session_count(scope=Scope(owners=frozenset({receipt.owner}))) == 0
