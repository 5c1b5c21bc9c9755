"""Atomic replacement of files: after any failure a path holds the complete old or new content.

This is the only code that writes files. The order of its steps is the guarantee: write a new file beside the
old one, fsync it, and only then rename it; the fsync of the directory makes the name durable. A file whose
fsync failed is discarded, because the kernel may have marked the lost pages as clean: a second fsync would
succeed and mean nothing.

Everything here blocks. The owner of a path calls this from a thread, one call at a time.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import secrets
import stat
import sys
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.storage.files.private_files import (
    close_to_other_users,
    create_private,
    is_foreign_link,
    link_file,
    make_private_directory,
    refuse_foreign_link,
    replace_file,
    unlink_file,
)

if sys.platform == "darwin":
    import fcntl

_NO_HARD_LINKS: Final = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)
"""Errors of file systems without hard links, where a copy is made instead."""
_NO_DIRECTORY_FSYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
_CHUNK: Final = 1 << 20
"""Bytes that are read or copied at once, so that a large file is never whole in memory."""
QUARANTINE: Final = "quarantine"
"""The folder for unreadable files, beside the place where they were."""
_CLOSED: Final = -1

_LEFT_OVER: Final = re.compile(r"\..+\.[a-z0-9_]{8}\.tmp")
"""The names of temporary files that an interrupted write leaves behind."""


class FileCalls:
    """Makes the calls to the operating system, one by one, so that a test can let each of them fail."""

    def create(self, directory: Path, prefix: str) -> tuple[int, Path]:
        """Open a new private file, whose name ends in a random part and `.tmp`."""
        path = directory / f"{prefix}{secrets.token_hex(4)}.tmp"
        return create_private(path), path

    def open(self, path: Path) -> int:
        """Open an existing file for reading."""
        # Without O_NONBLOCK the open of a named pipe would wait for ever.
        return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write some of the data and return how many bytes."""
        return os.write(descriptor, data)

    def read(self, descriptor: int, size: int) -> bytes:
        """Read at most *size* bytes."""
        return os.read(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        """Wait until the content would survive a power cut."""
        if sys.platform == "darwin":
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync leaves the data in the cache of the drive
        else:
            os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Close a file."""
        os.close(descriptor)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name."""
        link_file(source, target)

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file, in place of the file that has the name."""
        replace_file(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        unlink_file(path)

    def fsync_directory(self, directory: Path) -> None:
        """Wait until the names in a directory would survive a power cut, where the system supports that."""
        if sys.platform == "win32":
            return
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_FSYNC:
                raise
        finally:
            os.close(descriptor)

    def names(self, directory: Path) -> list[str]:
        """Return the names in a directory."""
        return [entry.name for entry in directory.iterdir()]


OPERATING_SYSTEM: Final = FileCalls()


class AtomicFile:
    """Replaces a file by the bytes that are written in the block, as a whole and durably, or not at all.

    The new file is private and belongs to the owner of the directory, whatever the old one was. A link is
    replaced itself; its target stays as it is.

    An error leaves the old file and no new one behind, and is passed on. Only if the very last step fails,
    the fsync of the directory, the new content is in place, and a power cut may still bring back the old
    one.
    """

    def __init__(self, path: Path, *, files: FileCalls = OPERATING_SYSTEM, keep_backup: bool = False) -> None:
        self._path = path
        self._files = files
        self._keeps_backup = keep_backup
        self._temporaries: list[Path] = []
        self._descriptor = _CLOSED

    def __enter__(self) -> Self:
        self._target = _check_path(self._path)
        self._descriptor, self._new = self._files.create(self._target.parent, f".{self._target.name}.")
        self._temporaries.append(self._new)
        return self

    def write(self, data: bytes | memoryview) -> None:
        """Append *data* to the new content."""
        if self._descriptor == _CLOSED:
            raise ValueError(self._path)
        left = memoryview(data)
        while left:
            written = self._files.write(self._descriptor, left)
            if written <= 0:
                raise OSError(errno.EIO, "the disk takes no data", str(self._new))
            left = left[written:]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._replace_target()
        finally:
            self._remove_temporary()

    def _replace_target(self) -> None:
        self._files.fsync(self._descriptor)
        self._close_descriptor()
        if self._keeps_backup:
            self._keep_previous_content()
        self._files.replace(self._new, self._target)
        self._temporaries.remove(self._new)
        self._files.fsync_directory(self._target.parent)

    def _keep_previous_content(self) -> None:
        backup = backup_path(self._target)
        # After a crash between link and replace both names are one file, and a rename would do nothing.
        if self._target.is_symlink() or _is_same_file(backup, self._target):
            return
        with contextlib.suppress(FileNotFoundError):
            close_to_other_users(
                self._target
            )  # an earlier version may have made the file readable for others
        second = self._target.with_name(f".{self._target.name}.{secrets.token_hex(4)}.tmp")
        try:
            self._files.link(self._target, second)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            copy_durably(self._target, backup, files=self._files)
            return
        self._temporaries.append(second)
        self._files.replace(second, backup)
        self._temporaries.remove(second)

    def _remove_temporary(self) -> None:
        with contextlib.suppress(OSError):
            self._close_descriptor()
        for path in self._temporaries:
            with contextlib.suppress(OSError):
                self._files.unlink(path)

    def _close_descriptor(self) -> None:
        # Even if close fails, the number is free and may soon be that of another file.
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            self._files.close(descriptor)


def write_atomically(
    path: Path, data: bytes, *, files: FileCalls = OPERATING_SYSTEM, keep_backup: bool = False
) -> None:
    """Replace a file by *data*, durably, or leave it as it is; `keep_backup` keeps the old one as `.bak`."""
    with AtomicFile(path, files=files, keep_backup=keep_backup) as new:
        new.write(data)


def backup_path(path: Path) -> Path:
    """Return the path of the previous content of the file at *path*."""
    return path.with_name(f"{path.name}.bak")


def remove_temporaries_of(path: Path, *, files: FileCalls = OPERATING_SYSTEM) -> int:
    """Remove temporary files of interrupted writes of that file. Nobody may be writing it now."""
    left_over = re.compile(rf"\.{re.escape(path.name)}(?:\.bak)?\.[a-z0-9_]{{8}}\.tmp")
    return _remove_left_over(path.parent, left_over, files)


def remove_temporaries_in(folder: Path, *, files: FileCalls = OPERATING_SYSTEM) -> int:
    """Remove temporary files of interrupted writes of any file in a folder. Nobody may be writing there."""
    return 0 if is_foreign_link(folder) else _remove_left_over(folder, _LEFT_OVER, files)


def _remove_left_over(folder: Path, left_over: re.Pattern[str], files: FileCalls) -> int:
    try:
        found = [name for name in files.names(folder) if left_over.fullmatch(name)]
    except FileNotFoundError:
        return 0
    for name in found:
        files.unlink(folder / name)
    return len(found)


def read_whole_file(path: Path, *, files: FileCalls = OPERATING_SYSTEM) -> bytes | None:
    """Return the content of a file; None if there is no such file."""
    found = read_bytes_tail(path, sys.maxsize, files=files)
    return None if found is None else found[1]


def read_bytes_tail(
    path: Path, limit: int, *, files: FileCalls = OPERATING_SYSTEM
) -> tuple[int, bytes] | None:
    """Return the size of a file and its last *limit* bytes; None if there is no such file."""
    try:
        descriptor = files.open(path)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _unsupported_path(path, "is not a regular file")
        os.lseek(descriptor, max(0, status.st_size - limit), os.SEEK_SET)
        return status.st_size, b"".join(iter(lambda: files.read(descriptor, _CHUNK), b""))
    finally:
        files.close(descriptor)


def remove_file(path: Path, *, files: FileCalls = OPERATING_SYSTEM) -> None:
    """Remove a file durably, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        files.unlink(path)
        files.fsync_directory(path.parent)


def file_name_time(moment: datetime) -> str:
    """Return the time in the names of files in the quarantine."""
    return f"{moment:%Y%m%dT%H%M%SZ}"


def move_to_quarantine(
    path: Path, quarantine: Path, stamp: str, *, files: FileCalls = OPERATING_SYSTEM
) -> Path:
    """Move a file into the quarantine, under a new name with *stamp*, and return its path there.

    At every moment at least one of the two places holds the whole file. Of a link, the link itself is moved.
    """
    make_private_directory(quarantine)
    place = _free_name(quarantine, f"{path.name}.{stamp}")
    if path.is_symlink():
        files.replace(path, place)
    else:
        _move_to_free_name(_check_path(path), place, files)
    files.fsync_directory(path.parent)
    return place


def _move_to_free_name(target: Path, place: Path, files: FileCalls) -> None:
    _flush_file(target, files)
    try:
        files.link(target, place)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        copy_durably(target, place, files=files)
    files.fsync_directory(place.parent)
    files.unlink(target)


def copy_durably(source: Path, target: Path, *, files: FileCalls = OPERATING_SYSTEM) -> None:
    """Copy the content of *source* to *target*, as a whole and durably."""
    descriptor = files.open(source)
    try:
        with AtomicFile(target, files=files) as copy:
            while chunk := files.read(descriptor, _CHUNK):
                copy.write(chunk)
    finally:
        files.close(descriptor)


def follow_named_path(path: Path) -> Path:
    """Return the target of a path that a person has named; raise an error if another user could change it."""
    try:
        target = path.resolve()
    except RuntimeError as error:  # a circle of links, before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error
    refuse_foreign_link(path)
    return target


def _check_path(path: Path) -> Path:
    """Return the path; raise an error if no file can be there, or another user could exchange it."""
    if sys.platform != "win32":
        _refuse_world_writable(path.parent)
    if path.exists() and not path.is_symlink() and not path.is_file():
        raise _unsupported_path(path, "is not a regular file")
    return path


def _refuse_world_writable(directory: Path) -> None:
    mode = directory.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise _unsupported_path(directory, "can be written by everybody; take that right away (chmod o-w)")


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(one.lstat(), other.lstat())
    except FileNotFoundError:
        return False


def _free_name(directory: Path, name: str) -> Path:
    names = (name if number == 1 else f"{name}-{number}" for number in itertools.count(1))
    return next(place for place in (directory / one for one in names) if not os.path.lexists(place))


def _flush_file(path: Path, files: FileCalls) -> None:
    """Wait until a file that another program has written would survive a power cut."""
    descriptor = files.open(path)
    try:
        files.fsync(descriptor)
    finally:
        files.close(descriptor)


def _unsupported_path(path: Path, problem: str) -> UnsupportedStorageError:
    return UnsupportedStorageError(str(path), problem)
