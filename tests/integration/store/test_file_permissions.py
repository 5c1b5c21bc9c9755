"""Every file of a store is private and has the right owner from its first instant, whoever makes it."""

import asyncio
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway_sessions import Config, Scope, SessionDB, SessionSource, SessionStore
from gateway_sessions.errors import GatewaySessionsError, UnsupportedStorageError
from gateway_sessions.operator import ErasureReceipt
from gateway_sessions.runtime.operator.health import examine_store
from gateway_sessions.storage.maintenance.repair import check_store, repair_store
from tests.integration.store.file_watch import FileWatch, watching_files
from tests.raw_sql import execute_sql

SOMEBODY = 12345
IS_ROOT = os.geteuid() == 0
OWNERS = [os.geteuid(), *([SOMEBODY] if IS_ROOT else [])]
only_root = pytest.mark.skipif(not IS_ROOT, reason="only root can take another user's part")
SET_AGAIN = ("-journal", "-wal", "-shm", ".lock")
"""Of these, SQLite and the lock's library set owner and mode once more, to what they are."""
SECRET = "what was said in confidence"


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Generator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture(params=OWNERS, ids=lambda user: "own" if user == os.geteuid() else "another's")
def ground(request: pytest.FixtureRequest) -> Generator[Path]:
    """A directory of that user, in which stores are made; its path is short enough for a socket's."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "ground"
        place.mkdir(mode=0o755)
        place.chmod(0o755)
        if request.param != os.geteuid():
            os.chown(place, request.param, request.param)
        yield place


async def live(home: Path) -> None:
    """Do in a store whatever makes a file."""
    source = SessionSource(platform="telegram", chat_id="1", user_id="1")
    async with SessionStore.open(home, Config()) as store:
        entry = await store.get_or_create_session(source)
        await store.append_to_transcript(entry.session_id, {"role": "user", "content": SECRET})
        await store.flush()
        await store.append_to_transcript(entry.session_id, {"role": "user", "content": SECRET})
        await store.suspend_recently_active()
        await store.db.search_messages("confidence", scope=Scope.operator())
        await store.db.back_up()
        await store.db.write_export(home / "export.jsonl", scope=Scope.operator())
        await store.flush()


def assert_all_well_born(witness: FileWatch, owner: int) -> None:
    badly = [
        birth
        for birth in witness.births
        if birth.mode not in (0o600, 0o700)
        or birth.owner != owner
        or (birth.changed and not birth.name.endswith(SET_AGAIN))
    ]
    assert badly == []
    assert {
        "sessions.db", "sessions.db-wal", "sessions.db-shm", "search.db", "search.db-wal", "search.db-shm",
        "sessions.json", "sessions.json.bak", "sessions.owner.json", "sessions.lock", "sessions.sock",
        "export.jsonl", ".clean_shutdown", "backups",
    } <= witness.names  # fmt: skip


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
def test_every_file_is_private_from_its_first_instant(ground: Path, exists: bool):
    home = ground if exists else ground / "deep" / "state"
    with watching_files(ground) as witness:
        asyncio.run(live(home))
        asyncio.run(live(home))
    assert_all_well_born(witness, ground.stat().st_uid)
    for path in [*home.rglob("*"), *([] if exists else [home, home.parent])]:
        assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        assert path.lstat().st_uid == ground.stat().st_uid, path


@pytest.mark.usefixtures("umask")
def test_a_rebuilt_database_is_private_from_its_first_instant(ground: Path):
    asyncio.run(live(ground))
    database = ground / "sessions.db"
    content = bytearray(database.read_bytes())
    content[4096 * 3 : 4096 * 4] = os.urandom(4096)
    database.write_bytes(content)
    with watching_files(ground) as witness:
        report = asyncio.run(repair_store(ground))
    assert report.quarantine
    assert [one for one in witness.births if one.mode not in (0o600, 0o700)] == []
    assert {one.owner for one in witness.births} == {ground.stat().st_uid}


@pytest.mark.usefixtures("umask")
def test_what_an_earlier_version_left_open_is_closed_before_anything_is_written(ground: Path):
    asyncio.run(live(ground))
    for path in ground.iterdir():
        if path.is_file():
            path.chmod(0o644)
            os.chown(path, os.geteuid(), os.getegid())
    with watching_files(ground) as witness:
        asyncio.run(live(ground))
    assert [one for one in witness.births if one.mode not in (0o600, 0o700)] == []
    assert {(path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in ground.glob("*.db")} == {
        (ground.stat().st_uid, 0o600)
    }


@only_root
def test_looking_as_root_leaves_nothing_of_roots(ground: Path):
    asyncio.run(live(ground))
    for sidecar in ground.glob("*.db-*"):
        sidecar.unlink()

    async def look() -> None:
        async with SessionDB.open_reader(ground / "sessions.db") as db:
            await db.search_messages("confidence", scope=Scope.operator())
        await check_store(ground)

    with watching_files(ground) as witness:
        asyncio.run(look())
    assert {one.owner for one in witness.births} <= {ground.stat().st_uid}


LINKED = [
    "sessions.json", "sessions.json.bak", "sessions.owner.json", ".clean_shutdown", "restart_counts.json",
    "search.db", "sessions.sock", "sessions.sock.path", "sessions.lock", "sessions.db", "sessions.db-wal",
    "sessions.db-shm", "search.db-wal", "search.db-shm", "backups", "quarantine",
]  # fmt: skip


@pytest.mark.parametrize("dangling", [False, True], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("name", LINKED)
def test_nothing_is_written_through_a_link(ground: Path, tmp_path: Path, name: str, dangling: bool):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    victim = elsewhere / "victim"
    if not dangling:
        victim.write_text("precious")
        victim.chmod(0o644)
    (ground / name).symlink_to(victim)
    with suppress(GatewaySessionsError):
        asyncio.run(live(ground))
    if dangling and name == "sessions.db" and ground.stat().st_uid == os.geteuid():
        return  # a link of one's own to a database somewhere else
    assert [path.name for path in elsewhere.iterdir()] == ([] if dangling else ["victim"])
    if not dangling:
        assert victim.read_text() == "precious"
        assert stat.S_IMODE(victim.stat().st_mode) == 0o644


@only_root
def test_root_does_not_open_a_database_to_which_another_user_has_linked(tmp_path: Path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for place in (theirs, ours):
        place.mkdir()
    asyncio.run(live(ours))
    os.chown(theirs, SOMEBODY, SOMEBODY)
    (theirs / "sessions.db").symlink_to(ours / "sessions.db")
    with pytest.raises(UnsupportedStorageError, match="another user"):
        asyncio.run(live(theirs))


@only_root
@pytest.mark.parametrize("name", ["backups", "exports", "quarantine"])
def test_root_removes_nothing_behind_a_link_of_another_user(theirs: Path, tmp_path: Path, name: str):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".half.01234567.tmp").write_text("precious")
    shutil.rmtree(theirs / name, ignore_errors=True)
    (theirs / name).symlink_to(tmp_path)
    os.lchown(theirs / name, SOMEBODY, SOMEBODY)

    async def forget() -> ErasureReceipt:
        async with SessionStore.open(theirs, Config()) as store:
            return await store.erase("main:telegram:user:nobody")

    receipt = asyncio.run(forget())
    assert (tmp_path / "precious").read_text() == "precious"
    assert len([*tmp_path.iterdir()]) == 2
    assert str(theirs / name) in {one.what for one in receipt.kept}


def test_the_database_of_another_program_keeps_its_mode(tmp_path: Path):
    other = tmp_path / "other.db"
    execute_sql(other, "CREATE TABLE theirs (value)")
    other.chmod(0o644)

    async def open_it() -> None:
        async with SessionDB.open(other):
            pass

    with pytest.raises(GatewaySessionsError):
        asyncio.run(open_it())
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert [path.name for path in tmp_path.iterdir() if "other" in path.name] == ["other.db"]


def as_somebody(act: Callable[[], Awaitable[str]]) -> str:
    """What *act* says in a process of another user."""
    datetime.strptime("2026", "%Y").astimezone()  # loads a module that they may not reach
    out, into = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover -- another process
        told = "it broke"
        try:
            os.setgroups([])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)
            told = asyncio.run(act())
        except Exception as error:  # noqa: BLE001 -- handed on to the test
            told = f"{type(error).__name__}: {error}"
        finally:
            os.write(into, told.encode())
            os._exit(0)
    os.close(into)
    with os.fdopen(out) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told


@pytest.fixture
def theirs() -> Generator[Path]:
    """A store of another user, who can reach it."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        home = Path(directory) / "state"
        home.mkdir()
        os.chown(home, SOMEBODY, SOMEBODY)
        asyncio.run(live(home))
        yield home


