"""A witness of every file that appears below a directory, from the moment that the kernel tells of it."""

from __future__ import annotations

import ctypes
import os
import select
import stat
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ATTRIB: Final = 0x4
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
_EVENT: Final = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class FileCreation:
    """A file as it was when it appeared, or as it became when its mode or its owner was changed."""

    name: str
    mode: int
    owner: int
    changed: bool = False


@dataclass(slots=True)
class FileWatch:
    """Everything that was seen."""

    births: list[FileCreation] = field(default_factory=list[FileCreation])

    @property
    def names(self) -> set[str]:
        """What has appeared, without the random parts of temporary names."""
        return {birth.name for birth in self.births}


@contextmanager
def watching_files(directory: Path) -> Generator[FileWatch]:
    """Watches a directory and those that appear in it, in a thread of its own, until the end of the block."""
    witness, end = FileWatch(), threading.Event()
    inotify = _Inotify()
    inotify.add(directory)
    thread = threading.Thread(target=_watch, args=(inotify, witness, end))
    thread.start()
    try:
        yield witness
    finally:
        end.set()
        thread.join()
        inotify.close()


class _Inotify:
    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.places: dict[int, Path] = {}

    def add(self, directory: Path) -> None:
        watch = self._library.inotify_add_watch(
            self.descriptor, os.fsencode(directory), ATTRIB | MOVED_TO | CREATE
        )
        assert watch >= 0, os.strerror(ctypes.get_errno())
        self.places[watch] = directory

    def events(self) -> Generator[tuple[Path, int]]:
        if not select.select([self.descriptor], [], [], 0.02)[0]:
            return
        data = os.read(self.descriptor, 1 << 16)
        while data:
            watch, mask, _, length = _EVENT.unpack_from(data)
            name = data[_EVENT.size : _EVENT.size + length].rstrip(b"\0")
            data = data[_EVENT.size + length :]
            if name:
                yield self.places[watch] / os.fsdecode(name), mask

    def close(self) -> None:
        os.close(self.descriptor)


def _watch(inotify: _Inotify, witness: FileWatch, end: threading.Event) -> None:
    last_look = False
    while not last_look:
        last_look = end.is_set()
        for path, mask in inotify.events():
            _note(path, mask, inotify, witness)


def _note(path: Path, mask: int, inotify: _Inotify, witness: FileWatch) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    changed = bool(mask & ATTRIB)
    witness.births.append(FileCreation(path.name, stat.S_IMODE(found.st_mode), found.st_uid, changed))
    if stat.S_ISDIR(found.st_mode) and not changed:
        inotify.add(path)
        for one in path.iterdir():
            _note(one, CREATE, inotify, witness)
