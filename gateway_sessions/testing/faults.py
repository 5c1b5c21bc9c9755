"""Faults on purpose: file calls that fail, and crashes at named failpoints.

`FaultyFiles` is a disk that fails at a call which the test chooses, and records all calls. `crash_at` ends or
fails a program at a named point, for tests of crash recovery.

    with crash_at("before_commit", nth=3):       # in a child process: SIGKILL at the third pass
        asyncio.run(work())

    with crash_at("before_commit", action=raising(OSError("disk"))):   # here: the commit fails
        ...
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

from gateway_sessions._process.failpoints import arm_failpoints
from gateway_sessions.errors import InvalidInputError
from gateway_sessions.storage.files.atomic_file import FileCalls

T = TypeVar("T")


class Killed(BaseException):
    """The process counts as dead: from now on every call raises this, so that nothing is cleaned up."""


class Fault(StrEnum):
    """States what happens at the chosen call."""

    KILL = "kill"  # the process dies before the call does anything
    EIO = "eio"  # the disk reports an error, once
    ENOSPC = "enospc"  # the disk is full, for that one call
    TORN = "torn"  # the call still takes effect, a write with half its data; then the process dies


@dataclass(frozen=True, slots=True)
class FileCall:
    """Records a call that took effect."""

    operation: str
    path: Path
    """The file or directory; of `link` and `replace` the new name."""
    source: Path | None = None
    """The name from which a file was linked or renamed."""
    data: bytes = b""
    """The bytes that were written."""


_ERRNO: Final = {Fault.EIO: errno.EIO, Fault.ENOSPC: errno.ENOSPC}


class FaultyFiles(FileCalls):
    """Makes file calls, of which the *at_call*-th fails in one of four ways, and records them."""

    def __init__(self, *, at_call: int = 0, fault: Fault = Fault.KILL) -> None:
        self.calls: list[FileCall] = []
        self.fired: bool = False
        self._calls_left = at_call
        self._fault = fault
        self._killed = False
        self._open: dict[int, Path] = {}

    def create(self, directory: Path, prefix: str) -> tuple[int, Path]:
        """Open a new file, or fail."""

        def opened(made: tuple[int, Path]) -> FileCall:
            descriptor, path = made
            self._open[descriptor] = path
            return FileCall("create", path)

        return self._call_or_fail(partial(super().create, directory, prefix), opened)

    def open(self, path: Path) -> int:
        """Open a file for reading, or fail."""

        def opened(descriptor: int) -> FileCall:
            self._open[descriptor] = path
            return FileCall("open", path)

        return self._call_or_fail(partial(super().open, path), opened)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write, or fail."""
        tears = self._calls_left == 1 and self._fault is Fault.TORN
        part = data[: len(data) // 2] if tears else data
        path = self._open.get(descriptor, Path())
        return self._call_or_fail(
            partial(super().write, descriptor, part),
            lambda written: FileCall("write", path, data=bytes(part[:written])),
        )

    def read(self, descriptor: int, size: int) -> bytes:
        """Read, or fail."""
        return self._call_or_fail(
            partial(super().read, descriptor, size), self._record_of("read", descriptor)
        )

    def fsync(self, descriptor: int) -> None:
        """Flush the content, or fail."""
        self._call_or_fail(partial(super().fsync, descriptor), self._record_of("fsync", descriptor))

    def close(self, descriptor: int) -> None:
        """Close the file; an error is reported after the fact, as systems do."""
        try:
            self._call_or_fail(partial(self._close, descriptor), self._record_of("close", descriptor))
        except OSError:
            self._close(descriptor)
            raise

    def link(self, source: Path, target: Path) -> None:
        """Link a file, or fail."""
        self._call_or_fail(partial(super().link, source, target), lambda _: FileCall("link", target, source))

    def replace(self, source: Path, target: Path) -> None:
        """Rename a file, or fail."""
        self._call_or_fail(
            partial(super().replace, source, target), lambda _: FileCall("replace", target, source)
        )

    def unlink(self, path: Path) -> None:
        """Remove a name, or fail."""
        self._call_or_fail(partial(super().unlink, path), lambda _: FileCall("unlink", path))

    def fsync_directory(self, directory: Path) -> None:
        """Flush the names of a directory, or fail."""
        self._call_or_fail(
            partial(super().fsync_directory, directory), lambda _: FileCall("fsync_directory", directory)
        )

    def names(self, directory: Path) -> list[str]:
        """List a directory, or fail."""
        return self._call_or_fail(partial(super().names, directory), lambda _: FileCall("names", directory))

    def _close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        super().close(descriptor)

    def _record_of(self, operation: str, descriptor: int) -> Callable[[object], FileCall]:
        path = self._open.get(descriptor, Path())
        return lambda _: FileCall(operation, path)

    def _call_or_fail(self, act: Callable[[], T], record: Callable[[T], FileCall]) -> T:
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
        self._kill_process()
        raise Killed

    def _kill_process(self) -> None:
        self._killed = True
        for descriptor in self._open:
            with contextlib.suppress(OSError):
                os.close(descriptor)  # the system closes the files of a dead process
        self._open.clear()


FAILPOINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "home_owned": "the lock is taken, nobody can see yet by whom",
        "backed_up": "the copy is made, no migration has begun",
        "during_migration": "a step is taken, its transaction is open",
        "recovered": "cut-off turns are dealt with, their counts are not in the file",
        "index_set_aside": "a damaged sessions.json is in the quarantine",
        "import_page": "a page of an index is stored, the next one is not",
        "import_done": "all of an index is stored, and not noted as taken in",
        "within_batch": "one transaction of a batch has run, the next one has not",
        "before_commit": "a batch has run in an open transaction",
        "after_commit": "a batch is durable, nobody has been told",
        "change_committed": "a change is durable, neither sessions.json nor the hooks know",
        "snapshot_page": "a page of the new sessions.json is written",
        "snapshot_complete": "the new sessions.json is written, and still has another name",
        "snapshot_replaced": "the new sessions.json is in place, nobody has been told",
        "hook_call_counted": "an attempt is counted, the hook has not been called",
        "hook_called": "the hook has returned, its outcome is not stored",
        "message_admitted": "a message is durable, its receipt is not given",
        "turn_claimed": "a lane is leased, nobody works on its turn",
        "turn_working": "an agent is about to begin",
        "turn_appended": "rows of a running turn are durable, its agent has not been told",
        "growing_sent": "the beginning of a growing reply is shown, its id is not noted",
        "growing_noted": "the id of a growing reply is noted, its agent has not been told",
        "turn_answered": "an agent has answered, nothing of it is stored",
        "turn_ended": "a turn is committed, nobody has been told",
        "after_commit_before_deliver": "a reply is committed as being sent, and is not sent",
        "before_deliver": "a reply is about to be handed to the platform",
        "after_deliver": "the platform has a reply, which is not noted",
        "command_noted": "a command is written down, and not carried out",
        "command_carried_out": "a command is carried out, and not noted as done",
        "schedule_admitted": "the message of a schedule is durable, its time is not noted as used",
        "schedule_ran": "a schedule has run and its time is noted, nobody has been told",
        "before_marker": "all work is done, the marker of an orderly end is not written",
    }
)
"""Every point, with the state of the program when it is passed."""


