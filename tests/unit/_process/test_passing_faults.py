"""Which faults of the database pass, and how often one turn may meet them."""

import pytest

from gateway_sessions._process import retry
from gateway_sessions._process.retry import SpoiltTries, is_passing_fault
from gateway_sessions.errors import (
    FencedError,
    MissingRightError,
    NodeSilentError,
    NoStoreError,
    SchemaTooOldError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageUnavailableError,
)


@pytest.mark.parametrize(
    "kind", [StorageUnavailableError, StorageFullError, NodeSilentError, StorageLockedError]
)
def test_what_may_be_better_in_a_moment_passes(kind: type[StorageError]):
    assert is_passing_fault(kind("PostgreSQL", "no"))


@pytest.mark.parametrize(
    "error",
    [
        None,
        ValueError("the agent's own"),
        FencedError("lane", 1),
        StorageError("PostgreSQL", "UndefinedTableError 42P01"),
        StorageCorruptError("PostgreSQL", "damaged"),
        MissingRightError("PostgreSQL", "permission denied"),
        NoStoreError("/nowhere"),
        SchemaTooOldError("PostgreSQL", found=5, ours=7),
    ],
)
def test_nothing_else_does(error: Exception | None):
    assert not is_passing_fault(error)


def test_a_fault_is_known_beneath_what_was_raised_because_of_it():
    fault = StorageUnavailableError("PostgreSQL", "away")
    wrapped = LookupError("a tool has failed")
    wrapped.__cause__ = ExceptionGroup("tools", [ValueError("another one"), fault])
    during = RuntimeError("while another was dealt with")
    during.__context__ = wrapped
    assert is_passing_fault(during)


def test_errors_that_name_each_other_are_looked_at_once():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert not is_passing_fault(first)


def test_tries_are_counted_for_each_turn():
    spoilt = SpoiltTries()
    assert [spoilt.count_one("lane", 1), spoilt.count_one("lane", 1), spoilt.count_one("lane", 2)] == [
        1,
        2,
        1,
    ]
    assert (spoilt.count_of("lane", 1), spoilt.count_of("other", 1)) == (2, 0)
    spoilt.forget("lane", 1)
    spoilt.forget("lane", 1)
    assert (spoilt.count_of("lane", 1), spoilt.count_of("lane", 2)) == (0, 1)


def test_only_so_many_turns_are_remembered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retry, "_REMEMBERED", 2)
    spoilt = SpoiltTries()
    for seq in (1, 2, 1, 3):
        spoilt.count_one("lane", seq)
    assert [spoilt.count_of("lane", seq) for seq in (1, 2, 3)] == [2, 0, 1]
