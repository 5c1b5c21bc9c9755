import errno
import os
import stat
from pathlib import Path

import pytest

from gateway_sessions.errors import UnsupportedStorageError
from gateway_sessions.storage.files.atomic_file import (
    AtomicFile,
    FileCalls,
    backup_path,
    follow_named_path,
    move_to_quarantine,
    read_bytes_tail,
    read_whole_file,
    remove_file,
    remove_temporaries_of,
    write_atomically,
)

SOMEBODY = 12345
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.json"


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class ShortWrites(FileCalls):
    """Takes a few bytes at a time, as a system may."""

    def write(self, descriptor: int, data: memoryview) -> int:
        return super().write(descriptor, data[:7])


class NoProgress(FileCalls):
    """Takes nothing and reports no error."""

    def write(self, descriptor: int, data: memoryview) -> int:
        return 0


class NoLinks(FileCalls):
    """A filesystem without hard links."""

    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.ENOTSUP, "no links")


class BrokenLinks(FileCalls):
    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EIO, "broken")


def test_a_file_is_written_and_replaced(path: Path):
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert names(path.parent) == ["sessions.json"]


def test_a_file_can_be_written_in_pieces(path: Path):
    with AtomicFile(path) as new:
        new.write(b"one, ")
        new.write(memoryview(b"two"))
        assert not path.exists()
    assert path.read_bytes() == b"one, two"


def test_short_writes_are_continued(path: Path):
    write_atomically(path, b"0123456789" * 10, files=ShortWrites())
    assert path.read_bytes() == b"0123456789" * 10


def test_a_disk_that_takes_nothing_is_an_error_and_no_endless_loop(path: Path):
    with pytest.raises(OSError, match="takes no data"):
        write_atomically(path, b"one", files=NoProgress())
    assert names(path.parent) == []


def test_an_error_in_the_block_leaves_the_old_file(path: Path):
    def write_and_fail() -> None:
        with AtomicFile(path) as new:
            new.write(b"two")
            raise RuntimeError("changed my mind")

    write_atomically(path, b"one")
    with pytest.raises(RuntimeError, match="changed my mind"):
        write_and_fail()
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["sessions.json"]


def test_nothing_can_be_added_after_the_end(path: Path):
    with AtomicFile(path) as new:
        new.write(b"one")
    with pytest.raises(ValueError, match=r"sessions\.json"):
        new.write(b"two")


def test_a_new_file_is_private_whatever_the_umask(path: Path):
    before = os.umask(0)
    try:
        write_atomically(path, b"one")
        write_atomically(path, b"two", keep_backup=True)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert mode(backup_path(path)) == 0o600


def test_what_was_open_to_others_is_private_when_it_is_replaced(path: Path):
    write_atomically(path, b"one")
    path.chmod(0o644)
    write_atomically(path, b"two", keep_backup=True)
    assert (mode(path), mode(backup_path(path))) == (0o600, 0o600)


@only_root
def test_a_file_that_root_writes_belongs_to_the_owner_of_its_directory(path: Path):
    write_atomically(path, b"one")
    os.chown(path.parent, SOMEBODY, SOMEBODY)
    write_atomically(path, b"two", keep_backup=True)
    for one in (path, backup_path(path)):
        assert (one.stat().st_uid, one.stat().st_gid) == (SOMEBODY, SOMEBODY)


def test_a_link_is_replaced_and_what_it_leads_to_stays(path: Path, tmp_path: Path):
    real = tmp_path / "real" / "index.json"
    real.parent.mkdir()
    real.write_bytes(b"precious")
    path.symlink_to(real)
    backup_path(path).symlink_to(real)
    write_atomically(path, b"one", keep_backup=True)
    write_atomically(path, b"two", keep_backup=True)
    assert (path.read_bytes(), backup_path(path).read_bytes()) == (b"two", b"one")
    assert not path.is_symlink()
    assert not backup_path(path).is_symlink()
    assert real.read_bytes() == b"precious"
    assert names(real.parent) == ["index.json"]


def test_a_link_that_is_set_aside_is_moved_itself(path: Path, tmp_path: Path):
    real = tmp_path / "real.json"
    real.write_bytes(b"precious")
    path.symlink_to(real)
    place = move_to_quarantine(path, tmp_path / "quarantine", "20261118")
    assert place.is_symlink()
    assert real.read_bytes() == b"precious"
    assert not path.is_symlink()


def test_a_path_that_a_person_names_is_followed(path: Path, tmp_path: Path):
    path.symlink_to(tmp_path / "real.json")
    assert follow_named_path(path) == tmp_path / "real.json"


def test_links_in_a_circle_are_an_error(path: Path):
    other = path.with_name("other.json")
    path.symlink_to(other)
    other.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        follow_named_path(path)


@only_root
def test_a_link_that_another_user_made_is_not_followed(path: Path, tmp_path: Path):
    path.symlink_to(tmp_path / "victim")
    os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
    with pytest.raises(UnsupportedStorageError, match="another user"):
        follow_named_path(path)


@only_root
def test_a_link_in_the_directory_of_another_user_is_not_followed(path: Path, tmp_path: Path):
    path.symlink_to(tmp_path / "victim")
    os.chown(path.parent, SOMEBODY, SOMEBODY)
    with pytest.raises(UnsupportedStorageError, match="another user"):
        follow_named_path(path)


def test_a_directory_that_everybody_can_write_is_refused(path: Path):
    path.parent.chmod(0o777)
    with pytest.raises(UnsupportedStorageError, match="written by everybody"):
        write_atomically(path, b"one")
    path.parent.chmod(0o1777)
    write_atomically(path, b"one")


