"""What MySQL and MariaDB say, in our words."""

import pytest
from asyncmy.errors import (
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    MySQLError,
    OperationalError,
    ProgrammingError,
)

from gateway_sessions.errors import (
    GatewaySessionsError,
    InvalidInputError,
    MissingRightError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)
from gateway_sessions.storage.engines.mysql.errors import (
    FOREIGN,
    ends_connection,
    is_conflict,
    translate_error,
    was_cut_before_answer,
)


def in_state(state: str, error: MySQLError) -> MySQLError:
    error.sqlstate = state
    return error


QUOTED = "Duplicate entry 'private' for key 'PRIMARY'"


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (OperationalError(1142, "CREATE command denied to user 'gateway'"), MissingRightError),
        (OperationalError(1021, "Disk full (private)"), StorageFullError),
        (OperationalError(1114, "The table 'private' is full"), StorageFullError),
        (InternalError(1030, 'Got error 28 "No space left on device" from storage engine'), StorageFullError),
        (InternalError(1030, "Got error 168 from storage engine"), StorageUnavailableError),
        (InternalError(1712, "Index private is corrupted"), StorageCorruptError),
        (OperationalError(1034, "Incorrect key file for table 'private'"), StorageCorruptError),
        (DataError(1406, "Data too long for column 'private'"), InvalidInputError),
        (DataError(1264, "Out of range value"), InvalidInputError),
        (DataError(1366, "Incorrect string value: 'private'"), InvalidInputError),
        (OperationalError(1153, "Got a packet bigger than 'max_allowed_packet' bytes"), InvalidInputError),
        (OperationalError(1045, "Access denied for user 'private'"), StorageUnavailableError),
        (OperationalError(1049, "Unknown database 'private'"), StorageUnavailableError),
        (OperationalError(1040, "Too many connections"), StorageUnavailableError),
        (OperationalError(1205, "Lock wait timeout exceeded"), StorageLockedError),
        (OperationalError(1213, "Deadlock found"), StorageUnavailableError),
        (OperationalError(1290, "The server is running with --read-only"), StorageUnavailableError),
        (OperationalError(1969, "max_statement_time exceeded"), StorageUnavailableError),
        (OperationalError(2003, "Can't connect to MySQL server on 'private'"), StorageUnavailableError),
        (OperationalError(2013, "Lost connection to MySQL server during query"), StorageUnavailableError),
        (InterfaceError(0, "Not connected"), StorageUnavailableError),
        (InternalError("Packet sequence number wrong"), StorageUnavailableError),
        (ConnectionRefusedError("private"), StorageUnavailableError),
        (TimeoutError("private"), StorageUnavailableError),
        (OverflowError("private"), InvalidInputError),
        (IntegrityError(1062, QUOTED), StorageError),
        (ProgrammingError(1146, "Table 'private' doesn't exist"), StorageError),
        (ProgrammingError(1064, "You have an error in your SQL syntax"), StorageError),
        (OperationalError(1054, "Unknown column 'private'"), StorageError),
        (in_state("42S22", OperationalError(1999, "private")), StorageError),
        (in_state("HY000", OperationalError(1999, "private")), StorageUnavailableError),
        (OperationalError(9001, "a proxy that says it in its own words: private"), StorageUnavailableError),
        (MySQLError(), StorageUnavailableError),
    ],
)
def test_every_error_of_the_driver_is_one_of_ours(error: Exception, ours: type[GatewaySessionsError]):
    assert isinstance(error, FOREIGN)
    assert type(translate_error(error)) is ours
    assert "private" not in str(translate_error(error))


def test_a_text_that_no_database_can_hold_is_refused():
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    assert isinstance(translate_error(caught.value), InvalidInputError)


def test_what_the_system_says_is_told():
    assert "Connection refused" in str(translate_error(OSError(111, "Connection refused")))
    unreachable = OperationalError(2003, "Can't connect")
    unreachable.__cause__ = OSError(111, "Connection refused")
    assert "Connection refused" in str(translate_error(unreachable))


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ("refuses the login", 1045),
        ("refuses the login", 3159),
        ("no database", 1049),
        ("max_allowed_packet", 1153),
    ],
)
def test_what_an_operator_can_mend_is_told(told: str, code: int):
    assert told in str(translate_error(OperationalError(code, "private")))


def test_only_what_others_did_is_tried_again():
    assert all(is_conflict(MySQLError(code, "")) for code in (1020, 1048, 1062, 1205, 1213))
    assert not any(is_conflict(MySQLError(code, "")) for code in (1049, 1146, 1406, 2013))
    assert not is_conflict(TimeoutError())


def test_a_lost_connection_is_told_from_a_failed_statement():
    for error in (OperationalError(2013, ""), OperationalError(1927, ""), InterfaceError(0, ""), OSError()):
        assert ends_connection(error)
    assert not ends_connection(IntegrityError(1062, QUOTED))
    assert not ends_connection(OperationalError(1213, ""))


def test_a_server_that_may_only_be_read_is_looked_for_anew():
    for error in (OperationalError(1290, ""), OperationalError(1836, ""), OperationalError(2006, "")):
        assert was_cut_before_answer(error)
    assert not was_cut_before_answer(OperationalError(1205, ""))
    assert not was_cut_before_answer(TimeoutError())
