"""A backup is a copy that was read back; there are never more than are wanted."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from gateway_sessions import SessionStore, StorageError
from gateway_sessions.errors import StorageCorruptError
from gateway_sessions.storage.engines.sqlite.backup import back_up, backups_in, fault_of_backup, keep_newest
from gateway_sessions.storage.files.threads import in_thread
from gateway_sessions.testing import FakeClock
from tests.crash.kills.store_workload import key, source
from tests.raw_sql import execute_sql

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    async with SessionStore.open(tmp_path / "home", clock=FakeClock()) as store:
        await store.get_or_create_session(source("a"))
    return tmp_path / "home"


async def test_a_copy_is_taken_while_the_store_is_in_use(home: Path):
    async with SessionStore.open(home, clock=FakeClock()) as store:
        await store.get_or_create_session(source("b"))
        copy = await in_thread(partial(back_up, home / "sessions.db", home / "backups", NOON))
        await store.get_or_create_session(source("c"))
    assert copy.name == "sessions-20260301T120000Z.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700
    found = {row[0] for row in execute_sql(copy, "SELECT session_key FROM entries")}
    assert found == {key("a"), key("b")}


def test_only_the_newest_are_kept(home: Path):
    folder = home / "backups"
    copies = [back_up(home / "sessions.db", folder, NOON + timedelta(days=day)) for day in range(4)]
    (folder / "notes.txt").write_text("mine")
    keep_newest(folder, 2)
    assert backups_in(folder) == copies[:1:-1]
    assert (folder / "notes.txt").exists()


def test_where_nothing_was_copied_there_are_no_backups(tmp_path: Path):
    assert backups_in(tmp_path / "backups") == []


def test_a_damaged_database_makes_no_backup(home: Path):
    database = home / "sessions.db"
    database.write_bytes(bytes(200) + database.read_bytes()[200:])
    with pytest.raises(StorageCorruptError):
        back_up(database, home / "backups", NOON)
    assert list((home / "backups").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(home: Path):
    (home / "backups").mkdir(mode=0o700)
    (home / "backups" / "sessions-20260301T120000Z.tmp").mkdir()
    with pytest.raises(StorageError, match="backup"):
        back_up(home / "sessions.db", home / "backups", NOON)


@pytest.mark.parametrize("damage", ["foreign", "zeroed", "torn"])
def test_a_copy_that_is_not_whole_is_known(home: Path, damage: str):
    copy = back_up(home / "sessions.db", home / "backups", NOON)
    assert fault_of_backup(copy) is None
    raw = copy.read_bytes()
    if damage == "foreign":
        copy.unlink()
        execute_sql(copy, "CREATE TABLE theirs (x)")
    else:
        copy.write_bytes(bytes(4096) + raw[4096:] if damage == "zeroed" else raw[: len(raw) // 2])
    assert fault_of_backup(copy) is not None