def test_what_is_no_file_is_refused(path: Path):
    path.mkdir()
    with pytest.raises(UnsupportedStorageError, match="not a regular file"):
        write_atomically(path, b"one")
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(UnsupportedStorageError, match="not a regular file"):
        read_whole_file(path)


def test_a_missing_directory_is_an_error(path: Path):
    with pytest.raises(FileNotFoundError):
        write_atomically(path / "below" / "it", b"one")


def test_the_backup_is_the_generation_before(path: Path):
    write_atomically(path, b"one", keep_backup=True)
    assert not backup_path(path).exists()
    write_atomically(path, b"two", keep_backup=True)
    assert backup_path(path).read_bytes() == b"one"
    write_atomically(path, b"three", keep_backup=True)
    assert backup_path(path).read_bytes() == b"two"
    assert names(path.parent) == ["sessions.json", "sessions.json.bak"]


def test_without_hard_links_the_backup_is_a_copy(path: Path):
    write_atomically(path, b"one")
    write_atomically(path, b"two", files=NoLinks(), keep_backup=True)
    assert backup_path(path).read_bytes() == b"one"
    assert names(path.parent) == ["sessions.json", "sessions.json.bak"]


def test_another_failure_of_the_link_is_passed_on(path: Path):
    write_atomically(path, b"one")
    with pytest.raises(OSError, match="broken"):
        write_atomically(path, b"two", files=BrokenLinks(), keep_backup=True)
    assert path.read_bytes() == b"one"
    assert names(path.parent) == ["sessions.json"]


def test_a_crash_between_backup_and_rename_leaves_nothing_behind_at_the_next_write(path: Path):
    write_atomically(path, b"one")
    os.link(path, backup_path(path))
    write_atomically(path, b"two", keep_backup=True)
    assert (path.read_bytes(), backup_path(path).read_bytes()) == (b"two", b"one")
    assert names(path.parent) == ["sessions.json", "sessions.json.bak"]


def test_the_sweep_removes_what_interrupted_writes_left_and_nothing_else(path: Path):
    left = [".sessions.json.ab_9zzzz.tmp", ".sessions.json.bak.ab_9zzzz.tmp"]
    kept = [
        ".sessions.json.tmp",
        ".sessions.json.short.tmp",
        ".other.json.ab_9zzzz.tmp",
        ".sessionsXjson.ab_9zzzz.tmp",
    ]
    for name in (*left, *kept, "sessions.json"):
        (path.parent / name).write_bytes(b"")
    assert remove_temporaries_of(path) == len(left)
    assert names(path.parent) == sorted([*kept, "sessions.json"])
    assert remove_temporaries_of(path) == 0


def test_the_sweep_of_a_directory_that_is_not_there_finds_nothing(path: Path):
    assert remove_temporaries_of(path / "below" / "it") == 0


def test_what_the_writer_makes_is_what_the_sweep_removes(path: Path):
    descriptor, made = FileCalls().create(path.parent, f".{path.name}.")
    os.close(descriptor)
    assert remove_temporaries_of(path) == 1
    assert not made.exists()


def test_the_end_of_a_file_comes_with_its_size(path: Path):
    assert read_bytes_tail(path, 4) is None
    path.write_bytes(b"0123456789")
    assert read_bytes_tail(path, 4) == (10, b"6789")
    assert read_bytes_tail(path, 10) == (10, b"0123456789")
    assert read_bytes_tail(path, 4096) == (10, b"0123456789")
    path.write_bytes(b"")
    assert read_bytes_tail(path, 4) == (0, b"")


def test_all_of_a_file_is_read_also_when_it_is_large(path: Path):
    assert read_whole_file(path) is None
    data = bytes(range(256)) * 10_000
    path.write_bytes(data)
    assert read_whole_file(path) == data


def test_a_file_is_removed_also_when_there_is_none(path: Path):
    write_atomically(path, b"one")
    remove_file(path)
    assert not path.exists()
    remove_file(path)


@pytest.mark.parametrize("files", [FileCalls(), NoLinks()])
def test_a_file_set_aside_keeps_its_bytes_and_overwrites_nothing(path: Path, files: FileCalls):
    quarantine = path.parent / "quarantine" / "deep"
    places = []
    for number in range(3):
        path.write_bytes(b"damaged %d" % number)
        places.append(move_to_quarantine(path, quarantine, "20261118T091108", files=files))
        assert not path.exists()
    assert [place.name for place in places] == [
        "sessions.json.20261118T091108",
        "sessions.json.20261118T091108-2",
        "sessions.json.20261118T091108-3",
    ]
    assert [place.read_bytes() for place in places] == [b"damaged 0", b"damaged 1", b"damaged 2"]
    assert mode(quarantine) == 0o700


def test_a_failure_to_set_aside_leaves_the_file(path: Path):
    path.write_bytes(b"damaged")
    with pytest.raises(OSError, match="broken"):
        move_to_quarantine(path, path.parent / "quarantine", "now", files=BrokenLinks())
    assert path.read_bytes() == b"damaged"


def test_setting_aside_what_is_not_there_is_an_error(path: Path):
    with pytest.raises(FileNotFoundError):
        move_to_quarantine(path, path.parent / "quarantine", "now")


def test_a_directory_that_cannot_be_synced_is_accepted_where_the_filesystem_has_no_such_thing(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(failure, "no")

    monkeypatch.setattr(os, "fsync", fsync)
    failure = errno.EINVAL
    write_atomically(path, b"one")
    failure = errno.EIO
    with pytest.raises(OSError, match="no"):
        write_atomically(path, b"two")
