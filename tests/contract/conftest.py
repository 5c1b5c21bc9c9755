"""One database on a server for all tests, emptied for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway_sessions.testing.contract import LedgerContract
from tests.postgresql import kept_database
from tests.watched_moves import watching_moves


@pytest.fixture(scope="session")
def kept() -> Iterator[str]:
    """The DSN of a PostgreSQL database that has taken all migrations."""
    with kept_database() as dsn:
        yield dsn


@pytest.fixture(autouse=True)
def _watched_moves(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever changes a queue names the moves that it makes, on every engine."""
    if request.cls is None or not issubclass(request.cls, LedgerContract):
        yield
        return
    with watching_moves():
        yield
