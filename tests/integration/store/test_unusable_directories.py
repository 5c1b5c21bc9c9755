"""Where a store cannot live it says so, in words that help, and leaves what it found."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway_sessions import Config, SessionSource, SessionStore, StorageError
from gateway_sessions.errors import (
    ForeignDatabaseError,
    StorageCorruptError,
    StorageUnavailableError,
    UnsupportedStorageError,
)
from tests.programs import WarmPython
from tests.raw_sql import execute_sql

SOURCE = SessionSource(platform="telegram", chat_id="1", user_id="1")
NOBODY = 65534


async def opened(home: Path) -> None:
    async with SessionStore.open(home, Config(timezone="UTC")) as store:
        await store.get_or_create_session(SOURCE)


def foreign_database(path: Path) -> None:
    """One like Hermes' state.db: tables, and no application id."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, title TEXT)")
        connection.execute("INSERT INTO sessions VALUES ('s', 'theirs')")
        connection.commit()


def marked_database(path: Path) -> None:
    execute_sql(path, "PRAGMA application_id = 252006674")


def text_file(path: Path) -> None:
    path.write_text("This is a shopping list, and a long one.\n" * 200)


def cut_database(path: Path) -> None:
    asyncio.run(opened(path.parent))
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("lay_out", "expected", "hint"),
    [
        (foreign_database, ForeignDatabaseError, "choose another place"),
        (marked_database, ForeignDatabaseError, "252006674"),
        (text_file, StorageCorruptError, "left as it is"),
        (cut_database, StorageCorruptError, "left as it is"),
    ],
)
def test_what_is_no_store_of_ours_is_refused_and_left_as_it_was(
    tmp_path: Path, lay_out: Callable[[Path], None], expected: type[StorageError], hint: str
):
    database = tmp_path / "sessions.db"
    lay_out(database)
    before = database.read_bytes()
    with pytest.raises(expected, match=hint) as refused:
        asyncio.run(opened(tmp_path))
    assert str(database) in str(refused.value)
    assert database.read_bytes() == before


async def test_a_directory_in_the_place_of_the_database_is_refused(tmp_path: Path):
    (tmp_path / "sessions.db").mkdir()
    with pytest.raises(StorageUnavailableError, match=r"sessions\.db"):
        await opened(tmp_path)
    assert (tmp_path / "sessions.db").is_dir()


async def test_a_directory_in_the_place_of_the_index_is_refused(tmp_path: Path):
    (tmp_path / "sessions.json").mkdir()
    with pytest.raises(UnsupportedStorageError, match=r"sessions\.json: is not a regular file"):
        await opened(tmp_path)
    assert (tmp_path / "sessions.json").is_dir()
    (tmp_path / "sessions.json").rmdir()
    await opened(tmp_path)


@pytest.mark.parametrize("name", [".clean_shutdown", "restart_counts.json"])
async def test_a_directory_in_the_place_of_a_file_that_only_informs_stops_nothing(tmp_path: Path, name: str):
    (tmp_path / name).mkdir()
    await opened(tmp_path)
    assert (tmp_path / name).is_dir()


async def test_a_file_in_the_place_of_the_home_is_refused(tmp_path: Path):
    (tmp_path / "home").write_text("")
    with pytest.raises(StorageUnavailableError, match="home"):
        await opened(tmp_path / "home")


async def test_a_home_that_everybody_can_write_is_refused(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    with pytest.raises(UnsupportedStorageError, match="chmod o-w"):
        await opened(home)
    assert list(home.iterdir()) == []


async def test_a_home_is_made_for_its_owner_only(tmp_path: Path):
    mask = os.umask(0)
    try:
        await opened(tmp_path / "deep" / "home")
    finally:
        os.umask(mask)
    assert (tmp_path / "deep" / "home").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "deep" / "home").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


CHILD = """
    import asyncio, ctypes, os, subprocess, sys, tempfile
    from gateway_sessions import SessionSource, SessionStore
    from gateway_sessions.errors import GatewaySessionsError

    async def main(home):
        try:
            async with SessionStore.open(home) as store:
                await store.get_or_create_session(SessionSource(platform="telegram", chat_id="1"))
        except GatewaySessionsError as error:
            print(type(error).__name__, error)
        else:
            print("opened")

    home, user, mount = sys.argv[1:]
    if mount:
        ctypes.CDLL(None).unshare(0x20000)  # what is mounted from here on is there for this process alone
        subprocess.run("mount --make-rprivate / && " + mount, shell=True, check=True)
    if os.geteuid() == 0 and user:
        with tempfile.TemporaryDirectory() as place:
            asyncio.run(main(place))  # imports all there is, which the user without rights may not be able to
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    asyncio.run(main(home))
"""


def child(python: WarmPython, home: Path, *, user: int | str = "", mount: str = "") -> str:
    """What a process says that opens a store there, without the rights of an administrator."""
    ended = python.run(CHILD, home, user, mount)
    return ended.stdout.splitlines()[-1] if ended.stdout else ended.stderr


@pytest.fixture
def shared_home() -> Iterator[Path]:
    """A home that a user without rights can reach; pytest's own directories are closed to others."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        home = Path(directory) / "home"
        home.mkdir()
        yield home
        home.chmod(0o755)


def test_a_home_that_cannot_be_written_is_refused(shared_home: Path, warm_python: WarmPython):
    shared_home.chmod(0o555)
    said = child(warm_python, shared_home, user=NOBODY)
    assert said.startswith("StorageUnavailableError")
    assert "owner and mode" in said
    assert list(shared_home.iterdir()) == []


def test_files_of_somebody_else_are_refused(shared_home: Path, warm_python: WarmPython):
    asyncio.run(opened(shared_home))
    shared_home.chmod(0o1777)
    assert child(warm_python, shared_home, user=NOBODY).startswith("StorageUnavailableError")
    shared_home.chmod(0o700)
    asyncio.run(opened(shared_home))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to give files away")
def test_an_index_that_cannot_be_read_is_told_and_kept(shared_home: Path, warm_python: WarmPython):
    asyncio.run(opened(shared_home))
    (shared_home / "sessions.db").unlink()
    (shared_home / "sessions.lock").unlink()
    os.chown(shared_home, NOBODY, NOBODY)
    before = (shared_home / "sessions.json").read_bytes()
    said = child(warm_python, shared_home, user=NOBODY)
    assert said.startswith("StorageUnavailableError"), said
    assert "sessions.json" in said
    assert (shared_home / "sessions.json").read_bytes() == before


def can_mount() -> bool:
    try:
        return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_mounts = pytest.mark.skipif(
    not can_mount(), reason="needs the right to mount: run as root, with util-linux installed"
)


@needs_mounts
def test_a_read_only_place_is_refused_with_a_typed_error(tmp_path: Path, warm_python: WarmPython):
    asyncio.run(opened(tmp_path))
    before = (tmp_path / "sessions.db").read_bytes()
    said = child(warm_python, tmp_path, mount=f"mount --bind -o ro {tmp_path} {tmp_path}")
    assert said.startswith("StorageUnavailableError"), said
    assert (tmp_path / "sessions.db").read_bytes() == before


@needs_mounts
@pytest.mark.parametrize("kilobytes", [4, 40, 100, 180])
def test_a_full_disk_is_told_as_what_it_is(tmp_path: Path, warm_python: WarmPython, kilobytes: int):
    said = child(warm_python, tmp_path, mount=f"mount -t tmpfs -o size={kilobytes}k none {tmp_path}")
    assert said.startswith(("StorageFullError", "StorageUnavailableError")), said
    assert "no room" in said or "space" in said, said
