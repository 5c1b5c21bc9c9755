"""Which places hold a store safely, and who owns one."""

import asyncio
from pathlib import Path

import pytest

from gateway_sessions.errors import StorageUnavailableError, StoreBusyError, UnsupportedStorageError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.home import describe_owner, network_filesystem, own_home, prepare_home
from gateway_sessions.testing import FakeClock
from gateway_sessions.testing.faults import crash_at
from tests.crash.kills.store_workload import START
from tests.crash.stores import SteppedClock

MOUNTINFO = r"""22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 28 0:30 / /mnt/nas rw,relatime shared:2 - nfs4 nas:/export rw,vers=4.2
31 30 254:2 / /mnt/nas/local rw,relatime - xfs /dev/vdb1 rw
32 28 0:32 / /mnt/with\040space rw - cifs //server/share rw
33 28 0:33 / /host rw - 9p hostshare rw
34 28 0:34 / /vm rw - virtiofs share rw
35 28 0:35 / /ssh rw - fuse.sshfs me@there: rw
36 28 0:36 / /proc/meminfo rw - fuse.lxcfs lxcfs rw
37 28 0:37 / /twice rw - nfs server:/a rw
38 28 254:3 / /twice rw - ext4 /dev/vdc1 rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/state", None),
        ("/mnt/nas", "nfs4"),
        ("/mnt/nas/state", "nfs4"),
        ("/mnt/nasty", None),
        ("/mnt/nas/local/state", None),
        ("/mnt/with space/state", "cifs"),
        ("/host/state", "9p"),
        ("/vm/state", "virtiofs"),
        ("/ssh/state", "fuse.sshfs"),
        ("/proc/meminfo", None),
        ("/twice/state", None),
    ],
)
def test_the_mount_nearest_to_a_path_tells_whether_it_is_on_a_network(path: str, kind: str | None):
    assert network_filesystem(Path(path), MOUNTINFO) == kind


def test_where_no_mounts_can_be_read_nothing_is_refused():
    assert network_filesystem(Path("/home/me"), "") is None


def test_a_home_is_made_with_its_parents_and_may_be_there_already(tmp_path: Path):
    home = tmp_path / "deep" / "home"
    prepare_home(home, allow_network=False)
    prepare_home(home, allow_network=False)
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_home_that_everybody_can_write_is_refused_unless_files_stay_their_owners(tmp_path: Path):
    tmp_path.chmod(0o777)
    with pytest.raises(UnsupportedStorageError, match="chmod o-w"):
        prepare_home(tmp_path, allow_network=False)
    tmp_path.chmod(0o1777)
    prepare_home(tmp_path, allow_network=False)


def test_a_home_that_is_a_file_is_unavailable(tmp_path: Path):
    (tmp_path / "home").touch()
    with pytest.raises(StorageUnavailableError):
        prepare_home(tmp_path / "home", allow_network=False)


async def test_a_home_has_one_owner_who_is_named(tmp_path: Path):
    clock = FakeClock()
    async with own_home(tmp_path, clock):
        assert "process " in await asyncio.to_thread(describe_owner, tmp_path)
        with pytest.raises(StoreBusyError, match=r"since 2026-01-01T00:00:00"):
            async with own_home(tmp_path, clock):
                pass
    async with own_home(tmp_path, clock):
        pass
    assert not (tmp_path / "sessions.owner.json").exists()


async def test_whoever_waits_gets_the_home_when_it_is_free(tmp_path: Path):
    clock = FakeClock()
    async with own_home(tmp_path, clock):
        waiting = asyncio.create_task(own(tmp_path, clock))
        await clock.wait_for_sleepers(1)
    await clock.advance(seconds=1)
    await waiting


async def test_waiting_ends_when_its_time_is_over(tmp_path: Path):
    clock = SteppedClock(START)
    async with own_home(tmp_path, clock):
        with pytest.raises(StoreBusyError):
            await own(tmp_path, clock)


async def own(home: Path, clock: Clock) -> None:
    async with own_home(home, clock, wait=0.5):
        pass


async def test_a_cancellation_while_the_lock_is_taken_gives_it_back(tmp_path: Path):
    clock = FakeClock()
    for_owner = asyncio.create_task(own(tmp_path, clock))
    loop = asyncio.get_running_loop()

    def cancel() -> None:
        loop.call_soon_threadsafe(for_owner.cancel)

    with crash_at("home_owned", action=cancel), pytest.raises(asyncio.CancelledError):
        await for_owner
    async with own_home(tmp_path, clock):
        pass


async def test_what_an_interrupted_owner_left_is_cleared_away(tmp_path: Path):
    (tmp_path / ".sessions.owner.json.abcd1234.tmp").touch()
    async with own_home(tmp_path, FakeClock()):
        assert not list(tmp_path.glob("*.tmp"))
        assert not list(tmp_path.glob(".*.tmp"))
