"""Files and directories that only the owner of their directory can read from the first instant.

A file that is created first and restricted afterwards can be opened by others in between. So the mode is an
argument of the call that creates the file, and no umask can widen it. A program that runs as root creates
files with the rights of the directory's owner: the files belong to the owner at once, and a link that the
owner has put in the way leads root nowhere that the owner could not go.

SQLite gives the files beside a database the mode of the database. It makes the database itself readable for
everybody, so the database is created here before SQLite opens it.

Everything here blocks, and concerns the calling thread only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

from gateway_sessions.errors import StorageUnavailableError, UnsupportedStorageError

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
ROOT: Final = 0
SIDECARS: Final = ("-wal", "-shm")
"""The endings of files that SQLite keeps beside an open database."""
_WRITE_VERSION: Final = slice(18, 20)
"""The bytes of a SQLite header that name the journal: twice 2 for a write-ahead log."""


def create_private(path: Path) -> int:
    """Create a file and open it for writing; raise `FileExistsError` if the name is taken."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    if sys.platform == "win32":
        return os.open(path, flags | os.O_BINARY, FILE_MODE)
    with _acting_as_owner_in(path.parent) as folder:
        descriptor = os.open(path.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE, dir_fd=folder)
        _give_to_owner(descriptor, folder)
    return descriptor


def make_private_file(path: Path, content: bytes = b"") -> None:
    """Create a file with that content; an existing one stays as it is."""
    with contextlib.suppress(FileExistsError):
        descriptor = create_private(path)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)


def fill_private_file(path: Path, fill: Callable[[Path], object]) -> None:
    """Create a file, and let *fill* write to the empty file that it gets.

    Files that *fill* makes beside it, a journal for example, are never left in the directory as root's.
    """
    make_private_file(path)
    if sys.platform == "win32" or _foreign_owner(path.parent.stat()) is None:
        fill(path)
        return
    with TemporaryDirectory() as elsewhere:
        made = Path(elsewhere, path.name)
        make_private_file(made)
        fill(made)
        with made.open("rb") as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents for their owner only."""
    if sys.platform == "win32":
        path.mkdir(parents=True, exist_ok=True)
        return
    refuse_foreign_link(path)
    if path.is_dir():
        return
    if not path.parent.is_dir():
        make_private_directory(path.parent)
    with _acting_as_owner_in(path.parent) as folder, contextlib.suppress(FileExistsError):
        os.mkdir(path.name, DIRECTORY_MODE, dir_fd=folder)
        _give_name_to_owner(path.name, folder)
    if not path.is_dir():
        raise NotADirectoryError(20, "is in the way of a directory", str(path))


def close_to_other_users(path: Path) -> None:
    """Take all rights of others on a file away, and give it to the owner of its directory."""
    if sys.platform == "win32":
        return
    refuse_link(path)
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise UnsupportedStorageError(str(path), "is not a regular file")
    owner = _foreign_owner(path.parent.stat())
    wrong_owner = owner is not None and found.st_uid != owner[0]
    wrong_mode = stat.S_IMODE(found.st_mode) != FILE_MODE
    if not wrong_owner and not wrong_mode:
        return
    with _pinned_path(path) as place:
        with contextlib.suppress(PermissionError):  # the file of another user, who alone may do that
            place.chmod(FILE_MODE)
        if wrong_owner and owner is not None:
            os.chown(place, *owner)


def prepare_database_file(path: Path, application_id: int) -> None:
    """Create the file of a database if needed, and make it and the files beside it private.

    Files of an earlier version, or of root, get the right mode and owner. The file of another program stays
    as it is: SQLite opens it next, and then it is refused.
    """
    if sys.platform == "win32":
        return
    refuse_foreign_link(path)
    place = path.resolve()
    owner = _foreign_owner(place.parent.stat())
    if not place.exists():
        # In an empty file SQLite, run as root, would create a journal that belongs to root.
        make_private_file(place, b"" if owner is None else _empty_database_bytes())
    require_usable(place)
    if not _has_id_or_none(place, application_id):
        return
    for one in (place, *_sidecars_of(place)):
        close_to_other_users(one)
    _make_sidecars(place)
    require_usable(place)


def prepare_sidecars_for_reader(path: Path) -> None:
    """Create the files that SQLite needs beside a database, so that root as a reader leaves none."""
    if sys.platform == "win32" or not path.exists():
        return
    refuse_foreign_link(path)
    place = path.resolve()
    for one in _sidecars_of(place):
        refuse_link(one)
    _make_sidecars(place)
    require_usable(place, os.R_OK)


def require_usable(database: Path, rights: int = os.R_OK | os.W_OK) -> None:
    """Raise an error that names the file of a database that this user may not use, as SQLite names none."""
    for one in (database, *_sidecars_of(database)):
        if one.exists() and not os.access(one, rights):
            raise StorageUnavailableError(str(one), f"cannot be used by this user: {describe_ownership(one)}")


def describe_ownership(path: Path) -> str:
    """Return a sentence with the owner and mode of a file, and the command that corrects them."""
    found, wanted = path.stat(), path.parent.stat().st_uid
    if found.st_uid == wanted:
        return f"its mode is {stat.S_IMODE(found.st_mode):o}; chmod 600 {path}"
    has, should = user_name(found.st_uid), user_name(wanted)
    return f"it belongs to {has}, not to {should}; chown {should} {path}"


def user_name(user: int) -> str:
    """Return the name of a user; the number if the system knows no name."""
    if sys.platform == "win32":
        return str(user)
    import pwd  # noqa: PLC0415 -- there is no such module on Windows

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def is_exposed(path: Path) -> bool:
    """Return True if a file is open to others, or does not belong to the owner of its directory."""
    found = path.lstat()
    return bool(found.st_mode & 0o077) or found.st_uid != path.parent.stat().st_uid


def refuse_link(path: Path) -> None:
    """Raise an error if a link is where a file of ours belongs, whoever made it."""
    if path.is_symlink():
        raise UnsupportedStorageError(str(path), "is a link, and links are not followed here; remove it")


def refuse_foreign_link(path: Path) -> None:
    """Raise an error if another user could have made the link: it could lead anywhere."""
    if is_foreign_link(path):
        raise UnsupportedStorageError(
            str(path), "is a link that another user made or could have made; name the place it leads to"
        )


def is_foreign_link(path: Path) -> bool:
    """Return True if the path is a link that another user made or could have made."""
    if sys.platform == "win32" or not path.is_symlink():
        return False
    return not {path.lstat().st_uid, path.parent.stat().st_uid} <= {ROOT, os.geteuid()}


def bind_private(listener: socket.socket, place: Path) -> None:
    """Bind a Unix socket, so that at no moment another user than the directory's owner can connect."""
    with contextlib.suppress(
        OSError
    ):  # on Linux the file gets the mode of the socket; other systems raise an error
        os.fchmod(listener.fileno(), FILE_MODE)
    with _acting_as_owner_in(place.parent) as folder:
        # With the owner's rights the path of the directory may be unreachable; its descriptor always works.
        through = Path(f"/proc/self/fd/{folder}")
        listener.bind(str((through if through.is_dir() else place.parent) / place.name))
        _give_name_to_owner(place.name, folder)
    if stat.S_IMODE(place.lstat().st_mode) != FILE_MODE:
        place.chmod(FILE_MODE)


