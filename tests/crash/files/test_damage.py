"""Files that somebody or something has damaged: a typed error, or the sessions as they were."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import Config, GatewaySessionsError, Scope, SessionStore
from gateway_sessions.errors import StorageCorruptError
from tests.crash.kills.store_workload import START, key, source
from tests.crash.stores import SteppedClock
from tests.raw_sql import execute_sql

CONFIG = Config(timezone="UTC")
LANES = 30
OPERATOR = Scope.operator()


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was closed in order."""

    async def make(home: Path) -> None:
        async with SessionStore.open(home, CONFIG, clock=SteppedClock(START)) as store:
            await asyncio.gather(*[store.get_or_create_session(source(f"lane-{n:02}")) for n in range(LANES)])
            await store.reset_session(key("lane-00"))

    home = tmp_path_factory.mktemp("healthy") / "home"
    asyncio.run(make(home))
    return home


@pytest.fixture
def home(healthy: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(healthy, tmp_path / "home")


async def sessions(home: Path) -> dict[str, str]:
    async with SessionStore.open(home, CONFIG, clock=SteppedClock(START)) as store:
        found = await store.list_sessions(scope=OPERATOR)
        for entry in found[:3]:
            await store.get_or_create_session(entry.origin or source("none"))
        return {entry.session_key: entry.session_id for entry in found}


def flip(path: Path, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


async def flip_bits(home: Path, name: str, times: int) -> list[dict[str, str] | GatewaySessionsError]:
    """Open copies of a store with one bit of a file flipped; what each of them says."""
    outcomes: list[dict[str, str] | GatewaySessionsError] = []
    for seed in range(times):
        copy = home.with_name(f"copy-{seed}")
        shutil.copytree(home, copy)
        flip(copy / name, random.Random(seed))
        try:
            outcomes.append(await sessions(copy))
        except GatewaySessionsError as error:
            outcomes.append(error)
        shutil.rmtree(copy)
    return outcomes


@pytest.mark.parametrize("times", [8, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
async def test_a_flipped_bit_in_the_index_changes_no_session(home: Path, times: int):
    before = await sessions(home)
    assert all(outcome == before for outcome in await flip_bits(home, "sessions.json", times))


@pytest.mark.parametrize("times", [8, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
async def test_a_flipped_bit_in_the_database_is_never_an_error_that_nobody_expects(home: Path, times: int):
    outcomes = await flip_bits(home, "sessions.db", times)
    assert any(isinstance(outcome, dict) for outcome in outcomes)
    assert all(outcome for outcome in outcomes), "never an empty store"


async def test_a_database_without_its_header_is_refused_and_kept(home: Path):
    database = home / "sessions.db"
    database.write_bytes(bytes(100) + database.read_bytes()[100:])
    damaged = database.read_bytes()
    with pytest.raises(StorageCorruptError):
        await sessions(home)
    assert database.read_bytes() == damaged


async def test_an_empty_database_beside_an_index_takes_the_index_in(home: Path):
    before = await sessions(home)
    (home / "sessions.db").write_bytes(b"")
    assert await sessions(home) == before


async def test_without_the_database_the_index_brings_every_session_back(home: Path):
    before = await sessions(home)
    (home / "sessions.db").unlink()
    assert await sessions(home) == before


@pytest.mark.parametrize(
    "name", ["sessions.json", "sessions.json.bak", ".clean_shutdown", "restart_counts.json"]
)
async def test_without_any_one_of_the_other_files_nothing_is_lost(home: Path, name: str):
    before = await sessions(home)
    (home / name).unlink(missing_ok=True)
    assert await sessions(home) == before


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
async def test_a_torn_index_changes_no_session(home: Path, part: float):
    before = await sessions(home)
    raw = (home / "sessions.json").read_bytes()
    (home / "sessions.json").write_bytes(raw[: int(len(raw) * part)])
    assert await sessions(home) == before
    assert (home / "sessions.json").read_bytes() == raw or (home / "quarantine").exists()


async def test_an_entry_that_no_program_wrote_is_told_and_stops_no_other_lane(home: Path):
    with closing(sqlite3.connect(home / "sessions.db")) as connection:
        connection.execute("UPDATE entries SET state = 'aCtive' WHERE session_key = ?", (key("lane-07"),))
        connection.execute("UPDATE entries SET record = '{' WHERE session_key = ?", (key("lane-08"),))
        connection.commit()
    async with SessionStore.open(home, CONFIG, clock=SteppedClock(START)) as store:
        for lane in ("lane-07", "lane-08"):
            with pytest.raises(StorageCorruptError, match=lane):
                await store.get_or_create_session(source(lane))
            with pytest.raises(StorageCorruptError, match=lane):
                await store.get_session(key(lane))
        assert await store.get_or_create_session(source("lane-09"))
    assert execute_sql(home / "sessions.db", "SELECT count(*) FROM entries")[0] == (LANES,)