@dataclass(slots=True)
class Crash:
    """Tells whether an armed point was passed."""

    fired: bool = False


def die() -> None:
    """End this process as a power cut would: nothing is flushed, closed or cleaned up."""
    if hasattr(signal, "SIGKILL"):
        os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


def raising(error: BaseException) -> Callable[[], object]:
    """Return an action for `crash_at` that lets the call at the point fail."""

    def fail() -> None:
        raise error

    return fail


@contextmanager
def crash_at(name: str, *, nth: int = 1, action: Callable[[], object] = die) -> Generator[Crash]:
    """Perform *action*, by default `die`, at the *nth* pass of a point within the block."""
    if name not in FAILPOINTS:
        problem = f"there is no failpoint {name!r}; there are: {', '.join(FAILPOINTS)}"
        raise InvalidInputError(problem)
    crash, passes = Crash(), itertools.count(1)

    def passed(point: str) -> None:
        if point == name and next(passes) == nth:
            crash.fired = True
            action()

    arm_failpoints(passed)
    try:
        yield crash
    finally:
        arm_failpoints(None)


@contextmanager
def count_passes() -> Generator[Counter[str]]:
    """Count how often each point is passed within the block."""
    passes: Counter[str] = Counter()
    arm_failpoints(lambda point: passes.update((point,)))
    try:
        yield passes
    finally:
        arm_failpoints(None)
