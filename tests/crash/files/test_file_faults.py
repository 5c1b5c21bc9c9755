"""Whatever call fails, in whatever way, and whenever the power goes: old or new, never something else."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway_sessions.storage.files.atomic_file import (
    AtomicFile,
    FileCalls,
    move_to_quarantine,
    remove_temporaries_of,
    write_atomically,
)
from gateway_sessions.testing.faults import Fault, FaultyFiles, FileCall, Killed

OLDER, OLD, NEW, NEWER = b"older " * 50, b"old " * 100, b"new " * 200, b"newer " * 300
KEPT = ["sessions.json", "sessions.json.bak"]


class WithoutLinks(FaultyFiles):
    """A filesystem that knows no hard links."""

    def link(self, source: Path, target: Path) -> None:
        raise PermissionError(1, "no hard links here")


def old_world(folder: Path) -> Path:
    """Two generations on the disk."""
    folder.mkdir()
    path = folder / "sessions.json"
    path.write_bytes(OLD)
    path.with_name("sessions.json.bak").write_bytes(OLDER)
    return path


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def write_in_pieces(path: Path, files: FileCalls) -> None:
    with AtomicFile(path, files=files, keep_backup=True) as new:
        new.write(NEW[:300])
        new.write(NEW[300:])


def until_it_succeeds(kind: type[FaultyFiles], fault: Fault) -> Iterator[tuple[int, FaultyFiles]]:
    """Files that fail at their first call, at their second, and so on, until they no longer do."""
    for nth in itertools.count(1):
        files = kind(at_call=nth, fault=fault)
        yield nth, files
        if not files.fired:
            assert nth > 5
            return


@pytest.mark.parametrize("kind", [FaultyFiles, WithoutLinks])
@pytest.mark.parametrize("fault", Fault)
def test_a_failure_at_any_call_leaves_two_complete_generations(
    tmp_path: Path, fault: Fault, kind: type[FaultyFiles]
):
    for nth, files in until_it_succeeds(kind, fault):
        path = old_world(tmp_path / str(nth))
        backup = path.with_name("sessions.json.bak")
        with suppress(OSError, Killed):
            write_in_pieces(path, files)

        assert path.read_bytes() in (OLD, NEW)
        assert backup.read_bytes() in (OLDER, OLD)
        remove_temporaries_of(path)
        assert names(path.parent) == KEPT

        before = path.read_bytes()
        write_atomically(path, NEWER, keep_backup=True)
        assert path.read_bytes() == NEWER
        assert backup.read_bytes() == before
        assert names(path.parent) == KEPT


@pytest.mark.parametrize("fault", Fault)
def test_a_failure_at_any_call_of_the_first_write_leaves_nothing_or_the_new_content(
    tmp_path: Path, fault: Fault
):
    for nth, files in until_it_succeeds(FaultyFiles, fault):
        folder = tmp_path / str(nth)
        folder.mkdir()
        path = folder / "sessions.json"
        with suppress(OSError, Killed):
            write_in_pieces(path, files)

        assert content(path) in (None, NEW)
        remove_temporaries_of(path)
        assert set(names(folder)) <= {"sessions.json"}


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.ENOSPC])
def test_an_error_is_passed_on_and_leaves_no_temporary_file(tmp_path: Path, fault: Fault):
    for nth, files in until_it_succeeds(FaultyFiles, fault):
        path = old_world(tmp_path / str(nth))
        failed = False
        try:
            write_in_pieces(path, files)
        except OSError:
            failed = True

        assert failed == files.fired
        assert names(path.parent) == KEPT
        # Only the fsync of the directory can fail after the new content has got its name.
        renamed_before = any(call.operation == "replace" and call.path == path for call in files.calls)
        assert path.read_bytes() == (NEW if renamed_before else OLD)


@pytest.mark.parametrize("fault", Fault)
def test_the_next_write_after_a_crash_leaves_no_temporary_file_of_its_own(tmp_path: Path, fault: Fault):
    for nth, files in until_it_succeeds(FaultyFiles, fault):
        path = old_world(tmp_path / str(nth))
        with suppress(OSError, Killed):
            write_in_pieces(path, files)
        left_over = names(path.parent)
        write_atomically(path, NEWER, keep_backup=True)
        assert names(path.parent) == left_over


def test_a_failed_fsync_is_never_tried_again(tmp_path: Path):
    files = FaultyFiles(at_call=4, fault=Fault.EIO)
    path = old_world(tmp_path / "home")
    with pytest.raises(OSError, match="Input/output"):
        write_in_pieces(path, files)
    assert [call.operation for call in files.calls] == [
        "create",
        "write",
        "write",
        "close",
        "unlink",
    ]


@pytest.mark.parametrize("fault", Fault)
def test_setting_a_file_aside_never_loses_it(tmp_path: Path, fault: Fault):
    for nth, files in until_it_succeeds(FaultyFiles, fault):
        path = old_world(tmp_path / str(nth))
        quarantine = path.parent / "quarantine"
        with suppress(OSError, Killed):
            move_to_quarantine(path, quarantine, "20261118", files=files)

        places = [path, *quarantine.glob("*")]
        assert OLD in [content(place) for place in places]
        assert all(content(place) in (OLD, None) for place in places)


# The power goes: what was not synced is there, or is not, or in part; names may last in another order.


@dataclass(eq=False)
class Inode:
    """The content of a file as the system shows it, and the part of it that is safe."""

    written: bytes = b""
    synced: bytes = b""

    def after_power_cut(self) -> set[bytes]:
        if self.written == self.synced:
            return {self.synced}
        half = self.written[: len(self.written) // 2]
        return {self.synced, half, self.written, bytes(len(self.written))}


Names = dict[Path, Inode]
Change = dict[Path, Inode | None]


class Disk:
    """What calls did to the names and contents of a directory, and which of it would last."""

    def __init__(self, before: dict[Path, bytes]) -> None:
        self.shown: Names = {path: Inode(content, content) for path, content in before.items()}
        self.lasting: Names = dict(self.shown)
        self.pending: list[Change] = []

    def apply(self, call: FileCall) -> None:
        match call.operation:
            case "write":
                self.shown[call.path].written += call.data
            case "fsync":
                self.shown[call.path].synced = self.shown[call.path].written
            case "fsync_directory":
                self.lasting = dict(self.shown)
                self.pending.clear()
            case _ if change := self._change(call):
                self.pending.append(change)
                self.shown = renamed(self.shown, change)

    def _change(self, call: FileCall) -> Change:
        match call.operation:
            case "create":
                return {call.path: Inode()}
            case "unlink":
                return {call.path: None}
            case "link" if call.source:
                return {call.path: self.shown[call.source]}
            case "replace" if call.source:
                return {call.path: self.shown[call.source], call.source: None}
            case _:
                return {}

    def after_power_cut(self, path: Path) -> set[bytes | None]:
        """Every content that the file may turn out to have."""
        found: set[bytes | None] = set()
        for lasted in itertools.product([True, False], repeat=len(self.pending)):
            state = self.lasting
            for change in itertools.compress(self.pending, lasted):
                state = renamed(state, change)
            found |= state[path].after_power_cut() if path in state else {None}
        return found


def renamed(before: Names, change: Change) -> Names:
    return {path: inode for path, inode in (before | change).items() if inode is not None}


class WithoutFsync(FaultyFiles):
    """Forgets to make the content last."""

    def fsync(self, descriptor: int) -> None:
        pass


class WithoutDirectoryFsync(FaultyFiles):
    """Forgets to make the name last."""

    def fsync_directory(self, directory: Path) -> None:
        pass


def contents_after_power_cuts(
    path: Path, files: FaultyFiles
) -> list[tuple[set[bytes | None], set[bytes | None]]]:
    """After each call of one write: what the file and its backup may turn out to hold."""
    backup = path.with_name("sessions.json.bak")
    disk = Disk({path: OLD, backup: OLDER})
    found = []
    write_in_pieces(path, files)
    for call in files.calls:
        disk.apply(call)
        found.append((disk.after_power_cut(path), disk.after_power_cut(backup)))
    return found


@pytest.mark.parametrize("kind", [FaultyFiles, WithoutLinks])
def test_a_power_cut_after_any_call_leaves_two_complete_generations(tmp_path: Path, kind: type[FaultyFiles]):
    moments = contents_after_power_cuts(old_world(tmp_path / "home"), kind())
    for current, backup in moments:
        assert current <= {OLD, NEW}
        assert backup <= {OLDER, OLD}
    assert moments[-1] == ({NEW}, {OLD})


def test_without_the_fsync_of_the_file_a_power_cut_would_tear_it(tmp_path: Path):
    moments = contents_after_power_cuts(old_world(tmp_path / "home"), WithoutFsync())
    assert any(not current <= {OLD, NEW} for current, _ in moments)


def test_without_the_fsync_of_the_directory_a_finished_write_could_vanish(tmp_path: Path):
    moments = contents_after_power_cuts(old_world(tmp_path / "home"), WithoutDirectoryFsync())
    assert OLD in moments[-1][0]


def test_the_file_is_synced_before_it_gets_its_name_and_the_directory_after(tmp_path: Path):
    files = FaultyFiles()
    path = old_world(tmp_path / "home")
    write_in_pieces(path, files)
    assert [(call.operation, call.path.suffix) for call in files.calls] == [
        ("create", ".tmp"), ("write", ".tmp"), ("write", ".tmp"), ("fsync", ".tmp"),
        ("close", ".tmp"), ("link", ".tmp"), ("replace", ".bak"), ("replace", ".json"),
        ("fsync_directory", ""),
    ]  # fmt: skip
