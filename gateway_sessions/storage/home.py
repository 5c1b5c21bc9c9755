"""The directory of a store: created private, checked for its filesystem, locked by one owner process."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from gateway_sessions._process.failpoints import failpoint
from gateway_sessions.errors import StorageUnavailableError, StoreBusyError, UnsupportedStorageError
from gateway_sessions.ports import Clock
from gateway_sessions.storage.control.client import ask_to_drain
from gateway_sessions.storage.files.atomic_file import remove_temporaries_of, write_atomically
from gateway_sessions.storage.files.private_files import (
    FILE_MODE,
    close_to_other_users,
    make_private_directory,
    make_private_file,
)
from gateway_sessions.storage.files.threads import in_thread

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK_FILE: Final = "sessions.lock"
OWNER_FILE: Final = "sessions.owner.json"
MOUNTS: Final = Path("/proc/self/mountinfo")
REBUILT_SUFFIX: Final = ".rebuilt"
"""The suffix of a database that waits to take the place of a damaged one."""
POLL_SECONDS: Final = 0.05
"""The pause between two tries to take the lock, which no system call waits for with a time limit."""
ASK_SECONDS: Final = 2.0
"""The time limit for telling an owner that another process waits for the store."""
FOLDERS: Final = ("backups", "quarantine")
_OWN_NAME: Final = re.compile(
    r"sessions\.(json|json\.bak|owner\.json|lock|sock\.path|config\.path)|sessions\.db\.v\d+\.bak"
    r"|restart_counts\.json|\.clean_shutdown"
)
_ANY_NAME: Final = re.compile(r".*")
MOUNT_POINT: Final = 4
"""The place of the mount point in a line of mountinfo."""

_NETWORK_TYPES: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "virtiofs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "ocfs2",
        "gfs2",
    }
)


def prepare_home(home: Path, *, allow_network: bool) -> None:
    """Make the directory if need be, for its owner only, and refuse one where data could be lost or read."""
    try:
        make_private_directory(home)
        mode = home.stat().st_mode
    except OSError as error:
        raise StorageUnavailableError(str(home), error.strerror or str(error)) from error
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise UnsupportedStorageError(
            str(home), "can be written by everybody; take that right away (chmod o-w)"
        )
    if not os.access(home, os.W_OK | os.X_OK):
        raise StorageUnavailableError(str(home), "cannot be written by this user; check its owner and mode")
    if allow_network:
        return
    kind = network_filesystem(home.resolve(), _read_mounts())
    if kind is not None:
        raise UnsupportedStorageError(
            str(home),
            f"is on a network filesystem ({kind}), where SQLite can lose or damage data; choose a local "
            "disk, or set sessiondb.allow_network_filesystem if you are sure that only this machine uses it",
        )


def network_filesystem(path: Path, mountinfo: str) -> str | None:
    """Return the type of the filesystem of *path* if it is shared over a network, else None."""
    best, found = -1, ""
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) <= MOUNT_POINT or not right:
            continue
        mount = Path(fields[MOUNT_POINT].encode().decode("unicode_escape"))
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, found = len(mount.parts), right.split()[0]
    networked = found in _NETWORK_TYPES or (found.startswith("fuse.") and found != "fuse.lxcfs")
    return found if networked else None


@asynccontextmanager
async def own_home(home: Path, clock: Clock, *, wait: float = 0.0) -> AsyncGenerator[None]:
    """Own the home until the end of the block; wait for another owner up to *wait* seconds.

    The other owner is told that a process waits, and decides itself when it ends. The lock belongs to an open
    file: it ends with this process, however that ends, and no other process can steal it.
    """
    lock = await in_thread(partial(_home_lock, home))
    waited, asked = 0.0, False
    try:
        while not await in_thread(partial(_try_to_own, lock, home, clock)):
            if waited >= wait:
                raise StoreBusyError(str(home), await in_thread(partial(describe_owner, home)))
            asked = asked or await ask_to_drain(home, seconds=min(wait, ASK_SECONDS))
            await clock.sleep(POLL_SECONDS)
            waited += POLL_SECONDS
        yield
    finally:
        # A cancellation may arrive while the thread takes the lock, so only the lock itself tells.
        if lock.is_locked:
            await in_thread(partial(_release_lock, lock, home))


def refuse_unfinished_repair(database: Path) -> None:
    """Refuse a home in which a repair was cut off: its database may be damaged or gone."""
    rebuilt = database.with_name(f"{database.name}{REBUILT_SUFFIX}")
    if rebuilt.exists():
        raise StorageUnavailableError(
            str(database), "its repair was cut off; run the repair again to finish it"
        )


def describe_owner(home: Path) -> str:
    """Return the name that the owner of the home has written down. It only informs: the lock decides."""
    try:
        owner = msgspec.json.decode((home / OWNER_FILE).read_bytes(), type=dict[str, object])
    except (OSError, msgspec.DecodeError):
        return "another process"
    return f"process {owner.get('pid')} on {owner.get('host')} since {owner.get('since')}"


def _home_lock(home: Path) -> BaseFileLock:
    # Imported here because its import takes longer than that of all our own modules.
    from filelock import FileLock  # noqa: PLC0415

    return FileLock(home / LOCK_FILE, mode=FILE_MODE, thread_local=False)


def _try_to_own(lock: BaseFileLock, home: Path, clock: Clock) -> bool:
    try:
        make_private_file(home / LOCK_FILE)
        lock.acquire(blocking=False)
    except TimeoutError:
        return False
    except OSError as error:
        raise StorageUnavailableError(str(home / LOCK_FILE), error.strerror or str(error)) from error
    failpoint("home_owned")
    _write_owner_note(home, clock)
    return True


def _release_lock(lock: BaseFileLock, home: Path) -> None:
    with contextlib.suppress(OSError):
        (home / OWNER_FILE).unlink(missing_ok=True)
    lock.release()


def _write_owner_note(home: Path, clock: Clock) -> None:
    owner = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": clock.now().isoformat(timespec="seconds"),
    }
    with contextlib.suppress(OSError):
        _close_to_others(home)
        remove_temporaries_of(home / OWNER_FILE)
        write_atomically(home / OWNER_FILE, msgspec.json.encode(owner) + b"\n")


def _close_to_others(home: Path) -> None:
    """Make files private that earlier versions, or root, left readable beside the databases."""
    for folder, wanted in ((home, _OWN_NAME), *((home / one, _ANY_NAME) for one in FOLDERS)):
        if folder.is_symlink() or not folder.is_dir():
            continue
        for one in folder.iterdir():
            if wanted.fullmatch(one.name) and one.is_file() and not one.is_symlink():
                close_to_other_users(one)


def _read_mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8")
    except OSError:
        return ""  # not Linux: there is no cheap way to tell
