"""What SQLite says becomes one of our errors, and never loses its cause."""

import errno
import os
import sqlite3

import pytest

from gateway_sessions.errors import (
    InvalidInputError,
    InvalidTitleError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.storage.engines.sqlite.errors import translate_error


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (sqlite3.SQLITE_FULL, StorageFullError),
        (sqlite3.SQLITE_CORRUPT, StorageCorruptError),
        (sqlite3.SQLITE_CORRUPT_VTAB, StorageCorruptError),
        (sqlite3.SQLITE_NOTADB, StorageCorruptError),
        (sqlite3.SQLITE_BUSY, StorageLockedError),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StorageLockedError),
        (sqlite3.SQLITE_IOERR_FSYNC, StorageUnavailableError),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageUnavailableError),
        (sqlite3.SQLITE_CANTOPEN, StorageUnavailableError),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, StorageError),
        (None, StorageError),
    ],
)
def test_each_code_has_its_error(code: int | None, expected: type[StorageError]):
    error = sqlite3.OperationalError("what SQLite says")
    if code is not None:
        error.sqlite_errorcode = code
    ours = translate_error(error, "/state/sessions.db")
    assert type(ours) is expected
    assert ours.__cause__ is error
    assert "/state/sessions.db" in str(ours)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.EIO, StorageUnavailableError),
        (errno.EACCES, StorageUnavailableError),
    ],
)
def test_a_disk_that_refuses_a_file_beside_the_database_is_told_of(number: int, expected: type[StorageError]):
    error = OSError(number, os.strerror(number), "/state/sessions.db.v1.bak")
    ours = translate_error(error, "/state/sessions.db")
    assert type(ours) is expected
    assert ours.__cause__ is error
    assert "/state/sessions.db.v1.bak" in str(ours)


def test_text_that_cannot_be_read_is_damage():
    with pytest.raises(UnicodeDecodeError) as error:
        b"\xa0".decode()
    assert type(translate_error(error.value, "path")) is StorageCorruptError


def test_text_that_cannot_be_stored_is_the_callers_error():
    with pytest.raises(UnicodeEncodeError) as error:
        "\ud800".encode()
    assert type(translate_error(error.value, "path")) is InvalidInputError


@pytest.mark.parametrize("error", [InvalidTitleError(9, 5), ZeroDivisionError(), StorageFullError("a", "b")])
def test_our_own_errors_and_bugs_pass_through(error: Exception):
    assert translate_error(error, "path") is error
