"""What takes long tells how far it is, from the first step to the last, and on the loop."""

import shutil
import threading
from pathlib import Path

import pytest

from gateway_sessions import SessionDB, SessionStore
from gateway_sessions.operator import WorkProgress, check_store, connect, repair_store
from gateway_sessions.storage.transactions.upkeep.unreadable_rows import TABLES
from gateway_sessions.testing import FakeClock
from tests.integration.repair.test_repair import home, spoil, talked_in

__all__ = ["home", "talked_in"]  # fixtures


class Watcher:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[WorkProgress] = []
        self._thread = threading.get_ident()

    def __call__(self, one: WorkProgress) -> None:
        assert threading.get_ident() == self._thread
        self.told.append(one)

    @property
    def doing(self) -> list[str]:
        """What was done, one after the other."""
        return [
            one.doing for at, one in enumerate(self.told) if not at or self.told[at - 1].doing != one.doing
        ]


async def test_a_check_tells_of_all_that_it_compares(home: Path):
    watcher = Watcher()
    await check_store(home, progress=watcher)
    tables = [f"Reading {table}" for table in ("meta", *TABLES)]
    before, behind = (
        ["Reading the file", "Reading all texts"],
        ["Comparing the tables", "Asking the search index"],
    )
    assert watcher.doing == [*before, *tables, *behind]
    assert [one.done for one in watcher.told] == [*range(len(watcher.told))]
    assert {one.total for one in watcher.told} == {len(watcher.told)}


async def test_a_repair_tells_which_table_it_saves(home: Path):
    spoil(home, b"message 2", skip=3)
    watcher = Watcher()
    await repair_store(home, clock=FakeClock(), progress=watcher)
    assert watcher.doing[0] == "Reading the file"
    assert "Saving table messages" in watcher.doing
    assert watcher.doing[-1] == "Making the tables agree"


@pytest.fixture
async def db(tmp_path: Path, fake_clock: FakeClock):
    async with SessionDB.open(tmp_path / "sessions.db", clock=fake_clock) as db:
        for number in range(50):
            await db.create_session(f"s{number}", "cli", user_id="ann")
            await db.append_message(f"s{number}", "user", "hello")
        yield db


async def test_pruning_counts_what_is_gone(db: SessionDB, fake_clock: FakeClock):
    fake_clock.step(days=100)
    watcher = Watcher()
    await db.prune_sessions(unended=True, progress=watcher)
    assert watcher.doing == ["Removing sessions"]
    assert [one.done for one in watcher.told] == [0, 20, 40]
    assert {one.total for one in watcher.told} == {50}


async def test_an_erasure_tells_of_each_of_its_steps(db: SessionDB):
    await db.back_up()
    watcher = Watcher()
    await db.erase("main:cli:user:ann", progress=watcher)
    assert watcher.doing == [
        "Removing sessions",
        "Removing copies",
        "Writing the file anew",
        "Taking a new copy",
    ]
    assert max(one.done for one in watcher.told) == 50


async def test_a_client_passes_it_on_where_nobody_owns_the_store(home: Path, tmp_path: Path):
    watcher = Watcher()
    async with connect(shutil.copytree(home, tmp_path / "copy")) as seat:
        receipt = await seat.do("erase", subject="main:cli:user:nobody", progress=watcher)
    assert receipt.owner == "main:cli:user:nobody"
    assert "Writing the file anew" in watcher.doing


async def test_a_client_beside_an_owner_gets_the_same_answer_untold(tmp_path: Path):
    watcher = Watcher()
    async with SessionStore.open(tmp_path / "store"), connect(tmp_path / "store") as seat:
        receipt = await seat.do("erase", subject="main:cli:user:nobody", progress=watcher)
    assert (receipt.owner, watcher.told) == ("main:cli:user:nobody", [])