def replace_file(source: Path, target: Path) -> None:
    """Rename a file, in place of the file or link that has the name."""
    _call_in_directories(source, target, os.replace, lambda: source.replace(target))


def link_file(source: Path, target: Path) -> None:
    """Give a file a second name."""
    _call_in_directories(source, target, os.link, lambda: os.link(source, target))


def unlink_file(path: Path) -> None:
    """Remove a name; the target of a link stays."""
    if sys.platform == "win32":
        path.unlink()
        return
    with _acting_as_owner_in(path.parent) as folder:
        os.unlink(path.name, dir_fd=folder)


def _call_in_directories(
    source: Path, target: Path, act: Callable[..., None], plainly: Callable[[], object]
) -> None:
    if sys.platform == "win32":
        plainly()
        return
    with _open_directory(source.parent) as here, _acting_as_owner_in(target.parent) as there:
        act(source.name, target.name, src_dir_fd=here, dst_dir_fd=there)


@contextmanager
def _open_directory(directory: Path) -> Generator[int]:
    """Open a directory: exchanging its path for a link then changes nothing."""
    refuse_foreign_link(directory)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _acting_as_owner_in(directory: Path) -> Generator[int]:
    """Open a directory; as root, let this thread have the rights of its owner until the end of the block."""
    with _open_directory(directory) as descriptor:
        owner = _foreign_owner(os.fstat(descriptor))
        if owner is None or (switch := _thread_rights_calls()) is None:
            yield descriptor
            return
        set_user, set_group = switch
        user, group = owner
        # The group first: with another user's rights the thread may not change it any more.
        group_before = set_group(group)
        user_before = set_user(user)
        try:
            yield descriptor
        finally:
            set_user(user_before)
            set_group(group_before)


def _foreign_owner(directory: os.stat_result) -> tuple[int, int] | None:
    """Return the user and group that a new file must be given to; None if it is right by itself."""
    if os.geteuid() != ROOT or directory.st_uid == ROOT:
        return None
    return directory.st_uid, directory.st_gid


@cache
def _thread_rights_calls() -> tuple[Callable[[int], int], Callable[[int], int]] | None:
    """Return the calls that give one thread the rights of another user on files; only Linux has them."""
    library = ctypes.CDLL(None)
    user, group = getattr(library, "setfsuid", None), getattr(library, "setfsgid", None)
    return None if user is None or group is None else (user, group)


def _give_to_owner(descriptor: int, folder: int) -> None:
    """Give a new file to the owner of its directory, where it could not be created as that user."""
    owner = _foreign_owner(os.fstat(folder))
    if owner is not None and os.fstat(descriptor).st_uid != owner[0]:
        os.fchown(descriptor, *owner)


def _give_name_to_owner(name: str, folder: int) -> None:
    owner = _foreign_owner(os.fstat(folder))
    if owner is not None and os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid != owner[0]:
        os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)


def _has_id_or_none(database: Path, application_id: int) -> bool:
    """Return True if a file has that application id, or none. This creates no file beside it."""
    uri = f"file:{quote(str(database))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            (found,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return database.stat().st_size == 0
    return found == application_id or not (found or tables)


def _sidecars_of(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in SIDECARS]


def _make_sidecars(database: Path) -> None:
    """Create the files beside a database: SQLite would give its own away only after a moment as root's."""
    if _foreign_owner(database.parent.stat()) is not None:
        for one in _sidecars_of(database):
            make_private_file(one)


@contextmanager
def _pinned_path(path: Path) -> Generator[Path]:
    """Yield a path that leads to this very file, even if its name is exchanged.

    The file is not opened: closing a descriptor of a database would release this process's locks on it.
    """
    if not hasattr(os, "O_PATH"):
        yield path
        return
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@cache
def _empty_database_bytes() -> bytes:
    """Return the bytes of a database without tables, in the mode of a write-ahead log."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript("CREATE TABLE passing (value); DROP TABLE passing; VACUUM")
        content = bytearray(connection.serialize())
    content[_WRITE_VERSION] = b"\x02\x02"
    return bytes(content)
