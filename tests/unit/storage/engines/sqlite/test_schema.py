"""Taking a script apart, and refusing a library that is too old."""

import pytest

from gateway_sessions.errors import SchemaTooNewError, UnsupportedStorageError
from gateway_sessions.storage.engines.migrations import SchemaVersion, plan_migrations
from gateway_sessions.storage.engines.sqlite.schema import (
    OLDEST_SQLITE,
    check_sqlite_version,
    split_statements,
)
from gateway_sessions.storage.tables.sql_files import Migration

STEPS = tuple(Migration(version, f"000{version}_step", "") for version in (1, 2, 3))


def test_a_script_is_taken_apart_at_the_ends_of_statements_only():
    script = (
        "-- a comment; with a semicolon\n"
        "CREATE TABLE one (x TEXT DEFAULT ';');\n"
        "CREATE TRIGGER two AFTER INSERT ON one BEGIN\n"
        "    DELETE FROM one;\n"
        "    SELECT 1;\n"
        "END;\n"
        "\n"
        "DROP TABLE one;\n"
    )
    found = [statement.strip().splitlines()[0] for statement in split_statements(script)]
    assert found == [
        "-- a comment; with a semicolon",
        "CREATE TRIGGER two AFTER INSERT ON one BEGIN",
        "DROP TABLE one;",
    ]


def test_a_library_that_is_too_old_is_refused_with_both_versions():
    with pytest.raises(UnsupportedStorageError, match=r"3\.36\.9 .*3\.37\.0"):
        check_sqlite_version((3, 36, 9))
    check_sqlite_version(OLDEST_SQLITE)
    check_sqlite_version((3, 51, 3))


@pytest.mark.parametrize(
    ("found", "due"),
    [
        (None, [1, 2, 3]),
        (SchemaVersion(1, 1), [2, 3]),
        (SchemaVersion(3, 1), []),
        (SchemaVersion(9, 3), []),
    ],
)
def test_exactly_the_missing_steps_are_due(found: SchemaVersion | None, due: list[int]):
    assert [step.version for step in plan_migrations("path", found, STEPS)] == due


def test_what_only_newer_programs_can_read_is_refused():
    with pytest.raises(SchemaTooNewError, match="schema version 4, this program knows 3"):
        plan_migrations("path", SchemaVersion(4, 4), STEPS)
