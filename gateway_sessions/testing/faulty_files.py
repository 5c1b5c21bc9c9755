"""A disk that fails at the moment a test chooses, and a record of what was asked of it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from gateway_sessions.storage.atomic_file import Files

T = TypeVar("T")


class Killed(BaseException):
    """The process is gone: from now on every call raises this, so that nothing is cleaned up."""


class Fault(StrEnum):
    """What happens at the chosen call."""

    KILL = "kill"  # the process dies before the call does anything
    EIO = "eio"  # the disk reports an error, once
    ENOSPC = "enospc"  # the disk is full, for that one call
    TORN = "torn"  # the call still takes effect, a write with half its data; then the process dies


@dataclass(frozen=True, slots=True)
class Call:
    """A call that took effect, in the order of the calls."""

    operation: str
    path: Path
    """The file or directory; of `link` and `replace` the new name."""
    source: Path | None = None
    """The name that a file was linked or renamed from."""
    data: bytes = b""
    """What was written."""


_ERRNO: Final = {Fault.EIO: errno.EIO, Fault.ENOSPC: errno.ENOSPC}


class FaultyFiles(Files):
    """Files whose *at_call*-th call fails in one of four ways; without one, the calls are only recorded."""

    def __init__(self, *, at_call: int = 0, fault: Fault = Fault.KILL) -> None:
        self.calls: list[Call] = []
        self.fired = False
        self._calls_left = at_call
        self._fault = fault
        self._killed = False
        self._open: dict[int, Path] = {}

    def create(self, directory: Path, prefix: str) -> tuple[int, Path]:
        """Open a new file, or fail."""

        def opened(made: tuple[int, Path]) -> Call:
            descriptor, path = made
            self._open[descriptor] = path
            return Call("create", path)

        return self._attempt(partial(super().create, directory, prefix), opened)

    def open(self, path: Path) -> int:
        """Open a file for reading, or fail."""

        def opened(descriptor: int) -> Call:
            self._open[descriptor] = path
            return Call("open", path)

        return self._attempt(partial(super().open, path), opened)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write, or fail."""
        tears = self._calls_left == 1 and self._fault is Fault.TORN
        part = data[: len(data) // 2] if tears else data
        path = self._open.get(descriptor, Path())
        return self._attempt(
            partial(super().write, descriptor, part),
            lambda written: Call("write", path, data=bytes(part[:written])),
        )

    def read(self, descriptor: int, size: int) -> bytes:
        """Read, or fail."""
        return self._attempt(partial(super().read, descriptor, size), self._on("read", descriptor))

    def fsync(self, descriptor: int) -> None:
        """Make the content last, or fail."""
        self._attempt(partial(super().fsync, descriptor), self._on("fsync", descriptor))

    def close(self, descriptor: int) -> None:
        """Close the file; an error is reported after the fact, as systems do."""
        try:
            self._attempt(partial(self._close, descriptor), self._on("close", descriptor))
        except OSError:
            self._close(descriptor)
            raise

    def link(self, source: Path, target: Path) -> None:
        """Give a second name, or fail."""
        self._attempt(partial(super().link, source, target), lambda _: Call("link", target, source))

    def replace(self, source: Path, target: Path) -> None:
        """Rename, or fail."""
        self._attempt(partial(super().replace, source, target), lambda _: Call("replace", target, source))

    def unlink(self, path: Path) -> None:
        """Take a name away, or fail."""
        self._attempt(partial(super().unlink, path), lambda _: Call("unlink", path))

    def fsync_directory(self, directory: Path) -> None:
        """Make the names last, or fail."""
        self._attempt(
            partial(super().fsync_directory, directory), lambda _: Call("fsync_directory", directory)
        )

    def names(self, directory: Path) -> list[str]:
        """List a directory, or fail."""
        return self._attempt(partial(super().names, directory), lambda _: Call("names", directory))

    def _close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        super().close(descriptor)

    def _on(self, operation: str, descriptor: int) -> Callable[[object], Call]:
        path = self._open.get(descriptor, Path())
        return lambda _: Call(operation, path)

    def _attempt(self, act: Callable[[], T], record: Callable[[T], Call]) -> T:
        if self._killed:
            raise Killed
        self._calls_left -= 1
        if self._calls_left != 0:
            result = act()
            self.calls.append(record(result))
            return result
        self.fired = True
        if self._fault in _ERRNO:
            raise OSError(_ERRNO[self._fault], os.strerror(_ERRNO[self._fault]))
        if self._fault is Fault.TORN:
            with contextlib.suppress(OSError):
                self.calls.append(record(act()))
        self._die()
        raise Killed

    def _die(self) -> None:
        self._killed = True
        for descriptor in self._open:
            with contextlib.suppress(OSError):
                os.close(descriptor)  # the system closes the files of a dead process
        self._open.clear()