@only_root
@pytest.mark.parametrize("name", ["sessions.db", "sessions.db-wal", "search.db", "search.db-wal"])
def test_doctor_names_the_file_that_belongs_to_somebody_else(theirs: Path, name: str):
    (theirs / name).touch(0o600)
    os.chown(theirs / name, 0, 0)

    async def examined() -> str:
        found = [one async for one in examine_store(theirs, Config(), thorough=False)]
        return "\n".join(f"{one.what} {one.health}: {one.told}; {one.what_next}" for one in found)

    told = as_somebody(examined)
    assert f"Files bad: {theirs / name}: it belongs to root, not to {SOMEBODY}; " in told
    assert f"chown {SOMEBODY} {theirs / name}" in told


@only_root
@pytest.mark.parametrize("name", ["sessions.db", "sessions.db-wal"])
def test_a_database_that_belongs_to_somebody_else_is_named(theirs: Path, name: str):
    (theirs / name).touch(0o600)
    os.chown(theirs / name, 0, 0)

    async def opened() -> str:
        await live(theirs)
        return "opened"

    assert f"{theirs / name}: cannot be used by this user: it belongs to root" in as_somebody(opened)


@only_root
def test_an_index_that_belongs_to_somebody_else_is_made_anew_by_the_owner_of_the_directory(theirs: Path):
    for path in theirs.glob("search.db*"):
        os.chown(path, 0, 0)

    async def searched() -> str:
        async with SessionStore.open(theirs, Config()) as store:
            await store.db.search_messages("confidence", scope=Scope.operator())
            return str(await store.db.check_search_index())

    assert "ready" in as_somebody(searched)
    assert (theirs / "search.db").stat().st_uid == SOMEBODY
